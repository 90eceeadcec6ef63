/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which disks a container needs: its root file system, its volumes, its devices. Looks at the host and
 * changes nothing. */
#include <config.h>

#include "core/disks.h"

#include "core/device-rules.h"
#include "core/guestspec.h"
#include "devices/block-image.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT_OPTION "x-sandvirt.format=" /* of the mount of an image file */

static JsonObject *object_member(JsonObject *object, const char *name)
{
    JsonNode *node = object ? json_object_get_member(object, name) : NULL;

    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

JsonArray *sv_disks_rules(const SvContainer *container)
{
    JsonObject *linux_object = object_member(json_node_get_object(container->spec->json), "linux");
    JsonObject *resources = object_member(linux_object, "resources");
    JsonNode *node = resources ? json_object_get_member(resources, "devices") : NULL;

    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

/* (transfer full) */
static SvDiskRecord *disk_new(SvDiskUse use, const SvBlockInfo *info, const char *path)
{
    SvDiskRecord *disk = sv_disk_record_new();

    disk->use = use;
    disk->source = g_strdup(info->node);
    disk->format = g_strdup("raw");
    disk->major = info->major;
    disk->minor = info->minor;
    disk->seq = info->seq;
    disk->size = info->size_bytes;
    disk->read_only = info->read_only;
    disk->path = g_strdup(path);
    disk->claim_device = g_strdup_printf("%u:%u", info->major, info->minor);
    disk->claim_disk = g_strdup_printf("%u:%u", info->whole_major, info->whole_minor);
    return disk;
}

/* One container has a device once: the guest would mount what another hand writes to. */
static gboolean add(SvContainer *container, SvDiskRecord *disk, const char *what, GError **error)
{
    GPtrArray *disks = container->record->disks;

    for (guint i = 0; i < disks->len; i++) {
        const SvDiskRecord *other = disks->pdata[i];

        if (!g_str_equal(other->claim_device, disk->claim_device))
            continue;
        g_autofree char *title = sv_disk_record_title(disk);
        g_set_error(error, SV_CORE_ERROR, SV_ERR_BUSY, "%s: %s is this container's %s already",
            what, title, sv_disk_use_name(other->use));
        sv_disk_record_free(disk);
        return FALSE;
    }
    g_ptr_array_add(disks, disk);
    return TRUE;
}

/* ---- file systems that are mounted on the host */

static gboolean lies_in(const char *path, const char *folder)
{
    g_autofree char *real = path ? realpath(path, NULL) : NULL;
    gsize len = strlen(folder);

    return real && strncmp(real, folder, len) == 0 && (real[len] == '\0' || real[len] == '/');
}

/* What else of the container comes from there, beside its mount @own (-1: its rootfs): it would find an empty
 * folder. (transfer full) */
static char *find_other_use(const SvContainer *container, const char *target, int own)
{
    const GPtrArray *mounts = container->spec->mounts;

    if (own >= 0 && lies_in(container->spec->root_path, target))
        return g_strdup("the rootfs");
    for (guint i = 0; i < mounts->len; i++) {
        const SvSpecMount *mount = mounts->pdata[i];

        if ((int)i != own && sv_spec_mount_is_bind(mount) && lies_in(mount->source, target))
            return g_strdup_printf("mounts[%u]", i);
    }
    return NULL;
}

/* The mount whose root @source is; NULL without @error: it stays on the host. */
static SvBlockMount *find_mounted(
    SvContainer *container, const char *source, int own, const char *what, GError **error)
{
    g_autofree char *why = NULL;
    g_autoptr(SvBlockMount) found = sv_block_mount_find(source, &why, error);
    g_autofree char *other = found ? find_other_use(container, found->target, own) : NULL;

    if (other)
        why = g_strdup_printf("%s comes from it too", other);
    if (why)
        g_message("container %s: %s is shared through virtiofs, not as a disk: %s",
            container->record->id, what, why);
    return other ? NULL : g_steal_pointer(&found);
}

/* The disk of the mount whose root @source is, for the mount @own (-1: the rootfs). NULL without @error: it
 * stays on the host. */
static SvDiskRecord *plan_mounted(SvContainer *container, const char *source, const char *path,
    int own, const char *what, GError **error)
{
    g_autoptr(SvBlockMount) found = find_mounted(container, source, own, what, error);

    if (!found)
        return NULL;
    g_autoptr(SvBlockInfo) info =
        sv_block_probe(found->major, found->minor, found->device, what, error);
    if (!info)
        return NULL;
    SvDiskRecord *disk = disk_new(own < 0 ? SV_DISK_ROOTFS : SV_DISK_VOLUME, info, path);
    disk->mount_index = own;
    disk->read_only |= sv_block_mount_is_read_only(found);
    disk->fstype = g_strdup(found->fstype);
    disk->host_target = g_strdup(found->target);
    disk->host_device = g_strdup(found->device);
    disk->host_options = g_strdup(found->options);
    disk->host_super = g_strdup(found->super_options);
    return disk;
}

static void set_guest_options(SvDiskRecord *disk)
{
    disk->options =
        sv_block_guest_options(disk->fstype, disk->host_options, disk->host_super, disk->read_only);
}

static gboolean plan_rootfs(SvContainer *container, GError **error)
{
    g_autoptr(GError) local = NULL;

    if (!sv_block_mount_is_here(container->spec->root_path, error))
        return FALSE;
    if (!container->sandbox->config->block_rootfs)
        return TRUE;
    SvDiskRecord *disk =
        plan_mounted(container, container->spec->root_path, "/", -1, "the rootfs", &local);
    if (!disk) {
        /* a rootfs that is not there is told of when it is shared */
        if (local)
            g_debug("container %s: %s", container->record->id, local->message);
        return TRUE;
    }
    disk->read_only |= container->spec->root_readonly;
    disk->guest_target = g_strdup("rootfs");
    set_guest_options(disk);
    return add(container, disk, "the rootfs", error);
}

/* ---- mounts */

static gboolean is_asked_for(const SvContainer *container, const char *source)
{
    const SvConfig *config = container->sandbox->config;

    if (config->block_volumes)
        return TRUE;
    for (char **path = config->block_volume_paths; path && *path; path++)
        if (g_str_equal(source, *path) || sv_block_image_is_below(source, (char *[]){*path, NULL}))
            return TRUE;
    return FALSE;
}

/* A folder that is bound: by the administrator's wish. */
static gboolean plan_folder(
    SvContainer *container, const SvSpecMount *mount, guint i, const char *what, GError **error)
{
    if (!is_asked_for(container, mount->source))
        return TRUE;
    g_autoptr(GError) local = NULL;
    SvDiskRecord *disk =
        plan_mounted(container, mount->source, mount->destination, (int)i, what, &local);
    if (local) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (!disk)
        return TRUE;
    disk->read_only |= sv_spec_mount_is_read_only(mount);
    disk->guest_target = g_strdup_printf("vol%u", i);
    set_guest_options(disk);
    return add(container, disk, what, error);
}

/* A node that is bound: the device itself. */
static gboolean plan_node(
    SvContainer *container, const SvSpecMount *mount, guint i, const char *what, GError **error)
{
    g_autoptr(SvBlockInfo) info = sv_block_probe_path(mount->source, what, error);

    if (!info)
        return FALSE;
    SvDiskRecord *disk = disk_new(SV_DISK_DEVICE, info, mount->destination);
    guint access = sv_device_rules_access(sv_disks_rules(container), info->major, info->minor);
    disk->read_only |= sv_spec_mount_is_read_only(mount) || !(access & SV_ACCESS_WRITE);
    disk->mount_index = (int)i;
    return add(container, disk, what, error);
}

/* (transfer full) */
static SvDiskRecord *plan_image(
    const SvContainer *container, const SvSpecMount *mount, const char *what, GError **error)
{
    SvBlockImage image = {0};
    const char *format = NULL;

    for (char **option = mount->options; *option; option++)
        if (g_str_has_prefix(*option, FORMAT_OPTION))
            format = *option + strlen(FORMAT_OPTION);
    int fd = sv_block_image_open(
        mount->source, container->sandbox->config->image_folders, format, &image, error);
    if (fd < 0) {
        g_prefix_error(error, "%s: ", what);
        return NULL;
    }
    close(fd);
    SvDiskRecord *disk = sv_disk_record_new();
    disk->use = SV_DISK_VOLUME;
    disk->image = TRUE;
    disk->source = g_strdup(mount->source);
    disk->format = g_strdup(format);
    disk->size = image.size_bytes;
    disk->read_only = image.read_only;
    disk->path = g_strdup(mount->destination);
    disk->claim_device = sv_block_image_name(&image);
    disk->claim_disk = g_strdup(disk->claim_device);
    return disk;
}

/* A file system by its type: of a device or of an image file, mounted nowhere on the host. */
static gboolean plan_typed(
    SvContainer *container, const SvSpecMount *mount, guint i, const char *what, GError **error)
{
    struct stat st;
    SvDiskRecord *disk = NULL;

    if (!mount->source || stat(mount->source, &st) < 0) {
        g_autofree char *source = sv_printable(mount->source, 200);

        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND,
            "%s: block device \"%s\" does not exist", what, source);
        return FALSE;
    }
    if (S_ISREG(st.st_mode)) {
        disk = plan_image(container, mount, what, error);
    } else {
        g_autoptr(SvBlockInfo) info = sv_block_probe_path(mount->source, what, error);

        disk = info ? disk_new(SV_DISK_VOLUME, info, mount->destination) : NULL;
    }
    if (!disk)
        return FALSE;
    g_autofree char *options = g_strjoinv(",", mount->options);
    disk->read_only |= sv_spec_mount_is_read_only(mount);
    disk->mount_index = (int)i;
    disk->fstype = g_strdup(mount->type);
    disk->guest_target = g_strdup_printf("vol%u", i);
    disk->options = sv_block_guest_options(disk->fstype, NULL, options, disk->read_only);
    return add(container, disk, what, error);
}

static gboolean plan_mount(SvContainer *container, guint i, GError **error)
{
    const SvSpecMount *mount = container->spec->mounts->pdata[i];
    g_autofree char *what = g_strdup_printf("mounts[%u]", i);
    struct stat st;

    if (!sv_spec_mount_is_bind(mount))
        return !sv_block_fstype_is_known(mount->type) ||
            plan_typed(container, mount, i, what, error);
    if (mount->source && !sv_block_mount_is_here(mount->source, error)) {
        g_prefix_error(error, "%s: ", what);
        return FALSE;
    }
    if (!mount->source || stat(mount->source, &st) < 0)
        return TRUE; /* told of when it is shared */
    if (S_ISBLK(st.st_mode))
        return plan_node(container, mount, i, what, error);
    return !S_ISDIR(st.st_mode) || plan_folder(container, mount, i, what, error);
}

/* ---- linux.devices */

static gboolean is_planned(const SvContainer *container, const SvSpecDevice *device)
{
    for (guint i = 0; i < container->record->disks->len; i++) {
        const SvDiskRecord *disk = container->record->disks->pdata[i];

        if (disk->use == SV_DISK_DEVICE && !disk->image && disk->major == device->major &&
            disk->minor == device->minor)
            return TRUE;
    }
    return FALSE;
}

static gboolean plan_device(SvContainer *container, guint i, GError **error)
{
    const SvSpecDevice *device = container->spec->devices->pdata[i];
    JsonArray *rules = sv_disks_rules(container);
    g_autofree char *what = g_strdup_printf("linux.devices[%u]", i);
    guint major = (guint)device->major, minor = (guint)device->minor;

    if (strcmp(device->type, "b") != 0 || is_planned(container, device))
        return TRUE;
    /* An engine lists the whole /dev of the host for a privileged container, its root disk included.
     * What is to be a device of the container all the same has another name there. */
    if (sv_device_rules_allow_all(rules) && sv_block_is_node(device->path, major, minor))
        return TRUE;
    g_autoptr(GError) local = NULL;
    g_autoptr(SvBlockInfo) info = sv_block_probe(major, minor, device->path, what, &local);
    /* Nothing on the host has the numbers and nobody may open it: a mere name, which the guest has too. */
    if (!info && sv_error_is(local, SV_ERR_NOT_FOUND) && sv_device_rules_deny(rules, major, minor))
        return TRUE;
    if (!info) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    SvDiskRecord *disk = disk_new(SV_DISK_DEVICE, info, device->path);
    disk->read_only |= !(sv_device_rules_access(rules, major, minor) & SV_ACCESS_WRITE);
    return add(container, disk, what, error);
}

SvDiskRecord *sv_disks_plan_device(SvContainer *container, const char *text, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    guint n = g_strv_length(parts);
    const char *path = n > 1 && *parts[1] ? parts[1] : n > 0 ? parts[0] : "";
    const char *access = n > 2 ? parts[2] : "rwm";

    if (!g_path_is_absolute(path) || strstr(path, "/../") || g_str_has_suffix(path, "/") ||
        strspn(access, "rwm") != strlen(access)) {
        g_autofree char *shown = sv_printable(text, 200);

        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "\"%s\": a device is HOST-PATH[:CONTAINER-PATH[:rwm]]", shown);
        return NULL;
    }
    g_autoptr(SvBlockInfo) info = sv_block_probe_path(parts[0], "device", error);
    if (!info)
        return NULL;
    SvDiskRecord *disk = disk_new(SV_DISK_DEVICE, info, path);
    disk->read_only |= !strchr(access, 'w');
    disk->access = g_strdup(access);
    return disk;
}

gboolean sv_disks_plan(SvContainer *container, GError **error)
{
    if (!plan_rootfs(container, error))
        return FALSE;
    for (guint i = 0; i < container->spec->mounts->len; i++)
        if (!plan_mount(container, i, error))
            return FALSE;
    for (guint i = 0; i < container->spec->devices->len; i++)
        if (!plan_device(container, i, error))
            return FALSE;
    return TRUE;
}
