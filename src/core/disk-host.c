/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host's mounts of disks: taken away before the guest mounts them, put back afterwards. In threads:
 * writing a file system back and mounting one take as long as they take. */
#include <config.h>

#include "core/disks.h"

#include "base/fd.h"
#include "base/thread.h"
#include <string.h>

#define COPIED_MS 1000
#define COPIED_STEP_MS 20

/* What stands at the mount point while the file system is in the guest. */
static char *mark_of(const SvDiskRecord *disk)
{
    return g_strconcat(SV_BLOCK_MARK, disk->alias, NULL);
}

/* (transfer full) */
static SvBlockMount *host_mount(const SvDiskRecord *disk)
{
    SvBlockMount *mount = g_new0(SvBlockMount, 1);

    mount->major = disk->major;
    mount->minor = disk->minor;
    mount->seq = disk->seq;
    mount->device = g_strdup(disk->host_device);
    mount->target = g_strdup(disk->host_target);
    mount->fstype = g_strdup(disk->fstype);
    mount->options = g_strdup(disk->host_options);
    mount->super_options = g_strdup(disk->host_super);
    return mount;
}

/* One disk for the thread: copies. */
typedef struct {
    SvDiskRecord *disk;
    SvBlockMount *mount;
    char *mark;
    gboolean if_missing;
    int fd; /* held exclusively */
    GError *error;
} Item;

static void item_free(gpointer data)
{
    Item *item = data;

    sv_disk_record_free(item->disk);
    sv_block_mount_free(item->mount);
    g_free(item->mark);
    sv_fd_close(item->fd);
    g_clear_error(&item->error);
    g_free(item);
}

typedef struct {
    SvSandbox *sandbox;
    char *container;
    GPtrArray *items;
    SvDone done;
    gpointer user_data;
} Work;

/* @done: (nullable) */
static Work *work_new(SvSandbox *sandbox, const char *container, SvDone done, gpointer user_data)
{
    Work *work = g_new0(Work, 1);

    work->sandbox = sandbox;
    work->container = g_strdup(container);
    work->items = g_ptr_array_new_with_free_func(item_free);
    work->done = done;
    work->user_data = user_data;
    return work;
}

static void work_add(Work *work, const SvDiskRecord *disk, gboolean if_missing)
{
    Item *item = g_new0(Item, 1);

    item->disk = sv_disk_record_copy(disk);
    item->mount = host_mount(disk);
    item->mark = mark_of(disk);
    item->if_missing = if_missing;
    item->fd = -1;
    g_ptr_array_add(work->items, item);
}

static void work_end(Work *work, const GError *error)
{
    sv_answer_later(work->done, error, work->user_data);
    g_free(work->container);
    g_ptr_array_unref(work->items);
    g_free(work);
}

/* ---- taking away */

/* Whoever starts a container or a machine copies the host's mounts into a namespace of its own, and soon
 * leaves most of them: no event tells of that, so a device just unmounted is asked for again for a moment. */
static int open_unmounted(const SvDiskRecord *disk, GError **error)
{
    gint64 end = g_get_monotonic_time() + COPIED_MS * G_GINT64_CONSTANT(1000);

    for (;;) {
        g_autoptr(GError) local = NULL;
        int fd = sv_disk_open(disk, &local);

        if (fd >= 0)
            return fd;
        if (!sv_error_is(local, SV_ERR_BUSY) || g_get_monotonic_time() >= end) {
            g_propagate_error(error, g_steal_pointer(&local));
            return -1;
        }
        g_poll(NULL, 0, COPIED_STEP_MS);
    }
}

/* In the thread. Unmounted, and nobody else has it: the device is held. Else all is as it was. */
static void take_one(Item *item)
{
    const SvDiskRecord *disk = item->disk;
    g_autoptr(GError) error = NULL;

    if (!sv_block_mount_take(item->mount, item->mark, &item->error))
        return;
    item->fd = open_unmounted(disk, &item->error);
    if (item->fd >= 0 ||
        sv_block_mount_restore(item->mount, disk->source, item->mark, TRUE, &error))
        return;
    /* what the host lacks now cannot be shared instead: whatever the reason, it fails */
    g_prefix_error(&error, "%s; ", item->error->message);
    g_clear_error(&item->error);
    item->error = g_error_new_literal(SV_CORE_ERROR, SV_ERR_FAILED, error->message);
}

