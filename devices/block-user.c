/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who uses a block device: mostly for messages, as the kernel's answer to O_EXCL decides. */
#include <config.h>

#include "devices/block-probe.h"

#include "base/file.h"
#include "base/mount.h"
#include "base/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define SWAPS_MAX (64 * 1024)
#define BACKING_MAX 4097 /* a path and a newline */

/* On the device itself or on a partition of it. */
static gboolean is_on(const SvBlockInfo *info, guint major, guint minor)
{
    if (major == info->major && minor == info->minor)
        return TRUE;
    g_autofree char *link = g_strdup_printf("/sys/dev/block/%u:%u", major, minor);
    g_autofree char *dir = realpath(link, NULL);
    g_autofree char *parent = dir != NULL ? g_path_get_dirname(dir) : NULL;
    g_autofree char *name = parent != NULL ? g_path_get_basename(parent) : NULL;
    return g_strcmp0(name, info->name) == 0;
}

static char *find_mount(const SvBlockInfo *info, int pid)
{
    g_autoptr(GPtrArray) mounts = sv_mount_list(pid, NULL);
    for (guint i = 0; mounts != NULL && i < mounts->len; i++) {
        const SvMountInfo *mount = mounts->pdata[i];
        if (mount->major == 0 || !is_on(info, mount->major, mount->minor))
            continue;
        g_autofree char *target = sv_printable(mount->target, 200);
        return pid == 0 ? g_strdup_printf("mounted at \"%s\"", target)
                        : g_strdup_printf("mounted at \"%s\" in the mount namespace of process %d",
                              target, pid);
    }
    return NULL;
}

/* Each mount namespace once. */
static char *find_mount_elsewhere(const SvBlockInfo *info)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    GDir *proc = g_dir_open("/proc", 0, NULL);
    guint64 own = sv_process_ns_inode(0, "mnt");
    char *found = NULL;
    const char *name;
    while (proc != NULL && found == NULL && (name = g_dir_read_name(proc)) != NULL) {
        int pid = (int)g_ascii_strtoll(name, NULL, 10);
        guint64 ns = pid > 0 ? sv_process_ns_inode(pid, "mnt") : 0;
        if (ns != 0 && ns != own && g_hash_table_add(seen, g_memdup2(&ns, sizeof ns)))
            found = find_mount(info, pid);
    }
    if (proc != NULL)
        g_dir_close(proc);
    return found;
}

static gboolean is_swap(const SvBlockInfo *info)
{
    g_autofree char *text = NULL;
    if (!sv_file_read("/proc/swaps", SWAPS_MAX, &text, NULL, NULL))
        return FALSE;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        struct stat st;
        char *end = *line + strcspn(*line, " \t");
        if (**line != '/')
            continue;
        *end = '\0';
        g_autofree char *path = g_strcompress(*line); /* blanks are written as \040 */
        if (stat(path, &st) == 0 && S_ISBLK(st.st_mode) &&
            is_on(info, major(st.st_rdev), minor(st.st_rdev)))
            return TRUE;
    }
    return FALSE;
}

/* Device-mapper, md and the like that are built of it. */
static char *find_holder(const SvBlockInfo *info)
{
    g_autofree char *path =
        g_strdup_printf("/sys/dev/block/%u:%u/holders", info->major, info->minor);
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name = dir != NULL ? g_dir_read_name(dir) : NULL;
    char *text = name != NULL ? g_strdup_printf("part of block device \"/dev/%s\"", name) : NULL;
    if (dir != NULL)
        g_dir_close(dir);
    return text;
}

/* The same, or one a part of the other. */
static gboolean overlaps(const SvBlockInfo *info, dev_t device)
{
    return is_on(info, major(device), minor(device)) ||
        device == makedev(info->whole_major, info->whole_minor);
}

/* By the path that the kernel shows: opening a loop device would keep it from being taken down. */
static gboolean is_backing_file(const char *loop, const struct stat *st, const SvBlockInfo *info)
{
    g_autofree char *file = g_build_filename("/sys/block", loop, "loop", "backing_file", NULL);
    g_autofree char *path = NULL;
    struct stat backing;
    if (!sv_file_read(file, BACKING_MAX, &path, NULL, NULL))
        return FALSE;
    g_strchomp(path);
    if (stat(path, &backing) < 0)
        return FALSE;
    if (info != NULL)
        return S_ISBLK(backing.st_mode) && overlaps(info, backing.st_rdev);
    return backing.st_dev == st->st_dev && backing.st_ino == st->st_ino;
}

char *sv_block_find_loop(const struct stat *st, const SvBlockInfo *info)
{
    GDir *dir = g_dir_open("/sys/block", 0, NULL);
    char *found = NULL;
    const char *name;
    while (dir != NULL && found == NULL && (name = g_dir_read_name(dir)) != NULL)
        if (g_str_has_prefix(name, "loop") && is_backing_file(name, st, info))
            found = g_strconcat("/dev/", name, NULL);
    if (dir != NULL)
        g_dir_close(dir);
    return found;
}

char *sv_block_find_user(const SvBlockInfo *info)
{
    char *text = find_mount(info, 0);
    if (text == NULL)
        text = find_holder(info);
    if (text == NULL && is_swap(info))
        text = g_strdup("in use as swap");
    if (text == NULL)
        text = find_mount_elsewhere(info);
    g_autofree char *loop = text == NULL ? sv_block_find_loop(NULL, info) : NULL;
    if (loop != NULL)
        text = g_strdup_printf("part of block device \"%s\"", loop);
    return text;
}
