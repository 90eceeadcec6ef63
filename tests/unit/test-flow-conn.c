/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One connection against a peer that does what no peer should: late, silent, gone, broken, hostile. */
#include "flow-fixture.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVICE "sandvirt.v1.Test"

typedef struct {
    SvConn *conn;
    int peer; /* blocking */
    SvFrameReader *reader; /* of the peer */
    GString *log; /* what the handlers got, in order */
    guint requests, frames, closed;
    int closed_code;
    gboolean answers, free_in_request, free_in_frame, free_in_closed;
} Pair;

typedef struct {
    Pair *pair;
    guint done;
    int code; /* -1: well */
    gboolean frees, calls_again;
    guint64 offset; /* of a StreamResponse */
} Call;

static void drop(Pair *pair)
{
    g_clear_pointer(&pair->conn, sv_conn_free);
}

static void on_request(SvConn *conn, const SvRequest *request, gpointer user_data)
{
    Pair *pair = user_data;
    pair->requests++;
    if (pair->log->len < 1000)
        g_string_append_printf(pair->log, "%s ", request->method);
    if (pair->answers)
        sv_conn_reply(conn, request->stream, NULL);
    if (pair->free_in_request)
        drop(pair);
}

static void on_frame(SvConn *conn, const SvFrame *frame, gpointer user_data)
{
    Pair *pair = user_data;
    pair->frames++;
    g_string_append_printf(pair->log, "frame%u ", frame->stream);
    if (pair->free_in_frame)
        drop(pair);
}

static void on_closed(SvConn *conn, const GError *error, gpointer user_data)
{
    Pair *pair = user_data;
    pair->closed++;
    pair->closed_code = error->code;
    g_string_append(pair->log, "closed ");
    g_assert_true(sv_conn_is_closed(conn));
    g_assert_cmpint(sv_conn_fd(conn), ==, -1);
    if (pair->free_in_closed)
        drop(pair);
}

static const SvConnHandlers handlers = {
    .request = on_request,
    .frame = on_frame,
    .closed = on_closed,
};

static const SvConnHandlers no_handlers;

static Pair *pair_new(void)
{
    Pair *pair = g_new0(Pair, 1);
    int fds[2];
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
    pair->conn = sv_conn_new(fds[0], 1, SV_FRAME_MAX, &handlers, pair);
    pair->peer = fds[1];
    pair->reader = sv_frame_reader_new(SV_FRAME_MAX);
    pair->log = g_string_new(NULL);
    return pair;
}

static void pair_free(Pair *pair)
{
    drop(pair);
    flow_settle();
    sv_fd_close(pair->peer);
    sv_frame_reader_free(pair->reader);
    g_string_free(pair->log, TRUE);
    g_free(pair);
}

static void on_done(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Call *call = user_data;
    call->done++;
    call->code = error ? error->code : -1;
    g_assert_true(!error || !reply);
    if (reply && reply->descriptor == &sandvirt__v1__stream_response__descriptor)
        call->offset = ((const Sandvirt__V1__StreamResponse *)reply)->stdin_received;
    g_string_append(call->pair->log, "done ");
    if (call->calls_again && call->pair->conn) {
        call->calls_again = FALSE;
        sv_conn_call(call->pair->conn, SERVICE, "Again", NULL, NULL, 0, -1, on_done, call);
    }
    if (call->frees)
        drop(call->pair);
}

static void call(Pair *pair, Call *call, const ProtobufCMessageDescriptor *type, guint timeout_ms)
{
    call->pair = pair;
    sv_conn_call(pair->conn, SERVICE, "Ask", NULL, type, timeout_ms, -1, on_done, call);
    g_assert_cmpuint(call->done, ==, 0); /* never inside the call */
}

static void say(Pair *pair, GBytes *frame)
{
    g_autoptr(GError) error = NULL;
    gsize len;
    const void *data = g_bytes_get_data(frame, &len);
    g_assert_true(sv_fd_write_all(pair->peer, data, len, &error));
    g_bytes_unref(frame);
}