static void take_work(gpointer data)
{
    Work *work = data;

    for (guint i = 0; i < work->items->len; i++)
        take_one(work->items->pdata[i]);
}

/* FALSE: it is no reason to stay on the host, but to fail. */
static gboolean stay_on_host(SvContainer *container, SvDiskRecord *disk, const GError *error)
{
    if (!sv_error_is(error, SV_ERR_BUSY))
        return FALSE;
    g_message("container %s: %s is shared through virtiofs, not as a disk: %s",
        container->record->id, disk->use == SV_DISK_ROOTFS ? "the rootfs" : disk->path,
        error->message);
    sv_disk_unclaim(container->sandbox, disk);
    sv_disks_forget(container, disk);
    return TRUE;
}

static void take_done(gpointer data)
{
    Work *work = data;
    SvContainer *container = sv_sandbox_find(work->sandbox, work->container, NULL);
    const GError *error = NULL;

    for (guint i = 0; i < work->items->len && container; i++) {
        Item *item = work->items->pdata[i];
        SvDiskRecord *disk = sv_disk_records_find(container->record->disks, item->disk->alias);

        if (!disk)
            continue;
        if (!item->error)
            sv_disk_take_hold(work->sandbox, disk, sv_fd_steal(&item->fd));
        else if (!stay_on_host(container, disk, item->error) && !error)
            error = item->error;
    }
    work_end(work, error);
}

void sv_disks_take_mounts(SvContainer *container, SvDone done, gpointer user_data)
{
    Work *work = work_new(container->sandbox, container->record->id, done, user_data);
    GPtrArray *disks = container->record->disks;
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < disks->len; i++) {
        SvDiskRecord *disk = disks->pdata[i];

        if (!disk->host_target)
            continue;
        disk->host_taken = TRUE;
        work_add(work, disk, FALSE);
    }
    if (work->items->len && sv_container_save(container, &error))
        sv_thread_run(take_work, take_done, work);
    else
        work_end(work, error);
}

/* ---- putting back */

static void restore_work(gpointer data)
{
    Work *work = data;

    for (guint i = work->items->len; i > 0; i--) {
        Item *item = work->items->pdata[i - 1];

        if (!sv_block_mount_restore(
                item->mount, item->disk->source, item->mark, item->if_missing, &item->error))
            g_warning("container %s: %s", work->container, item->error->message);
    }
}

static void restore_done(gpointer data)
{
    Work *work = data;
    SvContainer *container = sv_sandbox_find(work->sandbox, work->container, NULL);

    for (guint i = 0; i < work->items->len && container; i++) {
        const Item *item = work->items->pdata[i];
        SvDiskRecord *disk = sv_disk_records_find(container->record->disks, item->disk->alias);

        if (disk)
            disk->host_taken = FALSE;
    }
    work_end(work, NULL);
}

gboolean sv_disks_any_mount(const SvContainer *container)
{
    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        if (disk->host_taken && !disk->plugged)
            return TRUE;
    }
    return FALSE;
}

void sv_disk_restore_held(SvSandbox *sandbox, const SvDiskRecord *disk)
{
    if (!disk->host_taken)
        return;
    Work *work = work_new(sandbox, disk->alias, NULL, NULL);
    work_add(work, disk, FALSE);
    sv_thread_run(restore_work, restore_done, work);
}

void sv_disks_restore_mounts(
    SvContainer *container, gboolean if_missing, SvDone done, gpointer user_data)
{
    Work *work = work_new(container->sandbox, container->record->id, done, user_data);
    GPtrArray *disks = container->record->disks;

    for (guint i = 0; i < disks->len; i++) {
        SvDiskRecord *disk = disks->pdata[i];

        if (disk->host_taken && !disk->plugged)
            work_add(work, disk, if_missing);
    }
    if (work->items->len)
        sv_thread_run(restore_work, restore_done, work);
    else
        restore_done(work);
}
