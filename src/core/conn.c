/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/conn.h"

#include "base/fd.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <sys/socket.h>
#include <unistd.h>

/* How many bytes are read or frames dispatched before other sources of the loop get their turn. */
#define INPUT_BUDGET (1024u * 1024)
#define READ_COST (4u * 1024) /* the least that a read counts for */
/* While more than this waits to be written nothing is read: a peer that asks and does not take the
 * answers (a hostile guest) costs no more memory than this. */
#define QUEUE_MAX (8u * 1024 * 1024)

typedef struct {
    GBytes *bytes;
    gsize done;
    int fd; /* to be passed with the first byte, owned; -1 */
} Outgoing;

typedef struct {
    SvConn *conn;
    guint32 stream;
    const ProtobufCMessageDescriptor *type;
    guint timer;
    SvCallDone done;
    gpointer user_data;
} Call;

struct SvConn {
    int refs;
    int fd;
    gboolean closed, freed;
    gboolean deaf; /* the peer takes nothing any more; what it said before is still read */
    guint32 next_stream;
    const SvConnHandlers *handlers;
    gpointer user_data;
    SvFrameReader *reader;
    GQueue out; /* of Outgoing */
    gsize queued;
    guint in_source, out_source, close_source;
    GError *close_error;
    GHashTable *calls; /* stream -> Call */
    SvSyncScanner *scanner;
    void (*synced)(SvConn *conn, gpointer user_data);
};

static void conn_unref(SvConn *conn)
{
    if (--conn->refs > 0)
        return;
    g_free(conn);
}

static void outgoing_free(gpointer data)
{
    Outgoing *out = data;
    g_bytes_unref(out->bytes);
    sv_fd_close(out->fd);
    g_free(out);
}

static void call_free(gpointer data)
{
    Call *call = data;
    if (call->timer)
        g_source_remove(call->timer);
    g_free(call);
}

static gboolean on_input(gint fd, GIOCondition condition, gpointer user_data);
static gboolean on_output(gint fd, GIOCondition condition, gpointer user_data);

static void conn_watch_input(SvConn *conn)
{
    if (!conn->in_source)
        conn->in_source = g_unix_fd_add(conn->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_input, conn);
}

SvConn *sv_conn_new(int fd, guint32 first_stream, guint32 max_payload,
    const SvConnHandlers *handlers, gpointer user_data)
{
    SvConn *conn = g_new0(SvConn, 1);
    conn->refs = 1;
    conn->fd = fd;
    conn->next_stream = first_stream;
    conn->handlers = handlers;
    conn->user_data = user_data;
    conn->reader = sv_frame_reader_new(max_payload);
    conn->calls = g_hash_table_new_full(NULL, NULL, NULL, call_free);
    g_queue_init(&conn->out);
    sv_fd_set_nonblock(fd, TRUE);
    conn_watch_input(conn);
    return conn;
}

static void conn_drop_output(SvConn *conn)
{
    if (conn->out_source)
        g_source_remove(conn->out_source);
    conn->out_source = 0;
    g_queue_clear_full(&conn->out, outgoing_free);
    conn->queued = 0;
}

/* The smallest frames cost what they are kept in. */
static gboolean conn_is_full(const SvConn *conn)
{
    return conn->queued + 128 * (gsize)g_queue_get_length((GQueue *)&conn->out) > QUEUE_MAX;
}

static void conn_stop(SvConn *conn)
{
    if (conn->in_source)
        g_source_remove(conn->in_source);
    conn->in_source = 0;
    conn_drop_output(conn);
    if (conn->fd >= 0)
        sv_fd_close(sv_fd_steal(&conn->fd));
}

/* ---- calls that have no connection (any more) */

typedef struct {
    SvCallDone done;
    gpointer user_data;
} Refused;

static gboolean on_refused(gpointer user_data)
{
    g_autofree Refused *refused = user_data;
    g_autoptr(GError) error =
        g_error_new_literal(SV_RPC_ERROR, SV_ERR_CLOSED, "the connection is closed");
    refused->done(NULL, error, refused->user_data);
    return G_SOURCE_REMOVE;
}

void sv_conn_refuse(SvCallDone done, gpointer user_data)
{
    if (!done)
        return;
    Refused *refused = g_new0(Refused, 1);
    refused->done = done;
    refused->user_data = user_data;
    g_idle_add_full(G_PRIORITY_DEFAULT, on_refused, refused, NULL);
}

static void refuse_all(SvConn *conn)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, conn->calls);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        sv_conn_refuse(((Call *)value)->done, ((Call *)value)->user_data);
}

void sv_conn_free(SvConn *conn)
{
    if (!conn || conn->freed)
        return;
    conn->freed = TRUE;
    conn->closed = TRUE;
    conn_stop(conn);
    if (conn->close_source)
        g_source_remove(conn->close_source);
    conn->close_source = 0;
    g_clear_error(&conn->close_error);
    refuse_all(conn);
    g_clear_pointer(&conn->calls, g_hash_table_destroy);
    g_clear_pointer(&conn->reader, sv_frame_reader_free);
    g_clear_pointer(&conn->scanner, sv_sync_scanner_free);
    conn_unref(conn);
}

