/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "flow-shim.h"

#include "base/fd.h"

#include <string.h>

static void on_end(gpointer user_data)
{
    flow_shim_close(user_data);
}

FlowShim *flow_shim_new(const char *id, guint32 handle, int clone_flags)
{
    FlowShim *shim = g_new0(FlowShim, 1);
    shim->proc = flow_proc_new(NULL, clone_flags);
    shim->proc->on_end = on_end;
    shim->proc->user_data = shim;
    shim->id = g_strdup(id);
    shim->handle = handle;
    shim->exit_status = shim->attach_code = -1;
    for (guint i = 0; i < 3; i++)
        shim->out[i] = g_string_new(NULL);
    return shim;
}

void flow_shim_free(FlowShim *shim)
{
    if (!shim)
        return;
    flow_shim_close(shim);
    flow_proc_free(shim->proc);
    for (guint i = 0; i < 3; i++)
        g_string_free(shim->out[i], TRUE);
    g_free(shim->id);
    g_free(shim);
}

void flow_shim_close(FlowShim *shim)
{
    g_clear_pointer(&shim->conn, sv_conn_free);
}

static void serve_exit(FlowShim *shim, const SvRequest *request)
{
    Sandvirt__V1__ShimExit *message = (Sandvirt__V1__ShimExit *)sv_message_unpack(
        &sandvirt__v1__shim_exit__descriptor, request->payload, request->payload_len, NULL);
    g_assert_nonnull(message);
    shim->exits++;
    shim->exit_status = (int)message->status;
    sv_message_free(message);
    if (shim->hold_exit)
        return;
    sv_conn_reply(shim->conn, request->stream, NULL);
    flow_proc_exit(shim->proc, shim->exit_status);
}

static void on_request(SvConn *conn, const SvRequest *request, gpointer user_data)
{
    FlowShim *shim = user_data;
    g_assert_cmpstr(request->service, ==, SV_SERVICE_SHIM);
    if (g_str_equal(request->method, "Exit")) {
        serve_exit(shim, request);
        return;
    }
    g_assert_cmpstr(request->method, ==, "Root");
    shim->roots++;
    shim->root_stream = request->stream;
    if (!shim->hold_root)
        flow_shim_answer_root(shim, !shim->fail_root);
}

void flow_shim_answer_root(FlowShim *shim, gboolean ok)
{
    g_autoptr(GError) error =
        g_error_new_literal(SV_RPC_ERROR, SV_ERR_IO, "cannot enter the root: told to fail");
    if (!shim->conn)
        return;
    if (ok)
        sv_conn_reply(shim->conn, shim->root_stream, NULL);
    else
        sv_conn_reply_error(shim->conn, shim->root_stream, error);
    shim->has_rootfs |= ok;
}

static void on_frame(SvConn *conn, const SvFrame *frame, gpointer user_data)
{
    FlowShim *shim = user_data;
    guint stream = frame->flags & SV_STREAM_MASK;
    guint64 offset;
    const guint8 *data;
    gsize len;
    g_assert_cmpuint(frame->stream, ==, shim->handle);
    g_assert_true(sv_frame_parse_offset(frame, &offset, &data, &len));
    g_assert_cmpuint(stream, <=, SV_STREAM_STDERR);
    if (frame->type == SV_FRAME_ACK) {
        g_assert_cmpuint(stream, ==, SV_STREAM_STDIN);
        shim->input_acked = offset;
        shim->input_flags |= frame->flags;
        return;
    }
    g_string_append_len(shim->out[stream], (const char *)data, (gssize)len);
    shim->eof[stream] |= (frame->flags & SV_FLAG_EOF) != 0;
}

static void on_closed(SvConn *conn, const GError *error, gpointer user_data)
{
    flow_shim_close(user_data);
}

static const SvConnHandlers handlers = {
    .request = on_request,
    .frame = on_frame,
    .closed = on_closed,
};

static void on_attached(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    FlowShim *shim = user_data;
    if (error && sv_error_is(error, SV_ERR_CLOSED))
        return; /* the connection has gone, the shim may have too */
    if (error)
        shim->attach_code = error->code;
    else
        shim->attached++;
}

void flow_shim_attach(FlowShim *shim, const char *path)
{
    Sandvirt__V1__AttachRequest request = SANDVIRT__V1__ATTACH_REQUEST__INIT;
    flow_shim_close(shim);
    int fd = flow_proc_connect(shim->proc, path);
    if (fd < 0)
        return; /* killed before, or nobody listens */
    shim->conn = sv_conn_new(fd, 1, SV_FRAME_MAX, &handlers, shim);
    shim->attaches++;
    request.container_id = shim->id;
    request.handle = shim->handle;
    request.pid = (guint32)shim->proc->pid;
    request.stdin_offset = shim->offsets[SV_STREAM_STDIN];
    request.stdout_offset = shim->offsets[SV_STREAM_STDOUT];
    request.stderr_offset = shim->offsets[SV_STREAM_STDERR];
    request.has_rootfs = shim->has_rootfs;
    request.rows = shim->rows;
    request.cols = shim->cols;
    sv_conn_call(
        shim->conn, SV_SERVICE_SHIM, "Attach", &request.base, NULL, 0, -1, on_attached, shim);
}

void flow_shim_ack(FlowShim *shim, guint8 flags, guint64 offset)
{
    shim->offsets[flags & SV_STREAM_MASK] = offset;
    sv_conn_send(shim->conn, sv_message_ack(shim->handle, flags, offset));
}

void flow_shim_input(FlowShim *shim, guint8 flags, guint64 offset, const char *text)
{
    sv_conn_send(shim->conn,
        sv_message_data(shim->handle, flags | SV_STREAM_STDIN, offset, text, strlen(text)));
}

void flow_shim_signal(FlowShim *shim, guint signo)
{
    Sandvirt__V1__ShimSignal message = SANDVIRT__V1__SHIM_SIGNAL__INIT;
    message.signal = signo;
    sv_conn_call(shim->conn, SV_SERVICE_SHIM, "Signal", &message.base, NULL, 0, -1, NULL, NULL);
}

void flow_shim_resize(FlowShim *shim, guint rows, guint cols)
{
    Sandvirt__V1__ResizeRequest message = SANDVIRT__V1__RESIZE_REQUEST__INIT;
    message.handle = shim->handle;
    message.rows = rows;
    message.cols = cols;
    sv_conn_call(shim->conn, SV_SERVICE_SHIM, "Resize", &message.base, NULL, 0, -1, NULL, NULL);
}
