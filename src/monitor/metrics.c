/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/top.h"

#include "core/record.h"
#include "core/timeline.h"
#include "monitor/container-use.h"
#include "monitor/root-stats.h"

#include <string.h>

#define SHORT_US 1000

/* A label's value: backslash, quote and newline are written as \x. (transfer full) */
static char *escape(const char *text)
{
    g_autofree char *printable = sv_printable(text ? text : "", 300);
    GString *out = g_string_new(NULL);
    for (const char *c = printable; *c; c++) {
        if (*c == '\\' || *c == '"')
            g_string_append_c(out, '\\');
        g_string_append_c(out, *c);
    }
    return g_string_free(out, FALSE);
}

static void head(const char *name, const char *type, const char *help)
{
    g_print("# HELP sandvirt_%s %s\n# TYPE sandvirt_%s %s\n", name, help, name, type);
}

static const char *seconds(double value, char *buffer)
{
    return g_ascii_formatd(buffer, G_ASCII_DTOSTR_BUF_SIZE, "%.6f", value);
}

/* ---- machines */

typedef struct {
    const char *name, *type, *help;
    gsize offset; /* of a guint64 of SvMachineStats */
} Counter;

static const Counter counters[] = {
    {"memory_bytes", "gauge", "Memory of the machine.", G_STRUCT_OFFSET(SvMachineStats, memory)},
    {"memory_resident_bytes", "gauge", "Memory of its QEMU on the host.",
        G_STRUCT_OFFSET(SvMachineStats, memory_used)},
    {"disk_read_bytes_total", "counter", "Read from its disks.",
        G_STRUCT_OFFSET(SvMachineStats, disk_read)},
    {"disk_written_bytes_total", "counter", "Written to its disks.",
        G_STRUCT_OFFSET(SvMachineStats, disk_written)},
    {"file_read_bytes_total", "counter", "Read from files through its shared folder.",
        G_STRUCT_OFFSET(SvMachineStats, file_read)},
    {"file_written_bytes_total", "counter", "Written to files through its shared folder.",
        G_STRUCT_OFFSET(SvMachineStats, file_written)},
    {"network_received_bytes_total", "counter", "Received on its links.",
        G_STRUCT_OFFSET(SvMachineStats, net_received)},
    {"network_sent_bytes_total", "counter", "Sent on its links.",
        G_STRUCT_OFFSET(SvMachineStats, net_sent)},
};

static char *labels_of(const char *root, const char *id, const char *title)
{
    g_autofree char *path = escape(root);
    g_autofree char *sandbox = escape(id);
    g_autofree char *pod = escape(title);
    return g_strdup_printf("sandbox=\"%s\",pod=\"%s\",root=\"%s\"", sandbox, pod, path);
}

static char *machine_labels(const SvMachineStats *stats)
{
    return labels_of(stats->metadata->root, stats->metadata->sandbox, stats->title);
}

static void print_machines(const GPtrArray *all)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    head("machines", "gauge", "Machines that run.");
    g_print("sandvirt_machines %u\n", all->len);
    head("vcpus", "gauge", "Virtual CPUs of the machine.");
    for (guint i = 0; i < all->len; i++) {
        g_autofree char *labels = machine_labels(all->pdata[i]);
        g_print("sandvirt_vcpus{%s} %u\n", labels, ((SvMachineStats *)all->pdata[i])->vcpus);
    }
    head("cpu_seconds_total", "counter", "Time of its virtual CPUs.");
    for (guint i = 0; i < all->len; i++) {
        const SvMachineStats *stats = all->pdata[i];
        g_autofree char *labels = machine_labels(stats);
        g_print("sandvirt_cpu_seconds_total{%s} %s\n", labels,
            seconds((double)stats->cpu_ns / 1e9, buffer));
    }
    for (guint c = 0; c < G_N_ELEMENTS(counters); c++) {
        head(counters[c].name, counters[c].type, counters[c].help);
        for (guint i = 0; i < all->len; i++) {
            g_autofree char *labels = machine_labels(all->pdata[i]);
            g_print("sandvirt_%s{%s} %" G_GUINT64_FORMAT "\n", counters[c].name, labels,
                G_STRUCT_MEMBER(guint64, all->pdata[i], counters[c].offset));
        }
    }
}

