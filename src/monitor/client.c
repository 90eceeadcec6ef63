/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/client.h"

#include "base/fd.h"

#include <string.h>

struct SvClient {
    int refs; /* the connection's, and one for each answer that is due */
    SvServer *server;
    SvSandbox *sandbox; /* NULL: not served yet */
    SvConn *conn; /* NULL: gone */
    GQueue early; /* Early: requests before serve */
    gboolean watching;
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

static void do_register(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    g_autoptr(GError) error = NULL;
    const Sandvirt__V1__RegisterRequest *request = (const Sandvirt__V1__RegisterRequest *)message;
    Sandvirt__V1__RegisterResponse response = SANDVIRT__V1__REGISTER_RESPONSE__INIT;
    uid_t uid = 0;
    sv_unix_peer(sv_conn_fd(client->conn), NULL, &uid, NULL);
    if (!sv_sandbox_register(client->sandbox, request, uid, &response.handle, &error)) {
        sv_conn_reply_error(client->conn, stream, error);
        return;
    }
    g_free(client->creating);
    client->creating = g_strdup(request->container_id);
    sv_conn_reply(client->conn, stream, &response.base);
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
        on_done, due_new(client, stream));
}

static void do_stop(SvClient *client, guint32 stream, const ProtobufCMessage *message)
{
    const Sandvirt__V1__StopRequest *request = (const Sandvirt__V1__StopRequest *)message;
    sv_container_stop(client->sandbox, request->container_id, request->timeout_ms, on_done,
        due_new(client, stream));
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

void sv_client_tell(SvClient *client, const char *json)
{
    Sandvirt__V1__StateEvent event = SANDVIRT__V1__STATE_EVENT__INIT;
    if (!client->watching || !client->conn)
        return;
    event.json = (char *)json;
    sv_conn_call(client->conn, SV_SERVICE_MONITOR, "Event", &event.base, NULL, 0, -1, NULL, NULL);
}
