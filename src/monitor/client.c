/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/client.h"

#include "base/fd.h"

#include <string.h>
#include <sys/socket.h>

/* Who watches and does not read is left behind: it can begin again, and hears how things are then. */
#define UNREAD_MAX (1024u * 1024)
/* Others may come and go while a register waits for the former machine's end. */
#define REGISTER_ATTEMPTS 5

struct SvClient {
    int refs; /* the connection's, and one for each answer that is due */
    SvServer *server;
    SvSandbox *sandbox; /* NULL: not served yet */
    SvConn *conn; /* NULL: gone */
    GQueue early; /* Early: requests before serve */
    gboolean watching;
    guint32 next_event; /* stream of the next event it is told */
    char *creating; /* id registered and not READY: rolled back when the caller goes */
    guint32 exec; /* handle prepared and not started */
};

typedef struct {
    guint32 stream;
    char *service, *method;
    GBytes *payload;
} Early;

/* An answer that is due. */
typedef struct {
    SvClient *client;
    guint32 stream;
    gboolean create, exec;
} Due;

static void client_unref(SvClient *client)
{
    if (--client->refs > 0)
        return;
    g_free(client->creating);
    g_free(client);
}

static void early_free(gpointer data)
{
    Early *early = data;
    g_free(early->service);
    g_free(early->method);
    g_bytes_unref(early->payload);
    g_free(early);
}

void sv_client_free(SvClient *client)
{
    g_clear_pointer(&client->conn, sv_conn_free);
    g_queue_clear_full(&client->early, early_free);
    client_unref(client);
}

static void client_leave(SvClient *client)
{
    if (client->sandbox && client->creating)
        sv_container_abandon(client->sandbox, client->creating);
    if (client->sandbox && client->exec)
        sv_exec_abandon(client->sandbox, client->exec);
    sv_server_client_gone(client->server, client);
    sv_client_free(client);
}

gboolean sv_client_is_watching(const SvClient *client)
{
    return client->watching;
}

/* ---- answers */

static Due *due_new(SvClient *client, guint32 stream)
{
    Due *due = g_new0(Due, 1);
    due->client = client;
    due->stream = stream;
    client->refs++;
    return due;
}

static void due_free(Due *due)
{
    client_unref(due->client);
    g_free(due);
}

static void on_reply(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Due *due = user_data;
    SvClient *client = due->client;
    if (due->create)
        g_clear_pointer(&client->creating, g_free);
    if (due->exec)
        client->exec = 0;
    if (client->conn && error)
        sv_conn_reply_error(client->conn, due->stream, error);
    else if (client->conn)
        sv_conn_reply(client->conn, due->stream, reply);
    due_free(due);
}

static void on_done(const GError *error, gpointer user_data)
{
    on_reply(NULL, error, user_data);
}

/* ---- requests */

typedef struct {
    const char *method;
    const ProtobufCMessageDescriptor *type;
    void (*func)(SvClient *client, guint32 stream, const ProtobufCMessage *message);
} Method;

/* A register that waits for the end of the sandbox's former machine. */
typedef struct {
    Due *due;
    Sandvirt__V1__RegisterRequest *request;
    guint attempts;
} Register;

static gboolean try_register(SvClient *client, const Sandvirt__V1__RegisterRequest *request,
    Sandvirt__V1__RegisterResponse *response, GError **error)
{
    uid_t uid = 0;
    sv_unix_peer(sv_conn_fd(client->conn), NULL, &uid, NULL);
    if (!sv_sandbox_register(client->sandbox, request, uid, &response->handle, error))
        return FALSE;
    g_free(client->creating);
    client->creating = g_strdup(request->container_id);
    return TRUE;
}

static void on_former_ended(const GError *error, gpointer user_data)
{
    Register *again = user_data;
    SvClient *client = again->due->client;
    Sandvirt__V1__RegisterResponse response = SANDVIRT__V1__REGISTER_RESPONSE__INIT;
    g_autoptr(GError) local = error ? g_error_copy(error) : NULL;
    if (!local && client->conn && !try_register(client, again->request, &response, &local) &&
        sv_error_is(local, SV_ERR_BUSY) && --again->attempts > 0) {
        sv_sandbox_wait_for_end(client->sandbox, on_former_ended, again);
        return;
    }
    on_reply(&response.base, local, again->due);
    sv_message_free(again->request);
    g_free(again);
}

