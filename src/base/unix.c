/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/fd.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static gboolean address_set(struct sockaddr_un *addr, const char *path)
{
    gsize len = strlen(path);

    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    if (len == 0 || len >= sizeof(addr->sun_path))
        return FALSE;
    memcpy(addr->sun_path, path, len);
    return TRUE;
}

/* Binds and listens under @temp in @dir_fd, then gives it its name. 0 or an errno. */
static int bind_as(
    int sock, int dir_fd, const char *temp, const char *name, mode_t mode, int backlog)
{
    struct sockaddr_un addr;
    char path[64];
    int errsv;

    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir_fd, temp);
    if (!address_set(&addr, path))
        return ENAMETOOLONG;
    /* The mode of the socket is that of the file that bind makes, but for the umask. */
    if (fchmod(sock, mode) < 0)
        return errno;
    if (bind(sock, (struct sockaddr *)&addr, sizeof(addr)) < 0)
        return errno;
    if (fchmodat(dir_fd, temp, mode, 0) == 0 && listen(sock, backlog) == 0 &&
        renameat(dir_fd, temp, dir_fd, name) == 0)
        return 0;
    errsv = errno;
    unlinkat(dir_fd, temp, 0);
    return errsv;
}

int sv_unix_listen(const char *path, mode_t mode, int backlog, GError **error)
{
    g_autofree char *name = NULL;
    g_auto(SvFd) dir = sv_file_open_parent(path, &name, error);
    g_auto(SvFd) sock = -1;
    int errsv;

    if (dir < 0)
        return -1;
    do {
        char temp[32];
        guint32 r = 0;

        sv_fd_clear(&sock);
        sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (sock < 0 || getrandom(&r, sizeof(r), 0) < 0) {
            errsv = errno;
            break;
        }
        snprintf(temp, sizeof(temp), ".sock-%08x", r);
        errsv = bind_as(sock, dir, temp, name, mode, backlog);
    } while (errsv == EADDRINUSE);
    if (errsv != 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errsv, "listen on %s", path);
        return -1;
    }
    return sv_fd_steal(&sock);
}

static gboolean set_send_timeout(int sock, int ms)
{
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    return setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == 0;
}

/* The socket is named through an O_PATH descriptor when its path does not fit. */
static int connect_at(int dir_fd, const char *path)
{
    g_auto(SvFd) sock = -1;
    g_auto(SvFd) node = -1;
    struct sockaddr_un addr;
    int r;

    if (dir_fd != AT_FDCWD || !address_set(&addr, path)) {
        char proc[32];

        node = openat(dir_fd, path, O_PATH | O_CLOEXEC);
        if (node < 0)
            return -1;
        snprintf(proc, sizeof(proc), "/proc/self/fd/%d", node);
        address_set(&addr, proc);
    }
    sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sock < 0 || !set_send_timeout(sock, SV_UNIX_CONNECT_MS))
        return -1;
    do
        r = connect(sock, (struct sockaddr *)&addr, sizeof(addr));
    while (r < 0 && errno == EINTR);
    if (r < 0) {
        if (errno == EAGAIN)
            errno = ETIMEDOUT;
        return -1;
    }
    if (!set_send_timeout(sock, 0))
        return -1;
    return sv_fd_steal(&sock);
}

int sv_unix_connect_at(int dir_fd, const char *name, GError **error)
{
    int sock = connect_at(dir_fd, name);

    if (sock < 0)
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "connect to %s", name);
    return sock;
}

int sv_unix_connect(const char *path, GError **error)
{
    return sv_unix_connect_at(AT_FDCWD, path, error);
}

gboolean sv_unix_peer(int sock, pid_t *pid, uid_t *uid, gid_t *gid)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return FALSE;
    if (pid != NULL)
        *pid = cred.pid;
    if (uid != NULL)
        *uid = cred.uid;
    if (gid != NULL)
        *gid = cred.gid;
    return TRUE;
}
