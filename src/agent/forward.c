/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/forward.h"
#include "agent/input.h"
#include "agent/output.h"
#include "base/fd.h"
#include "rpc/message.h"
#include "rpc/sandvirt.pb-c.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define MAX_FORWARDS 512

struct SvForward {
    SvAgent *agent; /* not owned */
    guint32 handle;
    guint32 owner; /* handle of the process whose descriptor it is; 0: a connection */
    SvCall *call; /* while it connects */
    int fd; /* while it connects */
    guint source; /* while it connects */
    SvInput *in; /* to the socket */
    SvOutput *out; /* from the socket */
    guint end_source;
};

static void forward_free(gpointer data)
{
    SvForward *forward = data;

    if (forward->source)
        g_source_remove(forward->source);
    if (forward->end_source)
        g_source_remove(forward->end_source);
    sv_fd_close(forward->fd);
    sv_input_free(forward->in);
    sv_output_free(forward->out);
    g_free(forward);
}

static void drop(SvForward *forward)
{
    g_hash_table_remove(forward->agent->forwards, GUINT_TO_POINTER(forward->handle));
}

static gboolean on_end(gpointer user_data)
{
    SvForward *forward = user_data;

    forward->end_source = 0;
    drop(forward);
    return G_SOURCE_REMOVE;
}

/* Later: the one that tells is at work. */
static void check_end(SvForward *forward)
{
    if (!forward->end_source && forward->out && sv_output_done(forward->out) && forward->in->fd < 0)
        forward->end_source = g_idle_add(on_end, forward);
}

static void on_output(SvOutput *output, gpointer user_data)
{
    SvForward *forward = user_data;
    SvProcess *owner = forward->owner ? sv_process_lookup(forward->agent, forward->owner) : NULL;

    check_end(forward);
    if (owner)
        sv_process_check_exit(owner);
}

static void on_input_closed(gpointer user_data)
{
    SvForward *forward = user_data;

    /* The kernel tells it once, and it was told to who wrote. */
    if (forward->in->reset && forward->out)
        forward->out->reset = forward->out->connection;
    check_end(forward);
}

/* Of a connection. The other end may wait for room to write before it reads on, so it would never see an end. */
static void reset(SvForward *forward)
{
    const struct linger at_once = {.l_onoff = 1};
    int fd = forward->in->fd >= 0 ? forward->in->fd : forward->out->fd;

    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    forward->in->socket = FALSE;
    drop(forward);
}

/* ---- connecting */

static void fail(SvForward *forward, int errsv)
{
    g_autoptr(GError) error = NULL;
    SvCall *call = g_steal_pointer(&forward->call);

    sv_error_set_errno(&error, SV_AGENT_ERROR, errsv, "connect");
    drop(forward);
    sv_call_fail(call, error);
}

/* The socket's two directions become streams. */
static gboolean open_streams(SvForward *forward)
{
    SvChannel *channel = forward->agent->channel;
    int other = fcntl(forward->fd, F_DUPFD_CLOEXEC, 3);

    if (other < 0)
        return FALSE;
    forward->in = sv_input_new(channel, forward->handle, other, FALSE);
    forward->in->socket = TRUE;
    forward->in->closed = on_input_closed;
    forward->in->user_data = forward;
    forward->out = sv_output_new(
        channel, forward->handle, SV_STREAM_STDOUT, sv_fd_steal(&forward->fd), on_output, forward);
    forward->out->connection = !forward->owner;
    return TRUE;
}

static void begin(SvForward *forward)
{
    int on = 1;

    setsockopt(forward->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (!open_streams(forward)) {
        fail(forward, errno);
        return;
    }
    sv_call_reply(g_steal_pointer(&forward->call), NULL);
    sv_input_start(forward->in);
    sv_output_start(forward->out, TRUE);
}

static gboolean on_connected(gint fd, GIOCondition condition, gpointer user_data)
{
    SvForward *forward = user_data;
    int errsv = 0;
    socklen_t len = sizeof(errsv);

    forward->source = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errsv, &len) < 0)
        errsv = errno;
    if (errsv)
        fail(forward, errsv);
    else
        begin(forward);
    return G_SOURCE_REMOVE;
}

static SvForward *forward_new(SvAgent *agent, guint32 handle)
{
    SvForward *forward = g_new0(SvForward, 1);

    if (!agent->forwards)
        agent->forwards = g_hash_table_new_full(NULL, NULL, NULL, forward_free);
    forward->agent = agent;
    forward->handle = handle;
    forward->fd = -1;
    g_hash_table_insert(agent->forwards, GUINT_TO_POINTER(handle), forward);
    return forward;
}

static int connect_local(SvForward *forward, gboolean ipv6, guint16 port)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback};

    forward->fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (forward->fd < 0)
        return errno;
    if ((ipv6 ? connect(forward->fd, (struct sockaddr *)&in6, sizeof(in6))
              : connect(forward->fd, (struct sockaddr *)&in, sizeof(in))) < 0)
        return errno;
    return 0;
}

