/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/server.h"

#include "base/fd.h"
#include "base/json.h"
#include "monitor/client.h"

#include <errno.h>
#include <glib-unix.h>
#include <sys/socket.h>
#include <unistd.h>

struct SvServer {
    char *path;
    int fd;
    guint source;
    SvSandbox *sandbox;
    GHashTable *clients; /* set of SvClient */
    gboolean used;
    guint check; /* idle source */
    void (*left)(gpointer user_data);
    gpointer left_data;
};

static void add_client(SvServer *server, int fd)
{
    uid_t uid = (uid_t)-1;
    if (!sv_unix_peer(fd, NULL, &uid, NULL) || uid != 0) {
        sv_fd_close(fd);
        return;
    }
    server->used = TRUE;
    SvClient *client = sv_client_new(server, fd);
    g_hash_table_add(server->clients, client);
    if (server->sandbox)
        sv_client_serve(client, server->sandbox);
}

static gboolean accept_one(SvServer *server)
{
    int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return FALSE;
    add_client(server, fd);
    return TRUE;
}

static gboolean on_connection(gint fd, GIOCondition condition, gpointer user_data)
{
    accept_one(user_data);
    return G_SOURCE_CONTINUE;
}

static gboolean server_listen(SvServer *server, GError **error)
{
    server->fd = sv_unix_listen(server->path, 0600, 64, error);
    if (server->fd < 0)
        return FALSE;
    sv_fd_set_nonblock(server->fd, TRUE);
    server->source = g_unix_fd_add(server->fd, G_IO_IN, on_connection, server);
    return TRUE;
}

SvServer *sv_server_new(const char *socket_path, GError **error)
{
    SvServer *server = g_new0(SvServer, 1);
    server->path = g_strdup(socket_path);
    server->fd = -1;
    server->clients = g_hash_table_new(NULL, NULL);
    if (!server_listen(server, error)) {
        sv_server_free(server);
        return NULL;
    }
    return server;
}

static void server_unlisten(SvServer *server)
{
    if (server->source)
        g_source_remove(server->source);
    server->source = 0;
    sv_fd_clear(&server->fd);
}

void sv_server_free(SvServer *server)
{
    if (!server)
        return;
    server_unlisten(server);
    if (server->check)
        g_source_remove(server->check);
    GHashTableIter iter;
    gpointer client;
    g_hash_table_iter_init(&iter, server->clients);
    while (g_hash_table_iter_next(&iter, &client, NULL))
        sv_client_free(client);
    g_hash_table_destroy(server->clients);
    g_free(server->path);
    g_free(server);
}

void sv_server_serve(SvServer *server, SvSandbox *sandbox)
{
    server->sandbox = sandbox;
    g_autoptr(GList) clients = g_hash_table_get_keys(server->clients);
    for (GList *item = clients; item; item = item->next)
        sv_client_serve(item->data, sandbox);
}

gboolean sv_server_was_used(const SvServer *server)
{
    return server->used;
}

void sv_server_set_left(SvServer *server, void (*left)(gpointer user_data), gpointer user_data)
{
    server->left = left;
    server->left_data = user_data;
}

void sv_server_client_gone(SvServer *server, SvClient *client)
{
    g_hash_table_remove(server->clients, client);
    if (server->left)
        server->left(server->left_data);
}

static gboolean on_check(gpointer user_data)
{
    SvServer *server = user_data;
    server->check = 0;
    if (server->left)
        server->left(server->left_data);
    return G_SOURCE_REMOVE;
}

void sv_server_client_watches(SvServer *server)
{
    if (!server->check)
        server->check = g_idle_add_full(G_PRIORITY_LOW, on_check, server, NULL);
}

static gboolean has_callers(SvServer *server)
{
    GHashTableIter iter;
    gpointer client;
    g_hash_table_iter_init(&iter, server->clients);
    while (g_hash_table_iter_next(&iter, &client, NULL))
        if (!sv_client_is_watching(client))
            return TRUE;
    return FALSE;
}

gboolean sv_server_close_if_unused(SvServer *server)
{
    if (has_callers(server))
        return FALSE;
    /* No new caller finds the socket; one that found it before is in the queue now. */
    unlink(server->path);
    if (!accept_one(server)) {
        server_unlisten(server);
        return TRUE;
    }
    while (accept_one(server))
        ;
    server_unlisten(server);
    g_autoptr(GError) error = NULL;
    if (!server_listen(server, &error))
        g_warning("%s", error->message);
    return FALSE;
}

/* Takes @object. */
static char *text_of(JsonObject *object)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    return sv_json_text(node, FALSE);
}

/* Takes @object. */
static void tell_all(SvServer *server, JsonObject *object)
{
    g_autofree char *text = text_of(object);
    GHashTableIter iter;
    gpointer client;
    g_hash_table_iter_init(&iter, server->clients);
    while (g_hash_table_iter_next(&iter, &client, NULL))
        sv_client_tell(client, text, FALSE);
}

static JsonObject *describe(const SvRecord *record, SvState old)
{
    JsonObject *object = json_object_new();
    g_autofree char *time = sv_time_rfc3339(g_get_real_time());
    json_object_set_string_member(object, "type", "state");
    json_object_set_string_member(object, "id", record->id);
    json_object_set_string_member(object, "sandbox", record->sandbox);
    json_object_set_string_member(object, "from", sv_state_name(old));
    json_object_set_string_member(object, "to", sv_state_name(record->state));
    json_object_set_string_member(object, "time", time);
    if (record->state == SV_STATE_STOPPED) {
        json_object_set_int_member(object, "exitStatus", record->exit_status);
        json_object_set_string_member(object, "cause", sv_cause_name(record->cause));
    }
    return object;
}

void sv_server_notify(SvServer *server, const SvRecord *record, SvState old)
{
    tell_all(server, describe(record, old));
}

void sv_server_tell_current(const SvRecord *record, gpointer user_data)
{
    g_autofree char *text = text_of(describe(record, record->state));
    sv_client_tell(user_data, text, TRUE);
}

void sv_server_notify_oom(SvServer *server, const SvRecord *record)
{
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "type", "oom");
    json_object_set_string_member(object, "id", record->id);
    tell_all(server, object);
}
