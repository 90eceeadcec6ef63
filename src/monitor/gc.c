/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/gc.h"

#include "base/fd.h"
#include "base/file.h"
#include "core/cgroup-mark.h"
#include "core/client.h"
#include "core/host-cgroup.h"
#include "core/owner.h"
#include "core/record.h"
#include "core/share.h"
#include "core/uids.h"
#include "devices/block-claim.h"
#include "hypervisor/list.h"
#include "monitor/gc-private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SETTLE_MS 60000

void sv_gc_note(SvGc *gc, GError *error)
{
    if (!error)
        return;
    g_warning("ignoring: %s", error->message);
    if (gc->error)
        g_error_free(error);
    else
        gc->error = error;
}

void sv_gc_found(const SvGc *gc, const char *what, const char *name)
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

static void settle(SvGc *gc, const SvPaths *paths, const char *config_path)
{
    GError *error = NULL;
    guint32 stream = 1;
    g_auto(SvFd) fd = sv_client_ensure(paths, gc->monitor, config_path, FALSE, SETTLE_MS, &error);
    if (fd >= 0)
        sv_client_call(fd, &stream, "Settle", NULL, NULL, SETTLE_MS, &error);
    sv_gc_note(gc, error);
}

static void take_over(SvGc *gc, const SvPaths *paths)
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
    sv_gc_note(gc, error);
    sv_config_unref(config);
}

static void check_sandbox(SvGc *gc, const char *id)
{
    GError *error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(gc->config, gc->root, id, FALSE, &error);
    if (!paths) {
        sv_gc_note(gc, error);
        return;
    }
    if (g_file_test(paths->state_dir, G_FILE_TEST_IS_DIR) && is_locked(paths))
        return;
    sv_gc_found(gc, "take over sandbox", id);
    if (!gc->dry_run)
        take_over(gc, paths);
}

static void collect_sandboxes(SvGc *gc)
{
    GError *error = NULL;
    g_autofree char *top = g_build_filename(gc->root, ".sandbox", NULL);
    add_folder_names(gc->sandboxes, top);
    g_autoptr(GPtrArray) records = sv_record_list(gc->root, NULL, &error);
    sv_gc_note(gc, error);
    for (guint i = 0; records && i < records->len; i++) {
        const SvRecord *record = records->pdata[i];
        if (record->sandbox)
            g_hash_table_add(gc->sandboxes, g_strdup(record->sandbox));
    }
}

/* ---- what names a sandbox of this root that nobody knows */

static void add_lost(SvGc *gc, const char *root, const char *sandbox)
{
    if (g_strcmp0(root, gc->root) == 0 && sandbox && !g_hash_table_contains(gc->sandboxes, sandbox))
        g_hash_table_add(gc->lost, g_strdup(sandbox));
}

static void collect_owner(SvGc *gc, const char *file)
{
    g_autofree char *root = NULL, *sandbox = NULL;
    if (sv_owner_read(file, &root, &sandbox))
        add_lost(gc, root, sandbox);
}

static void collect_from_folders(SvGc *gc, const char *top)
{
    g_autoptr(GHashTable) names = new_set();
    GHashTableIter iter;
    gpointer name;
    add_folder_names(names, top);
    g_hash_table_iter_init(&iter, names);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        g_autofree char *file = g_build_filename(top, name, SV_OWNER_FILE, NULL);
        collect_owner(gc, file);
    }
}

static void collect_from_sockets(SvGc *gc, const char *top)
{
    g_autoptr(GDir) dir = g_dir_open(top, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *file = g_build_filename(top, name, NULL);
        if (g_str_has_suffix(name, ".owner"))
            collect_owner(gc, file);
    }
}

static void collect_from_cgroups(SvGc *gc)
{
    for (guint i = 0; i < gc->cgroups->len; i++) {
        const SvCgroupMark *mark = gc->cgroups->pdata[i];
        /* Sandboxes that live may be in one that another has made. */
        if (mark->empty)
            add_lost(gc, mark->root, mark->sandbox);
    }
}

