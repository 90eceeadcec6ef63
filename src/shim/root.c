/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/root.h"
#include "base/fd.h"
#include "base/mount.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In the empty root: where the container's is attached before it becomes the root. */
#define NEXT_ROOT "next"

static gboolean fail(GError **error, const char *what)
{
    sv_error_set_errno(error, SV_BASE_ERROR, errno, "%s", what);
    return FALSE;
}

/* What @root_fd names, the root of an attached mount, becomes "/"; the old root goes. With both
 * arguments of pivot_root the same the old root lies on the new one for a moment. */
static gboolean pivot(int root_fd, GError **error)
{
    if (fchdir(root_fd) < 0)
        return fail(error, "enter the new root");
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return fail(error, "change the root");
    if (umount2(".", MNT_DETACH) < 0)
        return fail(error, "leave the old root");
    if (chdir("/") < 0)
        return fail(error, "enter the root");
    return TRUE;
}

/* A /proc of this pid namespace on the folder @root_fd/proc, never through a link. */
static gboolean attach_proc(int root_fd, GError **error)
{
    g_auto(SvFd) proc =
        sv_mount_new("proc", "", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, error);

    return proc >= 0 && sv_mount_attach(proc, root_fd, "proc", error);
}

gboolean sv_root_empty(GError **error)
{
    g_auto(SvFd) root = -1;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail(error, "make the mounts private");
    root = sv_mount_new("tmpfs", "size=4k,nr_inodes=8,mode=0555",
        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, error);
    if (root < 0)
        return FALSE;
    if (mkdirat(root, "proc", 0555) < 0 || mkdirat(root, NEXT_ROOT, 0555) < 0)
        return fail(error, "fill the empty root");
    /* Every host has this folder; it is covered for a moment. */
    if (!sv_mount_attach(root, AT_FDCWD, "/proc", error) || !attach_proc(root, error) ||
        !sv_mount_setattr(root, MOUNT_ATTR_RDONLY, 0, 0, FALSE, error))
        return FALSE;
    return pivot(root, error);
}

gboolean sv_root_enter(int mount_fd, GError **error)
{
    g_auto(SvFd) root = -1;
    struct stat st;

    if (!sv_mount_attach(mount_fd, AT_FDCWD, "/" NEXT_ROOT, error))
        return FALSE;
    root = open("/" NEXT_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return fail(error, "open the container's root");
    if (fstatat(root, "proc", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
        !attach_proc(root, error))
        return FALSE;
    return pivot(root, error);
}
