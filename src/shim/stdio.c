/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/stdio.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Away from the numbers that have a meaning. */
#define FIRST_FREE 10

/* A description of our own for the same pipe or terminal; -1 when that cannot be. */
static int open_anew(int fd)
{
    char path[64];
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -1;
    g_snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, (flags & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static SvStdioKind classify(int fd, const struct stat *st, gboolean tty)
{
    if (S_ISSOCK(st->st_mode))
        return SV_STDIO_SOCKET;
    if (S_ISFIFO(st->st_mode) || tty)
        return SV_STDIO_OWN;
    return SV_STDIO_READY;
}

gboolean sv_stdio_take(SvStdio *io, int fd, GError **error)
{
    g_auto(SvFd) null_fd = -1;
    g_auto(SvFd) mine = -1;
    struct stat st;

    if (fstat(fd, &st) < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "descriptor %d", fd);
        return FALSE;
    }
    io->tty = S_ISCHR(st.st_mode) && isatty(fd);
    io->kind = classify(fd, &st, io->tty);
    if (io->kind == SV_STDIO_OWN) {
        mine = open_anew(fd);
        if (mine >= 0 && mine < FIRST_FREE) {
            int moved = fcntl(mine, F_DUPFD_CLOEXEC, FIRST_FREE);

            sv_fd_close(mine);
            mine = moved;
        }
        if (mine < 0)
            io->kind = SV_STDIO_SHARED;
    }
    if (mine < 0)
        mine = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (mine < 0 || null_fd < 0 || dup2(null_fd, fd) < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "take over descriptor %d", fd);
        return FALSE;
    }
    io->fd = sv_fd_steal(&mine);
    return TRUE;
}

void sv_stdio_own(SvStdio *io, int fd)
{
    io->kind = SV_STDIO_OWN;
    io->fd = fd;
    io->tty = isatty(fd) == 1;
}

void sv_stdio_close(SvStdio *io)
{
    if (io->kind != SV_STDIO_CLOSED)
        sv_fd_clear(&io->fd);
    io->kind = SV_STDIO_CLOSED;
    io->fd = -1;
}

/* Whether a shared description is ready: in poll's own words, at this very moment. */
static gboolean is_ready(int fd, short events)
{
    struct pollfd p = {fd, events, 0};

    return poll(&p, 1, 0) > 0;
}

ssize_t sv_stdio_read(SvStdio *io, void *data, gsize len)
{
    ssize_t n = -1;

    errno = EAGAIN;
    switch (io->kind) {
    case SV_STDIO_SOCKET:
        n = recv(io->fd, data, len, MSG_DONTWAIT);
        break;
    case SV_STDIO_SHARED:
        if (is_ready(io->fd, POLLIN))
            n = read(io->fd, data, len);
        break;
    case SV_STDIO_OWN:
    case SV_STDIO_READY:
        n = read(io->fd, data, len);
        break;
    case SV_STDIO_CLOSED:
        return 0;
    }
    if (n < 0 && errno == EIO && io->tty)
        return 0;
    return n;
}

ssize_t sv_stdio_write(SvStdio *io, const void *data, gsize len)
{
    ssize_t n = -1;

    errno = EAGAIN;
    switch (io->kind) {
    case SV_STDIO_SOCKET:
        n = send(io->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case SV_STDIO_SHARED:
        if (is_ready(io->fd, POLLOUT))
            n = write(io->fd, data, MIN(len, PIPE_BUF));
        break;
    case SV_STDIO_OWN:
    case SV_STDIO_READY:
        n = write(io->fd, data, len);
        break;
    case SV_STDIO_CLOSED:
        errno = EPIPE;
        break;
    }
    if (n < 0 && errno == EIO && io->tty)
        errno = EPIPE;
    return n;
}
