/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A process on the host's side: its shim, watched by pidfd, and the frames between shim and agent.
 * The monitor keeps nothing of a stream but how far the shim has it: shim and agent hold the bytes. */
#include "core/sandbox-priv.h"

#include "base/fd.h"
#include "base/process.h"

#include <glib-unix.h>
#include <signal.h>

static void on_shim_request(SvConn *conn, const SvRequest *request, gpointer user_data);
static void on_shim_frame(SvConn *conn, const SvFrame *frame, gpointer user_data);
static void on_shim_closed(SvConn *conn, const GError *error, gpointer user_data);

static const SvConnHandlers shim_handlers = {
    .request = on_shim_request,
    .frame = on_shim_frame,
    .closed = on_shim_closed,
};

SvProcess *sv_process_new(SvContainer *container, guint32 handle, gboolean exec)
{
    SvProcess *process = g_new0(SvProcess, 1);
    process->container = container;
    process->handle = handle;
    process->exec = exec;
    process->shim_pidfd = -1;
    process->status = -1;
    g_hash_table_insert(container->sandbox->processes, GUINT_TO_POINTER(handle), process);
    return process;
}

void sv_process_free(SvProcess *process)
{
    if (!process)
        return;
    if (process->shim_watch)
        g_source_remove(process->shim_watch);
    if (process->starting) {
        g_autoptr(GError) error = g_error_new_literal(SV_CORE_ERROR, SV_ERR_NOT_RUNNING,
            "container not running: it ended before the process was started");
        sv_sequence_drop(process->starting);
        sv_process_kill_shim(process);
        sv_answer_later(process->started.done, error, process->started.user_data);
    }
    sv_fd_close(process->shim_pidfd);
    sv_conn_free(process->shim);
    g_free(process->descriptors);
    g_free(process->descriptor_offsets);
    g_free(process->process_json);
    g_free(process->program);
    g_free(process->cgroup);
    g_free(process);
}

/* ---- the shim's life */

void sv_process_discard_output(SvProcess *process)
{
    SvAgent *agent = process->container->sandbox->agent;
    if (!process->in_guest || !sv_agent_is_ready(agent))
        return;
    for (guint stream = SV_STREAM_STDOUT; stream <= SV_STREAM_STDERR; stream++)
        sv_agent_send(agent,
            sv_message_ack(
                process->handle, (guint8)(stream | SV_FLAG_BROKEN), process->offsets[stream]));
    for (guint i = 0; i < process->n_descriptors; i++)
        sv_agent_send(agent,
            sv_message_ack(sv_descriptor_handle(process->handle, i),
                SV_STREAM_STDOUT | SV_FLAG_BROKEN, process->descriptor_offsets[i]));
}

static void shim_gone(SvProcess *process)
{
    SvContainer *container = process->container;
    sv_fd_clear(&process->shim_pidfd);
    g_clear_pointer(&process->shim, sv_conn_free);
    process->attach_stream = 0;
    sv_process_discard_output(process);
    if (process->gone_ticket) {
        sv_ticket_next(process->gone_ticket);
        process->gone_ticket = 0;
    }
    if (process->exec) {
        sv_exec_shim_gone(process);
    } else if (container->create) {
        GError *error = NULL;
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_CANCELLED, "the container's shim has died");
        sv_container_cancel_create(container, error);
    } else if (container->record->state == SV_STATE_CREATING) {
        if (!container->sandbox->recovering) /* else it is looked at when more is known */
            sv_container_roll_back(container);
    } else if (!container->sandbox->recovering) { /* else the guest's word comes first */
        /* a no-op when the stop has begun; else nobody has told it to go */
        sv_container_begin_stop(container, SV_CAUSE_SHIM_KILLED, -1, FALSE);
    }
    sv_sandbox_check_idle(container->sandbox);
}

static gboolean on_shim_exit(gint fd, GIOCondition condition, gpointer user_data)
{
    SvProcess *process = user_data;
    process->shim_watch = 0;
    shim_gone(process);
    return G_SOURCE_REMOVE;
}

