/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections to the guest's localhost, with the host played over a socket pair and the server by the test. */
#include "agent/forward.h"
#include "base/fd.h"
#include "rpc/message.h"
#include "rpc/sandvirt.pb-c.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HANDLE (SV_FORWARD_HANDLE | 7)
#define WAIT_S 10

typedef struct {
    SvAgent agent;
    SvFd host; /* blocking */
    SvFd listener, server;
    guint16 port;
    SvFrameReader *reader;
    gboolean synced;
} Fixture;

static void on_synced(const guint8 *random, gsize len, gpointer user_data)
{
    ((Fixture *)user_data)->synced = TRUE;
}

static void on_frame(const SvFrame *frame, gpointer user_data)
{
    Fixture *f = user_data;

    if (frame->type != SV_FRAME_REQUEST) {
        sv_forward_frame(&f->agent, frame);
        return;
    }
    SvCall *call = g_new0(SvCall, 1);
    Sandvirt__V1__ForwardRequest *request = g_new0(Sandvirt__V1__ForwardRequest, 1);
    sandvirt__v1__forward_request__init(request);
    request->handle = HANDLE;
    request->port = f->port;
    call->agent = &f->agent;
    call->session = sv_channel_session(f->agent.channel);
    call->stream = frame->stream;
    call->message = &request->base;
    sv_forward_connect(call);
}

static const SvChannelFuncs funcs = {on_synced, on_frame};

#define WAIT(condition)                                                                            \
    for (gint64 end = g_get_monotonic_time() + WAIT_S * G_USEC_PER_SEC; !(condition);) {           \
        g_assert_cmpint(g_get_monotonic_time(), <, end);                                           \
        g_main_context_iteration(NULL, FALSE);                                                     \
    }

static void send_bytes(Fixture *f, GBytes *bytes)
{
    gsize len = 0, done = 0;
    const guint8 *data = g_bytes_get_data(bytes, &len);

    while (done < len) {
        ssize_t n = send(f->host, data + done, len - done, MSG_DONTWAIT);

        done += n > 0 ? (gsize)n : 0;
        if (n < 0)
            g_main_context_iteration(NULL, FALSE);
    }
    g_bytes_unref(bytes);
}

static void send_request(Fixture *f)
{
    guint8 *frame = g_malloc0(SV_FRAME_HEADER);

    sv_frame_put_header(frame, 0, 1, SV_FRAME_REQUEST, 0);
    send_bytes(f, g_bytes_new_take(frame, SV_FRAME_HEADER));
}

static void listen_local(Fixture *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    g_assert_cmpint(bind(f->listener, (struct sockaddr *)&address, len), ==, 0);
    g_assert_cmpint(listen(f->listener, 4), ==, 0);
    g_assert_cmpint(getsockname(f->listener, (struct sockaddr *)&address, &len), ==, 0);
    f->port = ntohs(address.sin_port);
}

static void set_up(Fixture *f, gconstpointer data)
{
    guint8 hello[3 * SV_SYNC_ID_LEN] = {0};
    GError *error = NULL;
    int fds[2];

    *f = (Fixture){.host = -1, .listener = -1, .server = -1};
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
    f->agent.channel = sv_channel_new(fds[0], &funcs, f, &error);
    g_assert_no_error(error);
    f->agent.processes = g_hash_table_new(NULL, NULL);
    f->host = fds[1];
    f->reader = sv_frame_reader_new(SV_FRAME_MAX);
    listen_local(f);
    memcpy(hello, sv_sync_magic, SV_SYNC_MAGIC_LEN);
    g_assert_cmpint(write(f->host, hello, sizeof(hello)), ==, sizeof(hello));
    WAIT(f->synced);
    /* the answer to it */
    g_assert_cmpint(recv(f->host, hello, SV_SYNC_MAGIC_LEN + SV_SYNC_ID_LEN, MSG_WAITALL), ==,
        SV_SYNC_MAGIC_LEN + SV_SYNC_ID_LEN);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    sv_forward_reset(&f->agent);
    g_clear_pointer(&f->agent.forwards, g_hash_table_unref);
    g_hash_table_unref(f->agent.processes);
    sv_channel_free(f->agent.channel);
    sv_frame_reader_free(f->reader);
    sv_fd_clear(&f->host);
    sv_fd_clear(&f->listener);
    sv_fd_clear(&f->server);
}

/* The next frame of that type; it is valid until the next call. */
static SvFrame next_frame(Fixture *f, guint8 type)
{
    SvFrame frame = {0};

    for (gint64 end = g_get_monotonic_time() + WAIT_S * G_USEC_PER_SEC;;) {
        gsize room = 0;
        int r = sv_frame_reader_next(f->reader, &frame, NULL);

        g_assert_cmpint(r, >=, 0);
        if (r > 0 && frame.type == type)
            return frame;
        if (r > 0)
            continue;
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_main_context_iteration(NULL, FALSE);
        guint8 *space = sv_frame_reader_space(f->reader, &room);
        ssize_t n = recv(f->host, space, room, MSG_DONTWAIT);
        if (n > 0)
            sv_frame_reader_added(f->reader, (gsize)n);
    }
}

