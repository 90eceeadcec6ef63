/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Trees of containers in the shared folder. A mount point is made in base/, where the host can write,
 * and seen through share/, where the mount is attached: share/ is a shared mount, so it comes to
 * virtiofsd's mount namespace. */
#include <config.h>

#include "core/share.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"
#include "base/names.h"
#include "core/lifecycle.h"
#include "core/share-private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char *index_path(const char *top, guint index, const char *name)
{
    return g_strdup_printf("%s/c/%u%s%s", top, index, name ? "/" : "", name ? name : "");
}

int sv_share_open_source(const char *source, gboolean *is_dir, GError **error)
{
    int fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);

    *is_dir = fd >= 0;
    if (fd < 0 && errno == ENOTDIR)
        fd = open(source, O_PATH | O_CLOEXEC);
    if (fd < 0)
        sv_error_set_errno(
            error, SV_CORE_ERROR, errno, "cannot open the mount source \"%s\"", source);
    return fd;
}

gboolean sv_share_attach(
    int source, const char *target, gboolean recursive, gboolean read_only, GError **error)
{
    g_auto(SvFd) tree = sv_mount_clone(source, "", recursive, error);

    if (tree < 0)
        return FALSE;
    if (read_only && !sv_mount_setattr(tree, MOUNT_ATTR_RDONLY, 0, 0, TRUE, error))
        return FALSE;
    return sv_mount_attach(tree, AT_FDCWD, target, error);
}

gboolean sv_share_prepare_name(const SvPaths *paths, guint index, const char *name, GError **error)
{
    g_autofree char *folder = index_path(paths->base_dir, index, NULL);
    g_auto(GStrv) parts = g_strsplit(name, "/", 2);
    g_autofree char *parent = g_build_filename(folder, parts[0], NULL);

    if (!sv_id_check(parts[0], "name in the share", error))
        return FALSE;
    if (!parts[1])
        return sv_share_make_dir(folder, error);
    return sv_id_check(parts[1], "name in the share", error) && sv_share_make_dir(folder, error) &&
        sv_share_make_dir(parent, error);
}

gboolean sv_share_bind(const SvPaths *paths, guint index, const char *name, const char *source,
    gboolean recursive, gboolean read_only, GError **error)
{
    g_autofree char *point = index_path(paths->base_dir, index, name);
    g_autofree char *target = index_path(paths->share_dir, index, name);
    g_auto(SvFd) fd = -1;
    gboolean is_dir = FALSE;

    if (sv_mount_is_mountpoint(target)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_EXISTS, "\"%s\" is mounted already", target);
        return FALSE;
    }
    fd = sv_share_open_source(source, &is_dir, error);
    if (fd < 0 || !sv_share_prepare_name(paths, index, name, error))
        return FALSE;
    if (is_dir ? !sv_share_make_dir(point, error) : !sv_share_make_file(point, error))
        return FALSE;
    if (sv_share_attach(fd, target, recursive, read_only, error))
        return TRUE;
    g_prefix_error(error, "cannot put \"%s\" into the share: ", source);
    if (is_dir)
        rmdir(point);
    else
        unlink(point);
    return FALSE;
}

static gboolean same_file(const char *a, const char *b)
{
    struct stat left, right;

    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
        left.st_ino == right.st_ino;
}

gboolean sv_share_check_seen(
    const SvPaths *paths, pid_t pid, guint index, const char *name, GError **error)
{
    g_autofree char *root = g_strdup_printf("/proc/%d/root", (int)pid);
    g_autofree char *here = index_path(paths->share_dir, index, name);
    g_autofree char *there = index_path(root, index, name);

    if (pid <= 1 || !same_file(root, paths->share_dir) || same_file(here, there))
        return TRUE;
    g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
        "what is mounted at \"%s\" does not reach virtiofsd (pid %d): this host's mounts were made "
        "private or slave after the machine had started; after \"mount --make-rshared /\" make the "
        "pod anew",
        here, (int)pid);
    return FALSE;
}

int sv_share_clone(const SvPaths *paths, guint index, const char *name, GError **error)
{
    g_autofree char *target = index_path(paths->share_dir, index, name);

    if (!sv_mount_is_mountpoint(target)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "\"%s\" is not mounted", target);
        return -1;
    }
    return sv_mount_clone(AT_FDCWD, target, TRUE, error);
}

gboolean sv_share_release(
    const SvPaths *paths, guint index, gboolean lazy, GPtrArray **busy, GError **error)
{
    g_autofree char *folder = index_path(paths->base_dir, index, NULL);
    g_autofree char *top = index_path(paths->share_dir, index, NULL);
    g_autoptr(GPtrArray) mounts = sv_share_mounts(top, error);
    g_autoptr(GPtrArray) held = g_ptr_array_new_with_free_func(g_free);
    gboolean ok = FALSE;

    /* The links last: they tell at the next try what was the container's. */
    ok = mounts && sv_share_umount_all(mounts, lazy, held, error);
    if (mounts && !sv_share_release_volumes(paths, index, lazy, held, ok ? error : NULL))
        ok = FALSE;
    ok = ok && sv_file_remove_tree(folder, error);
    if (busy)
        *busy = g_steal_pointer(&held);
    return ok;
}

GPtrArray *sv_share_list(const SvPaths *paths, GError **error)
{
    g_autofree char *top = g_build_filename(paths->share_dir, "c", NULL);
    g_autofree char *real = sv_share_real_path(top);
    g_autoptr(GPtrArray) mounts = sv_share_mounts(top, error);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);

    if (!mounts)
        return NULL;
    for (guint i = mounts->len; i > 0; i--) {
        const SvMountInfo *info = mounts->pdata[i - 1];
        const char *rest = info->target + strlen(real);
        const char *slash = *rest == '/' ? strchr(rest + 1, '/') : NULL;

        /* "/INDEX/NAME": submounts have more. */
        if (slash && !strchr(slash + 1, '/'))
            g_ptr_array_add(names, g_strdup(rest + 1));
    }
    return g_steal_pointer(&names);
}