static gboolean on_shim_gone_already(gpointer user_data)
{
    SvProcess *process = user_data;
    process->shim_watch = 0;
    shim_gone(process);
    return G_SOURCE_REMOVE;
}

void sv_process_watch(SvProcess *process, pid_t pid, guint64 start)
{
    process->shim_pid = pid;
    process->shim_start = start;
    process->shim_pidfd = sv_process_open(pid, start);
    if (process->shim_pidfd >= 0)
        process->shim_watch = g_unix_fd_add(process->shim_pidfd, G_IO_IN, on_shim_exit, process);
    else
        process->shim_watch = g_idle_add(on_shim_gone_already, process);
}

void sv_process_kill_shim(SvProcess *process)
{
    if (process->shim_pidfd >= 0)
        sv_process_signal(process->shim_pidfd, SIGKILL);
}

static void send_exit(SvProcess *process)
{
    Sandvirt__V1__ShimExit message = SANDVIRT__V1__SHIM_EXIT__INIT;
    message.status = (guint32)process->status & 0xff;
    process->exit_sent = TRUE;
    sv_conn_call(process->shim, SV_SERVICE_SHIM, "Exit", &message.base, NULL, 0, -1, NULL, NULL);
}

void sv_process_finish(SvProcess *process, int status)
{
    process->status = status;
    process->exit_wanted = TRUE;
    if (process->shim_pidfd < 0)
        return;
    if (process->shim && !process->exit_sent)
        send_exit(process);
}

/* ---- attach */

static gboolean check_attach(
    SvProcess *process, SvConn *conn, const Sandvirt__V1__AttachRequest *request, GError **error)
{
    pid_t pid = 0;
    if (!process || g_strcmp0(process->container->record->id, request->container_id) != 0) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "no such process in this sandbox");
        return FALSE;
    }
    if (request->n_descriptors > SV_DESCRIPTORS_MAX ||
        (request->n_descriptors > 0 && process->handle >= SV_DESCRIPTOR_OWNERS)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_LIMIT, "too many descriptors, or processes");
        return FALSE;
    }
    sv_unix_peer(sv_conn_fd(conn), &pid, NULL, NULL);
    if (process->shim_pid && pid != process->shim_pid) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_PERMISSION, "not the shim of this process");
        return FALSE;
    }
    return TRUE;
}

static void set_descriptors(SvProcess *process, const Sandvirt__V1__AttachRequest *request)
{
    g_free(process->descriptors);
    g_free(process->descriptor_offsets);
    process->n_descriptors = (guint)request->n_descriptors;
    process->descriptors =
        g_memdup2(request->descriptors, request->n_descriptors * sizeof *request->descriptors);
    process->descriptor_offsets = g_new0(guint64, request->n_descriptors);
}

gboolean sv_shim_attach(SvSandbox *sandbox, SvConn *conn, guint32 stream,
    const Sandvirt__V1__AttachRequest *request, GError **error)
{
    SvProcess *process = g_hash_table_lookup(sandbox->processes, GUINT_TO_POINTER(request->handle));
    if (!check_attach(process, conn, request, error))
        return FALSE;
    sv_conn_free(process->shim);
    process->shim = conn;
    sv_conn_set_handlers(conn, &shim_handlers, process);
    process->attach_stream = stream;
    process->offsets[SV_STREAM_STDIN] = request->stdin_offset;
    process->offsets[SV_STREAM_STDOUT] = request->stdout_offset;
    process->offsets[SV_STREAM_STDERR] = request->stderr_offset;
    process->has_root = request->has_rootfs;
    set_descriptors(process, request);
    process->rows = request->rows;
    process->cols = request->cols;
    if (process->attach_ticket) {
        sv_ticket_next(process->attach_ticket);
        process->attach_ticket = 0;
    }
    if (process->exit_wanted) {
        /* its streams are over: the answer to Attach is not needed any more, but it is waited for */
        sv_conn_reply(conn, stream, NULL);
        process->attach_stream = 0;
        process->exit_sent = FALSE;
        send_exit(process);
    } else if (process->in_guest && sv_agent_is_ready(sandbox->agent)) {
        sv_process_resume_streams(process, 0);
    }
    return TRUE;
}