/* The next frame that the connection sent. */
static guint32 hear(Pair *pair, guint8 type)
{
    SvFrame frame;
    g_autoptr(GError) error = NULL;
    int r;
    while ((r = sv_frame_reader_next(pair->reader, &frame, &error)) == 0) {
        gsize room;
        guint8 *space = sv_frame_reader_space(pair->reader, &room);
        ssize_t n = recv(pair->peer, space, room, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            g_main_context_iteration(NULL, FALSE);
            continue;
        }
        g_assert_cmpint(n, >, 0);
        sv_frame_reader_added(pair->reader, (gsize)n);
    }
    g_assert_no_error(error);
    g_assert_cmpint(r, ==, 1);
    g_assert_cmpuint(frame.type, ==, type);
    return frame.stream;
}

static GBytes *offset_reply(guint32 stream, guint64 offset)
{
    Sandvirt__V1__StreamResponse reply = SANDVIRT__V1__STREAM_RESPONSE__INIT;
    reply.stdin_received = offset;
    return sv_message_response(stream, &reply.base);
}

/* ---- calls */

static void test_calls(void)
{
    Pair *pair = pair_new();
    Call a = {0}, b = {0}, c = {0}, d = {0};
    g_autoptr(GError) error = g_error_new_literal(SV_RPC_ERROR, SV_ERR_BUSY, "busy");
    call(pair, &a, &sandvirt__v1__stream_response__descriptor, 0);
    call(pair, &b, NULL, 0);
    call(pair, &c, NULL, 0);
    call(pair, &d, &sandvirt__v1__hello_response__descriptor, 0);
    for (guint i = 0; i < 4; i++)
        g_assert_cmpuint(hear(pair, SV_FRAME_REQUEST), ==, 1 + 2 * i);
    say(pair, sv_message_response(99, NULL)); /* nobody asked that */
    say(pair, sv_message_error(3, error));
    say(pair, offset_reply(1, 7));
    say(pair, sv_message_response(5, NULL));
    say(pair, offset_reply(1, 8)); /* answered already */
    FLOW_WAIT(a.done && b.done && c.done);
    g_assert_cmpint(a.code, ==, -1);
    g_assert_cmpuint(a.offset, ==, 7);
    g_assert_cmpint(b.code, ==, SV_ERR_BUSY);
    g_assert_cmpint(c.code, ==, -1);
    /* an answer that is no message of the type asked for */
    g_assert_cmpuint(d.done, ==, 0);
    Sandvirt__V1__Response response = SANDVIRT__V1__RESPONSE__INIT;
    response.payload.data = (guint8 *)"\xff\xff\xff";
    response.payload.len = 3;
    guint8 packed[64];
    gsize len = sandvirt__v1__response__pack(&response, packed + SV_FRAME_HEADER);
    sv_frame_put_header(packed, (guint32)len, 7, SV_FRAME_RESPONSE, 0);
    say(pair, g_bytes_new(packed, SV_FRAME_HEADER + len));
    FLOW_WAIT(d.done);
    g_assert_cmpint(d.code, ==, SV_ERR_INVALID);
    g_assert_cmpuint(a.done + b.done + c.done + d.done, ==, 4);
    pair_free(pair);
}

static void test_timeout(void)
{
    Pair *pair = pair_new();
    Call late = {0}, next = {0};
    call(pair, &late, &sandvirt__v1__stream_response__descriptor, 20);
    FLOW_WAIT(late.done);
    g_assert_cmpint(late.code, ==, SV_ERR_TIMEOUT);
    say(pair, offset_reply(hear(pair, SV_FRAME_REQUEST), 1));
    call(pair, &next, &sandvirt__v1__stream_response__descriptor, 5000);
    say(pair, offset_reply(hear(pair, SV_FRAME_REQUEST), 2));
    FLOW_WAIT(next.done);
    g_assert_cmpuint(next.offset, ==, 2);
    g_assert_cmpuint(late.done, ==, 1);
    /* a timer of an answered call is gone, one of a freed connection too */
    Call pending = {0};
    call(pair, &pending, NULL, 10);
    drop(pair);
    FLOW_WAIT(pending.done);
    g_assert_cmpint(pending.code, ==, SV_ERR_CLOSED);
    gint64 end = g_get_monotonic_time() + 30000;
    while (flow_turn(end))
        ;
    g_assert_cmpuint(pending.done, ==, 1);
    pair_free(pair);
}