void sv_conn_set_handlers(SvConn *conn, const SvConnHandlers *handlers, gpointer user_data)
{
    conn->handlers = handlers;
    conn->user_data = user_data;
}

int sv_conn_fd(const SvConn *conn)
{
    return conn->fd;
}

gboolean sv_conn_is_closed(const SvConn *conn)
{
    return conn->closed;
}

gsize sv_conn_queued(const SvConn *conn)
{
    return conn->queued;
}

static void call_finish(
    SvConn *conn, Call *call, const ProtobufCMessage *reply, const GError *error)
{
    SvCallDone done = call->done;
    gpointer user_data = call->user_data;
    g_hash_table_remove(conn->calls, GUINT_TO_POINTER(call->stream));
    if (done)
        done(reply, error, user_data);
}

static gboolean on_closed(gpointer user_data)
{
    SvConn *conn = user_data;
    conn->close_source = 0;
    conn->refs++;
    g_autoptr(GError) gone = g_error_copy(conn->close_error);
    while (!conn->freed && g_hash_table_size(conn->calls) > 0) {
        GHashTableIter iter;
        gpointer value = NULL;
        g_hash_table_iter_init(&iter, conn->calls);
        if (!g_hash_table_iter_next(&iter, NULL, &value))
            break;
        call_finish(conn, value, NULL, gone);
    }
    if (!conn->freed && conn->handlers->closed)
        conn->handlers->closed(conn, gone, conn->user_data);
    conn_unref(conn);
    return G_SOURCE_REMOVE;
}

/* Takes @error. The handlers learn of it from the loop, never from inside a call of theirs. */
static void conn_close(SvConn *conn, GError *error)
{
    if (conn->closed) {
        g_error_free(error);
        return;
    }
    conn->closed = TRUE;
    conn_stop(conn);
    conn->close_error = error;
    conn->close_source = g_idle_add_full(G_PRIORITY_DEFAULT, on_closed, conn, NULL);
}

static GError *peer_gone(int errsv)
{
    GError *error = NULL;
    if (errsv)
        sv_error_set_errno(&error, SV_RPC_ERROR, errsv, "connection lost");
    else
        error = g_error_new_literal(SV_RPC_ERROR, SV_ERR_CLOSED, "connection closed by the peer");
    error->code = SV_ERR_CLOSED;
    return error;
}

/* ---- output */

static void conn_flush(SvConn *conn)
{
    while (!g_queue_is_empty(&conn->out)) {
        Outgoing *out = g_queue_peek_head(&conn->out);
        gsize len;
        const guint8 *data = g_bytes_get_data(out->bytes, &len);
        ssize_t n = sv_fd_send(conn->fd, data + out->done, len - out->done, &out->fd,
            out->done == 0 && out->fd >= 0 ? 1 : 0);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN)
                return;
            /* Its end is seen by reading, after all that it said before (an exit, for one). */
            conn->deaf = TRUE;
            conn_drop_output(conn);
            conn_watch_input(conn);
            return;
        }
        out->done += (gsize)n;
        conn->queued -= (gsize)n;
        if (out->done == len)
            outgoing_free(g_queue_pop_head(&conn->out));
    }
}

static gboolean on_output(gint fd, GIOCondition condition, gpointer user_data)
{
    SvConn *conn = user_data;
    conn_flush(conn);
    if (!conn_is_full(conn))
        conn_watch_input(conn);
    if (!g_queue_is_empty(&conn->out))
        return G_SOURCE_CONTINUE;
    conn->out_source = 0;
    return G_SOURCE_REMOVE;
}