typedef struct {
    SvSandbox *sandbox;
    guint32 handle;
    guint64 ticket;
} Resume;

static void on_resumed(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    g_autofree Resume *resume = user_data;
    SvProcess *process =
        g_hash_table_lookup(resume->sandbox->processes, GUINT_TO_POINTER(resume->handle));
    if (process && process->shim && process->attach_stream) {
        const SvRecord *record = process->container->record;
        gboolean ending = record->stopping || record->state == SV_STATE_STOPPED;
        /* The guest may have removed it already; its shim waits for the status then. */
        if (error && !ending)
            sv_conn_reply_error(process->shim, process->attach_stream, error);
        else
            sv_conn_reply(process->shim, process->attach_stream, NULL);
        process->attach_stream = 0;
    }
    if (!resume->ticket)
        return;
    if (error)
        sv_ticket_fail(resume->ticket, g_error_copy(error));
    else
        sv_ticket_next(resume->ticket);
}

void sv_process_resume_streams(SvProcess *process, guint64 ticket)
{
    SvSandbox *sandbox = process->container->sandbox;
    Resume *resume = g_new0(Resume, 1);
    resume->sandbox = sandbox;
    resume->handle = process->handle;
    resume->ticket = ticket;
    Sandvirt__V1__StreamRequest message = SANDVIRT__V1__STREAM_REQUEST__INIT;
    message.handle = process->handle;
    message.stdout_offset = process->offsets[SV_STREAM_STDOUT];
    message.stderr_offset = process->offsets[SV_STREAM_STDERR];
    sv_agent_call(sandbox->agent, "Attach", &message.base,
        &sandvirt__v1__stream_response__descriptor, sandbox->config->agent_ms, on_resumed, resume);
}

/* ---- frames */

static SvProcess *find_process(SvSandbox *sandbox, guint32 handle)
{
    guint32 owner = handle & SV_DESCRIPTOR_HANDLE ? sv_descriptor_owner(handle) : handle;
    return g_hash_table_lookup(sandbox->processes, GUINT_TO_POINTER(owner));
}

/* How far the shim has taken what comes from the guest in that stream; NULL: there is no such stream. */
static guint64 *find_offset(SvProcess *process, const SvFrame *frame)
{
    guint stream = frame->flags & SV_STREAM_MASK;
    guint i = sv_descriptor_index(frame->stream);
    if (!(frame->stream & SV_DESCRIPTOR_HANDLE))
        return stream == SV_STREAM_STDOUT || stream == SV_STREAM_STDERR ? &process->offsets[stream]
                                                                        : NULL;
    return stream == SV_STREAM_STDOUT && i < process->n_descriptors
        ? &process->descriptor_offsets[i]
        : NULL;
}

/* guest -> shim. What the guest may send is bounded by what the shim has taken. */
void sv_process_agent_frame(SvAgent *agent, const SvFrame *frame, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    guint64 offset;
    const guint8 *data;
    gsize len;
    guint stream = frame->flags & SV_STREAM_MASK;
    if (frame->stream & SV_FORWARD_HANDLE) {
        sv_pod_network_frame(sandbox, frame);
        return;
    }
    SvProcess *process = find_process(sandbox, frame->stream);
    if (!process || !process->shim)
        return; /* of a process that has ended, or the agent repeats it after the shim's Attach */
    gboolean valid = sv_frame_parse_offset(frame, &offset, &data, &len);
    if (valid && frame->type == SV_FRAME_DATA) {
        const guint64 *taken = find_offset(process, frame);
        valid = taken && offset <= *taken + SV_STREAM_WINDOW &&
            len <= *taken + SV_STREAM_WINDOW - offset;
    } else if (valid) {
        valid = stream == SV_STREAM_STDIN && len == 0;
    }
    if (!valid) {
        g_warning("container %s: the guest broke the protocol of a stream",
            process->container->record->id);
        sv_machine_kill(sandbox, SV_CAUSE_AGENT_LOST);
        return;
    }
    if (frame->type == SV_FRAME_DATA)
        sv_conn_send(
            process->shim, sv_message_data(frame->stream, frame->flags, offset, data, len));
    else
        sv_conn_send(process->shim, sv_message_ack(frame->stream, frame->flags, offset));
}

