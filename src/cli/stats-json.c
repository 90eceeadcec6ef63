/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/stats-json.h"
#include "base/names.h"
#include "core/stats-files.h"
#include <string.h>

static JsonObject *cpu(const Sandvirt__V1__StatsResponse *stats)
{
    const char *text = sv_stats_file(stats, "cpu.stat");
    JsonObject *usage = json_object_new();
    JsonObject *throttling = json_object_new();
    JsonObject *result = json_object_new();

    json_object_set_int_member(usage, "total", sv_stats_keyed(text, "usage_usec") * 1000);
    json_object_set_int_member(usage, "kernel", sv_stats_keyed(text, "system_usec") * 1000);
    json_object_set_int_member(usage, "user", sv_stats_keyed(text, "user_usec") * 1000);
    json_object_set_int_member(throttling, "periods", sv_stats_keyed(text, "nr_periods"));
    json_object_set_int_member(
        throttling, "throttledPeriods", sv_stats_keyed(text, "nr_throttled"));
    json_object_set_int_member(
        throttling, "throttledTime", sv_stats_keyed(text, "throttled_usec") * 1000);
    json_object_set_object_member(result, "usage", usage);
    json_object_set_object_member(result, "throttling", throttling);
    return result;
}

static JsonObject *memory_entry(gint64 usage, gint64 max, gint64 failures, gint64 limit)
{
    JsonObject *entry = json_object_new();

    json_object_set_int_member(entry, "limit", limit);
    json_object_set_int_member(entry, "usage", usage);
    json_object_set_int_member(entry, "max", max);
    json_object_set_int_member(entry, "failcnt", failures);
    return entry;
}

static JsonObject *memory_raw(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", 256);
    JsonObject *raw = json_object_new();

    for (char **line = lines; *line; line++) {
        char *space = strchr(*line, ' ');
        gint64 value = 0;

        if (!space)
            continue;
        *space = '\0';
        if (g_utf8_validate(*line, -1, NULL) &&
            sv_parse_int64(space + 1, 0, G_MAXINT64, &value, NULL))
            json_object_set_int_member(raw, *line, value);
    }
    return raw;
}

static JsonObject *memory(const Sandvirt__V1__StatsResponse *stats)
{
    const char *text = sv_stats_file(stats, "memory.stat");
    gint64 usage = sv_stats_number(stats, "memory.current", 0);
    gint64 swap = sv_stats_number(stats, "memory.swap.current", 0);
    gint64 swap_limit = sv_stats_number(stats, "memory.swap.max", SV_STATS_UNLIMITED);
    gint64 limit = sv_stats_number(stats, "memory.max", SV_STATS_UNLIMITED);
    gint64 failures = sv_stats_keyed(sv_stats_file(stats, "memory.events"), "max");
    JsonObject *result = json_object_new();

    json_object_set_int_member(result, "cache", sv_stats_keyed(text, "file"));
    json_object_set_object_member(result, "usage",
        memory_entry(usage, sv_stats_number(stats, "memory.peak", 0), failures, limit));
    json_object_set_object_member(result, "swap",
        memory_entry(usage + swap, 0, 0,
            swap_limit == SV_STATS_UNLIMITED || limit == SV_STATS_UNLIMITED ? SV_STATS_UNLIMITED
                                                                            : limit + swap_limit));
    json_object_set_object_member(result, "kernel", memory_entry(0, 0, 0, 0));
    json_object_set_object_member(result, "kernelTCP", memory_entry(0, 0, 0, 0));
    json_object_set_object_member(result, "raw", memory_raw(text));
    return result;
}

static JsonObject *pids(const Sandvirt__V1__StatsResponse *stats)
{
    gint64 limit = sv_stats_number(stats, "pids.max", SV_STATS_UNLIMITED);
    JsonObject *result = json_object_new();

    json_object_set_int_member(result, "current", sv_stats_number(stats, "pids.current", 0));
    json_object_set_int_member(result, "limit", limit == SV_STATS_UNLIMITED ? 0 : limit);
    return result;
}