static void test_closed(void)
{
    Pair *pair = pair_new();
    Call a = {.calls_again = TRUE}, b = {0};
    call(pair, &a, NULL, 5000);
    call(pair, &b, NULL, 0);
    shutdown(pair->peer, SHUT_RDWR);
    FLOW_WAIT(pair->closed && a.done == 2);
    g_assert_cmpuint(b.done, ==, 1);
    g_assert_cmpint(a.code, ==, SV_ERR_CLOSED);
    g_assert_cmpint(pair->closed_code, ==, SV_ERR_CLOSED);
    g_assert_true(g_str_has_prefix(pair->log->str, "done done "));
    Call c = {0};
    call(pair, &c, NULL, 0);
    sv_conn_reply(pair->conn, 2, NULL); /* into the void */
    FLOW_WAIT(c.done);
    g_assert_cmpint(c.code, ==, SV_ERR_CLOSED);
    g_assert_cmpuint(pair->closed, ==, 1);
    pair_free(pair);
}

/* What the peer said before it went is heard, also when the end is seen by writing first. */
static void test_last_words(void)
{
    Pair *pair = pair_new();
    Call a = {0};
    for (guint i = 0; i < 100; i++)
        say(pair, sv_message_request(2 * i + 2, SERVICE, "Word", NULL, 0));
    say(pair, sv_message_data(7, SV_STREAM_STDOUT, 0, "x", 1));
    close(pair->peer);
    pair->peer = -1;
    pair->answers = TRUE;
    call(pair, &a, NULL, 0);
    sv_conn_reply(pair->conn, 4, NULL);
    FLOW_WAIT(pair->closed);
    g_assert_cmpuint(pair->requests, ==, 100);
    g_assert_cmpuint(pair->frames, ==, 1);
    g_assert_cmpuint(a.done, ==, 1);
    g_assert_cmpint(a.code, ==, SV_ERR_CLOSED);
    pair_free(pair);
}

/* ---- free inside handlers */

static void test_free_inside(gconstpointer data)
{
    const char *where = data;
    Pair *pair = pair_new();
    Call a = {0}, b = {0};
    call(pair, &a, NULL, 0);
    call(pair, &b, NULL, g_str_equal(where, "timeout") ? 20 : 0);
    hear(pair, SV_FRAME_REQUEST);
    pair->free_in_request = g_str_equal(where, "request");
    pair->free_in_frame = g_str_equal(where, "frame");
    pair->free_in_closed = g_str_equal(where, "closed");
    if (pair->free_in_request)
        say(pair, sv_message_request(2, SERVICE, "Word", NULL, 0));
    if (pair->free_in_frame)
        say(pair, sv_message_ack(2, 0, 0));
    if (g_str_equal(where, "done")) {
        a.frees = TRUE;
        say(pair, sv_message_response(1, NULL));
    }
    if (g_str_equal(where, "timeout"))
        b.frees = TRUE;
    /* more behind it that must not be looked at */
    if (!g_str_equal(where, "timeout"))
        say(pair, sv_message_request(4, SERVICE, "More", NULL, 0));
    if (g_str_equal(where, "closed call"))
        a.frees = b.frees = TRUE;
    if (pair->free_in_closed || g_str_equal(where, "closed call"))
        shutdown(pair->peer, SHUT_WR);
    FLOW_WAIT(!pair->conn && a.done && b.done);
    flow_settle();
    g_assert_cmpuint(a.done, ==, 1);
    g_assert_cmpuint(b.done, ==, 1);
    g_assert_cmpuint(pair->closed, ==, pair->free_in_closed ? 1 : 0);
    if (!pair->free_in_closed && !g_str_equal(where, "closed call"))
        g_assert_null(strstr(pair->log->str, "More"));
    pair_free(pair);
}

static void on_synced_frees(SvConn *conn, gpointer user_data)
{
    drop(user_data);
}

static void test_free_in_synced(void)
{
    Pair *pair = pair_new();
    sv_conn_expect_sync(
        pair->conn, sv_sync_scanner_new((const guint8 *)"magic", 5, 0), on_synced_frees);
    say(pair, g_bytes_new_static("magic and more", 14));
    FLOW_WAIT(!pair->conn);
    pair_free(pair);
}

/* ---- hostile peers */

