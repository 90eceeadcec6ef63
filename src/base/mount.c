/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/mount.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int sv_mount_clone(int dir_fd, const char *path, gboolean recursive, GError **error)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    g_auto(SvFd) fd = -1;

    if (*path == '\0')
        flags |= AT_EMPTY_PATH;
    if (recursive)
        flags |= AT_RECURSIVE;
    fd = open_tree(dir_fd, path, flags);
    if (fd < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "clone the mount of '%s'", path);
        return -1;
    }
    if (!sv_mount_setattr(fd, 0, 0, MS_PRIVATE, recursive, error))
        return -1;
    return sv_fd_steal(&fd);
}

gboolean sv_mount_setattr(int mount_fd, guint64 set, guint64 clear, guint64 propagation,
    gboolean recursive, GError **error)
{
    struct mount_attr attr = {.attr_set = set, .attr_clr = clear, .propagation = propagation};
    unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);

    if (mount_setattr(mount_fd, "", flags, &attr, sizeof(attr)) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_BASE_ERROR, errno, "set the attributes of a mount");
    return FALSE;
}

gboolean sv_mount_attach(int mount_fd, int dir_fd, const char *path, GError **error)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path == '\0' ? MOVE_MOUNT_T_EMPTY_PATH : 0);

    if (move_mount(mount_fd, "", dir_fd, path, flags) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_BASE_ERROR, errno, "attach a mount at '%s'", path);
    return FALSE;
}

/* The error with what the file system says about it ("e tmpfs: Bad value for 'size'"). */
static void set_fs_error(GError **error, int fs_fd, int errsv, const char *fstype)
{
    g_autofree char *said = NULL;
    char text[512];
    ssize_t n = read(fs_fd, text, sizeof(text));

    if (n > 2)
        said = sv_printable_len(text + 2, (gsize)n - 2 - (text[n - 1] == '\n' ? 1 : 0), 256);
    sv_error_set_errno(error, SV_BASE_ERROR, errsv, "new file system %s%s%s", fstype,
        said != NULL ? ": " : "", said != NULL ? said : "");
}

static gboolean configure_fs(int fs_fd, const char *fstype, const char *options)
{
    g_auto(GStrv) list = g_strsplit(options != NULL ? options : "", ",", -1);

    if (fsconfig(fs_fd, FSCONFIG_SET_STRING, "source", fstype, 0) < 0)
        return FALSE;
    for (char **o = list; *o != NULL; o++) {
        char *value = strchr(*o, '=');
        int r;

        if (**o == '\0')
            continue;
        if (value != NULL) {
            *value++ = '\0';
            r = fsconfig(fs_fd, FSCONFIG_SET_STRING, *o, value, 0);
        } else {
            r = fsconfig(fs_fd, FSCONFIG_SET_FLAG, *o, NULL, 0);
        }
        if (r < 0)
            return FALSE;
    }
    return fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0;
}

int sv_mount_new(const char *fstype, const char *options, guint64 attrs, GError **error)
{
    g_auto(SvFd) fs = fsopen(fstype, FSOPEN_CLOEXEC);
    int fd;

    if (fs < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "new file system %s", fstype);
        return -1;
    }
    if (!configure_fs(fs, fstype, options)) {
        set_fs_error(error, fs, errno, fstype);
        return -1;
    }
    fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs);
    if (fd < 0)
        set_fs_error(error, fs, errno, fstype);
    return fd;
}

gboolean sv_mount_umount(const char *path, gboolean lazy, GError **error)
{
    int errsv;

    if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
        return TRUE;
    errsv = errno;
    if (errsv == ENOENT || (errsv == EINVAL && !sv_mount_is_mountpoint(path)))
        return TRUE;
    sv_error_set_errno(error, SV_BASE_ERROR, errsv, "unmount %s", path);
    return FALSE;
}

gboolean sv_mount_is_mountpoint(const char *path)
{
    struct statx sx;

    return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &sx) == 0 &&
        (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}