static void conn_queue(SvConn *conn, GBytes *bytes, int pass_fd)
{
    if (conn->closed || conn->deaf) {
        g_bytes_unref(bytes);
        return;
    }
    Outgoing *out = g_new0(Outgoing, 1);
    out->bytes = bytes;
    out->fd = pass_fd >= 0 ? fcntl(pass_fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (pass_fd >= 0 && out->fd < 0) {
        conn_close(conn, peer_gone(errno));
        outgoing_free(out);
        return;
    }
    conn->queued += g_bytes_get_size(bytes);
    g_queue_push_tail(&conn->out, out);
    if (conn->out_source)
        return;
    conn_flush(conn);
    if (!g_queue_is_empty(&conn->out))
        conn->out_source = g_unix_fd_add(conn->fd, G_IO_OUT, on_output, conn);
}

void sv_conn_send(SvConn *conn, GBytes *frame)
{
    conn_queue(conn, frame, -1);
}

void sv_conn_reply(SvConn *conn, guint32 stream, const ProtobufCMessage *message)
{
    conn_queue(conn, sv_message_response(stream, message), -1);
}

void sv_conn_reply_error(SvConn *conn, guint32 stream, const GError *error)
{
    conn_queue(conn, sv_message_error(stream, error), -1);
}

static gboolean on_call_timeout(gpointer user_data)
{
    Call *call = user_data;
    SvConn *conn = call->conn;
    call->timer = 0;
    conn->refs++;
    g_autoptr(GError) error =
        g_error_new_literal(SV_RPC_ERROR, SV_ERR_TIMEOUT, "no answer in time");
    call_finish(conn, call, NULL, error);
    conn_unref(conn);
    return G_SOURCE_REMOVE;
}

void sv_conn_call(SvConn *conn, const char *service, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, guint timeout_ms,
    int pass_fd, SvCallDone done, gpointer user_data)
{
    if (conn->closed && !conn->close_source) {
        sv_conn_refuse(done, user_data);
        return;
    }
    Call *call = g_new0(Call, 1);
    call->conn = conn;
    call->stream = conn->next_stream;
    conn->next_stream += 2;
    call->type = type;
    call->done = done;
    call->user_data = user_data;
    g_hash_table_insert(conn->calls, GUINT_TO_POINTER(call->stream), call);
    if (timeout_ms)
        call->timer = g_timeout_add(timeout_ms, on_call_timeout, call);
    conn_queue(conn,
        sv_message_request(call->stream, service, method, message, (gint64)timeout_ms * 1000000),
        pass_fd);
}

/* ---- input */

static void dispatch_request(SvConn *conn, const SvFrame *frame)
{
    g_autoptr(GError) error = NULL;
    SvRequest request = {0};
    if (!sv_request_parse(frame, &request, &error)) {
        conn_close(conn, g_steal_pointer(&error));
        return;
    }
    if (conn->handlers->request) {
        conn->handlers->request(conn, &request, conn->user_data);
    } else {
        g_set_error(&error, SV_RPC_ERROR, SV_ERR_UNSUPPORTED, "unknown method");
        sv_conn_reply_error(conn, request.stream, error);
    }
    sv_request_clear(&request);
}

static void dispatch_response(SvConn *conn, const SvFrame *frame)
{
    Call *call = g_hash_table_lookup(conn->calls, GUINT_TO_POINTER(frame->stream));
    if (!call)
        return; /* late answer */
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = sv_response_parse(frame, call->type, &error);
    call_finish(conn, call, reply, error);
    if (reply)
        sv_message_free(reply);
}

static void dispatch(SvConn *conn)
{
    SvFrame frame;
    g_autoptr(GError) error = NULL;
    while (!conn->closed) {
        int got = sv_frame_reader_next(conn->reader, &frame, &error);
        if (got == 0)
            return;
        if (got < 0) {
            conn_close(conn, g_steal_pointer(&error));
            return;
        }
        if (frame.type == SV_FRAME_REQUEST)
            dispatch_request(conn, &frame);
        else if (frame.type == SV_FRAME_RESPONSE)
            dispatch_response(conn, &frame);
        else if (conn->handlers->frame)
            conn->handlers->frame(conn, &frame, conn->user_data);
    }
}

void sv_conn_expect_sync(
    SvConn *conn, SvSyncScanner *scanner, void (*synced)(SvConn *conn, gpointer user_data))
{
    g_clear_pointer(&conn->scanner, sv_sync_scanner_free);
    conn->scanner = scanner;
    conn->synced = synced;
}

/* Before the pattern everything is the former connection's. */
static void scan(SvConn *conn, const guint8 *data, gsize len)
{
    guint8 tail[64];
    gsize used = sv_sync_scanner_feed(conn->scanner, data, len, tail);
    if (!used)
        return;
    g_clear_pointer(&conn->scanner, sv_sync_scanner_free);
    sv_frame_reader_push(conn->reader, data + used, len - used);
    conn->synced(conn, conn->user_data);
}

static gboolean read_some(SvConn *conn, gsize *budget)
{
    gsize room;
    guint8 *space = sv_frame_reader_space(conn->reader, &room);
    ssize_t n = read(conn->fd, space, room);
    if (n < 0) {
        if (errno == EINTR)
            return TRUE;
        if (errno != EAGAIN)
            conn_close(conn, peer_gone(errno));
        return FALSE;
    }
    if (n == 0) {
        conn_close(conn, peer_gone(0));
        return FALSE;
    }
    if (conn->scanner) {
        g_autofree guint8 *copy = g_memdup2(space, (gsize)n);
        scan(conn, copy, (gsize)n);
    } else {
        sv_frame_reader_added(conn->reader, (gsize)n);
    }
    if (!conn->closed && !conn->scanner)
        dispatch(conn);
    *budget -= MIN(*budget, MAX((gsize)n, (gsize)READ_COST));
    if (conn->closed || *budget == 0)
        return FALSE;
    /* The rest of a frame is on its way: a read is cheaper than the loop's look at all it watches. */
    return (gsize)n == room || sv_frame_reader_is_amid(conn->reader);
}

static gboolean on_input(gint fd, GIOCondition condition, gpointer user_data)
{
    SvConn *conn = user_data;
    gsize budget = INPUT_BUDGET;
    conn->refs++;
    while (!conn->closed && !conn_is_full(conn) && read_some(conn, &budget))
        ;
    if (!conn->closed && conn_is_full(conn))
        conn->in_source = 0; /* on_output comes back to it */
    gboolean keep = conn->in_source != 0;
    conn_unref(conn);
    return keep ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}
