/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names and claims: a disk gets an alias, a serial and a target of its own, and nobody else gets it. */
#include <config.h>

#include "core/disks.h"

#include "base/fd.h"
#include "base/process.h"
#include "devices/block.h"
#include <string.h>
#include <unistd.h>

#define SHORT_ID 12 /* characters of a container's id that engines print */

/* ---- names */

static char *make_alias(const SvContainer *container, guint number)
{
    g_autofree char *id = g_strndup(container->record->id, SHORT_ID);

    /* what libvirt allows in an alias */
    for (char *c = id; *c; c++)
        if (!g_ascii_isalnum(*c) && *c != '_' && *c != '-')
            *c = '_';
    return g_strdup_printf("ua-sv-%s-%u", id, number);
}

/* "vda", ..., "vdz", "vdaa" */
static char *make_target(const char *prefix, guint index)
{
    char letters[8];
    guint n = sizeof letters;

    letters[--n] = '\0';
    for (guint i = index + 1; i > 0; i = (i - 1) / 26)
        letters[--n] = (char)('a' + (i - 1) % 26);
    return g_strconcat(prefix, letters + n, NULL);
}

static gboolean is_free(const GPtrArray *disks, const char *target)
{
    for (guint i = 0; i < disks->len; i++)
        if (g_strcmp0(((const SvDiskRecord *)disks->pdata[i])->target, target) == 0)
            return FALSE;
    return TRUE;
}

/* The lowest free name, so that slots are used again. */
static gboolean assign_target(SvSandbox *sandbox, SvDiskRecord *disk, guint ports, GError **error)
{
    g_autoptr(GPtrArray) disks = sv_disks_in_machine(sandbox);

    if (disks->len >= SV_DISKS_MAX) {
        g_autofree char *title = sv_disk_record_title(disk);

        g_set_error(error, SV_CORE_ERROR, SV_ERR_LIMIT,
            "%s: sandbox \"%s\" has %u disks: it has no room for another", title,
            sandbox->paths->sandbox, disks->len);
        return FALSE;
    }
    g_clear_pointer(&disk->target, g_free);
    for (guint i = 0; i < ports + SV_DISKS_MAX && !disk->target; i++) {
        g_autofree char *target = i < ports ? make_target("vd", i) : make_target("sd", i - ports);

        if (is_free(disks, target))
            disk->target = g_steal_pointer(&target);
    }
    g_return_val_if_fail(disk->target, FALSE);
    return TRUE;
}

gboolean sv_disk_use_scsi(SvSandbox *sandbox, SvDiskRecord *disk, GError **error)
{
    gboolean plugged = disk->plugged;

    disk->plugged = FALSE; /* it does not count itself */
    gboolean ok = assign_target(sandbox, disk, 0, error);
    disk->plugged = plugged;
    return ok;
}

/* ---- one disk for several containers of a machine: libvirt attaches a device once */

static gboolean is_leaving(const SvSandbox *sandbox, const SvDiskRecord *disk)
{
    const char *device = sv_disk_record_device(disk);

    return sv_disk_records_find(sandbox->record->held_disks, disk->alias) ||
        sv_disks_is_unplugged(sandbox, device);
}

/* Another container's record of the same device; NULL: none. */
static const SvDiskRecord *find_twin(SvSandbox *sandbox, const SvDiskRecord *disk)
{
    g_autoptr(GPtrArray) disks = sv_disks_in_machine(sandbox);

    for (guint i = 0; i < disks->len; i++) {
        const SvDiskRecord *other = disks->pdata[i];

        if (other != disk && g_strcmp0(other->claim_device, disk->claim_device) == 0)
            return other;
    }
    return NULL;
}

/* Takes the names of @twin's. When one of them is exclusive the claim tells of it. */
static gboolean share(
    SvSandbox *sandbox, SvDiskRecord *disk, const SvDiskRecord *twin, GError **error)
{
    const char *why = is_leaving(sandbox, twin) ? "is just leaving the machine"
        : twin->read_only != disk->read_only    ? "is in the machine already, with other access"
                                                : NULL;

    if (why && !twin->exclusive && !disk->exclusive) {
        g_autofree char *title = sv_disk_record_title(disk);

        g_set_error(error, SV_CORE_ERROR, SV_ERR_BUSY, "%s %s", title, why);
        return FALSE;
    }
    disk->shares = g_strdup(sv_disk_record_device(twin));
    disk->serial = g_strdup(twin->serial);
    disk->target = g_strdup(twin->target);
    return TRUE;
}

/* ---- claims */

static char *claim_dir(const SvSandbox *sandbox)
{
    return g_build_filename(sandbox->config->run_dir, ".disk", NULL);
}

/* The claim of @disk; strings are borrowed but for *id. */
static SvBlockClaim claim_of(SvSandbox *sandbox, const SvDiskRecord *disk, const char *container)
{
    return (SvBlockClaim){.device = disk->claim_device,
        .disk = disk->claim_disk,
        .exclusive = disk->exclusive,
        .boot_id = sandbox->record->boot_id,
        .root = sandbox->paths->root,
        .sandbox = sandbox->paths->sandbox,
        .container = (char *)container,
        .alias = disk->alias};
}

