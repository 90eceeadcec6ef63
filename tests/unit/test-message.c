/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
#include "rpc/message.h"
#include "rpc/sandvirt.pb-c.h"
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static SvFrame one_frame(SvFrameReader *reader, GBytes *bytes)
{
    gsize len = 0;
    const void *data = g_bytes_get_data(bytes, &len);
    g_autoptr(GError) error = NULL;
    SvFrame frame = {0};

    sv_frame_reader_push(reader, data, len);
    g_assert_cmpint(sv_frame_reader_next(reader, &frame, &error), ==, 1);
    g_assert_no_error(error);
    return frame;
}

static void test_request(void)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    Sandvirt__V1__SignalRequest signal = SANDVIRT__V1__SIGNAL_REQUEST__INIT;
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GError) error = NULL;
    Sandvirt__V1__SignalRequest *got;
    SvRequest request;
    SvFrame frame;

    signal.container_id = (char *)"c1";
    signal.signal = 15;
    signal.all = TRUE;
    bytes = sv_message_request(5, SV_SERVICE_AGENT, "Signal", &signal.base, 1234);
    frame = one_frame(reader, bytes);
    g_assert_true(sv_request_parse(&frame, &request, &error));
    g_assert_cmpuint(request.stream, ==, 5);
    g_assert_cmpstr(request.service, ==, SV_SERVICE_AGENT);
    g_assert_cmpstr(request.method, ==, "Signal");
    g_assert_cmpint(request.timeout_ns, ==, 1234);
    got = (Sandvirt__V1__SignalRequest *)sv_message_unpack(
        &sandvirt__v1__signal_request__descriptor, request.payload, request.payload_len, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(got->container_id, ==, "c1");
    g_assert_cmpuint(got->signal, ==, 15);
    g_assert_true(got->all);
    sv_message_free(got);
    sv_request_clear(&request);
    sv_request_clear(&request);
}

static void test_response(void)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    Sandvirt__V1__ExecResponse exec = SANDVIRT__V1__EXEC_RESPONSE__INIT;
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GBytes) empty = sv_message_response(2, NULL);
    g_autoptr(GError) error = NULL;
    Sandvirt__V1__ExecResponse *got;
    ProtobufCMessage *none;
    SvFrame frame;

    exec.pid = 77;
    bytes = sv_message_response(9, &exec.base);
    frame = one_frame(reader, bytes);
    g_assert_cmpuint(frame.stream, ==, 9);
    got = (Sandvirt__V1__ExecResponse *)sv_response_parse(
        &frame, &sandvirt__v1__exec_response__descriptor, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(got->pid, ==, 77);
    sv_message_free(got);

    frame = one_frame(reader, empty);
    none = sv_response_parse(&frame, NULL, &error);
    g_assert_null(none);
    g_assert_no_error(error);
    none = sv_response_parse(&frame, &sandvirt__v1__empty__descriptor, &error);
    g_assert_nonnull(none);
    sv_message_free(none);
}

static void check_error(int code, const char *text, int want_code, const char *want_text)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    g_autoptr(GError) sent = g_error_new_literal(SV_RPC_ERROR, code, text);
    g_autoptr(GBytes) bytes = sv_message_error(3, sent);
    g_autoptr(GError) error = NULL;
    SvFrame frame = one_frame(reader, bytes);

    g_assert_null(sv_response_parse(&frame, &sandvirt__v1__empty__descriptor, &error));
    g_assert_true(g_error_matches(error, SV_RPC_ERROR, want_code));
    g_assert_cmpstr(error->message, ==, want_text);
}

static void test_error(void)
{
    check_error(SV_ERR_FAILED, "broken", SV_ERR_FAILED, "broken");
    check_error(SV_ERR_EXEC_NOT_FOUND, "no such", SV_ERR_EXEC_NOT_FOUND, "no such");
    check_error(SV_ERR_FAILED, "", SV_ERR_FAILED, "unknown error");
    check_error(4711, "odd", SV_ERR_FAILED, "odd");
    check_error(-1, "odd", SV_ERR_FAILED, "odd");
    check_error(SV_ERR_IO, "a\xff", SV_ERR_IO, "a\xef\xbf\xbd");
}

