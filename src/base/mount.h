/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mount API of Linux (open_tree, move_mount, mount_setattr), thinly. All take descriptors or
 * absolute paths; nothing here follows a trailing symlink unless said. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Detached clone of what @dir_fd/@path names ("" : dir_fd itself). @recursive: with submounts.
 * Returns an O_PATH descriptor of a detached mount, made MS_PRIVATE; -1 with @error. */
int sv_mount_clone(int dir_fd, const char *path, gboolean recursive, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* mount_setattr on the tree behind @mount_fd: MOUNT_ATTR_* bits to set / clear, propagation
 * (0 or MS_SHARED/MS_SLAVE/MS_PRIVATE). */
gboolean sv_mount_setattr(int mount_fd, guint64 set, guint64 clear, guint64 propagation,
    gboolean recursive, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Attaches a detached mount at @dir_fd/@path (file on file, folder on folder). */
gboolean sv_mount_attach(int mount_fd, int dir_fd, const char *path, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* New file system (fsopen/fsmount): e.g. "tmpfs" with "size=4k,mode=0555". Detached; -1 + error. */
int sv_mount_new(const char *fstype, const char *options, guint64 attrs, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* umount2(@path, UMOUNT_NOFOLLOW | (@lazy ? MNT_DETACH : 0)). Not a mount or missing: TRUE. */
gboolean sv_mount_umount(const char *path, gboolean lazy, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* TRUE when @path (not followed) is the root of a mount. */
gboolean sv_mount_is_mountpoint(const char *path);

/* One line of /proc/self/mountinfo. Strings unescaped, owned by the struct. */
typedef struct {
    int id, parent;
    unsigned major, minor;
    char *root; /* path inside the file system */
    char *target; /* where it is mounted */
    char *options; /* per mount */
    char *fstype;
    char *source;
    char *super_options;
    gboolean shared;
} SvMountInfo;
void sv_mount_info_free(SvMountInfo *info);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvMountInfo, sv_mount_info_free)
/* Parses mountinfo of process @pid (0: self). GPtrArray of SvMountInfo (transfer full). */
GPtrArray *sv_mount_list(int pid, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The same parser on text, for tests and fuzzing. */
GPtrArray *sv_mount_parse(const char *text, gsize len, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
