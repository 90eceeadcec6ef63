/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
#include "core/conn.h"
#include "launcher/launcher.h"
#include <errno.h>
#include <glib-unix.h>
#include <sys/socket.h>

/* A request names a root, a sandbox and two files. */
#define REQUEST_MAX (64 * 1024)

struct SvServer {
    int fd;
    guint source;
    SvMonitors *monitors;
    GHashTable *clients; /* SvConn, owned, as a set */
    GHashTable *pending; /* Pending, as a set */
};

/* A request that is not answered; owned by its callback. */
typedef struct {
    SvServer *server;
    SvConn *conn; /* NULL: has gone */
    guint32 stream;
} Pending;

static void on_ensured(const GError *error, gpointer user_data)
{
    g_autofree Pending *pending = user_data;

    g_hash_table_remove(pending->server->pending, pending);
    if (!pending->conn)
        return;
    if (error)
        sv_conn_reply_error(pending->conn, pending->stream, error);
    else
        sv_conn_reply(pending->conn, pending->stream, NULL);
}

static void ensure(SvServer *server, SvConn *conn, const SvRequest *request, GError **error)
{
    Sandvirt__V1__EnsureRequest *message;
    Pending *pending;

    message = (Sandvirt__V1__EnsureRequest *)sv_message_unpack(
        &sandvirt__v1__ensure_request__descriptor, request->payload, request->payload_len, error);
    if (!message)
        return;
    if (*message->root == '/' && *message->sandbox &&
        (*message->monitor == '/' || !*message->monitor)) {
        pending = g_new0(Pending, 1);
        *pending = (Pending){server, conn, request->stream};
        g_hash_table_add(server->pending, pending);
        sv_monitors_ensure(server->monitors, message, on_ensured, pending);
    } else {
        g_set_error(error, SV_LAUNCHER_ERROR, SV_ERR_INVALID, "Ensure: a path is not absolute");
    }
    sv_message_free(message);
}

static void on_request(SvConn *conn, const SvRequest *request, gpointer user_data)
{
    g_autoptr(GError) error = NULL;

    if (g_str_equal(request->service, SV_SERVICE_LAUNCHER) &&
        g_str_equal(request->method, "Ensure"))
        ensure(user_data, conn, request, &error);
    else
        g_set_error(&error, SV_LAUNCHER_ERROR, SV_ERR_UNSUPPORTED, "unknown method");
    if (error)
        sv_conn_reply_error(conn, request->stream, error);
}

static void on_closed(SvConn *conn, const GError *error, gpointer user_data)
{
    SvServer *server = user_data;
    GHashTableIter iter;
    gpointer key = NULL;

    g_hash_table_iter_init(&iter, server->pending);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        if (((Pending *)key)->conn == conn)
            ((Pending *)key)->conn = NULL;
    g_hash_table_remove(server->clients, conn);
}

static const SvConnHandlers handlers = {.request = on_request, .closed = on_closed};

static gboolean on_connection(gint fd, GIOCondition condition, gpointer user_data)
{
    SvServer *server = user_data;
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uid_t uid = (uid_t)-1;

    if (client < 0)
        return G_SOURCE_CONTINUE;
    if (!sv_unix_peer(client, NULL, &uid, NULL) || uid != 0) {
        g_warning("refused a connection of user %u", (guint)uid);
        sv_fd_close(client);
        return G_SOURCE_CONTINUE;
    }
    g_hash_table_add(server->clients, sv_conn_new(client, 2, REQUEST_MAX, &handlers, server));
    return G_SOURCE_CONTINUE;
}

SvServer *sv_server_new(int fd, SvMonitors *monitors)
{
    SvServer *server = g_new0(SvServer, 1);

    server->fd = fd;
    server->monitors = monitors;
    server->clients = g_hash_table_new_full(NULL, NULL, (GDestroyNotify)sv_conn_free, NULL);
    server->pending = g_hash_table_new_full(NULL, NULL, NULL, NULL);
    sv_fd_set_nonblock(fd, TRUE);
    server->source = g_unix_fd_add(fd, G_IO_IN, on_connection, server);
    return server;
}

void sv_server_free(SvServer *server)
{
    if (!server)
        return;
    g_source_remove(server->source);
    g_hash_table_unref(server->clients);
    g_hash_table_unref(server->pending);
    sv_fd_close(server->fd);
    g_free(server);
}
