/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/fd.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void sv_fd_close(int fd)
{
    int saved = errno;

    if (fd >= 0)
        close(fd);
    errno = saved;
}

void sv_fd_clear(int *fd)
{
    sv_fd_close(*fd);
    *fd = -1;
}

static gboolean set_flag(int fd, int get, int set, int flag, gboolean on)
{
    int flags = fcntl(fd, get);

    if (flags < 0)
        return FALSE;
    return fcntl(fd, set, on ? flags | flag : flags & ~flag) == 0;
}

gboolean sv_fd_set_nonblock(int fd, gboolean on)
{
    return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

gboolean sv_fd_set_cloexec(int fd, gboolean on)
{
    return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

gboolean sv_fd_pipe(int fds[2], int flags, GError **error)
{
    if (pipe2(fds, O_CLOEXEC | flags) == 0)
        return TRUE;
    fds[0] = fds[1] = -1;
    sv_error_set_errno(error, SV_BASE_ERROR, errno, "pipe");
    return FALSE;
}

gboolean sv_fd_write_all(int fd, const void *data, gsize len, GError **error)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n >= 0) {
            p += n;
            len -= (gsize)n;
        } else if (errno == EAGAIN) {
            if (sv_fd_wait(fd, POLLOUT, -1) < 0)
                goto fail;
        } else if (errno != EINTR) {
            goto fail;
        }
    }
    return TRUE;
fail:
    sv_error_set_errno(error, SV_BASE_ERROR, errno, "write");
    return FALSE;
}

gboolean sv_fd_read_all(int fd, gsize max, char **data, gsize *len, GError **error)
{
    g_autoptr(GByteArray) buf = g_byte_array_new();
    guint8 chunk[16384];

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n == 0)
            break;
        if (n > 0) {
            if ((gsize)n > max - buf->len) {
                g_set_error(error, SV_BASE_ERROR, SV_ERR_LIMIT,
                    "read: more than %" G_GSIZE_FORMAT " bytes", max);
                return FALSE;
            }
            g_byte_array_append(buf, chunk, (guint)n);
        } else if (errno == EAGAIN && sv_fd_wait(fd, POLLIN, -1) >= 0) {
            continue;
        } else if (errno != EINTR) {
            sv_error_set_errno(error, SV_BASE_ERROR, errno, "read");
            return FALSE;
        }
    }
    if (len != NULL)
        *len = buf->len;
    g_byte_array_append(buf, (const guint8 *)"", 1);
    *data = (char *)g_byte_array_free(g_steal_pointer(&buf), FALSE);
    return TRUE;
}

int sv_fd_wait(int fd, short events, gint64 deadline_us)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int timeout = -1;
        int r;

        if (deadline_us >= 0) {
            gint64 left = deadline_us - g_get_monotonic_time();

            timeout = left <= 0 ? 0 : (int)MIN((left + 999) / 1000, G_MAXINT);
        }
        r = poll(&p, 1, timeout);
        if (r > 0)
            return p.revents;
        if (r == 0 && deadline_us >= 0 && g_get_monotonic_time() >= deadline_us)
            return 0;
        if (r < 0 && errno != EINTR)
            return -1;
    }
}

typedef union {
    struct cmsghdr align;
    char buf[CMSG_SPACE(sizeof(int) * SV_FD_MAX_PASS)];
} FdControl;

ssize_t sv_fd_send(int sock, const void *data, gsize len, const int *fds, guint n_fds)
{
    struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    FdControl control = {0};
    ssize_t n;

    if (n_fds > SV_FD_MAX_PASS) {
        errno = EINVAL;
        return -1;
    }
    if (n_fds > 0) {
        struct cmsghdr *c;

        msg.msg_control = control.buf;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
    }
    do
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Moves the descriptors of one SCM_RIGHTS message into @fds, closes those that do not fit. */
static void collect_fds(struct cmsghdr *c, int *fds, guint *n_fds)
{
    gsize n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (gsize i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        if (*n_fds < SV_FD_MAX_PASS)
            fds[(*n_fds)++] = fd;
        else
            sv_fd_close(fd);
    }
}

ssize_t sv_fd_recv(int sock, void *data, gsize len, int *fds, guint *n_fds)
{
    struct iovec iov = {.iov_base = data, .iov_len = len};
    FdControl control = {0};
    struct msghdr msg = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.buf,
        .msg_controllen = sizeof(control.buf)};
    ssize_t n;

    *n_fds = 0;
    do
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            collect_fds(c, fds, n_fds);
    }
    if (msg.msg_flags & MSG_CTRUNC) {
        while (*n_fds > 0)
            sv_fd_close(fds[--*n_fds]);
        errno = EMSGSIZE;
        return -1;
    }
    return n;
}