static void connect_server(Fixture *f)
{
    send_request(f);
    WAIT((f->server = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    next_frame(f, SV_FRAME_RESPONSE);
}

static guint count(const Fixture *f)
{
    return f->agent.forwards ? g_hash_table_size(f->agent.forwards) : 0;
}

static void reset_server(Fixture *f)
{
    const struct linger at_once = {.l_onoff = 1};

    setsockopt(f->server, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    sv_fd_clear(&f->server);
}

/* Bytes of the guest until its end, whose flags are returned. */
static guint8 collect(Fixture *f, GByteArray *bytes)
{
    for (;;) {
        SvFrame frame = next_frame(f, SV_FRAME_DATA);
        const guint8 *data = NULL;
        guint64 offset = 0;
        gsize len = 0;

        g_assert_true(sv_frame_parse_offset(&frame, &offset, &data, &len));
        g_assert_cmpuint(offset, ==, bytes->len);
        g_byte_array_append(bytes, data, (guint)len);
        if (frame.flags & SV_FLAG_EOF)
            return frame.flags;
    }
}

static void test_end(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    connect_server(f);
    g_assert_cmpint(write(f->server, "fine", 4), ==, 4);
    sv_fd_clear(&f->server);
    g_assert_cmpuint(collect(f, bytes) & SV_FLAG_BROKEN, ==, 0);
    g_assert_cmpmem(bytes->data, bytes->len, "fine", 4);
}

/* The server's kernel lost the connection: what came is not all there was. */
static void test_reset_by_server(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    connect_server(f);
    g_assert_cmpint(write(f->server, "part", 4), ==, 4);
    SvFrame frame = next_frame(f, SV_FRAME_DATA);
    g_assert_cmpuint(frame.flags & SV_FLAG_EOF, ==, 0);
    reset_server(f);
    frame = next_frame(f, SV_FRAME_DATA);
    g_assert_cmpuint(frame.flags, ==, SV_STREAM_STDOUT | SV_FLAG_EOF | SV_FLAG_BROKEN);
    send_bytes(f, sv_message_ack(HANDLE, SV_STREAM_STDOUT | SV_FLAG_BROKEN, 4));
    WAIT(count(f) == 0);
}

/* The one who writes learns of it before the one who reads. */
static void test_reset_while_writing(Fixture *f, gconstpointer data)
{
    g_autofree guint8 *much = g_malloc0(SV_DATA_CHUNK);
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    connect_server(f);
    send_bytes(f, sv_message_data(HANDLE, SV_STREAM_STDIN, 0, much, SV_DATA_CHUNK));
    send_bytes(f, sv_message_data(HANDLE, SV_STREAM_STDIN, SV_DATA_CHUNK, much, SV_DATA_CHUNK));
    reset_server(f);
    g_assert_cmpuint(collect(f, bytes), ==, SV_STREAM_STDOUT | SV_FLAG_EOF | SV_FLAG_BROKEN);
}

/* Each of both ends waits for the other to read: the client's end must end both. */
static void test_reset_by_client(Fixture *f, gconstpointer data)
{
    g_autofree guint8 *much = g_malloc0(SV_DATA_CHUNK);
    guint64 sent = 0;
    ssize_t n;

    connect_server(f);
    /* The host's window keeps it from more than that at once. */
    for (; sent < SV_STREAM_WINDOW; sent += SV_DATA_CHUNK)
        send_bytes(f, sv_message_data(HANDLE, SV_STREAM_STDIN, sent, much, SV_DATA_CHUNK));
    sv_fd_set_nonblock(f->server, TRUE);
    do
        g_main_context_iteration(NULL, FALSE);
    while (write(f->server, much, SV_DATA_CHUNK) > 0);
    send_bytes(f, sv_message_data(HANDLE, SV_STREAM_STDIN | SV_FLAG_EOF, sent, NULL, 0));
    send_bytes(f, sv_message_ack(HANDLE, SV_STREAM_STDOUT | SV_FLAG_BROKEN, 0));
    WAIT(count(f) == 0);
    do
        n = read(f->server, much, SV_DATA_CHUNK);
    while (n > 0);
    g_assert_cmpint(n, ==, -1);
    g_assert_cmpint(errno, ==, ECONNRESET);
}

/* The host gave up before the connection stood. */
static void test_left_while_connecting(Fixture *f, gconstpointer data)
{
    guint8 *request = g_malloc0(SV_FRAME_HEADER);
    g_autoptr(GBytes) broken = sv_message_ack(HANDLE, SV_STREAM_STDOUT | SV_FLAG_BROKEN, 0);
    GByteArray *both = g_byte_array_new();
    gsize len = 0;
    const guint8 *ack = g_bytes_get_data(broken, &len);

    sv_frame_put_header(request, 0, 1, SV_FRAME_REQUEST, 0);
    g_byte_array_append(both, request, SV_FRAME_HEADER);
    g_byte_array_append(both, ack, (guint)len);
    g_free(request);
    send_bytes(f, g_byte_array_free_to_bytes(both));
    next_frame(f, SV_FRAME_RESPONSE);
    g_assert_cmpuint(count(f), ==, 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*func)(Fixture *f, gconstpointer data);
    } tests[] = {
        {"/agent/forward/end", test_end},
        {"/agent/forward/reset-by-server", test_reset_by_server},
        {"/agent/forward/reset-while-writing", test_reset_while_writing},
        {"/agent/forward/reset-by-client", test_reset_by_client},
        {"/agent/forward/left-while-connecting", test_left_while_connecting},
    };

    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].name, Fixture, NULL, set_up, tests[i].func, tear_down);
    return g_test_run();
}
