/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/block-probe.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define SYSFS_MAX 4096

SV_DEFINE_ERROR_QUARK(devices)

void sv_block_info_free(SvBlockInfo *info)
{
    if (info == NULL)
        return;
    g_free(info->name);
    g_free(info->node);
    g_free(info);
}

static char *read_sysfs(const char *dir, const char *file)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    char *text = NULL;
    if (!sv_file_read(path, SYSFS_MAX, &text, NULL, NULL))
        return NULL;
    return g_strchomp(text);
}

static guint64 read_number(const char *dir, const char *file)
{
    g_autofree char *text = read_sysfs(dir, file);
    return text != NULL ? g_ascii_strtoull(text, NULL, 10) : 0;
}

gboolean sv_block_is_node(const char *path, guint major, guint minor)
{
    struct stat st;
    return path != NULL && stat(path, &st) == 0 && S_ISBLK(st.st_mode) &&
        st.st_rdev == makedev(major, minor);
}

guint64 sv_block_seq(guint major, guint minor)
{
    g_autofree char *link = g_strdup_printf("/sys/dev/block/%u:%u", major, minor);
    g_autofree char *dir = realpath(link, NULL);
    if (dir == NULL)
        return 0;
    guint64 seq = read_number(dir, "diskseq");
    return seq != 0 ? seq : read_number(dir, "../diskseq"); /* of a partition: its disk's */
}

gboolean sv_block_is_writable(guint major, guint minor)
{
    g_autofree char *dir = g_strdup_printf("/sys/dev/block/%u:%u", major, minor);
    return read_number(dir, "ro") == 0;
}

/* "DEVNAME=loop0" of the uevent file; slashes of a name in a folder ("cciss/c0d0") are kept. */
static char *device_name(const char *dir)
{
    g_autofree char *text = read_sysfs(dir, "uevent");
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        if (g_str_has_prefix(*line, "DEVNAME="))
            return g_strdup(*line + strlen("DEVNAME="));
    return NULL;
}

/* libvirt gives QEMU a /dev of its own, into which it copies nodes that lie below /dev. */
static char *find_node(const SvBlockInfo *info, const char *dir, const char *hint)
{
    g_autofree char *by_name = g_strconcat("/dev/", info->name, NULL);
    g_autofree char *dm = read_sysfs(dir, "dm/name");
    g_autofree char *by_dm = dm != NULL ? g_strconcat("/dev/mapper/", dm, NULL) : NULL;
    const char *const candidates[] = {by_name, by_dm, hint};
    for (guint i = 0; i < G_N_ELEMENTS(candidates); i++) {
        const char *path = candidates[i];
        if (path != NULL && g_str_has_prefix(path, "/dev/") &&
            sv_block_is_node(path, info->major, info->minor))
            return g_strdup(path);
    }
    return NULL;
}

/* A partition's folder lies in that of its disk. */
static void find_whole(SvBlockInfo *info, const char *dir)
{
    g_autofree char *partition = read_sysfs(dir, "partition");
    g_autofree char *text = partition != NULL ? read_sysfs(dir, "../dev") : NULL;
    info->whole_major = info->major;
    info->whole_minor = info->minor;
    char *colon = text != NULL ? strchr(text, ':') : NULL;
    if (colon == NULL)
        return;
    info->whole_major = (guint)g_ascii_strtoull(text, NULL, 10);
    info->whole_minor = (guint)g_ascii_strtoull(colon + 1, NULL, 10);
}

SvBlockInfo *sv_block_probe(
    guint major, guint minor, const char *hint, const char *what, GError **error)
{
    g_autofree char *link = g_strdup_printf("/sys/dev/block/%u:%u", major, minor);
    /* through the link, so that ".." is the disk of a partition */
    g_autofree char *dir = realpath(link, NULL);
    g_autofree char *shown = sv_printable(hint, 200);
    g_autofree char *name = dir != NULL ? device_name(dir) : NULL;
    if (name == NULL) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_NOT_FOUND,
            "%s: block device %u:%u%s%s%s does not exist on the host", what, major, minor,
            *shown ? " (" : "", shown, *shown ? ")" : "");
        return NULL;
    }
    g_autoptr(SvBlockInfo) info = g_new0(SvBlockInfo, 1);
    info->major = major;
    info->minor = minor;
    info->name = g_steal_pointer(&name);
    info->size_bytes = read_number(dir, "size") * 512;
    info->read_only = read_number(dir, "ro") != 0;
    info->seq = sv_block_seq(major, minor);
    info->node = find_node(info, dir, hint);
    find_whole(info, dir);
    if (info->node == NULL) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_NOT_FOUND,
            "%s: block device %u:%u (%s) has no node below /dev", what, major, minor, info->name);
        return NULL;
    }
    if (info->size_bytes == 0) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_INVALID,
            "%s: block device \"%s\" is empty (size 0)", what, info->node);
        return NULL;
    }
    return g_steal_pointer(&info);
}

SvBlockInfo *sv_block_probe_path(const char *path, const char *what, GError **error)
{
    g_autofree char *shown = sv_printable(path, 200);
    g_autofree char *real = realpath(path, NULL);
    struct stat st;
    if (real == NULL || stat(real, &st) < 0) {
        sv_error_set_errno(error, SV_DEVICES_ERROR, errno, "%s: \"%s\"", what, shown);
        return NULL;
    }
    if (!S_ISBLK(st.st_mode)) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_INVALID, "%s: \"%s\" is %s, no block device",
            what, shown, S_ISCHR(st.st_mode) ? "a character device" : "not a device");
        return NULL;
    }
    if (!g_str_has_prefix(real, "/dev/")) {
        g_set_error(
            error, SV_DEVICES_ERROR, SV_ERR_INVALID, "%s: \"%s\" is not below /dev", what, shown);
        return NULL;
    }
    return sv_block_probe(major(st.st_rdev), minor(st.st_rdev), real, what, error);
}

int sv_block_open_exclusive(const SvBlockInfo *info, GError **error)
{
    g_auto(SvFd) fd = open(info->node, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0 && errno == EBUSY) {
        g_autofree char *user = sv_block_find_user(info);
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_BUSY, "block device \"%s\" is %s", info->node,
            user != NULL ? user : "in use");
        return -1;
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        sv_error_set_errno(error, SV_DEVICES_ERROR, errno, "block device \"%s\"", info->node);
        return -1;
    }
    if (!S_ISBLK(st.st_mode) || st.st_rdev != makedev(info->major, info->minor)) {
        g_set_error(
            error, SV_DEVICES_ERROR, SV_ERR_INVALID, "\"%s\" is another device by now", info->node);
        return -1;
    }
    g_autofree char *loop = sv_block_find_loop(NULL, info);
    if (loop != NULL) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_BUSY,
            "block device \"%s\" is part of block device \"%s\"", info->node, loop);
        return -1;
    }
    return sv_fd_steal(&fd);
}
