/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Descriptors: auto close, whole reads and writes, passing them over sockets. */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

/* g_auto(SvFd) fd = -1; closes at the end of the scope. */
typedef int SvFd;
void sv_fd_clear(int *fd); /* closes *fd when >= 0, sets -1, keeps errno */
void sv_fd_close(int fd); /* keeps errno; -1 is ignored */
G_DEFINE_AUTO_CLEANUP_FREE_FUNC(SvFd, sv_fd_close, -1)
/* Returns *fd and sets it to -1. */
static inline int sv_fd_steal(int *fd)
{
    int r = *fd;
    *fd = -1;
    return r;
}

gboolean sv_fd_set_nonblock(int fd, gboolean on);
gboolean sv_fd_set_cloexec(int fd, gboolean on);
/* pipe2(O_CLOEXEC | @flags) */
gboolean sv_fd_pipe(int fds[2], int flags, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Writes everything, EINTR-safe, blocking (polls when the descriptor is non-blocking). Programs
 * ignore SIGPIPE: a closed reader is SV_ERR_CLOSED. */
gboolean sv_fd_write_all(int fd, const void *data, gsize len, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Reads to end of file, at most @max bytes (more: SV_ERR_LIMIT). Result is NUL-terminated. */
gboolean sv_fd_read_all(int fd, gsize max, char **data, gsize *len, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Waits for @events (poll(2)) until @deadline_us (g_get_monotonic_time scale; -1 for ever).
 * Returns revents, 0 on deadline, -1 with errno. EINTR is retried. */
int sv_fd_wait(int fd, short events, gint64 deadline_us);

#define SV_FD_MAX_PASS 16
/* sendmsg with @n_fds descriptors attached to the first byte. Returns bytes sent or -1 (errno). */
ssize_t sv_fd_send(int sock, const void *data, gsize len, const int *fds, guint n_fds);
/* recvmsg with MSG_CMSG_CLOEXEC. @fds has room for SV_FD_MAX_PASS; *n_fds out. Bytes or -1. More
 * descriptors than that from the peer: all are closed, -1 with EMSGSIZE (drop the connection). */
ssize_t sv_fd_recv(int sock, void *data, gsize len, int *fds, guint *n_fds);

/* Unix stream sockets. A path longer than 107 bytes works: the folder is opened and
 * its name in /proc/self/fd is used, so nothing depends on the length of root or id. */
/* Binds under a temporary name and renames, so that the path is never a dead socket meanwhile.
 * Both return a blocking CLOEXEC descriptor, or -1 with @error. */
int sv_unix_listen(const char *path, mode_t mode, int backlog, GError **error);
/* Gives up after SV_UNIX_CONNECT_MS (SV_ERR_TIMEOUT) when the listener's queue stays full. No
 * socket there: SV_ERR_NOT_FOUND; nobody listens any more: SV_ERR_CLOSED. */
#define SV_UNIX_CONNECT_MS 5000
int sv_unix_connect(const char *path, GError **error);
int sv_unix_connect_at(int dir_fd, const char *name, GError **error);
/* SO_PEERCRED; any out nullable. */
gboolean sv_unix_peer(int sock, pid_t *pid, uid_t *uid, gid_t *gid);

G_END_DECLS