/* ---- containers */

static guint count_state(const SvRoot *root, const char *state)
{
    guint n = 0;
    for (guint i = 0; i < root->records->len; i++)
        n += g_str_equal(
            sv_state_oci_name(sv_record_effective_state(root->records->pdata[i])), state);
    return n;
}

static guint count_ooms(const SvRoot *root)
{
    guint n = 0;
    for (guint i = 0; i < root->records->len; i++)
        n += ((const SvRecord *)root->records->pdata[i])->oom;
    return n;
}

static void print_states(const GPtrArray *roots)
{
    static const char *const states[] = {"created", "running", "paused", "stopped"};
    guint ooms = 0;
    head("containers", "gauge", "Containers by state.");
    for (guint s = 0; s < G_N_ELEMENTS(states); s++) {
        guint n = 0;
        for (guint i = 0; i < roots->len; i++)
            n += count_state(roots->pdata[i], states[s]);
        g_print("sandvirt_containers{state=\"%s\"} %u\n", states[s], n);
    }
    for (guint i = 0; i < roots->len; i++)
        ooms += count_ooms(roots->pdata[i]);
    head("oom_containers", "gauge",
        "Containers of which the kernel has killed a process for memory.");
    g_print("sandvirt_oom_containers %u\n", ooms);
}

/* ---- sandboxes */

/* Those of the deleted are in the sandbox's record, the others are added. */
static void add_stopped(const GPtrArray *records, const char *sandbox, guint exits[SV_N_CAUSES])
{
    for (guint i = 0; i < records->len; i++) {
        const SvRecord *record = records->pdata[i];
        if (record->state == SV_STATE_STOPPED && g_str_equal(record->sandbox, sandbox))
            exits[record->cause]++;
    }
}

static void print_exits_of(const SvRoot *root)
{
    for (guint i = 0; i < root->sandboxes->len; i++) {
        SvSandboxRecord *sandbox = root->sandboxes->pdata[i];
        g_autofree char *labels = labels_of(root->path, sandbox->id, sandbox->title);
        add_stopped(root->records, sandbox->id, sandbox->exits);
        for (guint cause = SV_CAUSE_NONE + 1; cause < SV_N_CAUSES; cause++)
            if (sandbox->exits[cause] > 0)
                g_print("sandvirt_exits_total{%s,cause=\"%s\"} %u\n", labels, sv_cause_name(cause),
                    sandbox->exits[cause]);
    }
}

static void print_restarts_of(const SvRoot *root)
{
    for (guint i = 0; i < root->sandboxes->len; i++) {
        const SvSandboxRecord *sandbox = root->sandboxes->pdata[i];
        g_autofree char *labels = labels_of(root->path, sandbox->id, sandbox->title);
        g_print("sandvirt_monitor_restarts_total{%s} %u\n", labels, sandbox->monitor_restarts);
    }
}

static void print_sandboxes(const GPtrArray *roots)
{
    head("exits_total", "counter", "Ends of containers by cause, in sandboxes that still exist.");
    for (guint i = 0; i < roots->len; i++)
        print_exits_of(roots->pdata[i]);
    head("monitor_restarts_total", "counter", "Monitors that took over from one that died.");
    for (guint i = 0; i < roots->len; i++)
        print_restarts_of(roots->pdata[i]);
}

/* ---- containers, one by one */

/* Labels of a container: itself, its name in the pod, its sandbox, its pod. (transfer full) */
static char *container_labels(const SvRoot *root, const SvRecord *record)
{
    g_autofree char *id = escape(record->id);
    g_autofree char *name = escape(record->name);
    const SvSandboxRecord *sandbox = sv_root_sandbox(root, record->sandbox);
    g_autofree char *others =
        labels_of(root->path, record->sandbox, sandbox ? sandbox->title : NULL);
    return g_strdup_printf("container=\"%s\",name=\"%s\",%s", id, name, others);
}

