/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/agent.h"

#include "base/fd.h"

#include <string.h>
#include <sys/random.h>

SV_DEFINE_ERROR_QUARK(agent)

#define HELLO_METHOD "Hello"

struct SvAgent {
    SvConn *conn;
    const SvAgentHandlers *handlers;
    gpointer user_data;
    gboolean ready;
};

static void agent_lost(SvAgent *agent, const GError *error)
{
    agent->ready = FALSE;
    agent->handlers->lost(agent, error, agent->user_data);
}

static void break_protocol(SvAgent *agent, const char *what)
{
    g_autoptr(GError) error = g_error_new(
        SV_AGENT_ERROR, SV_ERR_INVALID, "the guest's agent broke the protocol: %s", what);
    agent_lost(agent, error);
}

static void on_request(SvConn *conn, const SvRequest *request, gpointer user_data)
{
    SvAgent *agent = user_data;
    const ProtobufCMessageDescriptor *type = NULL;
    if (g_str_equal(request->service, SV_SERVICE_HOST)) {
        if (g_str_equal(request->method, "Exit"))
            type = &sandvirt__v1__exit_event__descriptor;
        else if (g_str_equal(request->method, "Oom"))
            type = &sandvirt__v1__oom_event__descriptor;
        else if (g_str_equal(request->method, "ShuttingDown"))
            type = &sandvirt__v1__shutting_down_event__descriptor;
    }
    g_autoptr(GError) error = NULL;
    if (!type) {
        g_set_error(&error, SV_AGENT_ERROR, SV_ERR_UNSUPPORTED, "unknown event");
        sv_conn_reply_error(conn, request->stream, error);
        return;
    }
    ProtobufCMessage *message =
        sv_message_unpack(type, request->payload, request->payload_len, &error);
    if (!message) {
        break_protocol(agent, "event without a readable message");
        return;
    }
    guint32 stream = request->stream;
    if (type == &sandvirt__v1__exit_event__descriptor) {
        agent->handlers->exited(
            agent, stream, (Sandvirt__V1__ExitEvent *)message, agent->user_data);
    } else {
        sv_conn_reply(conn, stream, NULL);
        const Sandvirt__V1__OomEvent *oom = (const Sandvirt__V1__OomEvent *)message;
        if (type == &sandvirt__v1__oom_event__descriptor)
            agent->handlers->oom(agent, oom->container_id, oom->kills, agent->user_data);
        else
            agent->handlers->shutting_down(
                agent, ((Sandvirt__V1__ShuttingDownEvent *)message)->reason, agent->user_data);
    }
    sv_message_free(message);
}

static void on_frame(SvConn *conn, const SvFrame *frame, gpointer user_data)
{
    SvAgent *agent = user_data;
    agent->handlers->frame(agent, frame, agent->user_data);
}

static void on_closed(SvConn *conn, const GError *error, gpointer user_data)
{
    agent_lost(user_data, error);
}

static void on_hello(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    SvAgent *agent = user_data;
    if (error) {
        /* CLOSED: on_closed tells, or @agent is freed */
        if (!sv_error_is(error, SV_ERR_CLOSED))
            agent_lost(agent, error);
        return;
    }
    agent->ready = TRUE;
    agent->handlers->ready(agent, (const Sandvirt__V1__HelloResponse *)reply, agent->user_data);
}

static void on_synced(SvConn *conn, gpointer user_data)
{
    SvAgent *agent = user_data;
    Sandvirt__V1__HelloRequest hello = SANDVIRT__V1__HELLO_REQUEST__INIT;
    hello.time_ns = g_get_real_time() * 1000;
    sv_conn_call(conn, SV_SERVICE_AGENT, HELLO_METHOD, &hello.base,
        &sandvirt__v1__hello_response__descriptor, 0, -1, on_hello, agent);
}

static const SvConnHandlers conn_handlers = {
    .request = on_request,
    .frame = on_frame,
    .closed = on_closed,
};

SvAgent *sv_agent_connect(const char *path, const guint8 *token, const SvAgentHandlers *handlers,
    gpointer user_data, GError **error)
{
    guint8 session[SV_SYNC_ID_LEN];
    if (getrandom(session, sizeof session, 0) != sizeof session) {
        sv_error_set_errno(error, SV_AGENT_ERROR, EIO, "getrandom");
        return NULL;
    }
    int fd = sv_unix_connect(path, error);
    if (fd < 0)
        return NULL;
    SvAgent *agent = g_new0(SvAgent, 1);
    agent->handlers = handlers;
    agent->user_data = user_data;
    agent->conn = sv_conn_new(fd, 1, SV_FRAME_MAX, &conn_handlers, agent);

    guint8 pattern[SV_SYNC_MAGIC_LEN + SV_SYNC_ID_LEN];
    memcpy(pattern, sv_sync_magic, SV_SYNC_MAGIC_LEN);
    memcpy(pattern + SV_SYNC_MAGIC_LEN, session, SV_SYNC_ID_LEN);
    sv_conn_expect_sync(agent->conn, sv_sync_scanner_new(pattern, sizeof pattern, 0), on_synced);

    g_autoptr(GByteArray) greeting = g_byte_array_new();
    g_byte_array_append(greeting, sv_sync_magic, SV_SYNC_MAGIC_LEN);
    g_byte_array_append(greeting, token, SV_SYNC_ID_LEN);
    g_byte_array_append(greeting, session, SV_SYNC_ID_LEN);
    sv_conn_send(agent->conn, g_bytes_new(greeting->data, greeting->len));
    return agent;
}

void sv_agent_free(SvAgent *agent)
{
    if (!agent)
        return;
    sv_conn_free(agent->conn);
    g_free(agent);
}

int sv_agent_fd(const SvAgent *agent)
{
    return sv_conn_fd(agent->conn);
}

gboolean sv_agent_is_ready(const SvAgent *agent)
{
    return agent && agent->ready;
}

void sv_agent_call(SvAgent *agent, const char *method, const ProtobufCMessage *message,
    const ProtobufCMessageDescriptor *type, guint timeout_ms, SvCallDone done, gpointer user_data)
{
    if (!agent) {
        sv_conn_refuse(done, user_data);
        return;
    }
    sv_conn_call(
        agent->conn, SV_SERVICE_AGENT, method, message, type, timeout_ms, -1, done, user_data);
}

void sv_agent_acknowledge(SvAgent *agent, guint32 stream)
{
    sv_conn_reply(agent->conn, stream, NULL);
}

void sv_agent_send(SvAgent *agent, GBytes *frame)
{
    sv_conn_send(agent->conn, frame);
}
