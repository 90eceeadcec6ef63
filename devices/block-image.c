/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/block-image.h"

#include "base/fd.h"
#include "devices/block-probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define QCOW2_DATA_FILE (G_GUINT64_CONSTANT(1) << 2) /* incompatible feature: external data file */
#define SECTOR 512

static const char *folder_of(const char *path, char *const *folders)
{
    for (; folders != NULL && *folders != NULL; folders++) {
        gsize len = strlen(*folders);
        while (len > 1 && (*folders)[len - 1] == '/')
            len--;
        if (strncmp(path, *folders, len) == 0 && path[len] == '/')
            return *folders;
    }
    return NULL;
}

gboolean sv_block_image_is_below(const char *path, char *const *folders)
{
    return folder_of(path, folders) != NULL;
}

static guint64 big_endian(const guint8 *bytes, guint n)
{
    guint64 value = 0;
    for (guint i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

gboolean sv_block_image_check_qcow2(
    const guint8 *header, gsize len, guint64 *size_bytes, GError **error)
{
    const char *wrong = NULL;
    guint64 version = len >= 72 ? big_endian(header + 4, 4) : 0;
    if (len < 72 || memcmp(header, "QFI\xfb", 4) != 0 || version < 2 || version > 3)
        wrong = "is no qcow2 image";
    else if (version == 3 && len < SV_BLOCK_QCOW2_HEADER)
        wrong = "is cut off";
    else if (big_endian(header + 8, 8) != 0 || big_endian(header + 16, 4) != 0)
        wrong = "has a backing file";
    else if (version == 3 && (big_endian(header + 72, 8) & QCOW2_DATA_FILE) != 0)
        wrong = "has a data file";
    else if (big_endian(header + 32, 4) != 0)
        wrong = "is encrypted";
    if (wrong != NULL) {
        g_set_error_literal(error, SV_DEVICES_ERROR, SV_ERR_INVALID, wrong);
        return FALSE;
    }
    *size_bytes = big_endian(header + 24, 8);
    return TRUE;
}

static int open_below(const char *path, const char *folder, GError **error)
{
    gsize len = strlen(folder);
    while (len > 1 && folder[len - 1] == '/')
        len--;
    const char *rest = path + len + strspn(path + len, "/");
    /* The folder is the administrator's word; what lies in it may be a tenant's. */
    g_auto(SvFd) dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int fd = dir >= 0 ? (int)syscall(SYS_openat2, dir, rest, &how, sizeof how) : -1;
    if (fd < 0 && errno == ELOOP)
        g_set_error_literal(
            error, SV_DEVICES_ERROR, SV_ERR_INVALID, "is or lies behind a symbolic link");
    else if (fd < 0)
        sv_error_set_errno(error, SV_DEVICES_ERROR, errno, "cannot be opened");
    return fd;
}

static gboolean look_inside(int fd, const char *format, SvBlockImage *image, GError **error)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        g_set_error_literal(error, SV_DEVICES_ERROR, SV_ERR_INVALID, "is no regular file");
        return FALSE;
    }
    g_autofree char *loop = sv_block_find_loop(&st, NULL);
    if (loop != NULL) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_BUSY, "is in use as block device \"%s\"", loop);
        return FALSE;
    }
    image->device = st.st_dev;
    image->inode = st.st_ino;
    image->read_only = (st.st_mode & 0222) == 0;
    image->size_bytes = (guint64)st.st_size;
    if (strcmp(format, "qcow2") == 0) {
        guint8 header[SV_BLOCK_QCOW2_HEADER];
        ssize_t n = pread(fd, header, sizeof header, 0);
        if (!sv_block_image_check_qcow2(header, n > 0 ? (gsize)n : 0, &image->size_bytes, error))
            return FALSE;
    }
    if (image->size_bytes < SECTOR) {
        g_set_error_literal(error, SV_DEVICES_ERROR, SV_ERR_INVALID, "is empty (size 0)");
        return FALSE;
    }
    return TRUE;
}

int sv_block_image_open(
    const char *path, char *const *folders, const char *format, SvBlockImage *image, GError **error)
{
    g_autofree char *shown = sv_printable(path, 200);
    const char *folder = folder_of(path, folders);
    if (folder == NULL) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_PERMISSION,
            "image file \"%s\" lies in no folder that [storage] image_folders allows", shown);
        return -1;
    }
    if (g_strcmp0(format, "raw") != 0 && g_strcmp0(format, "qcow2") != 0) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_INVALID,
            "image file \"%s\": its format has to be stated: raw or qcow2", shown);
        return -1;
    }
    g_auto(SvFd) fd = open_below(path, folder, error);
    if (fd >= 0 && look_inside(fd, format, image, error))
        return sv_fd_steal(&fd);
    g_prefix_error(error, "image file \"%s\" ", shown);
    return -1;
}

char *sv_block_image_name(const SvBlockImage *image)
{
    return g_strdup_printf(
        "%" G_GUINT64_FORMAT "@%u:%u", image->inode, major(image->device), minor(image->device));
}
