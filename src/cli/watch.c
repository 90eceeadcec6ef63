/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/watch.h"
#include "base/fd.h"
#include <sys/socket.h>

gboolean sv_watch_begin(SvTarget *target, GError **error)
{
    g_autoptr(GBytes) request =
        sv_message_request(target->stream, SV_SERVICE_MONITOR, "Watch", NULL, 0);
    gsize len = 0;
    const void *data = g_bytes_get_data(request, &len);

    return sv_fd_write_all(target->fd, data, len, error);
}

static gboolean take_event(
    const SvFrame *frame, const SvWatchFuncs *funcs, gpointer user_data, GError **error)
{
    SvRequest request;
    Sandvirt__V1__StateEvent *event;
    gboolean ok = FALSE;

    if (!sv_request_parse(frame, &request, error))
        return FALSE;
    event = (Sandvirt__V1__StateEvent *)sv_message_unpack(
        &sandvirt__v1__state_event__descriptor, request.payload, request.payload_len, error);
    if (event) {
        ok = funcs->event(event->json, event->current, user_data, error);
        sv_message_free(event);
    }
    sv_request_clear(&request);
    return ok;
}

static gboolean take_frame(
    const SvFrame *frame, const SvWatchFuncs *funcs, gpointer user_data, GError **error)
{
    GError *refused = NULL;

    if (frame->type == SV_FRAME_REQUEST)
        return take_event(frame, funcs, user_data, error);
    if (frame->type != SV_FRAME_RESPONSE)
        return TRUE;
    sv_response_parse(frame, NULL, &refused);
    if (!refused)
        return !funcs->answered || funcs->answered(user_data, error);
    g_propagate_error(error, refused);
    return FALSE;
}

int sv_watch_read(
    SvFrameReader *reader, int fd, const SvWatchFuncs *funcs, gpointer user_data, GError **error)
{
    gsize room = 0;
    guint8 *space = sv_frame_reader_space(reader, &room);
    ssize_t n = TEMP_FAILURE_RETRY(recv(fd, space, room, 0));
    SvFrame frame;
    int r;

    if (n <= 0)
        return 0;
    sv_frame_reader_added(reader, (gsize)n);
    while ((r = sv_frame_reader_next(reader, &frame, error)) > 0)
        if (!take_frame(&frame, funcs, user_data, error))
            return -1;
    return r < 0 ? -1 : 1;
}
