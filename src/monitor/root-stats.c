/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/root-stats.h"

#include "core/network-count.h"
#include <string.h>

#define MIB (1024u * 1024)

static gint compare(gconstpointer a, gconstpointer b)
{
    const SvMachineStats *const *one = a, *const *two = b;
    return g_strcmp0((*one)->metadata->sandbox, (*two)->metadata->sandbox);
}

/* The records of the containers of a root, read once for all of its machines. (transfer none) */
static GPtrArray *records_of(GHashTable *roots, const char *root)
{
    GPtrArray *records = g_hash_table_lookup(roots, root);
    if (!records) {
        records = sv_record_list(root, NULL, NULL);
        if (!records)
            records = g_ptr_array_new();
        g_hash_table_insert(roots, g_strdup(root), records);
    }
    return records;
}

/* libvirt counts the room for more memory as memory, and does not find the network cards. */
static void take_record(const SvConfig *config, SvMachineStats *stats, GHashTable *roots)
{
    const char *root = stats->metadata->root;
    g_autoptr(SvPaths) paths = sv_paths_new(config, root, stats->metadata->sandbox, FALSE, NULL);
    g_autoptr(SvSandboxRecord) record = paths ? sv_sandbox_record_load(paths, NULL) : NULL;
    if (!record)
        return;
    if (record->memory_mib > 0)
        stats->memory = record->memory_mib * MIB;
    sv_network_count(record, records_of(roots, root), &stats->net_received, &stats->net_sent);
}

GPtrArray *sv_root_stats(const SvConfig *config, const char *root, GError **error)
{
    GPtrArray *all = sv_libvirt_stats(config, error);
    g_autoptr(GHashTable) roots =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    for (guint i = all ? all->len : 0; i > 0; i--) {
        SvMachineStats *stats = all->pdata[i - 1];
        if (stats->metadata->root && stats->metadata->sandbox &&
            (!root || g_str_equal(stats->metadata->root, root)))
            take_record(config, stats, roots);
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

static GPtrArray *load_sandboxes(const SvConfig *config, const char *root)
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

static void root_free(gpointer data)
{
    SvRoot *root = data;
    g_free(root->path);
    g_ptr_array_unref(root->records);
    g_ptr_array_unref(root->sandboxes);
    g_free(root);
}

static gboolean add_root(const SvConfig *config, const char *path, GPtrArray *roots, GError **error)
{
    GPtrArray *records = sv_record_list(path, NULL, error);
    if (!records)
        return FALSE;
    SvRoot *root = g_new0(SvRoot, 1);
    root->path = g_strdup(path);
    root->records = records;
    root->sandboxes = load_sandboxes(config, path);
    g_ptr_array_add(roots, root);
    return TRUE;
}

static gint compare_paths(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

GPtrArray *sv_roots_load(
    const SvConfig *config, const char *root, const GPtrArray *machines, GError **error)
{
    g_autoptr(GPtrArray) roots = g_ptr_array_new_with_free_func(root_free);
    g_autoptr(GHashTable) paths = g_hash_table_new(g_str_hash, g_str_equal);
    if (root)
        g_hash_table_add(paths, (gpointer)root);
    for (guint i = 0; !root && i < machines->len; i++)
        g_hash_table_add(paths, ((SvMachineStats *)machines->pdata[i])->metadata->root);
    g_autoptr(GList) sorted = g_list_sort(g_hash_table_get_keys(paths), compare_paths);
    for (GList *path = sorted; path; path = path->next)
        if (!add_root(config, path->data, roots, error))
            return NULL;
    return g_steal_pointer(&roots);
}

const SvSandboxRecord *sv_root_sandbox(const SvRoot *root, const char *id)
{
    for (guint i = 0; i < root->sandboxes->len; i++) {
        const SvSandboxRecord *sandbox = root->sandboxes->pdata[i];
        if (g_str_equal(sandbox->id, id))
            return sandbox;
    }
    return NULL;
}
