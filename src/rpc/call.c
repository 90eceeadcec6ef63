/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One blocking call over a connected socket. */
#include "rpc/message.h"
#include "base/fd.h"
#include "base/process.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long a silent peer is taken for a busy one before it is looked at. */
#define LOOK_US (5 * G_USEC_PER_SEC)

/* TRUE + @error: nothing will come until somebody lets the peer go on. */
static gboolean peer_is_stopped(int fd, const char *method, GError **error)
{
    pid_t pid = 0;

    if (!sv_unix_peer(fd, &pid, NULL, NULL) || !sv_process_is_stopped(pid))
        return FALSE;
    g_autofree char *cmdline = sv_process_cmdline(pid);
    g_autofree char *shown = sv_printable(cmdline ? cmdline : "", 200);
    g_set_error(error, SV_RPC_ERROR, SV_ERR_TIMEOUT,
        "%s: process %d is stopped and cannot answer (kill -CONT %d): %s", method, (int)pid,
        (int)pid, shown);
    return TRUE;
}

static gboolean wait_for(int fd, short events, gint64 deadline, const char *method, GError **error)
{
    for (;;) {
        gint64 look = g_get_monotonic_time() + LOOK_US;
        gboolean last = deadline >= 0 && deadline <= look;
        int r = sv_fd_wait(fd, events, last ? deadline : look);

        if (r > 0)
            return TRUE;
        if (r < 0) {
            sv_error_set_errno(error, SV_RPC_ERROR, errno, "%s: poll", method);
            return FALSE;
        }
        if (peer_is_stopped(fd, method, error))
            return FALSE;
        if (last) {
            g_set_error(error, SV_RPC_ERROR, SV_ERR_TIMEOUT, "%s: no answer in time", method);
            return FALSE;
        }
    }
}

static gboolean send_all(int fd, GBytes *bytes, gint64 deadline, const char *method, GError **error)
{
    gsize len = 0;
    const guint8 *data = g_bytes_get_data(bytes, &len);

    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            data += n;
            len -= (gsize)n;
        } else if (errno == EAGAIN) {
            if (!wait_for(fd, POLLOUT, deadline, method, error))
                return FALSE;
        } else if (errno != EINTR) {
            sv_error_set_errno(error, SV_RPC_ERROR, errno, "%s: send", method);
            return FALSE;
        }
    }
    return TRUE;
}

/* TRUE when bytes were added to @reader. */
static gboolean receive(
    int fd, SvFrameReader *reader, gint64 deadline, const char *method, GError **error)
{
    for (;;) {
        gsize room = 0;
        guint8 *space = sv_frame_reader_space(reader, &room);
        ssize_t n = recv(fd, space, room, MSG_DONTWAIT);

        if (n > 0) {
            sv_frame_reader_added(reader, (gsize)n);
            return TRUE;
        }
        if (n == 0) {
            g_set_error(error, SV_RPC_ERROR, SV_ERR_CLOSED, "%s: connection closed", method);
            return FALSE;
        }
        if (errno == EAGAIN) {
            if (!wait_for(fd, POLLIN, deadline, method, error))
                return FALSE;
        } else if (errno != EINTR) {
            sv_error_set_errno(error, SV_RPC_ERROR, errno, "%s: receive", method);
            return FALSE;
        }
    }
}

ProtobufCMessage *sv_rpc_call(int fd, guint32 stream, const char *service, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, int timeout_ms,
    GError **error)
{
    gint64 deadline = timeout_ms < 0 ? -1 : g_get_monotonic_time() + timeout_ms * (gint64)1000;
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    g_autoptr(GBytes) request = sv_message_request(stream, service, method, message,
        timeout_ms < 0 ? 0 : timeout_ms * G_GINT64_CONSTANT(1000000));

    if (!send_all(fd, request, deadline, method, error))
        return NULL;
    for (;;) {
        SvFrame frame;
        int r = sv_frame_reader_next(reader, &frame, error);

        if (r < 0)
            return NULL;
        if (r > 0 && frame.type == SV_FRAME_RESPONSE && frame.stream == stream)
            return sv_response_parse(&frame, type, error);
        if (r == 0 && !receive(fd, reader, deadline, method, error))
            return NULL;
    }
}