/* In the container's record, or kept by the machine when that is gone. What cannot be read counts. */
static gboolean is_alive(const SvBlockClaim *claim, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    g_autofree char *boot_id = sv_process_boot_id();
    g_autoptr(GError) error = NULL;

    if (!g_str_equal(claim->boot_id, boot_id))
        return FALSE;
    g_autoptr(SvRecord) record = sv_record_load(claim->root, claim->container, &error);
    const SvDiskRecord *disk = record ? sv_disk_records_find(record->disks, claim->alias) : NULL;
    if ((disk && disk->plugged) || (error && !sv_error_is(error, SV_ERR_NOT_FOUND)))
        return TRUE;
    g_clear_error(&error);
    g_autoptr(SvPaths) paths =
        sv_paths_new(sandbox->config, claim->root, claim->sandbox, FALSE, &error);
    g_autoptr(SvSandboxRecord) owner = paths ? sv_sandbox_record_load(paths, &error) : NULL;
    if (!owner)
        return !sv_error_is(error, SV_ERR_NOT_FOUND);
    return sv_disk_records_find(owner->held_disks, claim->alias) != NULL;
}

static gboolean claim(SvContainer *container, SvDiskRecord *disk, guint *others, GError **error)
{
    SvSandbox *sandbox = container->sandbox;
    g_autofree char *dir = claim_dir(sandbox);
    SvBlockClaim wanted = claim_of(sandbox, disk, container->record->id);

    if (sv_block_claim_take(dir, &wanted, is_alive, sandbox, others, error))
        return TRUE;
    g_autofree char *title = sv_disk_record_title(disk);
    g_prefix_error(error, "%s cannot be given to container \"%s\": ", title, container->record->id);
    return FALSE;
}

static SvBlockInfo *probe_again(const SvDiskRecord *disk, GError **error)
{
    g_autoptr(SvBlockInfo) info =
        sv_block_probe(disk->major, disk->minor, disk->source, disk->source, error);

    if (!info || info->seq == disk->seq)
        return g_steal_pointer(&info);
    g_autofree char *title = sv_disk_record_title(disk);
    g_set_error(
        error, SV_CORE_ERROR, SV_ERR_INVALID, "%s is another disk than a moment ago", title);
    return NULL;
}

int sv_disk_open(const SvDiskRecord *disk, GError **error)
{
    g_autoptr(SvBlockInfo) info = probe_again(disk, error);

    return info ? sv_block_open_exclusive(info, error) : -1;
}

void sv_disk_take_hold(SvSandbox *sandbox, const SvDiskRecord *disk, int fd)
{
    /* what nobody can write, the host may mount as well: several machines have one image that way */
    if (disk->exclusive || sv_block_is_writable(disk->major, disk->minor))
        g_hash_table_insert(
            sandbox->disk_holds, g_strdup(sv_disk_record_device(disk)), GINT_TO_POINTER(fd));
    else
        sv_fd_close(fd);
}

gboolean sv_disk_hold(SvSandbox *sandbox, const SvDiskRecord *disk, GError **error)
{
    if (disk->image)
        return TRUE;
    int fd = sv_disk_open(disk, error);
    if (fd < 0)
        return FALSE;
    sv_disk_take_hold(sandbox, disk, fd);
    return TRUE;
}

/* The kernel does not tell another monitor's hold from the host's use: asked by name. */
static gboolean check_host(const SvDiskRecord *disk, GError **error)
{
    if (disk->image)
        return TRUE;
    g_autoptr(SvBlockInfo) info = probe_again(disk, error);
    g_autofree char *user = info ? sv_block_find_user(info) : NULL;
    if (user) {
        g_autofree char *title = sv_disk_record_title(disk);

        g_set_error(error, SV_CORE_ERROR, SV_ERR_BUSY, "%s is %s", title, user);
    }
    return info && !user;
}

gboolean sv_disk_name(SvContainer *container, SvDiskRecord *disk, GError **error)
{
    SvSandbox *sandbox = container->sandbox;
    guint number = sandbox->record->next_disk++;
    guint ports = MAX(sandbox->config->root_ports, 2) - 1;

    disk->alias = make_alias(container, number);
    disk->exclusive = !disk->read_only && !sandbox->config->shareable;
    const SvDiskRecord *twin = find_twin(sandbox, disk);
    if (twin) {
        if (!share(sandbox, disk, twin, error))
            return FALSE;
    } else {
        disk->serial = sv_block_serial(sandbox->paths->sandbox, container->record->id, number);
        if (!assign_target(sandbox, disk, ports, error))
            return FALSE;
    }
    disk->plugged = TRUE; /* it counts from here on, and a recovery looks for it */
    return TRUE;
}

gboolean sv_disk_claim(SvContainer *container, SvDiskRecord *disk, GError **error)
{
    guint others = 0;

    if (!claim(container, disk, &others, error))
        return FALSE;
    /* what is mounted here is looked at when the mount is away */
    if (disk->host_target)
        return TRUE;
    if (!others)
        return sv_disk_hold(container->sandbox, disk, error);
    if (!check_host(disk, error))
        return FALSE;
    sv_disks_watch_claims(container->sandbox);
    return TRUE;
}

void sv_disk_unclaim(SvSandbox *sandbox, SvDiskRecord *disk)
{
    disk->plugged = FALSE;
    if (!disk->alias)
        return;
    if (!sv_disks_is_shared(sandbox, disk)) {
        g_hash_table_remove(sandbox->disk_holds, sv_disk_record_device(disk));
        if (disk->image)
            sv_disk_image_unbind(sandbox, disk);
    }
    if (!disk->claim_disk || !sandbox->record)
        return;
    g_autofree char *dir = claim_dir(sandbox);
    SvBlockClaim mine = claim_of(sandbox, disk, "");
    sv_block_claim_drop(dir, &mine);
}
