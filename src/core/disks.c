/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is known of disks, for those who build on them. */
#include <config.h>

#include "core/disks.h"

#include <string.h>

gboolean sv_disks_any_plugged(const SvContainer *container)
{
    for (guint i = 0; i < container->record->disks->len; i++)
        if (((const SvDiskRecord *)container->record->disks->pdata[i])->plugged)
            return TRUE;
    return FALSE;
}

SvDiskRecord *sv_disks_rootfs(const SvContainer *container)
{
    for (guint i = 0; i < container->record->disks->len; i++) {
        SvDiskRecord *disk = container->record->disks->pdata[i];

        if (disk->use == SV_DISK_ROOTFS)
            return disk;
    }
    return NULL;
}

SvDiskRecord *sv_disks_of_mount(const SvContainer *container, guint mount_index)
{
    for (guint i = 0; i < container->record->disks->len; i++) {
        SvDiskRecord *disk = container->record->disks->pdata[i];

        if (disk->mount_index >= 0 && (guint)disk->mount_index == mount_index)
            return disk;
    }
    return NULL;
}

static SvDiskRecord *find_device(const GPtrArray *disks, const char *device)
{
    for (guint i = 0; i < disks->len; i++) {
        SvDiskRecord *disk = disks->pdata[i];

        if (disk->plugged && g_str_equal(sv_disk_record_device(disk), device))
            return disk;
    }
    return NULL;
}

SvDiskRecord *sv_disks_find(SvSandbox *sandbox, const char *device, SvContainer **container)
{
    g_autoptr(GPtrArray) all = sv_sandbox_containers(sandbox);

    for (guint i = 0; i < all->len; i++) {
        SvContainer *owner = all->pdata[i];
        SvDiskRecord *disk = find_device(owner->record->disks, device);

        if (!disk)
            continue;
        if (container)
            *container = owner;
        return disk;
    }
    if (container)
        *container = NULL;
    return sandbox->record ? find_device(sandbox->record->held_disks, device) : NULL;
}

gboolean sv_disks_is_shared(SvSandbox *sandbox, const SvDiskRecord *disk)
{
    g_autoptr(GPtrArray) disks = sv_disks_in_machine(sandbox);

    for (guint i = 0; i < disks->len; i++)
        if (disks->pdata[i] != disk &&
            g_str_equal(sv_disk_record_device(disks->pdata[i]), sv_disk_record_device(disk)))
            return TRUE;
    return FALSE;
}

GPtrArray *sv_disks_in_machine(SvSandbox *sandbox)
{
    g_autoptr(GPtrArray) all = sv_sandbox_containers(sandbox);
    GPtrArray *found = g_ptr_array_new();

    for (guint i = 0; i < all->len; i++) {
        const SvContainer *container = all->pdata[i];

        for (guint k = 0; k < container->record->disks->len; k++) {
            SvDiskRecord *disk = container->record->disks->pdata[k];

            if (disk->plugged)
                g_ptr_array_add(found, disk);
        }
    }
    for (guint i = 0; sandbox->record && i < sandbox->record->held_disks->len; i++)
        g_ptr_array_add(found, sandbox->record->held_disks->pdata[i]);
    return found;
}

GHashTable *sv_disks_numbers(const SvContainer *container)
{
    GHashTable *numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        if (disk->use == SV_DISK_DEVICE && disk->plugged && disk->guest_node)
            g_hash_table_insert(numbers, g_strdup_printf("b:%u:%u", disk->major, disk->minor),
                g_strdup_printf("b:%u:%u", disk->guest_major, disk->guest_minor));
    }
    return numbers;
}

char *sv_disk_guest_path(const SvContainer *container, const SvDiskRecord *disk)
{
    return g_strdup_printf("/run/sandvirt/c/%s/%s", container->record->id, disk->guest_target);
}

GPtrArray *sv_disks_fill_create(
    const SvContainer *container, guint timeout_ms, Sandvirt__V1__CreateRequest *message)
{
    GPtrArray *mounts = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < container->record->disks->len; i++) {
        SvDiskRecord *disk = container->record->disks->pdata[i];

        if (!disk->guest_target)
            continue;
        Sandvirt__V1__BlockMount *mount = g_new0(Sandvirt__V1__BlockMount, 1);
        sandvirt__v1__block_mount__init(mount);
        mount->serial = disk->serial;
        mount->fstype = disk->fstype;
        mount->options = disk->options ? disk->options : (char *)"";
        mount->read_only = disk->read_only;
        mount->target = disk->guest_target;
        mount->timeout_ms = timeout_ms;
        g_ptr_array_add(mounts, mount);
    }
    message->block_mounts = (Sandvirt__V1__BlockMount **)mounts->pdata;
    message->n_block_mounts = mounts->len;
    return mounts;
}

GError *sv_disks_explain(const SvContainer *container, const GError *error)
{
    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        if (!disk->serial || !strstr(error->message, disk->serial))
            continue;
        g_autofree char *title = sv_disk_record_title(disk);
        return g_error_new(error->domain, error->code, "%s (%s): %s", title,
            sv_disk_use_name(disk->use), error->message);
    }
    return g_error_copy(error);
}

void sv_disks_forget(SvContainer *container, const SvDiskRecord *disk)
{
    g_ptr_array_remove(container->record->disks, (gpointer)disk);
}
