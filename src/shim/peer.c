/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/peer.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Nothing that a shim is sent is larger than a DATA frame. */
#define PAYLOAD_MAX (SV_DATA_CHUNK + 4096)

void sv_peer_init(SvPeer *peer)
{
    memset(peer, 0, sizeof(*peer));
    peer->fd = -1;
}

static gboolean connect_here(int sock, const char *name)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    gsize len = strlen(name);

    if (len >= sizeof(addr.sun_path)) {
        errno = ENAMETOOLONG;
        return FALSE;
    }
    memcpy(addr.sun_path, name, len);
    return TEMP_FAILURE_RETRY(connect(sock, (struct sockaddr *)&addr, sizeof(addr))) == 0;
}

gboolean sv_peer_connect(SvPeer *peer, int dir_fd, const char *name, GError **error)
{
    g_auto(SvFd) sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    gboolean connected;
    int errsv;

    sv_peer_close(peer);
    connected = sock >= 0 && fchdir(dir_fd) == 0 && connect_here(sock, name);
    errsv = errno;
    if (chdir("/") < 0 && connected)
        errsv = errno, connected = FALSE;
    if (!connected) {
        sv_error_set_errno(error, SV_SHIM_ERROR, errsv, "connect to %s", name);
        return FALSE;
    }
    peer->fd = sv_fd_steal(&sock);
    peer->reader = sv_frame_reader_new(PAYLOAD_MAX);
    peer->next_stream = 1;
    return TRUE;
}

void sv_peer_close(SvPeer *peer)
{
    sv_fd_clear(&peer->fd);
    g_clear_pointer(&peer->reader, sv_frame_reader_free);
    sv_byte_queue_clear(&peer->out);
    while (peer->n_fds > 0)
        sv_fd_close(peer->fds[--peer->n_fds]);
}

void sv_peer_send(SvPeer *peer, GBytes *bytes)
{
    gsize len = 0;
    const void *data = g_bytes_get_data(bytes, &len);

    if (peer->fd >= 0)
        sv_byte_queue_push(&peer->out, data, len);
    g_bytes_unref(bytes);
}

guint32 sv_peer_request(
    SvPeer *peer, const char *service, const char *method, const ProtobufCMessage *message)
{
    guint32 stream = peer->next_stream;

    peer->next_stream += 2;
    sv_peer_send(peer, sv_message_request(stream, service, method, message, 0));
    return stream;
}

short sv_peer_events(const SvPeer *peer)
{
    return peer->out.len > 0 ? POLLIN | POLLOUT : POLLIN;
}

gboolean sv_peer_flush(SvPeer *peer)
{
    while (peer->fd >= 0 && peer->out.len > 0) {
        ssize_t n = send(
            peer->fd, sv_byte_queue_peek(&peer->out), peer->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN)
            return TRUE;
        if (n < 0 && errno != EINTR)
            return FALSE;
        if (n > 0)
            sv_byte_queue_drop(&peer->out, (gsize)n);
    }
    return TRUE;
}

gboolean sv_peer_fill(SvPeer *peer)
{
    gsize room = 0;
    guint8 *space = sv_frame_reader_space(peer->reader, &room);
    int fds[SV_FD_MAX_PASS];
    guint n_fds = 0;
    ssize_t n = sv_fd_recv(peer->fd, space, room, fds, &n_fds);

    for (guint i = 0; i < n_fds; i++) {
        if (peer->n_fds < SV_FD_MAX_PASS)
            peer->fds[peer->n_fds++] = fds[i];
        else
            sv_fd_close(fds[i]);
    }
    if (n < 0)
        return errno == EAGAIN;
    sv_frame_reader_added(peer->reader, (gsize)n);
    return n > 0;
}

int sv_peer_next(SvPeer *peer, SvFrame *frame, GError **error)
{
    return sv_frame_reader_next(peer->reader, frame, error);
}

int sv_peer_take_fd(SvPeer *peer)
{
    int fd;

    if (peer->n_fds == 0)
        return -1;
    fd = peer->fds[0];
    peer->n_fds--;
    memmove(peer->fds, peer->fds + 1, peer->n_fds * sizeof(int));
    return fd;
}
