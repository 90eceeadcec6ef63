/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the host's kernel says of a block device, and who uses it. Nothing here opens a device for
 * writing; sysfs and /proc are read. */
#pragma once

#include "base/error.h"

#include <sys/stat.h>

G_BEGIN_DECLS

#define SV_DEVICES_ERROR (sv_devices_error_quark())
GQuark sv_devices_error_quark(void);

typedef struct {
    guint major, minor;
    guint whole_major, whole_minor; /* of the disk that a partition lies on; else its own */
    char *name; /* the kernel's: "loop0", "dm-3", "sda1" */
    char *node; /* absolute path of a node with these numbers, below /dev */
    guint64 size_bytes;
    guint64
        seq; /* another one each time that the numbers come to mean another disk; 0: not known */
    gboolean read_only; /* blockdev --setro, or by nature */
} SvBlockInfo;
void sv_block_info_free(SvBlockInfo *info);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvBlockInfo, sv_block_info_free)

/* The device @major:@minor. @hint: (nullable) a path that may be a node of it, looked at after the
 * kernel's own name. @what names it in messages ("linux.devices[3]"). No such device:
 * SV_ERR_NOT_FOUND; size 0 (a loop device without a file): SV_ERR_INVALID. */
SvBlockInfo *sv_block_probe(guint major, guint minor, const char *hint, const char *what,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The same by a path (symlinks followed; it has to end below /dev). Another kind of file:
 * SV_ERR_INVALID. */
SvBlockInfo *sv_block_probe_path(const char *path, const char *what, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* Opens the device exclusively (O_EXCL, read-only): works only when nobody on the host has mounted it,
 * swaps on it, or builds another device of it (loop devices too), in any namespace, the partitions of a
 * disk included. While the descriptor is open nobody else can begin to. -1 + SV_ERR_BUSY with the user's name where
 * it can be found. */
int sv_block_open_exclusive(const SvBlockInfo *info, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Who uses it: "mounted at \"/mnt\"", "in use as swap", ... NULL: nobody that can be found; the kernel
 * may know of one. (transfer full) */
char *sv_block_find_user(const SvBlockInfo *info);
/* "/dev/loop3" when that loop device stands on the block device @info (its disk, a partition of it), or with
 * NULL on the file @st: the kernel lets it, whoever has that exclusively. NULL: none does. (transfer full) */
char *sv_block_find_loop(const struct stat *st, const SvBlockInfo *info);

guint64 sv_block_seq(guint major, guint minor);
gboolean sv_block_is_writable(guint major, guint minor); /* for the host */
/* TRUE when @path (nullable) is a node with these numbers. */
gboolean sv_block_is_node(const char *path, guint major, guint minor);

G_END_DECLS