static gboolean check(SvAgent *agent, const Sandvirt__V1__ForwardRequest *request, GError **error)
{
    gpointer key = GUINT_TO_POINTER(request->handle);

    if (!(request->handle & SV_FORWARD_HANDLE) || request->port == 0 || request->port > G_MAXUINT16)
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_INVALID, "bad handle or port");
    else if (agent->forwards && g_hash_table_contains(agent->forwards, key))
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_EXISTS, "handle %u is in use", request->handle);
    else if (agent->forwards && g_hash_table_size(agent->forwards) >= MAX_FORWARDS)
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_LIMIT, "too many connections");
    else
        return TRUE;
    return FALSE;
}

void sv_forward_connect(SvCall *call)
{
    const Sandvirt__V1__ForwardRequest *request = (Sandvirt__V1__ForwardRequest *)call->message;
    SvAgent *agent = call->agent;
    g_autoptr(GError) error = NULL;

    if (!check(agent, request, &error)) {
        sv_call_fail(call, error);
        return;
    }
    SvForward *forward = forward_new(agent, request->handle);
    forward->call = call;
    int errsv = connect_local(forward, request->ipv6, (guint16)request->port);
    if (errsv == 0)
        begin(forward);
    else if (errsv == EINPROGRESS)
        forward->source = g_unix_fd_add(forward->fd, G_IO_OUT, on_connected, forward);
    else
        fail(forward, errsv);
}

/* ---- descriptors of a process */

static SvForward *find_descriptor(const SvProcess *process, guint index)
{
    guint32 handle = sv_descriptor_handle(process->handle, index);

    return process->agent->forwards
        ? g_hash_table_lookup(process->agent->forwards, GUINT_TO_POINTER(handle))
        : NULL;
}

void sv_forward_adopt(SvProcess *process, guint index, int fd)
{
    SvForward *forward = forward_new(process->agent, sv_descriptor_handle(process->handle, index));

    forward->owner = process->handle;
    forward->fd = fd;
    if (!open_streams(forward)) {
        g_warning("ignoring: descriptor %u: %s", 3 + index, g_strerror(errno));
        drop(forward);
        return;
    }
    sv_input_start(forward->in);
    sv_output_start(forward->out, TRUE);
}

void sv_forward_process_ended(SvProcess *process)
{
    for (guint i = 0; i < process->n_descriptors; i++) {
        SvForward *forward = find_descriptor(process, i);

        if (!forward)
            continue;
        sv_input_end(forward->in);
        sv_output_end(forward->out);
    }
}

void sv_forward_process_discard(SvProcess *process)
{
    for (guint i = 0; i < process->n_descriptors; i++) {
        SvForward *forward = find_descriptor(process, i);

        if (forward)
            sv_output_break(forward->out);
    }
}

gboolean sv_forward_process_is_done(const SvProcess *process)
{
    for (guint i = 0; i < process->n_descriptors; i++) {
        const SvForward *forward = find_descriptor(process, i);

        if (forward && !sv_output_done(forward->out))
            return FALSE;
    }
    return TRUE;
}

/* ---- frames */

void sv_forward_frame(SvAgent *agent, const SvFrame *frame)
{
    SvForward *forward = agent->forwards
        ? g_hash_table_lookup(agent->forwards, GUINT_TO_POINTER(frame->stream))
        : NULL;
    guint stream = frame->flags & SV_STREAM_MASK;
    const guint8 *data = NULL;
    guint64 offset = 0;
    gsize len = 0;

    if (!forward || !sv_frame_parse_offset(frame, &offset, &data, &len))
        return;
    gboolean ack = frame->type == SV_FRAME_ACK && stream == SV_STREAM_STDOUT;
    gboolean broken = ack && (frame->flags & SV_FLAG_BROKEN);
    if (!forward->in) {
        if (broken)
            fail(forward, ECANCELED); /* the host does not wait any more */
        return;
    }
    if (frame->type == SV_FRAME_DATA && stream == SV_STREAM_STDIN)
        sv_input_data(forward->in, offset, data, len, (frame->flags & SV_FLAG_EOF) != 0);
    else if (broken && forward->owner)
        sv_output_break(forward->out);
    else if (broken)
        reset(forward);
    else if (ack)
        sv_output_ack(forward->out, offset);
}

void sv_forward_reset(SvAgent *agent)
{
    GHashTableIter iter;
    gpointer value;

    if (!agent->forwards)
        return;
    /* Of calls nobody waits for the answer any more; they are freed all the same. */
    g_hash_table_iter_init(&iter, agent->forwards);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        SvForward *forward = value;

        if (forward->call)
            sv_call_reply(g_steal_pointer(&forward->call), NULL);
    }
    g_hash_table_remove_all(agent->forwards);
}