static void do_register(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    g_autoptr(GError) error = NULL;
    const Sandvirt__V1__RegisterRequest *request = (const Sandvirt__V1__RegisterRequest *)message;
    Sandvirt__V1__RegisterResponse response = SANDVIRT__V1__REGISTER_RESPONSE__INIT;
    if (try_register(client, request, &response, &error)) {
        sv_conn_reply(client->conn, stream, &response.base);
    } else if (!sv_error_is(error, SV_ERR_BUSY)) {
        sv_conn_reply_error(client->conn, stream, error);
    } else {
        /* its end has deadlines of its own */
        Register *again = g_new0(Register, 1);
        again->due = due_new(client, stream);
        again->request = (Sandvirt__V1__RegisterRequest *)sv_message_copy(message);
        again->attempts = REGISTER_ATTEMPTS;
        sv_sandbox_wait_for_end(client->sandbox, on_former_ended, again);
    }
}

static void do_create(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    Due *due = due_new(client, stream);
    due->create = TRUE;
    sv_container_create(
        client->sandbox, (const Sandvirt__V1__CreateContainerRequest *)message, on_done, due);
}

static const char *id_of(const ProtobufCMessage *message)
{
    return ((const Sandvirt__V1__ContainerRequest *)message)->container_id;
}

static void do_start(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    sv_container_start(client->sandbox, id_of(message), on_done, due_new(client, stream));
}

static void do_pause(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    sv_container_pause(client->sandbox, id_of(message), TRUE, on_done, due_new(client, stream));
}

static void do_resume(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    sv_container_pause(client->sandbox, id_of(message), FALSE, on_done, due_new(client, stream));
}

static void do_kill(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    const Sandvirt__V1__KillRequest *request = (const Sandvirt__V1__KillRequest *)message;
    sv_container_kill(client->sandbox, request->container_id, (int)request->signal, request->all,
        request->order, on_done, due_new(client, stream));
}

static void do_stop(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    const Sandvirt__V1__StopRequest *request = (const Sandvirt__V1__StopRequest *)message;
    gint64 left_ms = request->timeout_ms;
    if (request->kill_at_us)
        left_ms = CLAMP((request->kill_at_us - g_get_monotonic_time()) / 1000, 0, left_ms);
    sv_container_stop(
        client->sandbox, request->container_id, (guint)left_ms, on_done, due_new(client, stream));
}

static void do_delete(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    const Sandvirt__V1__DeleteRequest *request = (const Sandvirt__V1__DeleteRequest *)message;
    sv_container_delete(
        client->sandbox, request->container_id, request->force, on_done, due_new(client, stream));
}

static void do_update(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    sv_container_update(client->sandbox, (const Sandvirt__V1__UpdateContainerRequest *)message,
        on_done, due_new(client, stream));
}

static void do_stats(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    sv_container_stats(client->sandbox, id_of(message), on_reply, due_new(client, stream));
}

static void do_ps(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    sv_container_ps(client->sandbox, ((const Sandvirt__V1__PsRequest *)message)->container_id,
        on_reply, due_new(client, stream));
}

static void do_exec_prepare(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    g_autoptr(GError) error = NULL;
    Sandvirt__V1__ExecPrepareResponse response = SANDVIRT__V1__EXEC_PREPARE_RESPONSE__INIT;
    if (!sv_exec_prepare(client->sandbox, (const Sandvirt__V1__ExecPrepareRequest *)message,
            &response.handle, &error)) {
        sv_conn_reply_error(client->conn, stream, error);
        return;
    }
    client->exec = response.handle;
    sv_conn_reply(client->conn, stream, &response.base);
}

static void do_exec_start(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    Due *due = due_new(client, stream);
    due->exec = TRUE;
    sv_exec_start(client->sandbox, (const Sandvirt__V1__ExecStartRequest *)message, on_done, due);
}

static void do_settle(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    sv_sandbox_settle(client->sandbox, on_done, due_new(client, stream));
}

static void do_watch(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    client->watching = TRUE;
    sv_server_client_watches(client->server);
    sv_sandbox_each_record(client->sandbox, sv_server_tell_current, client);
    sv_conn_reply(client->conn, stream, NULL);
}

