/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Image files as disks: below configured folders only, the format stated, never probed, and without
 * anything that makes QEMU open another file. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

G_BEGIN_DECLS

typedef struct {
    guint64 size_bytes; /* of the disk, as the guest sees it */
    gboolean read_only; /* nobody may write the file */
    guint64 device, inode;
} SvBlockImage;

/* TRUE when @path lies below one of @folders (absolute, NULL-terminated), by its text. */
gboolean sv_block_image_is_below(const char *path, char *const *folders);
/* Opens @path, no component of which may be a symbolic link below its folder, and looks at it.
 * @format: "raw" or "qcow2". A descriptor (read-only), or -1: outside the folders SV_ERR_PERMISSION,
 * everything else that is wrong SV_ERR_INVALID or the system's word. */
int sv_block_image_open(const char *path, char *const *folders, const char *format,
    SvBlockImage *image, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* "INODE@MAJOR:MINOR": the same for two names of one file; (transfer full). */
char *sv_block_image_name(const SvBlockImage *image);
/* The first bytes of a qcow2 file, for the fuzzer too. */
#define SV_BLOCK_QCOW2_HEADER 104
gboolean sv_block_image_check_qcow2(
    const guint8 *header, gsize len, guint64 *size_bytes, GError **error);

G_END_DECLS