/* shim -> guest */
static void on_shim_frame(SvConn *conn, const SvFrame *frame, gpointer user_data)
{
    SvProcess *process = user_data;
    SvSandbox *sandbox = process->container->sandbox;
    guint64 offset;
    const guint8 *data;
    gsize len;
    guint stream = frame->flags & SV_STREAM_MASK;
    if (stream > SV_STREAM_STDERR || find_process(sandbox, frame->stream) != process ||
        !sv_frame_parse_offset(frame, &offset, &data, &len))
        return;
    guint64 *taken = frame->type == SV_FRAME_ACK ? find_offset(process, frame) : NULL;
    if (taken)
        *taken = MAX(*taken, offset);
    if (!sv_agent_is_ready(sandbox->agent))
        return; /* the shim repeats what was not acknowledged after its next Attach */
    if (frame->type == SV_FRAME_ACK)
        sv_agent_send(sandbox->agent, sv_message_ack(frame->stream, frame->flags, offset));
    else
        sv_agent_send(
            sandbox->agent, sv_message_data(frame->stream, frame->flags, offset, data, len));
}

static void on_shim_closed(SvConn *conn, const GError *error, gpointer user_data)
{
    SvProcess *process = user_data;
    /* The pidfd tells whether it has ended; it may also come again. */
    g_clear_pointer(&process->shim, sv_conn_free);
    process->attach_stream = 0;
}

static void shim_signal(SvProcess *process, guint signo)
{
    SvSandbox *sandbox = process->container->sandbox;
    if (!process->exec) {
        sv_container_kill(
            sandbox, process->container->record->id, (int)signo, FALSE, 0, NULL, NULL);
        return;
    }
    if (!sv_agent_is_ready(sandbox->agent) || !process->in_guest)
        return;
    Sandvirt__V1__SignalRequest message = SANDVIRT__V1__SIGNAL_REQUEST__INIT;
    message.container_id = process->container->record->id;
    message.handle = process->handle;
    message.signal = signo;
    sv_agent_call(
        sandbox->agent, "Signal", &message.base, NULL, sandbox->config->agent_ms, NULL, NULL);
}

static void shim_resize(SvProcess *process, const Sandvirt__V1__ResizeRequest *request)
{
    SvSandbox *sandbox = process->container->sandbox;
    process->rows = request->rows;
    process->cols = request->cols;
    if (!sv_agent_is_ready(sandbox->agent) || !process->in_guest)
        return; /* Create and Exec carry the size */
    Sandvirt__V1__ResizeRequest message = SANDVIRT__V1__RESIZE_REQUEST__INIT;
    message.handle = process->handle;
    message.rows = request->rows;
    message.cols = request->cols;
    sv_agent_call(
        sandbox->agent, "Resize", &message.base, NULL, sandbox->config->agent_ms, NULL, NULL);
}

static void on_shim_request(SvConn *conn, const SvRequest *request, gpointer user_data)
{
    SvProcess *process = user_data;
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message = NULL;
    if (g_str_equal(request->method, "Signal")) {
        message = sv_message_unpack(
            &sandvirt__v1__shim_signal__descriptor, request->payload, request->payload_len, &error);
        if (message)
            shim_signal(process, ((Sandvirt__V1__ShimSignal *)message)->signal);
    } else if (g_str_equal(request->method, "Resize")) {
        message = sv_message_unpack(&sandvirt__v1__resize_request__descriptor, request->payload,
            request->payload_len, &error);
        if (message)
            shim_resize(process, (Sandvirt__V1__ResizeRequest *)message);
    } else {
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_UNSUPPORTED, "unknown method");
    }
    if (error)
        sv_conn_reply_error(conn, request->stream, error);
    else
        sv_conn_reply(conn, request->stream, NULL);
    if (message)
        sv_message_free(message);
}
