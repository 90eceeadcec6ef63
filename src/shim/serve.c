/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the monitor asks for and what it is sent. */
#include "sandvirt.pb-c.h"
#include "shim/confine.h"
#include "shim/root.h"
#include "shim/shim.h"

/* No more input is put into the queue of a connection that does not take it. */
#define QUEUE_MAX SV_DATA_CHUNK

static void answer(SvShim *shim, guint32 stream, const GError *error)
{
    sv_peer_send(&shim->monitor,
        error ? sv_message_error(stream, error) : sv_message_response(stream, NULL));
}

/* ---- requests */

static void serve_root(SvShim *shim, guint32 stream)
{
    g_auto(SvFd) mount_fd = sv_peer_take_fd(&shim->monitor);
    g_autoptr(GError) error = NULL;

    /* A second monitor may not know that it was done. Without a descriptor the empty root stays. */
    if (mount_fd >= 0 && !shim->has_rootfs)
        shim->has_rootfs = sv_root_enter(mount_fd, &error);
    answer(shim, stream, error);
}

static void serve_exit(SvShim *shim, const SvRequest *request, GError **error)
{
    Sandvirt__V1__ShimExit *message;

    message = (Sandvirt__V1__ShimExit *)sv_message_unpack(
        &sandvirt__v1__shim_exit__descriptor, request->payload, request->payload_len, error);
    if (!message)
        return;
    shim->exiting = TRUE;
    shim->exit_stream = request->stream;
    shim->status = (int)(message->status & 0xff);
    sv_message_free(message);
}

static gboolean serve_request(SvShim *shim, const SvFrame *frame, GError **error)
{
    SvRequest request;
    g_autoptr(GError) refused = NULL;

    if (!sv_request_parse(frame, &request, error))
        return FALSE;
    if (g_strcmp0(request.service, SV_SERVICE_SHIM) == 0 && g_str_equal(request.method, "Root")) {
        serve_root(shim, request.stream);
    } else if (g_strcmp0(request.service, SV_SERVICE_SHIM) == 0 &&
        g_str_equal(request.method, "Exit")) {
        serve_exit(shim, &request, &refused);
    } else {
        g_set_error(
            &refused, SV_SHIM_ERROR, SV_ERR_UNSUPPORTED, "a shim has no method %s", request.method);
    }
    if (refused)
        answer(shim, request.stream, refused);
    sv_request_clear(&request);
    return TRUE;
}

/* The streams flow: the container's root, if it has one, has come before. */
static void give_up_mounts(SvShim *shim)
{
    g_autoptr(GError) error = NULL;

    if (!shim->confined && !sv_shim_confine_mounts(&error))
        g_warning("ignoring: %s", error->message);
    shim->confined = TRUE;
}

static void serve_response(SvShim *shim, const SvFrame *frame)
{
    g_autoptr(GError) error = NULL;

    if (frame->stream != shim->attach_stream)
        return; /* to Signal or Resize: nothing depends on it */
    shim->attach_stream = 0;
    sv_response_parse(frame, NULL, &error);
    if (!error) {
        shim->link = SV_LINK_UP;
        shim->failures = 0;
        give_up_mounts(shim);
        return;
    }
    if (!shim->released) {
        sv_shim_tell(shim, SV_SHIM_ERROR_TEXT, error->message);
        sv_shim_end(shim, shim->status);
    } else if (sv_error_is(error, SV_ERR_NOT_FOUND)) {
        sv_shim_end(shim, 255); /* the container is no more, nobody knows its status */
    } else {
        sv_link_lost(shim, error->message);
    }
}

/* ---- streams */

