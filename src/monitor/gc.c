/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/gc.h"

#include "base/fd.h"
#include "base/file.h"
#include "core/client.h"
#include "core/record.h"
#include "core/share.h"
#include "core/uids.h"
#include "devices/block-claim.h"
#include "hypervisor/list.h"

#include <string.h>
#include <unistd.h>

#define SETTLE_MS 60000

typedef struct {
    const SvConfig *config;
    const char *config_path, *root, *monitor;
    gboolean dry_run;
    GHashTable *sandboxes; /* ids with a state folder or containers, set */
    GHashTable *lost; /* ids that only something left over names, set */
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

static GHashTable *new_set(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static void add_folder_names(GHashTable *set, const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)))
        if (name[0] != '.')
            g_hash_table_add(set, g_strdup(name));
}

/* ---- sandboxes without a monitor: a new one takes over and ends what is to end */

static gboolean is_locked(const SvPaths *paths)
{
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) lock = sv_file_lock(paths->lock_file, &error);
    return lock < 0 && sv_error_is(error, SV_ERR_BUSY);
}

static void settle(Gc *gc, const SvPaths *paths, const char *config_path)
{
    GError *error = NULL;
    guint32 stream = 1;
    g_auto(SvFd) fd = sv_client_ensure(paths, gc->monitor, config_path, FALSE, SETTLE_MS, &error);
    if (fd >= 0)
        sv_client_call(fd, &stream, "Settle", NULL, NULL, SETTLE_MS, &error);
    note(gc, error);
}

static void take_over(Gc *gc, const SvPaths *paths)
{
    GError *error = NULL;
    g_autoptr(SvSandboxRecord) record = sv_sandbox_record_load(paths, NULL);
    const char *path = gc->config_path;
    const SvConfig *config;
    if (path || !record || !record->config_path || access(record->config_path, F_OK) != 0) {
        settle(gc, paths, path);
        return;
    }
    /* made with --config: found again without it */
    config = sv_config_load(record->config_path, &error);
    g_autoptr(SvPaths) own =
        config ? sv_paths_new(config, gc->root, paths->sandbox, FALSE, &error) : NULL;
    if (own)
        settle(gc, own, record->config_path);
    note(gc, error);
    sv_config_unref(config);
}

static void check_sandbox(Gc *gc, const char *id)
{
    GError *error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(gc->config, gc->root, id, FALSE, &error);
    if (!paths) {
        note(gc, error);
        return;
    }
    if (g_file_test(paths->state_dir, G_FILE_TEST_IS_DIR) && is_locked(paths))
        return;
    found(gc, "take over sandbox", id);
    if (!gc->dry_run)
        take_over(gc, paths);
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

/* ---- what names a sandbox of this root that nobody knows */

static void add_lost(Gc *gc, const char *root, const char *sandbox)
{
    if (g_strcmp0(root, gc->root) == 0 && sandbox && !g_hash_table_contains(gc->sandboxes, sandbox))
        g_hash_table_add(gc->lost, g_strdup(sandbox));
}

static void collect_from_folders(Gc *gc, const char *top)
{
    g_autoptr(GHashTable) names = new_set();
    GHashTableIter iter;
    gpointer name;
    add_folder_names(names, top);
    g_hash_table_iter_init(&iter, names);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        g_autofree char *folder = g_build_filename(top, name, NULL);
        g_autofree char *root = NULL, *sandbox = NULL;
        if (sv_share_owner(folder, &root, &sandbox))
            add_lost(gc, root, sandbox);
    }
}