/* "MAJ:MIN rbytes=1 wbytes=2 rios=3 wios=4 ..." */
static void blkio_line(JsonArray *bytes, JsonArray *ops, const char *line)
{
    static const struct {
        const char *key, *op;
        gboolean is_bytes;
    } columns[] = {{"rbytes", "Read", TRUE}, {"wbytes", "Write", TRUE}, {"rios", "Read", FALSE},
        {"wios", "Write", FALSE}};
    g_auto(GStrv) words = g_strsplit(line, " ", 32);
    g_auto(GStrv) device = words[0] ? g_strsplit(words[0], ":", 2) : NULL;
    gint64 major = 0, minor = 0;

    if (!device || !device[0] || !device[1] ||
        !sv_parse_int64(device[0], 0, G_MAXUINT32, &major, NULL) ||
        !sv_parse_int64(device[1], 0, G_MAXUINT32, &minor, NULL))
        return;
    for (char **word = words + 1; *word; word++) {
        for (guint i = 0; i < G_N_ELEMENTS(columns); i++) {
            gsize len = strlen(columns[i].key);
            gint64 value = 0;
            JsonObject *entry;

            if (strncmp(*word, columns[i].key, len) != 0 || (*word)[len] != '=' ||
                !sv_parse_int64(*word + len + 1, 0, G_MAXINT64, &value, NULL))
                continue;
            entry = json_object_new();
            json_object_set_int_member(entry, "major", major);
            json_object_set_int_member(entry, "minor", minor);
            json_object_set_string_member(entry, "op", columns[i].op);
            json_object_set_int_member(entry, "value", value);
            json_array_add_object_element(columns[i].is_bytes ? bytes : ops, entry);
        }
    }
}

static JsonObject *blkio(const Sandvirt__V1__StatsResponse *stats)
{
    g_auto(GStrv) lines = g_strsplit(sv_stats_file(stats, "io.stat"), "\n", 256);
    JsonArray *bytes = json_array_new();
    JsonArray *ops = json_array_new();
    JsonObject *result = json_object_new();

    for (char **line = lines; *line; line++)
        blkio_line(bytes, ops, *line);
    json_object_set_array_member(result, "ioServiceBytesRecursive", bytes);
    json_object_set_array_member(result, "ioServicedRecursive", ops);
    return result;
}

/* cgroup v1 alone has numbers for it. */
static JsonObject *cpuset(void)
{
    static const char *const names[] = {"cpu_exclusive", "mem_hardwall", "mem_exclusive",
        "memory_migrate", "memory_spread_page", "memory_spread_slab", "memory_pressure",
        "sched_load_balance", "sched_relax_domain_level"};
    JsonObject *result = json_object_new();

    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        json_object_set_int_member(result, names[i], 0);
    return result;
}

/* Of each size of huge pages that the machine's processor has. */
static JsonObject *hugetlb(const Sandvirt__V1__StatsResponse *stats)
{
    static const char *const sizes[] = {"2MB", "1GB"};
    JsonObject *result = json_object_new();

    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree char *usage = g_strdup_printf("hugetlb.%s.current", sizes[i]);
        g_autofree char *events = g_strdup_printf("hugetlb.%s.events", sizes[i]);
        JsonObject *entry;

        if (!*sv_stats_file(stats, usage))
            continue;
        entry = json_object_new();
        json_object_set_int_member(entry, "usage", sv_stats_number(stats, usage, 0));
        json_object_set_int_member(
            entry, "failcnt", sv_stats_keyed(sv_stats_file(stats, events), "max"));
        json_object_set_object_member(result, sizes[i], entry);
    }
    return result;
}

char *sv_stats_json(const char *id, const Sandvirt__V1__StatsResponse *stats)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    g_autofree char *text = NULL;
    JsonObject *root = json_object_new();
    JsonObject *data = json_object_new();

    json_object_set_object_member(data, "cpu", cpu(stats));
    json_object_set_object_member(data, "cpuset", cpuset());
    json_object_set_object_member(data, "memory", memory(stats));
    json_object_set_object_member(data, "pids", pids(stats));
    json_object_set_object_member(data, "blkio", blkio(stats));
    json_object_set_object_member(data, "hugetlb", hugetlb(stats));
    /* What a container in a machine has none of: runc prints it all the same. */
    json_object_set_object_member(data, "intel_rdt", json_object_new());
    json_object_set_null_member(data, "network_interfaces");
    json_object_set_string_member(root, "type", "stats");
    json_object_set_string_member(root, "id", id);
    json_object_set_object_member(root, "data", data);
    json_node_take_object(node, root);
    text = sv_json_text(node, FALSE);
    return g_strconcat(text, "\n", NULL);
}