static void test_data(void)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    g_autoptr(GBytes) bytes =
        sv_message_data(12, SV_STREAM_STDERR | SV_FLAG_EOF, G_GUINT64_CONSTANT(1) << 40, "xyz", 3);
    g_autoptr(GBytes) ack = sv_message_ack(12, SV_STREAM_STDIN, 99);
    const guint8 *data = NULL;
    guint64 offset = 0;
    gsize len = 0;
    SvFrame frame = one_frame(reader, bytes);

    g_assert_cmpuint(frame.type, ==, SV_FRAME_DATA);
    g_assert_cmpuint(frame.flags, ==, SV_STREAM_STDERR | SV_FLAG_EOF);
    g_assert_true(sv_frame_parse_offset(&frame, &offset, &data, &len));
    g_assert_cmpuint(offset, ==, G_GUINT64_CONSTANT(1) << 40);
    g_assert_cmpmem(data, len, "xyz", 3);

    frame = one_frame(reader, ack);
    g_assert_cmpuint(frame.type, ==, SV_FRAME_ACK);
    g_assert_true(sv_frame_parse_offset(&frame, &offset, NULL, NULL));
    g_assert_cmpuint(offset, ==, 99);
    frame.length = 7;
    g_assert_false(sv_frame_parse_offset(&frame, &offset, NULL, NULL));
}

static void test_garbage(void)
{
    for (int round = 0; round < 20000; round++) {
        guint8 bytes[48];
        gsize len = (gsize)g_test_rand_int_range(0, sizeof(bytes));
        SvFrame frame = {(guint32)len, 1, SV_FRAME_REQUEST, 0, bytes};
        g_autoptr(GError) error = NULL;
        ProtobufCMessage *message;
        SvRequest request;

        for (gsize i = 0; i < len; i++)
            bytes[i] = (guint8)g_test_rand_int();
        if (sv_request_parse(&frame, &request, &error))
            sv_request_clear(&request);
        else
            g_assert_true(g_error_matches(error, SV_RPC_ERROR, SV_ERR_INVALID));
        g_clear_error(&error);
        frame.type = SV_FRAME_RESPONSE;
        message = sv_response_parse(&frame, &sandvirt__v1__hello_response__descriptor, &error);
        g_assert_true((message == NULL) == (error != NULL));
        if (message)
            sv_message_free(message);
    }
}

/* Two bytes each ask for a whole empty message. */
static void test_bomb(void)
{
    gsize len = 1024 * 1024;
    g_autofree guint8 *bytes = g_malloc0(len);
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < len; i += 2)
        bytes[i] = (3 << 3) | 2; /* HelloResponse.processes */
    g_assert_null(sv_message_unpack(&sandvirt__v1__hello_response__descriptor, bytes, len, &error));
    g_assert_true(g_error_matches(error, SV_RPC_ERROR, SV_ERR_INVALID));
}

static gpointer answer_thread(gpointer data)
{
    int fd = GPOINTER_TO_INT(data);
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    g_autoptr(GBytes) noise = sv_message_data(1, 1, 0, "noise", 5);
    g_autoptr(GBytes) wrong = sv_message_response(99, NULL);
    g_autoptr(GBytes) answer = sv_message_response(1, NULL);
    GBytes *all[] = {noise, wrong, answer};
    SvFrame frame;

    while (sv_frame_reader_next(reader, &frame, NULL) == 0) {
        gsize room = 0;
        guint8 *space = sv_frame_reader_space(reader, &room);
        ssize_t n = read(fd, space, room);

        g_assert_cmpint(n, >, 0);
        sv_frame_reader_added(reader, (gsize)n);
    }
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        gsize len = 0;
        const char *bytes = g_bytes_get_data(all[i], &len);

        for (gsize k = 0; k < len; k++)
            g_assert_cmpint(write(fd, bytes + k, 1), ==, 1);
    }
    return NULL;
}