static void assert_hangs_up(const void *data, gsize len, int code)
{
    Pair *pair = pair_new();
    Call a = {0};
    call(pair, &a, NULL, 0);
    say(pair, g_bytes_new(data, len));
    FLOW_WAIT(pair->closed);
    g_assert_cmpint(pair->closed_code, ==, code);
    g_assert_cmpint(a.code, ==, code);
    g_assert_cmpuint(pair->requests, ==, 0);
    pair_free(pair);
}

static void test_garbage(void)
{
    guint8 header[SV_FRAME_HEADER + 4] = {0};
    sv_frame_put_header(header, 4, 1, 9, 0);
    assert_hangs_up(header, sizeof header, SV_ERR_INVALID);
    sv_frame_put_header(header, G_MAXUINT32, 1, SV_FRAME_DATA, 0);
    assert_hangs_up(header, sizeof header, SV_ERR_LIMIT);
    sv_frame_put_header(header, SV_FRAME_MAX + 1, 1, SV_FRAME_REQUEST, 0);
    assert_hangs_up(header, sizeof header, SV_ERR_LIMIT);
    /* a request that is none */
    memset(header, 0xff, sizeof header);
    sv_frame_put_header(header, 4, 1, SV_FRAME_REQUEST, 0);
    assert_hangs_up(header, sizeof header, SV_ERR_INVALID);
}

static void test_pieces(void)
{
    Pair *pair = pair_new();
    g_autoptr(GBytes) frame = sv_message_request(2, SERVICE, "Word", NULL, 0);
    gsize len;
    const guint8 *data = g_bytes_get_data(frame, &len);
    for (guint n = 0; n < 3; n++) {
        for (gsize i = 0; i < len; i++) {
            say(pair, g_bytes_new(data + i, 1));
            flow_settle();
        }
        FLOW_WAIT(pair->requests == n + 1);
    }
    /* half a frame, then the end */
    say(pair, g_bytes_new(data, len / 2));
    shutdown(pair->peer, SHUT_WR);
    FLOW_WAIT(pair->closed);
    g_assert_cmpuint(pair->requests, ==, 3);
    pair_free(pair);
}

static void test_no_handlers(void)
{
    Pair *pair = pair_new();
    sv_conn_set_handlers(pair->conn, &no_handlers, NULL);
    say(pair, sv_message_data(1, SV_STREAM_STDOUT, 0, "x", 1));
    say(pair, sv_message_request(2, SERVICE, "Word", NULL, 0));
    g_assert_cmpuint(hear(pair, SV_FRAME_RESPONSE), ==, 2);
    shutdown(pair->peer, SHUT_WR);
    FLOW_WAIT(sv_conn_is_closed(pair->conn));
    flow_settle();
    g_assert_cmpuint(pair->requests + pair->frames + pair->closed, ==, 0);
    pair_free(pair);
}

/* Asks and asks and never takes an answer. */
static void test_flood(void)
{
    enum { N = 200000 };
    Pair *pair = pair_new();
    gsize sent = 0, heard = 0, most = 0;
    g_autoptr(GBytes) frame = sv_message_request(2, SERVICE, "Word", NULL, 0);
    gsize len;
    const guint8 *data = g_bytes_get_data(frame, &len);
    g_autofree guint8 *block = g_malloc(len * 1000);
    for (guint i = 0; i < 1000; i++)
        memcpy(block + i * len, data, len);
    pair->answers = TRUE;
    sv_fd_set_nonblock(pair->peer, TRUE);
    /* until nothing is taken any more, however long the loop turns */
    for (guint idle = 0; idle < 10 && sent < N * len;) {
        gsize at = sent % (len * 1000);
        ssize_t n = write(pair->peer, block + at, len * 1000 - at);
        idle = n > 0 ? 0 : idle + 1;
        sent += n > 0 ? (gsize)n : 0;
        flow_settle();
        most = MAX(most, sv_conn_queued(pair->conn));
    }
    g_assert_cmpuint(sent, <, N * len);
    g_assert_cmpuint(most, <, 10 * 1024 * 1024);
    /* it comes to its senses */
    while (heard < sent) {
        SvFrame parsed;
        gsize room;
        guint8 *space = sv_frame_reader_space(pair->reader, &room);
        ssize_t n = read(pair->peer, space, room);
        if (n > 0)
            sv_frame_reader_added(pair->reader, (gsize)n);
        while (sv_frame_reader_next(pair->reader, &parsed, NULL) > 0)
            heard += len;
        flow_settle();
        if (heard + len > sent)
            break;
    }
    g_assert_cmpuint(pair->requests, ==, sent / len);
    g_assert_cmpuint(sv_conn_queued(pair->conn), ==, 0);
    g_assert_cmpuint(pair->closed, ==, 0);
    pair_free(pair);
}