static const Method methods[] = {
    {"Register", &sandvirt__v1__register_request__descriptor, do_register},
    {"Create", &sandvirt__v1__create_container_request__descriptor, do_create},
    {"Start", &sandvirt__v1__container_request__descriptor, do_start},
    {"Kill", &sandvirt__v1__kill_request__descriptor, do_kill},
    {"Stop", &sandvirt__v1__stop_request__descriptor, do_stop},
    {"Delete", &sandvirt__v1__delete_request__descriptor, do_delete},
    {"Pause", &sandvirt__v1__container_request__descriptor, do_pause},
    {"ResumeContainer", &sandvirt__v1__container_request__descriptor, do_resume},
    {"Update", &sandvirt__v1__update_container_request__descriptor, do_update},
    {"Stats", &sandvirt__v1__container_request__descriptor, do_stats},
    {"Ps", &sandvirt__v1__ps_request__descriptor, do_ps},
    {"ExecPrepare", &sandvirt__v1__exec_prepare_request__descriptor, do_exec_prepare},
    {"ExecStart", &sandvirt__v1__exec_start_request__descriptor, do_exec_start},
    {"Settle", &sandvirt__v1__empty__descriptor, do_settle},
    {"Watch", &sandvirt__v1__empty__descriptor, do_watch},
};

/* The connection is a shim's from now on. Frees @client on success. */
static void become_shim(SvClient *client, guint32 stream, const guint8 *payload, gsize len)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message =
        sv_message_unpack(&sandvirt__v1__attach_request__descriptor, payload, len, &error);
    if (message &&
        sv_shim_attach(client->sandbox, client->conn, stream,
            (Sandvirt__V1__AttachRequest *)message, &error)) {
        client->conn = NULL;
        sv_message_free(message);
        client_leave(client);
        return;
    }
    if (message)
        sv_message_free(message);
    sv_conn_reply_error(client->conn, stream, error);
}

static void dispatch(SvClient *client, guint32 stream, const char *service, const char *method,
    const guint8 *payload, gsize len)
{
    g_autoptr(GError) error = NULL;
    if (g_str_equal(service, SV_SERVICE_SHIM) && g_str_equal(method, "Attach")) {
        become_shim(client, stream, payload, len);
        return;
    }
    for (guint i = 0; g_str_equal(service, SV_SERVICE_MONITOR) && i < G_N_ELEMENTS(methods); i++) {
        if (!g_str_equal(method, methods[i].method))
            continue;
        ProtobufCMessage *message = sv_message_unpack(methods[i].type, payload, len, &error);
        if (message) {
            methods[i].func(client, stream, message);
            sv_message_free(message);
        } else {
            sv_conn_reply_error(client->conn, stream, error);
        }
        return;
    }
    g_set_error(&error, SV_RPC_ERROR, SV_ERR_UNSUPPORTED, "unknown method %s/%s", service, method);
    sv_conn_reply_error(client->conn, stream, error);
}

static void on_request(SvConn *conn, const SvRequest *request, gpointer user_data)
{
    SvClient *client = user_data;
    if (client->sandbox) {
        dispatch(client, request->stream, request->service, request->method, request->payload,
            request->payload_len);
        return;
    }
    Early *early = g_new0(Early, 1);
    early->stream = request->stream;
    early->service = g_strdup(request->service);
    early->method = g_strdup(request->method);
    early->payload = g_bytes_new(request->payload, request->payload_len);
    g_queue_push_tail(&client->early, early);
}

static void on_closed(SvConn *conn, const GError *error, gpointer user_data)
{
    client_leave(user_data);
}

static const SvConnHandlers handlers = {
    .request = on_request,
    .closed = on_closed,
};

SvClient *sv_client_new(SvServer *server, int fd)
{
    SvClient *client = g_new0(SvClient, 1);
    client->refs = 1;
    client->next_event = 2;
    client->server = server;
    g_queue_init(&client->early);
    client->conn = sv_conn_new(fd, 2, SV_FRAME_MAX, &handlers, client);
    return client;
}

void sv_client_serve(SvClient *client, SvSandbox *sandbox)
{
    client->sandbox = sandbox;
    client->refs++;
    Early *early;
    while (client->conn && (early = g_queue_pop_head(&client->early))) {
        gsize len;
        const guint8 *payload = g_bytes_get_data(early->payload, &len);
        dispatch(client, early->stream, early->service, early->method, payload, len);
        early_free(early);
    }
    client_unref(client);
}

void sv_client_tell(SvClient *client, const char *json, gboolean current)
{
    Sandvirt__V1__StateEvent event = SANDVIRT__V1__STATE_EVENT__INIT;
    if (!client->watching || !client->conn || sv_conn_is_closed(client->conn))
        return;
    event.json = (char *)json;
    event.current = current;
    /* nobody answers it, so that it is no call */
    sv_conn_send(client->conn,
        sv_message_request(client->next_event, SV_SERVICE_MONITOR, "Event", &event.base, 0));
    client->next_event += 2;
    if (sv_conn_queued(client->conn) <= UNREAD_MAX)
        return;
    client->watching = FALSE;
    shutdown(sv_conn_fd(client->conn), SHUT_RDWR); /* its end is seen from the loop */
}