/* As many as a namespace may have, each as short as can be. */
static void test_many(void)
{
    enum { N = 16384 };
    Sandvirt__V1__NetworkRequest request = SANDVIRT__V1__NETWORK_REQUEST__INIT;
    Sandvirt__V1__NetRule rule = SANDVIRT__V1__NET_RULE__INIT;
    Sandvirt__V1__NetRoute route = SANDVIRT__V1__NET_ROUTE__INIT;
    guint8 destination[4] = {10, 0, 0, 1};
    g_autoptr(GError) error = NULL;
    g_autofree Sandvirt__V1__NetRule **rules = g_new(Sandvirt__V1__NetRule *, N);
    g_autofree Sandvirt__V1__NetRoute **routes = g_new(Sandvirt__V1__NetRoute *, N);

    rule.family = 2;
    rule.action = 1;
    rule.priority = 1;
    route.family = 2;
    route.type = 6;
    route.destination = (ProtobufCBinaryData){sizeof destination, destination};
    for (guint i = 0; i < N; i++) {
        rules[i] = &rule;
        routes[i] = &route;
    }
    request.n_rules = request.n_routes = N;
    request.rules = rules;
    request.routes = routes;
    gsize len = protobuf_c_message_get_packed_size(&request.base);
    g_autofree guint8 *bytes = g_malloc(len);
    protobuf_c_message_pack(&request.base, bytes);
    g_assert_cmpuint(len, <, SV_FRAME_MAX);
    ProtobufCMessage *got =
        sv_message_unpack(&sandvirt__v1__network_request__descriptor, bytes, len, &error);
    g_assert_no_error(error);
    protobuf_c_message_free_unpacked(got, NULL);
}

static void test_call(void)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message;
    GThread *thread;
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    thread = g_thread_new("answer", answer_thread, GINT_TO_POINTER(fds[1]));
    message = sv_rpc_call(fds[0], 1, SV_SERVICE_SHIM, "Attach", NULL,
        &sandvirt__v1__empty__descriptor, 10000, &error);
    g_assert_no_error(error);
    g_assert_nonnull(message);
    sv_message_free(message);
    g_thread_join(thread);

    message = sv_rpc_call(fds[0], 3, SV_SERVICE_SHIM, "Attach", NULL, NULL, 20, &error);
    g_assert_null(message);
    g_assert_true(g_error_matches(error, SV_RPC_ERROR, SV_ERR_TIMEOUT));
    g_clear_error(&error);
    close(fds[1]);
    message = sv_rpc_call(fds[0], 5, SV_SERVICE_SHIM, "Attach", NULL, NULL, -1, &error);
    g_assert_null(message);
    g_assert_true(g_error_matches(error, SV_RPC_ERROR, SV_ERR_CLOSED));
    close(fds[0]);
}

/* A peer that is stopped is named. */
static void test_call_stopped(void)
{
    g_autoptr(GError) error = NULL;
    int fds[2], wake[2], status = 0;
    char byte = 0;

    /* the listener is the peer */
    g_assert_cmpint(pipe(wake), ==, 0);
    g_autofree char *dir = g_dir_make_tmp("sv-call-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "socket", NULL);
    pid_t pid = fork();
    if (pid == 0) {
        fds[0] = sv_unix_listen(path, 0600, 4, NULL);
        if (fds[0] < 0 || write(wake[1], "x", 1) != 1)
            _exit(1);
        raise(SIGSTOP);
        _exit(0);
    }
    g_assert_cmpint(read(wake[0], &byte, 1), ==, 1);
    g_assert_cmpint(waitpid(pid, &status, WUNTRACED), ==, pid);
    g_assert_true(WIFSTOPPED(status));
    fds[0] = sv_unix_connect(path, &error);
    g_assert_no_error(error);
    g_assert_null(sv_rpc_call(fds[0], 1, SV_SERVICE_SHIM, "Attach", NULL, NULL, 20, &error));
    g_assert_true(g_error_matches(error, SV_RPC_ERROR, SV_ERR_TIMEOUT));
    g_autofree char *part = g_strdup_printf("process %d is stopped", (int)pid);
    g_assert_nonnull(strstr(error->message, part));
    g_clear_error(&error);
    /* of one that waits for long, too */
    gint64 begun = g_get_monotonic_time();
    g_assert_null(sv_rpc_call(fds[0], 3, SV_SERVICE_SHIM, "Attach", NULL, NULL, 100000, &error));
    g_assert_nonnull(strstr(error->message, part));
    g_assert_cmpint(g_get_monotonic_time() - begun, <, 50 * G_USEC_PER_SEC);
    close(fds[0]);
    close(wake[0]);
    close(wake[1]);
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(rmdir(dir), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/message/request", test_request);
    g_test_add_func("/message/response", test_response);
    g_test_add_func("/message/error", test_error);
    g_test_add_func("/message/data", test_data);
    g_test_add_func("/message/garbage", test_garbage);
    g_test_add_func("/message/bomb", test_bomb);
    g_test_add_func("/message/many", test_many);
    g_test_add_func("/message/call", test_call);
    g_test_add_func("/message/call-stopped", test_call_stopped);
    return g_test_run();
}