static void print_containers(const GArray *all)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    g_autoptr(GPtrArray) labels = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < all->len; i++)
        g_ptr_array_add(labels,
            container_labels(g_array_index(all, SvContainerUse, i).root,
                g_array_index(all, SvContainerUse, i).record));
    head("container_cpu_seconds_total", "counter", "CPU time of the container, in its machine.");
    for (guint i = 0; i < all->len; i++)
        g_print("sandvirt_container_cpu_seconds_total{%s} %s\n", (char *)labels->pdata[i],
            seconds((double)g_array_index(all, SvContainerUse, i).cpu_us / 1e6, buffer));
    head("container_memory_bytes", "gauge",
        "Memory of the container, its page cache included, in its machine.");
    for (guint i = 0; i < all->len; i++)
        g_print("sandvirt_container_memory_bytes{%s} %" G_GUINT64_FORMAT "\n",
            (char *)labels->pdata[i], g_array_index(all, SvContainerUse, i).memory);
    head("container_processes", "gauge", "Processes and threads of the container.");
    for (guint i = 0; i < all->len; i++)
        g_print("sandvirt_container_processes{%s} %" G_GUINT64_FORMAT "\n",
            (char *)labels->pdata[i], g_array_index(all, SvContainerUse, i).processes);
}

/* ---- starts */

/* A phase may come twice, and most take no time: what is below a millisecond is one, "other". */
static GHashTable *sum_phases(const SvTimeline *timeline)
{
    GHashTable *sums = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    for (guint p = 0; p < timeline->phases->len; p++) {
        const SvPhase *phase = timeline->phases->pdata[p];
        const char *name = phase->length_us < SHORT_US ? "other" : phase->name;
        const gint64 *before = g_hash_table_lookup(sums, name);
        gint64 sum = phase->length_us + (before ? *before : 0);
        g_hash_table_insert(sums, (gpointer)name, g_memdup2(&sum, sizeof sum));
    }
    return sums;
}

/* The totals are printed, the phases appended to @phases. */
static void print_starts_of(const SvRoot *root, GString *phases)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    for (guint i = 0; i < root->records->len; i++) {
        const SvRecord *record = root->records->pdata[i];
        g_autoptr(SvTimeline) timeline = sv_timeline_load(root->path, record->id, NULL);
        if (!timeline)
            continue;
        g_autofree char *labels = container_labels(root, record);
        g_autoptr(GHashTable) sums = sum_phases(timeline);
        g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(sums), (GCompareFunc)strcmp);
        g_print("sandvirt_start_seconds{%s,machine=\"%s\"} %s\n", labels,
            timeline->machine ? "new" : "there", seconds((double)timeline->total_us / 1e6, buffer));
        for (GList *name = names; name; name = name->next) {
            g_autofree char *phase = escape(name->data);
            g_string_append_printf(phases, "sandvirt_start_phase_seconds{%s,phase=\"%s\"} %s\n",
                labels, phase,
                seconds((double)*(gint64 *)g_hash_table_lookup(sums, name->data) / 1e6, buffer));
        }
    }
}

static void print_starts(const GPtrArray *roots)
{
    g_autoptr(GString) phases = g_string_new(NULL);
    head("start_seconds", "gauge",
        "From the create of a container until it was ready; machine: \"new\" or one that was "
        "\"there\".");
    for (guint i = 0; i < roots->len; i++)
        print_starts_of(roots->pdata[i], phases);
    head("start_phase_seconds", "gauge",
        "Where that time went; what took less than a millisecond is \"other\".");
    g_print("%s", phases->str);
}

gboolean sv_metrics(const SvConfig *config, const char *root, GError **error)
{
    g_autoptr(GPtrArray) machines = sv_root_stats(config, root, error);
    g_autoptr(GPtrArray) roots = machines ? sv_roots_load(config, root, machines, error) : NULL;
    if (!roots)
        return FALSE;
    g_autoptr(GArray) containers = sv_root_containers(config, roots, machines);
    print_machines(machines);
    print_states(roots);
    print_sandboxes(roots);
    print_containers(containers);
    print_starts(roots);
    return TRUE;
}
