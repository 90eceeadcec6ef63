/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/machine.h"

void sv_metadata_disk_free(SvMetadataDisk *disk)
{
    if (disk == NULL)
        return;
    g_free(disk->alias);
    g_free(disk->target);
    g_free(disk->source);
    g_free(disk->use);
    g_free(disk);
}

SvMetadataContainer *sv_metadata_container_new(void)
{
    SvMetadataContainer *container = g_new0(SvMetadataContainer, 1);
    container->disks = g_ptr_array_new_with_free_func((GDestroyNotify)sv_metadata_disk_free);
    return container;
}

static gpointer copy_disk(gconstpointer item, gpointer unused)
{
    const SvMetadataDisk *disk = item;
    SvMetadataDisk *copy = g_new0(SvMetadataDisk, 1);
    copy->alias = g_strdup(disk->alias);
    copy->target = g_strdup(disk->target);
    copy->source = g_strdup(disk->source);
    copy->use = g_strdup(disk->use);
    return copy;
}

static gpointer copy_container(gconstpointer item, gpointer unused)
{
    const SvMetadataContainer *container = item;
    SvMetadataContainer *copy = g_new0(SvMetadataContainer, 1);
    copy->id = g_strdup(container->id);
    copy->name = g_strdup(container->name);
    copy->bundle = g_strdup(container->bundle);
    copy->state = g_strdup(container->state);
    copy->cause = g_strdup(container->cause);
    copy->disks = g_ptr_array_new_with_free_func((GDestroyNotify)sv_metadata_disk_free);
    for (guint i = 0; container->disks != NULL && i < container->disks->len; i++)
        g_ptr_array_add(copy->disks, copy_disk(container->disks->pdata[i], NULL));
    return copy;
}

void sv_metadata_container_free(SvMetadataContainer *container)
{
    if (container == NULL)
        return;
    g_free(container->id);
    g_free(container->name);
    g_free(container->bundle);
    g_free(container->state);
    g_free(container->cause);
    g_clear_pointer(&container->disks, g_ptr_array_unref);
    g_free(container);
}

SvMetadata *sv_metadata_new(void)
{
    SvMetadata *metadata = g_new0(SvMetadata, 1);
    metadata->containers =
        g_ptr_array_new_with_free_func((GDestroyNotify)sv_metadata_container_free);
    return metadata;
}

SvMetadata *sv_metadata_copy(const SvMetadata *metadata)
{
    if (metadata == NULL)
        return NULL;
    SvMetadata *copy = sv_metadata_new();
    copy->root = g_strdup(metadata->root);
    copy->sandbox = g_strdup(metadata->sandbox);
    copy->boot_id = g_strdup(metadata->boot_id);
    copy->lock = g_strdup(metadata->lock);
    for (guint i = 0; metadata->containers != NULL && i < metadata->containers->len; i++)
        g_ptr_array_add(copy->containers, copy_container(metadata->containers->pdata[i], NULL));
    return copy;
}

void sv_metadata_free(SvMetadata *metadata)
{
    if (metadata == NULL)
        return;
    g_free(metadata->root);
    g_free(metadata->sandbox);
    g_free(metadata->boot_id);
    g_free(metadata->lock);
    g_clear_pointer(&metadata->containers, g_ptr_array_unref);
    g_free(metadata);
}

SvMachine *sv_machine_new(void)
{
    SvMachine *machine = g_new0(SvMachine, 1);
    machine->vcpus = 1;
    machine->max_vcpus = 1;
    machine->root_ports = 8;
    machine->uid = -1;
    machine->gid = -1;
    machine->devices = g_ptr_array_new_with_free_func((GDestroyNotify)sv_device_free);
    return machine;
}

void sv_machine_free(SvMachine *machine)
{
    if (machine == NULL)
        return;
    g_free(machine->name);
    g_free(machine->uuid);
    g_free(machine->title);
    g_free(machine->description);
    sv_metadata_free(machine->metadata);
    g_free(machine->kernel);
    g_free(machine->initrd);
    g_free(machine->cmdline);
    g_free(machine->firmware);
    g_free(machine->agent_socket);
    g_free(machine->console_log);
    g_free(machine->share_dir);
    g_free(machine->virtiofsd);
    g_free(machine->partition);
    g_clear_pointer(&machine->devices, g_ptr_array_unref);
    g_free(machine);
}