static void collect_lost(Gc *gc, const SvPaths *any, const SvInventory *inventory)
{
    g_autofree char *boxes = g_path_get_dirname(any->box_dir);
    g_autofree char *boots = g_path_get_dirname(any->boot_dir);
    g_autofree char *disks = g_build_filename(gc->config->run_dir, ".disk", NULL);
    collect_from_folders(gc, boxes);
    collect_from_folders(gc, boots);
    for (guint i = 0; inventory && i < inventory->domains->len; i++) {
        const SvFound *domain = inventory->domains->pdata[i];
        add_lost(gc, domain->metadata->root, domain->metadata->sandbox);
    }
    g_autoptr(GPtrArray) uids = sv_uids_list(gc->config);
    for (guint i = 0; i < uids->len; i++) {
        const SvUidClaim *claim = uids->pdata[i];
        add_lost(gc, claim->root, claim->sandbox);
    }
    g_autoptr(GPtrArray) claims = sv_block_claim_list(disks);
    for (guint i = 0; i < claims->len; i++) {
        const SvBlockClaim *claim = claims->pdata[i];
        add_lost(gc, claim->root, claim->sandbox);
    }
}

/* ---- the end of those */

static void end_domains(Gc *gc, const SvInventory *inventory, const char *sandbox)
{
    for (guint i = 0; inventory && i < inventory->domains->len; i++) {
        const SvFound *domain = inventory->domains->pdata[i];
        GError *error = NULL;
        if (g_strcmp0(domain->metadata->root, gc->root) != 0 ||
            g_strcmp0(domain->metadata->sandbox, sandbox) != 0)
            continue;
        found(gc, "end domain", domain->name);
        if (!gc->dry_run && !sv_libvirt_end_domain(gc->config, domain->uuid, gc->root, &error))
            note(gc, error);
    }
}

static void drop_claims(Gc *gc, const SvPaths *paths)
{
    g_autofree char *disks = g_build_filename(gc->config->run_dir, ".disk", NULL);
    g_autoptr(GPtrArray) uids = sv_uids_list(gc->config);
    for (guint i = 0; i < uids->len; i++)
        sv_uids_release(gc->config, paths, ((const SvUidClaim *)uids->pdata[i])->uid);
    g_autoptr(GPtrArray) claims = sv_block_claim_list(disks);
    for (guint i = 0; i < claims->len; i++) {
        const SvBlockClaim *claim = claims->pdata[i];
        if (g_strcmp0(claim->root, gc->root) == 0 && g_strcmp0(claim->sandbox, paths->sandbox) == 0)
            sv_block_claim_drop(disks, claim);
    }
}

static void end_lost(Gc *gc, const SvInventory *inventory, const char *sandbox)
{
    GError *error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(gc->config, gc->root, sandbox, FALSE, &error);
    if (!paths) {
        note(gc, error);
        return;
    }
    /* A monitor makes this folder before anything else: it has come since they were collected. */
    if (g_file_test(paths->state_dir, G_FILE_TEST_EXISTS))
        return;
    end_domains(gc, inventory, sandbox);
    found(gc, "remove mounts and files of sandbox", sandbox);
    if (gc->dry_run)
        return;
    if (!sv_share_destroy(paths, &error))
        note(gc, error);
    unlink(paths->agent_socket);
    unlink(paths->monitor_socket);
    drop_claims(gc, paths);
}

gboolean sv_gc(const SvConfig *config, const char *config_path, const char *root,
    const char *monitor, gboolean dry_run, GError **error)
{
    Gc gc = {config, config_path, NULL, monitor, dry_run, NULL, NULL, NULL};
    GError *local = NULL;
    g_autoptr(SvPaths) any = sv_paths_new(config, root, "gc", FALSE, error);
    if (!any)
        return FALSE;
    gc.root = any->root;
    g_autoptr(GHashTable) sandboxes = new_set();
    g_autoptr(GHashTable) lost = new_set();
    gc.sandboxes = sandboxes;
    gc.lost = lost;
    GHashTableIter iter;
    gpointer id;
    collect_sandboxes(&gc);
    g_hash_table_iter_init(&iter, sandboxes);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        check_sandbox(&gc, id);
    g_autoptr(SvInventory) inventory = sv_libvirt_inventory(config, &local);
    note(&gc, local);
    collect_lost(&gc, any, inventory);
    g_hash_table_iter_init(&iter, lost);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        end_lost(&gc, inventory, id);
    if (gc.error)
        g_propagate_error(error, gc.error);
    return gc.error == NULL;
}
