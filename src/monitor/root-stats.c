/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/root-stats.h"

#include "core/network-count.h"

#define MIB (1024u * 1024)

static gint compare(gconstpointer a, gconstpointer b)
{
    const SvMachineStats *const *one = a, *const *two = b;
    return g_strcmp0((*one)->metadata->sandbox, (*two)->metadata->sandbox);
}

/* libvirt counts the room for more memory as memory, and does not find the network cards. */
static void take_record(
    const SvConfig *config, const char *root, const GPtrArray *containers, SvMachineStats *stats)
{
    g_autoptr(SvPaths) paths = sv_paths_new(config, root, stats->metadata->sandbox, FALSE, NULL);
    g_autoptr(SvSandboxRecord) record = paths ? sv_sandbox_record_load(paths, NULL) : NULL;
    if (record && record->memory_mib > 0)
        stats->memory = record->memory_mib * MIB;
    if (record)
        sv_network_count(record, containers, &stats->net_received, &stats->net_sent);
}

GPtrArray *sv_root_stats(const SvConfig *config, const char *root, GError **error)
{
    GPtrArray *all = sv_libvirt_stats(config, error);
    g_autoptr(GPtrArray) containers = all ? sv_record_list(root, NULL, NULL) : NULL;
    for (guint i = all ? all->len : 0; i > 0; i--) {
        SvMachineStats *stats = all->pdata[i - 1];
        if (g_strcmp0(stats->metadata->root, root) == 0 && stats->metadata->sandbox)
            take_record(config, root, containers, stats);
        else
            g_ptr_array_remove_index(all, i - 1);
    }
    if (all)
        g_ptr_array_sort(all, compare);
    return all;
}

static gint compare_records(gconstpointer a, gconstpointer b)
{
    const SvSandboxRecord *const *one = a, *const *two = b;
    return g_strcmp0((*one)->id, (*two)->id);
}

GPtrArray *sv_root_sandboxes(const SvConfig *config, const char *root)
{
    GPtrArray *records = g_ptr_array_new_with_free_func((GDestroyNotify)sv_sandbox_record_free);
    g_autofree char *top = g_build_filename(root, ".sandbox", NULL);
    g_autoptr(GDir) dir = g_dir_open(top, 0, NULL);
    const char *name = NULL;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autoptr(SvPaths) paths = sv_paths_new(config, root, name, FALSE, NULL);
        SvSandboxRecord *record = paths ? sv_sandbox_record_load(paths, NULL) : NULL;
        if (record)
            g_ptr_array_add(records, record);
    }
    g_ptr_array_sort(records, compare_records);
    return records;
}
