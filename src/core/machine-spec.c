/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine of a sandbox as plain data, from configuration and record. */
#include "core/console-shell.h"
#include "core/sandbox-priv.h"
#include "core/uids.h"

#include <string.h>

/* What a boot does not need under a hypervisor; the rest of the kernel's hardening stays on. Bounce buffers
 * are for devices that cannot reach all memory: virtio can, and the kernel would set 64 MiB aside as soon as
 * the machine may have memory above 4 GiB, plugged later included. */
#define CMDLINE_BASE                                                                               \
    "panic=-1 reboot=t quiet 8250.nr_uarts=1 console=ttyS0 cryptomgr.notests swiotlb=noforce"
/* TCG's clock is the host's: calibrations only cost time. It keeps the code that it has translated until it sees
 * that memory written, and does not see virtiofsd write: memory is cleared by the guest before a file is read
 * into it, else a program runs as the one that was there before. Plain moves clear and copy memory faster there than
 * the string instructions that the kernel would choose for this CPU. */
#define CMDLINE_TCG                                                                                \
    "nokaslr lsm= init_on_alloc=1 clearcpuid=rep_good audit=0 tsc=reliable no_timer_check "        \
    "mitigations=off"

static const char *agent_level(SvLogLevel level)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    return names[MIN((guint)level, 3)];
}

static char *build_cmdline(const SvSandbox *sandbox)
{
    g_autoptr(GString) line = g_string_new(CMDLINE_BASE);
    if (sandbox->accel == SV_ACCEL_TCG)
        g_string_append(line, " " CMDLINE_TCG);
    g_string_append_printf(line, " sandvirt.log=%s", agent_level(sandbox->config->log_level));
    if (sandbox->config->console_shell)
        g_string_append(line, " " SV_CONSOLE_SHELL_ARG);
    if (sandbox->config->kernel_args && *sandbox->config->kernel_args)
        g_string_append_printf(line, " %s", sandbox->config->kernel_args);
    return g_string_free(g_steal_pointer(&line), FALSE);
}

static void add_disk(SvMetadataContainer *item, const SvDiskRecord *record)
{
    if (!record->plugged)
        return;
    SvMetadataDisk *disk = g_new0(SvMetadataDisk, 1);
    disk->alias = g_strdup(sv_disk_record_device(record));
    disk->target = g_strdup(record->target);
    disk->source = sv_printable(record->source, 4096);
    disk->use = g_strdup(sv_disk_use_name(record->use));
    g_ptr_array_add(item->disks, disk);
}

SvMetadata *sv_metadata_build(SvSandbox *sandbox)
{
    SvMetadata *metadata = sv_metadata_new();
    metadata->root = g_strdup(sandbox->paths->root);
    metadata->sandbox = g_strdup(sandbox->paths->sandbox);
    metadata->boot_id = g_strdup(sandbox->record->boot_id);
    metadata->lock = g_strdup(sandbox->paths->lock_file);
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const SvRecord *record = ((SvContainer *)value)->record;
        SvMetadataContainer *item = sv_metadata_container_new();
        item->id = g_strdup(record->id);
        item->name = g_strdup(record->name);
        item->bundle = sv_printable(record->bundle, 4096);
        item->state = g_strdup(sv_state_oci_name(record->state));
        if (record->cause != SV_CAUSE_NONE)
            item->cause = g_strdup(sv_cause_name(record->cause));
        for (guint i = 0; i < record->disks->len; i++)
            add_disk(item, record->disks->pdata[i]);
        g_ptr_array_add(metadata->containers, item);
    }
    return metadata;
}

SvMachine *sv_machine_build(SvSandbox *sandbox, GError **error)
{
    const SvConfig *config = sandbox->config;
    const SvPaths *paths = sandbox->paths;
    SvMachine *machine = sv_machine_new();
    machine->name = g_strdup(paths->domain_name);
    machine->uuid = g_strdup(paths->domain_uuid);
    machine->title = sv_printable(sandbox->record->title, 200);
    machine->description = g_strdup_printf("sandvirt sandbox %s", paths->sandbox);
    machine->metadata = sv_metadata_build(sandbox);
    machine->accel = sandbox->accel;
    machine->vcpus = sandbox->record->vcpus;
    machine->max_vcpus = sandbox->record->max_vcpus;
    machine->memory_mib = sandbox->record->boot_memory_mib;
    machine->max_extra_memory_mib =
        sandbox->record->max_memory_mib - sandbox->record->boot_memory_mib;
    machine->kernel = g_strdup(paths->boot_kernel);
    machine->initrd = g_strdup(paths->boot_image);
    machine->cmdline = build_cmdline(sandbox);
    if (config->firmware && *config->firmware)
        machine->firmware = g_strdup(config->firmware);
    machine->skip_cpu_probe = config->skip_cpu_probe;
    machine->tcg_cache_mib = config->tcg_cache_mib;
    machine->agent_socket = g_strdup(paths->agent_socket);
    machine->console_log = g_strdup(paths->console_log);
    machine->share_dir = g_strdup(paths->share_dir);
    if (config->virtiofsd && *config->virtiofsd)
        machine->virtiofsd = g_strdup(config->virtiofsd);
    machine->root_ports = config->root_ports;
    machine->uid = sandbox->record->uid;
    /* The user's own group: an id of the range is no group of the host. */
    machine->gid = machine->uid >= 0 ? sv_uids_group(machine->uid) : -1;
    machine->partition = g_strdup(sandbox->record->partition);
    return machine;
}