static gboolean serve_stream(SvShim *shim, const SvFrame *frame, GError **error)
{
    guint stream = frame->flags & SV_STREAM_MASK;
    guint64 offset = 0;
    const guint8 *data = NULL;
    gsize len = 0;

    if (frame->stream & SV_DESCRIPTOR_HANDLE)
        return sv_descriptors_frame(shim, frame, error);
    if (frame->stream != shim->options.handle || stream > SV_STREAM_STDERR ||
        (frame->type == SV_FRAME_ACK) != (stream == SV_STREAM_STDIN) ||
        !sv_frame_parse_offset(frame, &offset, &data, &len)) {
        g_set_error(error, SV_SHIM_ERROR, SV_ERR_INVALID, "not a frame for this shim");
        return FALSE;
    }
    if (frame->type == SV_FRAME_DATA)
        return sv_output_data(&shim->output[stream - SV_STREAM_STDOUT], offset, data, len,
            (frame->flags & SV_FLAG_EOF) != 0, error);
    if (!sv_input_ack(&shim->input, offset, (frame->flags & SV_FLAG_BROKEN) != 0, error))
        return FALSE;
    if (shim->input.broken)
        sv_stdio_close(&shim->stdio[0]);
    return TRUE;
}

gboolean sv_serve_frame(SvShim *shim, const SvFrame *frame, GError **error)
{
    switch (frame->type) {
    case SV_FRAME_REQUEST:
        return serve_request(shim, frame, error);
    case SV_FRAME_RESPONSE:
        serve_response(shim, frame);
        return TRUE;
    default:
        return serve_stream(shim, frame, error);
    }
}

/* ---- what goes out */

static void push_ack(SvShim *shim, guint32 handle, guint8 stream, SvOutput *output)
{
    if (!output->ack)
        return;
    output->ack = FALSE;
    sv_peer_send(&shim->monitor,
        sv_message_ack(handle, stream | (output->broken ? SV_FLAG_BROKEN : 0), output->written));
}

static void push_acks(SvShim *shim)
{
    guint32 handle = shim->options.handle;

    push_ack(shim, handle, SV_STREAM_STDOUT, &shim->output[0]);
    push_ack(shim, handle, SV_STREAM_STDERR, &shim->output[1]);
    for (guint i = 0; i < shim->options.descriptors; i++)
        push_ack(
            shim, sv_descriptor_handle(handle, i), SV_STREAM_STDOUT, &shim->descriptors[i].output);
}

static void push_input_of(SvShim *shim, guint32 handle, SvInput *input)
{
    guint64 offset = 0;
    const guint8 *data = NULL;
    gsize len = 0;
    gboolean eof = FALSE;

    while (shim->monitor.out.len < QUEUE_MAX && sv_input_next(input, &offset, &data, &len, &eof))
        sv_peer_send(&shim->monitor,
            sv_message_data(handle, SV_STREAM_STDIN | (eof ? SV_FLAG_EOF : 0), offset, data, len));
}

static void push_input(SvShim *shim)
{
    guint32 handle = shim->options.handle;

    push_input_of(shim, handle, &shim->input);
    for (guint i = 0; i < shim->options.descriptors; i++)
        push_input_of(shim, sv_descriptor_handle(handle, i), &shim->descriptors[i].input);
}

static void push_signals(SvShim *shim)
{
    for (guint signo = 1; signo <= 64; signo++) {
        Sandvirt__V1__ShimSignal message = SANDVIRT__V1__SHIM_SIGNAL__INIT;

        if (!(shim->signals >> (signo - 1) & 1))
            continue;
        message.signal = signo;
        sv_peer_request(&shim->monitor, SV_SERVICE_SHIM, "Signal", &message.base);
    }
    shim->signals = 0;
}

/* Everything is written: the answer to Exit, then the end as soon as that has left. */
static void push_exit(SvShim *shim)
{
    if (!shim->exiting || !sv_output_drained(&shim->output[0]) ||
        !sv_output_drained(&shim->output[1]) || !sv_descriptors_drained(shim))
        return;
    if (shim->exit_stream != 0) {
        answer(shim, shim->exit_stream, NULL);
        shim->exit_stream = 0;
    }
    sv_peer_flush(&shim->monitor);
    if (shim->monitor.fd < 0 || shim->monitor.out.len == 0)
        sv_shim_end(shim, shim->status);
}

void sv_serve_push(SvShim *shim)
{
    if (shim->link >= SV_LINK_ATTACHING)
        push_acks(shim);
    if (shim->link == SV_LINK_UP && shim->signals != 0)
        push_signals(shim);
    if (shim->link == SV_LINK_UP && shim->released && !shim->exiting)
        push_input(shim);
    /* A failure is seen by poll. */
    sv_peer_flush(&shim->monitor);
    push_exit(shim);
}