/* ---- the rest */

static void test_descriptor(void)
{
    Pair *pair = pair_new();
    int pipe_fds[2], fds[SV_FD_MAX_PASS];
    guint n_fds = 0;
    char room[4096];
    g_assert_true(sv_fd_pipe(pipe_fds, 0, NULL));
    sv_conn_call(pair->conn, SERVICE, "Take", NULL, NULL, 0, pipe_fds[1], NULL, NULL);
    close(pipe_fds[1]); /* not consumed, but not needed any more */
    ssize_t n = sv_fd_recv(pair->peer, room, sizeof room, fds, &n_fds);
    g_assert_cmpint(n, >, SV_FRAME_HEADER);
    g_assert_cmpuint(n_fds, ==, 1);
    g_assert_cmpint(write(fds[0], "x", 1), ==, 1);
    g_assert_cmpint(read(pipe_fds[0], room, 1), ==, 1);
    close(fds[0]);

    /* one that waits behind much else, and is closed with the connection */
    g_autofree char *much = g_malloc0(SV_DATA_CHUNK);
    for (guint i = 0; i < 8; i++)
        sv_conn_send(pair->conn, sv_message_data(1, 0, 0, much, SV_DATA_CHUNK));
    g_assert_cmpuint(sv_conn_queued(pair->conn), >, 0);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sv_conn_call(pair->conn, SERVICE, "Take", NULL, NULL, 0, null_fd, NULL, NULL);
    close(null_fd);
    close(pipe_fds[0]);
    pair_free(pair);
}

static void on_synced(SvConn *conn, gpointer user_data)
{
    g_string_append(((Pair *)user_data)->log, "synced ");
}

static void test_sync(void)
{
    Pair *pair = pair_new();
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_autoptr(GBytes) frame = sv_message_request(2, SERVICE, "Word", NULL, 0);
    sv_conn_expect_sync(pair->conn, sv_sync_scanner_new((const guint8 *)"magic", 5, 0), on_synced);
    say(pair, sv_message_request(2, SERVICE, "Old", NULL, 0));
    say(pair, g_bytes_new_static("\xff\xff\xff\xffmagma", 9));
    flow_settle();
    /* the pattern and what belongs to the new session in one piece */
    g_byte_array_append(bytes, (const guint8 *)"mmagic", 6);
    g_byte_array_append(bytes, g_bytes_get_data(frame, NULL), (guint)g_bytes_get_size(frame));
    say(pair, g_byte_array_free_to_bytes(g_steal_pointer(&bytes)));
    FLOW_WAIT(pair->requests);
    say(pair, sv_message_ack(5, 0, 0));
    FLOW_WAIT(pair->frames);
    g_assert_cmpstr(pair->log->str, ==, "synced Word frame5 ");
    pair_free(pair);
}

static const char *const places[] = {
    "request", "frame", "done", "timeout", "closed", "closed call"};

int main(int argc, char **argv)
{
    flow_init(&argc, &argv); /* needs nothing of what may be refused */
    g_test_add_func("/flow/conn/calls", test_calls);
    g_test_add_func("/flow/conn/timeout", test_timeout);
    g_test_add_func("/flow/conn/closed", test_closed);
    g_test_add_func("/flow/conn/last-words", test_last_words);
    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_strdup_printf("/flow/conn/free-in-%s", places[i]);
        g_test_add_data_func(path, places[i], test_free_inside);
    }
    g_test_add_func("/flow/conn/free-in-synced", test_free_in_synced);
    g_test_add_func("/flow/conn/garbage", test_garbage);
    g_test_add_func("/flow/conn/pieces", test_pieces);
    g_test_add_func("/flow/conn/no-handlers", test_no_handlers);
    g_test_add_func("/flow/conn/flood", test_flood);
    g_test_add_func("/flow/conn/descriptor", test_descriptor);
    g_test_add_func("/flow/conn/sync", test_sync);
    return g_test_run();
}
