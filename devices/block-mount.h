/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file system that moves from the host into the guest: its mount on the host is found, taken away and
 * put back. One file system is never mounted on both sides. Everything but find may take long: call it
 * in a thread. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* As it was found on the host. */
typedef struct {
    guint major, minor;
    guint64 seq; /* sv_block_seq */
    char *device; /* what was mounted, as /proc has it: maybe no path */
    char *target; /* where */
    char *fstype;
    char *options; /* of the mount: "ro,nosuid,..." */
    char *super_options; /* of the file system: "rw,data=ordered" */
} SvBlockMount;
void sv_block_mount_free(SvBlockMount *mount);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvBlockMount, sv_block_mount_free)

/* TRUE for file systems that the guest can mount. */
gboolean sv_block_fstype_is_known(const char *fstype);

/* The mount whose root the folder @path is, when it is the whole of a file system on a block device, of
 * a kind that the guest knows, mounted nowhere else here and with nothing mounted below. NULL without
 * @error: it is not. *why (nullable out, transfer full): set when it lies on a block device of its own
 * all the same: why it stays on the host. */
SvBlockMount *sv_block_mount_find(const char *path, char **why, GError **error);

/* What stands in for a file system that has moved is named by this and the disk's alias. */
#define SV_BLOCK_MARK "sandvirt:"
/* FALSE + SV_ERR_BUSY when the folder @path is such a stand-in, or lay in what it stands for: the file system
 * is in a machine, or its container has not been deleted yet. Whatever else is wrong with it: TRUE. */
gboolean sv_block_mount_is_here(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* Writes everything back and unmounts it; an empty read-only tmpfs named @mark stands there then, for
 * an engine to unmount. In use: SV_ERR_BUSY, and all is as before. */
gboolean sv_block_mount_take(const SvBlockMount *found, const char *mark, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Puts the mount back when the tmpfs named @mark is still the topmost at its place, or, with
 * @if_missing, when nothing is mounted there. Else, and when it was never taken away: TRUE and nothing
 * is done. @node: of the device. Options that the kernel prints but does not take are left out with a
 * warning. */
gboolean sv_block_mount_restore(const SvBlockMount *found, const char *node, const char *mark,
    gboolean if_missing, GError **error) G_GNUC_WARN_UNUSED_RESULT;

gboolean sv_block_mount_is_read_only(const SvBlockMount *found);
/* Flags of mount(2) for the same mount again; what is no flag goes to @data (transfer full). */
gulong sv_block_mount_flags(const SvBlockMount *found, char **data);
/* Options for the guest's mount of it: the flags, and of the file system's own those that its kernel
 * knows for sure. @options, @super_options: nullable, "a,b". (transfer full) */
char *sv_block_guest_options(const char *fstype, const char *options, const char *super_options,
    gboolean read_only) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
