/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shared folder and QEMU's boot files: made and taken away. */
#include <config.h>

#include "core/share.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"
#include "core/lifecycle.h"
#include "core/owner.h"
#include "core/share-private.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whatever the umask: mapped users of the guest, and QEMU's on the host, must get through. */
gboolean sv_share_make_dir(const char *path, GError **error)
{
    struct stat st;

    if ((mkdir(path, 0755) == 0 || errno == EEXIST) && stat(path, &st) == 0 &&
        ((st.st_mode & 0777) == 0755 || chmod(path, 0755) == 0))
        return TRUE;
    sv_error_set_errno(error, SV_CORE_ERROR, errno, "cannot make the folder \"%s\"", path);
    return FALSE;
}

gboolean sv_share_make_file(const char *path, GError **error)
{
    g_auto(SvFd) fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);

    if (fd >= 0)
        return TRUE;
    sv_error_set_errno(error, SV_CORE_ERROR, errno, "cannot make the file \"%s\"", path);
    return FALSE;
}

/* The path as mountinfo has it. The folder exists or did: its parent decides. */
char *sv_share_real_path(const char *path)
{
    g_autofree char *real = realpath(path, NULL);

    return real ? g_steal_pointer(&real) : g_strdup(path);
}

static gboolean is_below(const char *path, const char *top)
{
    gsize len = strlen(top);

    return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* A mount lies on its parent, or over its own predecessor, and is never shorter: longest first. */
static gint compare_targets(gconstpointer a, gconstpointer b)
{
    const SvMountInfo *const *left = a, *const *right = b;
    gsize l = strlen((*left)->target), r = strlen((*right)->target);

    if (l != r)
        return l > r ? -1 : 1;
    return (*right)->id - (*left)->id;
}

GPtrArray *sv_share_mounts(const char *top, GError **error)
{
    g_autofree char *real = sv_share_real_path(top);
    g_autoptr(GPtrArray) all = sv_mount_list(0, error);
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func((GDestroyNotify)sv_mount_info_free);

    if (!all)
        return NULL;
    for (guint i = all->len; i > 0; i--) {
        SvMountInfo *info = all->pdata[i - 1];

        if (is_below(info->target, real))
            g_ptr_array_add(found, g_ptr_array_steal_index(all, i - 1));
    }
    g_ptr_array_sort(found, compare_targets);
    return g_steal_pointer(&found);
}

/* The clone of base/, read-only and shared, on top of share/. */
static gboolean mount_share(const SvPaths *paths, GError **error)
{
    g_auto(SvFd) tree = -1;

    if (sv_mount_is_mountpoint(paths->share_dir))
        return TRUE;
    tree = sv_mount_clone(AT_FDCWD, paths->base_dir, FALSE, error);
    return tree >= 0 && sv_mount_setattr(tree, MOUNT_ATTR_RDONLY, 0, MS_SHARED, FALSE, error) &&
        sv_mount_attach(tree, AT_FDCWD, paths->share_dir, error);
}

/* The file behind @fd at @target. */
static gboolean bind_fd(int fd, const char *target, gboolean read_only, GError **error)
{
    g_auto(SvFd) tree = -1;

    if (!sv_share_make_file(target, error))
        return FALSE;
    tree = sv_mount_clone(fd, "", FALSE, error);
    return tree >= 0 &&
        (!read_only || sv_mount_setattr(tree, MOUNT_ATTR_RDONLY, 0, 0, FALSE, error)) &&
        sv_mount_attach(tree, AT_FDCWD, target, error);
}

/* @source (symlinks followed) read-only at @target, a file. */
static gboolean bind_boot_file(const char *source, const char *target, GError **error)
{
    g_auto(SvFd) file = -1;
    struct stat st;

    if (sv_mount_is_mountpoint(target))
        return TRUE;
    file = open(source, O_PATH | O_CLOEXEC);
    if (file < 0 || fstat(file, &st) < 0) {
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "cannot open \"%s\"", source);
        return FALSE;
    }
    if (!S_ISREG(st.st_mode)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "\"%s\" is not a regular file", source);
        return FALSE;
    }
    return bind_fd(file, target, TRUE, error);
}