static void collect_lost(SvGc *gc, const SvPaths *any, const SvInventory *inventory)
{
    g_autofree char *boxes = g_path_get_dirname(any->box_dir);
    g_autofree char *boots = g_path_get_dirname(any->boot_dir);
    g_autofree char *disks = g_build_filename(gc->config->run_dir, ".disk", NULL);
    collect_from_folders(gc, boxes);
    collect_from_folders(gc, boots);
    collect_from_sockets(gc, any->sock_dir);
    collect_from_cgroups(gc);
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

static void end_domains(SvGc *gc, const SvInventory *inventory, const char *sandbox)
{
    for (guint i = 0; inventory && i < inventory->domains->len; i++) {
        const SvFound *domain = inventory->domains->pdata[i];
        GError *error = NULL;
        if (g_strcmp0(domain->metadata->root, gc->root) != 0 ||
            g_strcmp0(domain->metadata->sandbox, sandbox) != 0)
            continue;
        sv_gc_found(gc, "end domain", domain->name);
        if (!gc->dry_run && !sv_libvirt_end_domain(gc->config, domain->uuid, gc->root, &error))
            sv_gc_note(gc, error);
    }
}

static void drop_claims(SvGc *gc, const SvPaths *paths)
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

/* One that somebody lives in stays. */
static void remove_cgroups(const SvGc *gc, const char *sandbox)
{
    for (guint i = 0; i < gc->cgroups->len; i++) {
        const SvCgroupMark *mark = gc->cgroups->pdata[i];
        if (g_strcmp0(mark->root, gc->root) == 0 && g_strcmp0(mark->sandbox, sandbox) == 0 &&
            rmdir(mark->folder) < 0 && errno != ENOENT)
            g_debug("ignoring: %s: %s", mark->folder, g_strerror(errno));
    }
}

/* No monitor of that sandbox begins meanwhile. -1: one has, or it cannot be. */
static int lock_lost(SvGc *gc, const SvPaths *paths)
{
    GError *error = NULL;
    int lock = -1;
    if (sv_file_mkdirs(paths->state_dir, 0700, &error))
        lock = sv_file_lock(paths->lock_file, &error);
    if (sv_error_is(error, SV_ERR_BUSY))
        g_clear_error(&error);
    sv_gc_note(gc, error);
    return lock;
}

static void end_lost(SvGc *gc, const SvInventory *inventory, const char *sandbox)
{
    GError *error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(gc->config, gc->root, sandbox, FALSE, &error);
    if (!paths) {
        sv_gc_note(gc, error);
        return;
    }
    /* A monitor makes this folder before anything else: it has come since they were collected. */
    if (g_file_test(paths->state_dir, G_FILE_TEST_EXISTS))
        return;
    g_auto(SvFd) lock = gc->dry_run ? -1 : lock_lost(gc, paths);
    if (lock < 0 && !gc->dry_run)
        return;
    end_domains(gc, inventory, sandbox);
    sv_gc_found(gc, "remove mounts and files of sandbox", sandbox);
    if (gc->dry_run)
        return;
    sv_share_end_servers(paths, gc->config);
    if (!sv_share_destroy(paths, &error))
        sv_gc_note(gc, g_steal_pointer(&error));
    sv_cgroup_remove_machine(SV_CGROUP_TOP, paths->domain_name);
    unlink(paths->agent_socket);
    unlink(paths->monitor_socket);
    unlink(paths->owner_file);
    drop_claims(gc, paths);
    remove_cgroups(gc, sandbox);
    if (!sv_file_remove_tree(paths->state_dir, &error))
        sv_gc_note(gc, error);
}

gboolean sv_gc(const SvConfig *config, const char *config_path, const char *root,
    const char *monitor, gboolean dry_run, GError **error)
{
    SvGc gc = {config, config_path, NULL, monitor, dry_run, NULL, NULL, NULL, NULL};
    GError *local = NULL;
    g_autoptr(SvPaths) any = sv_paths_new(config, root, "gc", FALSE, error);
    if (!any)
        return FALSE;
    gc.root = any->root;
    g_autoptr(GHashTable) sandboxes = new_set();
    g_autoptr(GHashTable) lost = new_set();
    g_autoptr(GPtrArray) cgroups = sv_cgroup_marks(SV_CGROUP_TOP);
    gc.sandboxes = sandboxes;
    gc.lost = lost;
    gc.cgroups = cgroups;
    GHashTableIter iter;
    gpointer id;
    collect_sandboxes(&gc);
    g_hash_table_iter_init(&iter, sandboxes);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        check_sandbox(&gc, id);
    g_autoptr(SvInventory) inventory = sv_libvirt_inventory(config, &local);
    sv_gc_note(&gc, local);
    collect_lost(&gc, any, inventory);
    g_hash_table_iter_init(&iter, lost);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        end_lost(&gc, inventory, id);
    /* The taps of machines that were ended above are gone by now. */
    sv_gc_networks(&gc, any);
    if (gc.error)
        g_propagate_error(error, gc.error);
    return gc.error == NULL;
}
