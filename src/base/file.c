/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/file.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int sv_file_open_parent(const char *path, char **name, GError **error)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    g_autofree char *folder = NULL;
    int fd;

    if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) {
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "%s: not the path of a file", path);
        return -1;
    }
    if (slash == NULL)
        folder = g_strdup(".");
    else
        folder = g_strndup(path, slash == path ? 1 : (gsize)(slash - path));
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "open folder %s", folder);
        return -1;
    }
    *name = g_strdup(base);
    return fd;
}

/* A new file of a name of our own (@temp: 32 bytes) in @dir. */
static int create_temp(int dir, mode_t mode, char *temp)
{
    int fd = -1;

    do {
        guint32 r[2];

        if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
            return -1;
        snprintf(temp, 32, ".tmp-%08x%08x", r[0], r[1]);
        fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);
    } while (fd < 0 && (errno == EEXIST || errno == EINTR));
    return fd;
}

gboolean sv_file_write_atomic(
    const char *path, const void *data, gsize len, mode_t mode, gboolean durable, GError **error)
{
    g_autofree char *name = NULL;
    g_auto(SvFd) dir = sv_file_open_parent(path, &name, error);
    g_auto(SvFd) fd = -1;
    char temp[32];

    if (dir < 0)
        return FALSE;
    fd = create_temp(dir, mode, temp);
    if (fd < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "create %s", path);
        return FALSE;
    }
    if (!sv_fd_write_all(fd, data, len, error)) {
        g_prefix_error(error, "%s: ", path);
        goto fail;
    }
    if (fchmod(fd, mode) < 0 || (durable && fsync(fd) < 0) || renameat(dir, temp, dir, name) < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "write %s", path);
        goto fail;
    }
    if (durable && fsync(dir) < 0 && errno != EINVAL) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "sync the folder of %s", path);
        return FALSE;
    }
    return TRUE;
fail:
    unlinkat(dir, temp, 0);
    return FALSE;
}

/* An open regular file, or -1 with @error. Never blocks. */
static int open_regular(const char *path, GError **error)
{
    g_auto(SvFd) fd = -1;
    struct stat st;

    do
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 || fstat(fd, &st) < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "open %s", path);
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "%s: not a regular file", path);
        return -1;
    }
    return sv_fd_steal(&fd);
}

gboolean sv_file_read(const char *path, gsize max, char **data, gsize *len, GError **error)
{
    g_auto(SvFd) fd = open_regular(path, error);

    if (fd < 0)
        return FALSE;
    if (!sv_fd_read_all(fd, max, data, len, error)) {
        g_prefix_error(error, "%s: ", path);
        return FALSE;
    }
    return TRUE;
}

gboolean sv_file_mkdirs(const char *path, mode_t mode, GError **error)
{
    g_autofree char *copy = g_strdup(path);
    char *p = copy;
    struct stat st;

    while (*p == '/')
        p++;
    while (*p != '\0') {
        char saved;

        while (*p != '\0' && *p != '/')
            p++;
        saved = *p;
        *p = '\0';
        int code = mkdir(copy, mode) < 0 ? errno : 0;
        if (code && code != EEXIST &&
            !(code == EROFS && stat(copy, &st) == 0 && S_ISDIR(st.st_mode))) {
            sv_error_set_errno(error, SV_BASE_ERROR, code, "create folder %s", copy);
            return FALSE;
        }
        *p = saved;
        while (*p == '/')
            p++;
    }
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
        sv_error_set_errno(
            error, SV_BASE_ERROR, *path == '\0' ? ENOENT : ENOTDIR, "create folder %s", path);
        return FALSE;
    }
    return TRUE;
}

int sv_file_lock(const char *path, GError **error)
{
    for (;;) {
        g_auto(SvFd) fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        struct stat mine, now;

        if (fd < 0) {
            sv_error_set_errno(error, SV_BASE_ERROR, errno, "open %s", path);
            return -1;
        }
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EWOULDBLOCK)
                g_set_error(error, SV_BASE_ERROR, SV_ERR_BUSY, "%s: locked by another", path);
            else
                sv_error_set_errno(error, SV_BASE_ERROR, errno, "lock %s", path);
            return -1;
        }
        /* A lock on a file that was removed meanwhile is worth nothing: take the new one. */
        if (fstat(fd, &mine) == 0 && stat(path, &now) == 0 && mine.st_ino == now.st_ino &&
            mine.st_dev == now.st_dev)
            return sv_fd_steal(&fd);
    }
}

char *sv_file_tail(const char *path, gsize max)
{
    g_auto(SvFd) fd = open_regular(path, NULL);
    g_autofree char *data = NULL;
    GString *out = g_string_new(NULL);
    struct stat st;
    ssize_t n = 0;
    const char *p, *end;

    if (fd >= 0 && fstat(fd, &st) == 0) {
        gsize want = MIN(max, (gsize)st.st_size);

        data = g_malloc(want + 1);
        n = TEMP_FAILURE_RETRY(pread(fd, data, want, st.st_size - (off_t)want));
    }
    if (n <= 0)
        return g_string_free(out, FALSE);
    for (p = data, end = data + n; p < end;) {
        const char *eol = memchr(p, '\n', (gsize)(end - p));
        gsize len = (gsize)((eol != NULL ? eol : end) - p);
        g_autofree char *line = NULL;

        while (len > 0 && p[len - 1] == '\r')
            len--;
        line = sv_printable_len(p, len, G_MAXSIZE);
        g_string_append(out, line);
        if (eol == NULL)
            break;
        g_string_append_c(out, '\n');
        p = eol + 1;
    }
    return g_string_free(out, FALSE);
}
