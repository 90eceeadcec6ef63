/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Volumes in the shared folder. virtiofsd takes the same file below two mounts for two files: two page
 * caches, two lock tables, two fifos. So whatever containers of a pod mount of one folder is bound once, at
 * share/v/KEY/NAME, and each container has a symlink to it at c/INDEX/...: the links are the count. */
#include <config.h>

#include "core/share.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"
#include "core/lifecycle.h"
#include "core/share-private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define KEY_LEN 16
#define LINK_DEPTH 3 /* of c/INDEX/mN/NAME below base/; one less without the folder */

/* The mounts below @source as text: two binds of a tree are the same only with the same ones. */
static gboolean add_submounts(GString *text, const char *source, GError **error)
{
    g_autoptr(GPtrArray) mounts = sv_share_mounts(source, error);
    g_autofree char *real = sv_share_real_path(source);

    for (guint i = 0; mounts && i < mounts->len; i++) {
        const SvMountInfo *info = mounts->pdata[i];

        if (!g_str_equal(info->target, real))
            g_string_append_printf(text, " %d:%s", info->id, info->target + strlen(real));
    }
    return mounts != NULL;
}

/* What two mounts have in common to be one bind: the inode, the flags it is mounted with, ours, and the
 * mounts below. (transfer full) */
static char *key_of(
    int fd, const char *source, gboolean recursive, gboolean read_only, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct stat st;
    struct statvfs fs;

    if (fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0) {
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "mount source \"%s\"", source);
        return NULL;
    }
    g_string_printf(
        text, "%ju %ju %lx %d", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, fs.f_flag, read_only);
    if (recursive && S_ISDIR(st.st_mode) && !add_submounts(text, source, error))
        return NULL;
    char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, -1);
    sum[KEY_LEN] = '\0';
    return sum;
}

/* Name of the bind that is mounted below v/KEY already; NULL: none. (transfer full) */
static char *mounted_name(const SvPaths *paths, const char *key)
{
    g_autofree char *folder = g_build_filename(paths->share_dir, "v", key, NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name = NULL;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);

        if (sv_mount_is_mountpoint(path))
            return g_strdup(name);
    }
    return NULL;
}

/* The link first: a bind that a killed monitor left without one would never be counted. */
static gboolean make_link(const SvPaths *paths, guint index, const char *name, const char *key,
    const char *volume, GError **error)
{
    gboolean folder = strchr(name, '/') != NULL;
    g_autoptr(GString) target = g_string_new(NULL);
    g_autofree char *path = g_strdup_printf("%s/c/%u/%s", paths->base_dir, index, name);

    for (guint i = folder ? 0 : 1; i < LINK_DEPTH; i++)
        g_string_append(target, "../");
    g_string_append_printf(target, "v/%s/%s", key, volume);
    if (symlink(target->str, path) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_CORE_ERROR, errno, "cannot make the link \"%s\"", path);
    return FALSE;
}

static gboolean make_point(
    const SvPaths *paths, const char *key, const char *volume, gboolean is_dir, GError **error)
{
    g_autofree char *top = g_build_filename(paths->base_dir, "v", NULL);
    g_autofree char *folder = g_build_filename(top, key, NULL);
    g_autofree char *point = g_build_filename(folder, volume, NULL);

    return sv_share_make_dir(top, error) && sv_share_make_dir(folder, error) &&
        (is_dir ? sv_share_make_dir(point, error) : sv_share_make_file(point, error));
}

gboolean sv_share_bind_volume(const SvPaths *paths, guint index, const char *name,
    const char *source, gboolean recursive, gboolean read_only, GError **error)
{
    gboolean is_dir = FALSE;
    g_auto(SvFd) fd = sv_share_open_source(source, &is_dir, error);
    g_autofree char *key = fd < 0 ? NULL : key_of(fd, source, recursive, read_only, error);

    if (!key || !sv_share_prepare_name(paths, index, name, error))
        return FALSE;
    g_autofree char *mounted = mounted_name(paths, key);
    g_autofree char *own = g_path_get_basename(name);
    const char *volume = mounted ? mounted : own;
    g_autofree char *target = g_build_filename(paths->share_dir, "v", key, volume, NULL);
    if (!make_link(paths, index, name, key, volume, error))
        return FALSE;
    if (mounted ||
        (make_point(paths, key, volume, is_dir, error) &&
            sv_share_attach(fd, target, recursive, read_only, error)))
        return TRUE;
    g_prefix_error(error, "cannot put \"%s\" into the share: ", source);
    return FALSE;
}

/* ---- counting */

/* Adds the key that the link at @path names, if it is one. */
static void add_key(GHashTable *keys, const char *path)
{
    g_autofree char *target = g_file_read_link(path, NULL);
    const char *key = target ? strstr(target, "v/") : NULL;

    if (key && strlen(key) > 2 + KEY_LEN && key[2 + KEY_LEN] == '/')
        g_hash_table_add(keys, g_strndup(key + 2, KEY_LEN));
}

/* A folder that cannot be read would count for nothing, and what its containers use be taken away. */
static GDir *open_folder(const char *path, GError **error)
{
    GDir *dir = g_dir_open(path, 0, NULL);

    if (!dir)
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "read the folder \"%s\"", path);
    return dir;
}

/* Those of one container's folder, or of a folder in it. */
static gboolean add_keys_of(GHashTable *keys, const char *folder, gboolean deeper, GError **error)
{
    g_autoptr(GDir) dir = open_folder(folder, error);
    const char *name = NULL;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        struct stat st;

        if (lstat(path, &st) < 0)
            continue;
        if (S_ISLNK(st.st_mode))
            add_key(keys, path);
        else if (deeper && S_ISDIR(st.st_mode) && !g_str_equal(name, "rootfs") &&
            !add_keys_of(keys, path, FALSE, error))
            return FALSE;
    }
    return dir != NULL;
}

/* Keys that containers other than @except link to. */
static GHashTable *keys_in_use(const SvPaths *paths, guint except, GError **error)
{
    g_autoptr(GHashTable) keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *top = g_build_filename(paths->base_dir, "c", NULL);
    g_autofree char *skipped = g_strdup_printf("%u", except);
    g_autoptr(GDir) dir = open_folder(top, error);
    const char *name = NULL;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *folder = g_build_filename(top, name, NULL);

        if (!g_str_equal(name, skipped) && !add_keys_of(keys, folder, TRUE, error))
            return NULL;
    }
    return dir ? g_steal_pointer(&keys) : NULL;
}

/* Also what a killed monitor left: whatever nobody links to goes. */
gboolean sv_share_release_volumes(
    const SvPaths *paths, guint index, gboolean lazy, GPtrArray *busy, GError **error)
{
    g_autofree char *base = g_build_filename(paths->base_dir, "v", NULL);
    g_autoptr(GDir) dir = g_dir_open(base, 0, NULL);
    g_autoptr(GHashTable) used = dir ? keys_in_use(paths, index, error) : NULL;
    GError *first = NULL;
    const char *name = NULL;

    if (dir && !used)
        return FALSE;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *top = g_build_filename(paths->share_dir, "v", name, NULL);
        g_autofree char *folder = g_build_filename(base, name, NULL);
        GError *local = NULL;

        if (g_hash_table_contains(used, name))
            continue;
        g_autoptr(GPtrArray) mounts = sv_share_mounts(top, &local);
        if (!mounts || !sv_share_umount_all(mounts, lazy, busy, &local) ||
            !sv_file_remove_tree(folder, &local))
            sv_share_keep_error(&first, local);
    }
    if (!first)
        return TRUE;
    g_propagate_error(error, first);
    return FALSE;
}
