/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Image files for libvirt and QEMU, which open by name and follow links: through a mount of the very file
 * that was looked at, whatever its path comes to mean meanwhile. */
#include <config.h>

#include "core/disks.h"

#include "base/fd.h"
#include "devices/block-image.h"

char *sv_disk_image_path(const SvSandbox *sandbox, const SvDiskRecord *disk)
{
    return g_build_filename(sandbox->paths->boot_dir, sv_disk_record_device(disk), NULL);
}

/* As it was when it was claimed. */
static gboolean is_same(
    const SvDiskRecord *disk, const SvBlockImage *image, const char *name, GError **error)
{
    if (image->size_bytes == disk->size && g_str_equal(name, disk->claim_device))
        return TRUE;
    g_autofree char *title = sv_disk_record_title(disk);
    g_set_error(
        error, SV_CORE_ERROR, SV_ERR_INVALID, "%s is another file than a moment ago", title);
    return FALSE;
}

gboolean sv_disk_image_bind(SvSandbox *sandbox, const SvDiskRecord *disk, GError **error)
{
    SvBlockImage image = {0};
    g_auto(SvFd) fd = sv_block_image_open(
        disk->source, sandbox->config->image_folders, disk->format, &image, error);

    if (fd < 0)
        return FALSE;
    g_autofree char *name = sv_block_image_name(&image);
    return is_same(disk, &image, name, error) &&
        sv_share_bind_file(sandbox->paths, disk->alias, fd, disk->read_only, error);
}

void sv_disk_image_unbind(SvSandbox *sandbox, const SvDiskRecord *disk)
{
    sv_share_unbind_file(sandbox->paths, sv_disk_record_device(disk));
}
