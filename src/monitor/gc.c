/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/gc.h"

#include "base/fd.h"
#include "base/file.h"
#include "core/client.h"
#include "core/record.h"
#include "core/share.h"
#include "hypervisor/list.h"

#include <string.h>
#include <unistd.h>

#define SETTLE_MS 60000

typedef struct {
    const SvConfig *config;
    const char *config_path, *root, *monitor;
    gboolean dry_run;
    GHashTable *sandboxes; /* ids with a state folder or containers, set */
    GHashTable *hashes; /* of those, set */
    GError *error; /* the first */
} Gc;

static void note(Gc *gc, GError *error)
{
    if (!error)
        return;
    g_warning("ignoring: %s", error->message);
    if (gc->error)
        g_error_free(error);
    else
        gc->error = error;
}

static void found(const Gc *gc, const char *what, const char *name)
{
    g_autofree char *text = sv_printable(name, 4096);
    g_print("%s%s %s\n", gc->dry_run ? "would " : "", what, text);
}

/* ---- sandboxes without a monitor: a new one takes over and ends what is to end */

static gboolean is_locked(const SvPaths *paths)
{
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) lock = sv_file_lock(paths->lock_file, &error);
    return lock < 0 && sv_error_is(error, SV_ERR_BUSY);
}

static void settle(Gc *gc, const SvPaths *paths)
{
    GError *error = NULL;
    guint32 stream = 1;
    g_auto(SvFd) fd =
        sv_client_ensure(paths, gc->monitor, gc->config_path, FALSE, SETTLE_MS, &error);
    if (fd >= 0)
        sv_client_call(fd, &stream, "Settle", NULL, NULL, SETTLE_MS, &error);
    note(gc, error);
}

static void check_sandbox(Gc *gc, const char *id)
{
    GError *error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(gc->config, gc->root, id, FALSE, &error);
    if (!paths) {
        note(gc, error);
        return;
    }
    g_hash_table_add(gc->hashes, g_strdup(paths->hash));
    if (!g_file_test(paths->state_dir, G_FILE_TEST_IS_DIR) || !is_locked(paths)) {
        found(gc, "take over sandbox", id);
        if (!gc->dry_run)
            settle(gc, paths);
    }
}

static void add_folder_names(GHashTable *set, const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)))
        if (name[0] != '.')
            g_hash_table_add(set, g_strdup(name));
}

static void collect_sandboxes(Gc *gc)
{
    GError *error = NULL;
    g_autofree char *top = g_build_filename(gc->root, ".sandbox", NULL);
    add_folder_names(gc->sandboxes, top);
    g_autoptr(GPtrArray) records = sv_record_list(gc->root, NULL, &error);
    note(gc, error);
    for (guint i = 0; records && i < records->len; i++) {
        const SvRecord *record = records->pdata[i];
        if (record->sandbox)
            g_hash_table_add(gc->sandboxes, g_strdup(record->sandbox));
    }
}

/* ---- domains that carry our metadata and this root, of a sandbox nobody knows */

static void check_domains(Gc *gc)
{
    GError *error = NULL;
    g_autoptr(SvInventory) inventory = sv_libvirt_inventory(gc->config, &error);
    note(gc, error);
    for (guint i = 0; inventory && i < inventory->domains->len; i++) {
        const SvFound *domain = inventory->domains->pdata[i];
        const SvMetadata *metadata = domain->metadata;
        if (g_strcmp0(metadata->root, gc->root) != 0 || !metadata->sandbox ||
            g_hash_table_contains(gc->sandboxes, metadata->sandbox))
            continue;
        found(gc, "end domain", domain->name);
        error = NULL;
        if (!gc->dry_run && !sv_libvirt_end_domain(gc->config, domain->uuid, gc->root, &error))
            note(gc, error);
    }
}

/* ---- boxes: mounts, sockets and folders below RUN */

static void check_box(Gc *gc, const char *hash)
{
    g_autofree char *root = NULL, *sandbox = NULL;
    GError *error = NULL;
    if (!sv_share_owner(gc->config, hash, &root, &sandbox) || g_strcmp0(root, gc->root) != 0 ||
        g_hash_table_contains(gc->sandboxes, sandbox))
        return;
    g_autoptr(SvPaths) paths = sv_paths_new(gc->config, gc->root, sandbox, FALSE, &error);
    if (!paths) {
        note(gc, error);
        return;
    }
    found(gc, "remove mounts and files of sandbox", sandbox);
    if (gc->dry_run)
        return;
    if (!sv_share_destroy(paths, &error))
        note(gc, error);
    unlink(paths->agent_socket);
    unlink(paths->monitor_socket);
}

static void check_boxes(Gc *gc)
{
    g_autoptr(GHashTable) boxes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *top = g_build_filename(gc->config->run_dir, ".box", NULL);
    GHashTableIter iter;
    gpointer name;
    add_folder_names(boxes, top);
    g_hash_table_iter_init(&iter, boxes);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        if (!g_hash_table_contains(gc->hashes, name))
            check_box(gc, name);
}

gboolean sv_gc(const SvConfig *config, const char *config_path, const char *root,
    const char *monitor, gboolean dry_run, GError **error)
{
    Gc gc = {config, config_path, NULL, monitor, dry_run, NULL, NULL, NULL};
    g_autoptr(SvPaths) any = sv_paths_new(config, root, "gc", FALSE, error);
    if (!any)
        return FALSE;
    gc.root = any->root;
    g_autoptr(GHashTable) sandboxes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) hashes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gc.sandboxes = sandboxes;
    gc.hashes = hashes;
    GHashTableIter iter;
    gpointer id;
    collect_sandboxes(&gc);
    g_hash_table_iter_init(&iter, sandboxes);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        check_sandbox(&gc, id);
    check_domains(&gc);
    check_boxes(&gc);
    if (gc.error)
        g_propagate_error(error, gc.error);
    return gc.error == NULL;
}