gboolean sv_share_bind_file(
    const SvPaths *paths, const char *name, int fd, gboolean read_only, GError **error)
{
    g_autofree char *target = g_build_filename(paths->boot_dir, name, NULL);

    return bind_fd(fd, target, read_only, error);
}

void sv_share_unbind_file(const SvPaths *paths, const char *name)
{
    g_autofree char *target = g_build_filename(paths->boot_dir, name, NULL);
    g_autoptr(GError) error = NULL;

    if (!sv_mount_umount(target, TRUE, &error))
        g_debug("ignoring: %s", error->message);
    else if (unlink(target) < 0 && errno != ENOENT)
        g_debug("ignoring: %s: %s", target, g_strerror(errno));
}

/* The boot folder outlives a power cut. */
static gboolean write_owner(const SvPaths *paths, const char *folder, GError **error)
{
    g_autofree char *file = g_build_filename(folder, SV_OWNER_FILE, NULL);

    return sv_owner_write(paths, file, error);
}

gboolean sv_share_make(const SvPaths *paths, const char *kernel, const char *image, GError **error)
{
    g_autofree char *boxes = g_path_get_dirname(paths->box_dir);
    g_autofree char *boots = g_path_get_dirname(paths->boot_dir);
    g_autofree char *containers = g_build_filename(paths->base_dir, "c", NULL);

    return sv_file_mkdirs(boxes, 0700, error) && sv_share_make_dir(paths->box_dir, error) &&
        write_owner(paths, paths->box_dir, error) && sv_share_make_dir(paths->base_dir, error) &&
        sv_share_make_dir(containers, error) && sv_share_make_dir(paths->share_dir, error) &&
        mount_share(paths, error) && sv_file_mkdirs(boots, 0755, error) &&
        sv_share_make_dir(boots, error) && sv_share_make_dir(paths->boot_dir, error) &&
        write_owner(paths, paths->boot_dir, error) &&
        bind_boot_file(kernel, paths->boot_kernel, error) &&
        bind_boot_file(image, paths->boot_image, error);
}

/* Keeps the first of several errors. */
void sv_share_keep_error(GError **first, GError *error)
{
    if (first && !*first)
        *first = error;
    else
        g_clear_error(&error);
}

gboolean sv_share_umount_all(GPtrArray *mounts, gboolean lazy, GPtrArray *busy, GError **error)
{
    GError *first = NULL;

    for (guint i = 0; i < mounts->len; i++) {
        const SvMountInfo *info = mounts->pdata[i];
        GError *local = NULL;

        if (sv_mount_umount(info->target, FALSE, &local))
            continue;
        if (busy)
            g_ptr_array_add(busy, g_strdup_printf("%s (%s)", info->target, info->source));
        if (lazy) {
            g_clear_error(&local);
            if (sv_mount_umount(info->target, TRUE, &local))
                continue;
        }
        sv_share_keep_error(&first, local);
    }
    if (!first)
        return TRUE;
    g_propagate_error(error, first);
    return FALSE;
}

gboolean sv_share_destroy(const SvPaths *paths, GError **error)
{
    const char *const tops[] = {paths->share_dir, paths->boot_dir};
    const char *const folders[] = {paths->box_dir, paths->boot_dir};
    GError *first = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(tops); i++) {
        GError *local = NULL;
        g_autoptr(GPtrArray) mounts = sv_share_mounts(tops[i], &local);

        if (!mounts || !sv_share_umount_all(mounts, TRUE, NULL, &local))
            sv_share_keep_error(&first, local);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(folders); i++) {
        GError *local = NULL;

        if (!sv_file_remove_tree(folders[i], &local))
            sv_share_keep_error(&first, local);
    }
    if (!first)
        return TRUE;
    g_propagate_error(error, first);
    return FALSE;
}
