/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real shim, driven by a monitor and a starter that the test plays. Needs root. */
#include "base/command.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"
#include "rpc/message.h"
#include "sandvirt.pb-c.h"
#include "shim/options.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define HANDLE 7
#define WAIT_US (20 * G_USEC_PER_SEC)

typedef struct {
    char *dir;
    int listener, conn, starter;
    int in, out, err; /* the caller's ends; -1: closed */
    pid_t pid;
    SvFrameReader *reader;
    guint32 attach; /* stream of the Attach that is not answered */
    Sandvirt__V1__AttachRequest *attached;
} Shim;

static gint64 soon(void)
{
    return g_get_monotonic_time() + WAIT_US;
}

/* ---- the monitor's side */

static void send_bytes(Shim *shim, GBytes *bytes)
{
    gsize len = 0;
    const void *data = g_bytes_get_data(bytes, &len);
    g_autoptr(GError) error = NULL;

    g_assert_true(sv_fd_write_all(shim->conn, data, len, &error));
    g_assert_no_error(error);
    g_bytes_unref(bytes);
}

/* The next frame, FALSE: the shim has closed. */
static gboolean next_frame(Shim *shim, SvFrame *frame)
{
    for (;;) {
        g_autoptr(GError) error = NULL;
        int r = sv_frame_reader_next(shim->reader, frame, &error);
        gsize room = 0;
        guint8 *space;
        ssize_t n;

        g_assert_no_error(error);
        if (r > 0)
            return TRUE;
        g_assert_cmpint(sv_fd_wait(shim->conn, POLLIN, soon()), >, 0);
        space = sv_frame_reader_space(shim->reader, &room);
        n = read(shim->conn, space, room);
        if (n <= 0)
            return FALSE;
        sv_frame_reader_added(shim->reader, (gsize)n);
    }
}

static void accept_attach(Shim *shim)
{
    SvFrame frame;
    SvRequest request;

    if (shim->conn >= 0)
        close(shim->conn);
    g_clear_pointer(&shim->reader, sv_frame_reader_free);
    if (shim->attached)
        sv_message_free(shim->attached);
    g_assert_cmpint(sv_fd_wait(shim->listener, POLLIN, soon()), >, 0);
    shim->conn = accept4(shim->listener, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(shim->conn, >=, 0);
    shim->reader = sv_frame_reader_new(SV_FRAME_MAX);
    g_assert_true(next_frame(shim, &frame));
    g_assert_true(sv_request_parse(&frame, &request, NULL));
    g_assert_cmpstr(request.method, ==, "Attach");
    shim->attached = (Sandvirt__V1__AttachRequest *)sv_message_unpack(
        &sandvirt__v1__attach_request__descriptor, request.payload, request.payload_len, NULL);
    shim->attach = request.stream;
    sv_request_clear(&request);
}

static void answer_attach(Shim *shim)
{
    send_bytes(shim, sv_message_response(shim->attach, NULL));
}

static void send_data(Shim *shim, guint8 flags, guint64 offset, const char *text)
{
    send_bytes(shim, sv_message_data(HANDLE, flags, offset, text, strlen(text)));
}

static void expect_ack(Shim *shim, guint8 flags, guint64 offset)
{
    guint64 got = 0;

    while (got < offset) {
        SvFrame frame;

        g_assert_true(next_frame(shim, &frame));
        g_assert_cmpint(frame.type, ==, SV_FRAME_ACK);
        g_assert_cmpint(frame.stream, ==, HANDLE);
        g_assert_true(sv_frame_parse_offset(&frame, &got, NULL, NULL));
        g_assert_cmpint(frame.flags, ==, flags);
    }
    g_assert_cmpuint(got, ==, offset);
}

/* Input up to @len bytes from @offset on, without acknowledging. */
static char *expect_input(Shim *shim, guint64 offset, gsize len, gboolean eof)
{
    GString *text = g_string_new(NULL);
    gboolean ended = FALSE;

    while (text->len < len || ended != eof) {
        SvFrame frame;
        guint64 at = 0;
        const guint8 *data = NULL;
        gsize n = 0;

        g_assert_true(next_frame(shim, &frame));
        g_assert_cmpint(frame.type, ==, SV_FRAME_DATA);
        g_assert_cmpint(frame.flags & SV_STREAM_MASK, ==, SV_STREAM_STDIN);
        g_assert_true(sv_frame_parse_offset(&frame, &at, &data, &n));
        g_assert_cmpuint(at, ==, offset + text->len);
        g_string_append_len(text, (const char *)data, (gssize)n);
        ended = (frame.flags & SV_FLAG_EOF) != 0;
    }
    return g_string_free(text, FALSE);
}

static void expect_request(Shim *shim, const char *method, guint32 *first)
{
    SvFrame frame;
    SvRequest request;

    g_assert_true(next_frame(shim, &frame));
    g_assert_cmpint(frame.type, ==, SV_FRAME_REQUEST);
    g_assert_true(sv_request_parse(&frame, &request, NULL));
    g_assert_cmpstr(request.method, ==, method);
    if (g_str_equal(method, "Signal")) {
        Sandvirt__V1__ShimSignal *message = (Sandvirt__V1__ShimSignal *)sv_message_unpack(
            &sandvirt__v1__shim_signal__descriptor, request.payload, request.payload_len, NULL);

        *first = message->signal;
        sv_message_free(message);
    } else {
        Sandvirt__V1__ResizeRequest *message = (Sandvirt__V1__ResizeRequest *)sv_message_unpack(
            &sandvirt__v1__resize_request__descriptor, request.payload, request.payload_len, NULL);

        *first = message->rows * 1000 + message->cols;
        sv_message_free(message);
    }
    send_bytes(shim, sv_message_response(request.stream, NULL));
    sv_request_clear(&request);
}

static void expect_response(Shim *shim, guint32 stream)
{
    g_autoptr(GError) error = NULL;
    SvFrame frame;

    do
        g_assert_true(next_frame(shim, &frame));
    while (frame.type == SV_FRAME_ACK);
    g_assert_cmpint(frame.type, ==, SV_FRAME_RESPONSE);
    g_assert_cmpuint(frame.stream, ==, stream);
    sv_response_parse(&frame, NULL, &error);
    g_assert_no_error(error);
}

static void send_exit(Shim *shim, guint32 stream, guint32 status)
{
    Sandvirt__V1__ShimExit message = SANDVIRT__V1__SHIM_EXIT__INIT;

    message.status = status;
    send_bytes(shim, sv_message_request(stream, SV_SERVICE_SHIM, "Exit", &message.base, 0));
}

/* ---- the starter's and the caller's side */

static void start(Shim *shim, const char *const *more)
{
    g_autoptr(SvCommand) cmd = sv_command_new(SV_TEST_SHIM);
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) dir = -1;
    int pipes[3][2], socks[2];
    char word[512];

    memset(shim, 0, sizeof(*shim));
    shim->conn = -1;
    shim->dir = g_dir_make_tmp("test-shim-XXXXXX", NULL);
    path = g_build_filename(shim->dir, "test.monitor", NULL);
    shim->listener = sv_unix_listen(path, 0600, 8, &error);
    g_assert_no_error(error);
    dir = sv_mount_clone(AT_FDCWD, shim->dir, FALSE, &error);
    if (dir < 0) { /* not a mount: by descriptor */
        g_error("clone: %s", error->message);
    }
    for (int i = 0; i < 3; i++)
        g_assert_cmpint(pipe2(pipes[i], O_CLOEXEC), ==, 0);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), ==, 0);
    sv_command_add_args(cmd, "--container=c", "--sandbox=s", "--handle=7", "--root=/nowhere",
        "--monitor=test.monitor", "--launcher=launcher", NULL);
    for (; more && *more; more++)
        sv_command_add_arg(cmd, *more);
    sv_command_map_fd(cmd, pipes[0][0], 0);
    sv_command_map_fd(cmd, pipes[1][1], 1);
    sv_command_map_fd(cmd, pipes[2][1], 2);
    sv_command_map_fd(cmd, socks[1], SV_SHIM_CALLER_FD);
    sv_command_map_fd(cmd, dir, SV_SHIM_SOCK_FD);
    sv_command_set_clone_flags(cmd, CLONE_NEWPID | CLONE_NEWNS);
    g_assert_true(sv_command_spawn(cmd, &shim->pid, NULL, &error));
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    close(socks[1]);
    shim->in = pipes[0][1];
    shim->out = pipes[1][0];
    shim->err = pipes[2][0];
    shim->starter = socks[0];
    g_assert_cmpint(sv_fd_wait(shim->starter, POLLIN, soon()), >, 0);
    memset(word, 0, sizeof(word));
    g_assert_cmpint(read(shim->starter, word, sizeof(word) - 1), >, 0);
    g_assert_cmpstr(word, ==, "R");
    accept_attach(shim);
}

static void go(Shim *shim)
{
    g_assert_cmpint(send(shim->starter, "G", 1, 0), ==, 1);
    close(shim->starter);
    shim->starter = -1;
}

static void start_running(Shim *shim)
{
    start(shim, NULL);
    answer_attach(shim);
    go(shim);
}

static void expect_read(int fd, const char *text)
{
    gsize len = strlen(text);
    g_autofree char *got = g_malloc0(len + 1);
    gsize n = 0;

    while (n < len) {
        ssize_t r;

        g_assert_cmpint(sv_fd_wait(fd, POLLIN, soon()), >, 0);
        r = read(fd, got + n, len - n);
        g_assert_cmpint(r, >, 0);
        n += (gsize)r;
    }
    g_assert_cmpstr(got, ==, text);
}

static void expect_eof(int fd)
{
    char c;

    g_assert_cmpint(sv_fd_wait(fd, POLLIN, soon()), >, 0);
    g_assert_cmpint(read(fd, &c, 1), ==, 0);
}

static void expect_status(Shim *shim, int status)
{
    int got = sv_command_wait(shim->pid);

    shim->pid = 0;
    g_assert_cmpint(got, ==, status);
}

static void clear(Shim *shim)
{
    if (shim->pid > 0) {
        kill(shim->pid, SIGKILL);
        sv_command_wait(shim->pid);
    }
    sv_fd_clear(&shim->listener);
    sv_fd_clear(&shim->conn);
    sv_fd_clear(&shim->starter);
    sv_fd_clear(&shim->in);
    sv_fd_clear(&shim->out);
    sv_fd_clear(&shim->err);
    g_clear_pointer(&shim->reader, sv_frame_reader_free);
    if (shim->attached)
        sv_message_free(shim->attached);
    g_assert_true(sv_file_remove_tree(shim->dir, NULL));
    g_free(shim->dir);
}

/* ---- tests */

static void test_output(void)
{
    Shim shim;

    start_running(&shim);
    send_data(&shim, SV_STREAM_STDOUT, 0, "hello");
    expect_ack(&shim, SV_STREAM_STDOUT, 5);
    send_data(&shim, SV_STREAM_STDERR, 0, "oh");
    expect_ack(&shim, SV_STREAM_STDERR, 2);
    send_data(&shim, SV_STREAM_STDOUT, 5, " world");
    send_data(&shim, SV_STREAM_STDOUT | SV_FLAG_EOF, 11, "");
    expect_read(shim.out, "hello world");
    expect_eof(shim.out);
    expect_read(shim.err, "oh");
    send_exit(&shim, 2, 42);
    expect_response(&shim, 2);
    expect_status(&shim, 42);
    expect_eof(shim.err);
    clear(&shim);
}

static void test_attach_again(void)
{
    Shim shim;

    start_running(&shim);
    send_data(&shim, SV_STREAM_STDOUT, 0, "abc");
    expect_ack(&shim, SV_STREAM_STDOUT, 3);
    accept_attach(&shim); /* closes the old connection */
    g_assert_cmpuint(shim.attached->stdout_offset, ==, 3);
    g_assert_cmpuint(shim.attached->stderr_offset, ==, 0);
    answer_attach(&shim);
    send_data(&shim, SV_STREAM_STDOUT, 0, "abcdef");
    expect_read(shim.out, "abcdef");
    /* A gap is a fault: the shim comes again and says what it has. */
    send_data(&shim, SV_STREAM_STDOUT, 100, "x");
    accept_attach(&shim);
    g_assert_cmpuint(shim.attached->stdout_offset, ==, 6);
    answer_attach(&shim);
    send_exit(&shim, 2, 0);
    expect_response(&shim, 2);
    expect_status(&shim, 0);
    clear(&shim);
}

static void test_broken_reader(void)
{
    Shim shim;

    start_running(&shim);
    sv_fd_clear(&shim.out);
    send_data(&shim, SV_STREAM_STDOUT, 0, "lost");
    expect_ack(&shim, SV_STREAM_STDOUT | SV_FLAG_BROKEN, 4);
    send_data(&shim, SV_STREAM_STDERR, 0, "there");
    expect_read(shim.err, "there");
    accept_attach(&shim);
    g_assert_true(shim.attached->stdout_broken);
    g_assert_false(shim.attached->stderr_broken);
    answer_attach(&shim);
    send_exit(&shim, 2, 1);
    expect_status(&shim, 1);
    clear(&shim);
}

static void test_input(void)
{
    Shim shim;
    g_autofree char *first = NULL;
    g_autofree char *again = NULL;
    g_autofree char *rest = NULL;

    start(&shim, NULL);
    answer_attach(&shim);
    g_assert_cmpint(write(shim.in, "one two", 7), ==, 7);
    /* Nothing flows before the container is there. */
    g_assert_cmpint(sv_fd_wait(shim.conn, POLLIN, g_get_monotonic_time() + 100000), ==, 0);
    go(&shim);
    first = expect_input(&shim, 0, 7, FALSE);
    g_assert_cmpstr(first, ==, "one two");
    send_bytes(&shim, sv_message_ack(HANDLE, SV_STREAM_STDIN, 4));
    /* Bytes that are not acknowledged come again. */
    accept_attach(&shim);
    answer_attach(&shim);
    g_assert_cmpuint(shim.attached->stdin_offset, <=, 4);
    again =
        expect_input(&shim, shim.attached->stdin_offset, 7 - shim.attached->stdin_offset, FALSE);
    g_assert_true(g_str_has_suffix(again, "two"));
    sv_fd_clear(&shim.in);
    rest = expect_input(&shim, 7, 0, TRUE);
    g_assert_cmpstr(rest, ==, "");
    send_exit(&shim, 2, 0);
    expect_status(&shim, 0);
    clear(&shim);
}

static void test_input_broken(void)
{
    Shim shim;
    g_autofree char *text = NULL;

    start_running(&shim);
    g_assert_cmpint(write(shim.in, "x", 1), ==, 1);
    text = expect_input(&shim, 0, 1, FALSE);
    send_bytes(&shim, sv_message_ack(HANDLE, SV_STREAM_STDIN | SV_FLAG_BROKEN, 0));
    /* The writer learns of it. */
    signal(SIGPIPE, SIG_IGN);
    g_assert_cmpint(sv_fd_wait(shim.in, 0, soon()) & POLLERR, ==, POLLERR);
    g_assert_cmpint(write(shim.in, "x", 1), ==, -1);
    g_assert_cmpint(errno, ==, EPIPE);
    clear(&shim);
}

/* 8 MiB within the window, to a reader that is slow at first; the other stream is not held up. */
static void test_big(void)
{
    const gsize total = 8 * 1024 * 1024, chunk = 128 * 1024;
    g_autofree char *block = g_malloc(chunk);
    g_autofree char *got = g_malloc(65536);
    gsize sent = 0, received = 0;
    guint64 acked = 0;
    Shim shim;

    memset(block, 'b', chunk);
    start_running(&shim);
    while (sent < SV_STREAM_WINDOW) {
        send_bytes(&shim, sv_message_data(HANDLE, SV_STREAM_STDOUT, sent, block, chunk));
        sent += chunk;
    }
    send_data(&shim, SV_STREAM_STDERR, 0, "free");
    expect_read(shim.err, "free");
    while (received < total) {
        ssize_t n = read(shim.out, got, 65536);

        g_assert_cmpint(n, >, 0);
        for (ssize_t i = 0; i < n; i++)
            g_assert_cmpint(got[i], ==, 'b');
        received += (gsize)n;
        while (sent < total && sent + chunk > acked + SV_STREAM_WINDOW) {
            SvFrame frame;

            g_assert_true(next_frame(&shim, &frame));
            if ((frame.flags & SV_STREAM_MASK) == SV_STREAM_STDOUT)
                sv_frame_parse_offset(&frame, &acked, NULL, NULL);
            if (acked + SV_STREAM_WINDOW < sent + chunk && received < acked + 65536)
                break;
        }
        if (sent < total && sent + chunk <= acked + SV_STREAM_WINDOW) {
            send_bytes(&shim, sv_message_data(HANDLE, SV_STREAM_STDOUT, sent, block, chunk));
            sent += chunk;
        }
    }
    send_exit(&shim, 2, 0);
    expect_response(&shim, 2);
    expect_status(&shim, 0);
    clear(&shim);
}

/* Exit waits for the reader. */
static void test_exit_drains(void)
{
    g_autofree char *block = g_malloc(SV_DATA_CHUNK);
    gsize received = 0;
    Shim shim;
    char got[4096];

    memset(block, 'd', SV_DATA_CHUNK);
    start_running(&shim);
    send_bytes(&shim, sv_message_data(HANDLE, SV_STREAM_STDOUT, 0, block, SV_DATA_CHUNK));
    send_exit(&shim, 2, 9);
    while (received < SV_DATA_CHUNK) {
        ssize_t n = read(shim.out, got, sizeof(got));

        g_assert_cmpint(n, >, 0);
        received += (gsize)n;
    }
    expect_response(&shim, 2);
    expect_status(&shim, 9);
    clear(&shim);
}

static void test_signals(void)
{
    static const int signals[] = {
        SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGPIPE, SIGCHLD, SIGWINCH, 34, 64};
    Shim shim;

    start_running(&shim);
    for (guint i = 0; i < G_N_ELEMENTS(signals); i++) {
        guint32 got = 0;

        g_assert_cmpint(kill(shim.pid, signals[i]), ==, 0);
        expect_request(&shim, "Signal", &got);
        g_assert_cmpuint(got, ==, (guint)signals[i]);
    }
    clear(&shim);
}

static void test_starter_gone(void)
{
    Shim shim;

    start(&shim, NULL);
    sv_fd_clear(&shim.starter);
    expect_status(&shim, 137);
    clear(&shim);
}

static void test_monitor_gone_before_go(void)
{
    Shim shim;

    start(&shim, NULL);
    sv_fd_clear(&shim.conn);
    /* It waits for its starter's word, then comes again. */
    g_assert_cmpint(sv_fd_wait(shim.listener, POLLIN, g_get_monotonic_time() + 100000), ==, 0);
    go(&shim);
    accept_attach(&shim);
    clear(&shim);
}

static void test_new_monitor(void)
{
    g_autofree char *path = NULL;
    Shim shim;

    start_running(&shim);
    send_data(&shim, SV_STREAM_STDOUT, 0, "a");
    expect_ack(&shim, SV_STREAM_STDOUT, 1);
    /* The old one is gone with its socket, without a launcher; later another one appears. */
    path = g_build_filename(shim.dir, "test.monitor", NULL);
    sv_fd_clear(&shim.listener);
    sv_fd_clear(&shim.conn);
    g_usleep(50000);
    shim.listener = sv_unix_listen(path, 0600, 8, NULL);
    accept_attach(&shim);
    g_assert_cmpuint(shim.attached->stdout_offset, ==, 1);
    answer_attach(&shim);
    send_exit(&shim, 2, 5);
    expect_status(&shim, 5);
    clear(&shim);
}

static void test_launcher(void)
{
    g_autofree char *monitor = NULL;
    g_autofree char *launcher = NULL;
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    g_auto(SvFd) listener = -1;
    g_auto(SvFd) client = -1;
    Shim shim;
    SvRequest request;
    int monitor_conn;

    start_running(&shim);
    monitor = g_build_filename(shim.dir, "test.monitor", NULL);
    launcher = g_build_filename(shim.dir, "launcher", NULL);
    listener = sv_unix_listen(launcher, 0600, 8, NULL);
    sv_fd_clear(&shim.listener);
    monitor_conn = sv_fd_steal(&shim.conn);
    close(monitor_conn);
    client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    shim.conn = client;
    g_clear_pointer(&shim.reader, sv_frame_reader_free);
    shim.reader = g_steal_pointer(&reader);
    {
        SvFrame frame;
        Sandvirt__V1__EnsureRequest *ensure;

        g_assert_true(next_frame(&shim, &frame));
        g_assert_true(sv_request_parse(&frame, &request, NULL));
        g_assert_cmpstr(request.method, ==, "Ensure");
        ensure = (Sandvirt__V1__EnsureRequest *)sv_message_unpack(
            &sandvirt__v1__ensure_request__descriptor, request.payload, request.payload_len, NULL);
        g_assert_cmpstr(ensure->root, ==, "/nowhere");
        g_assert_cmpstr(ensure->sandbox, ==, "s");
        sv_message_free(ensure);
    }
    shim.listener = sv_unix_listen(monitor, 0600, 8, NULL);
    send_bytes(&shim, sv_message_response(request.stream, NULL));
    sv_request_clear(&request);
    shim.conn = -1;
    accept_attach(&shim);
    answer_attach(&shim);
    send_exit(&shim, 2, 3);
    expect_status(&shim, 3);
    clear(&shim);
}

/* ---- the terminal */

static int receive_master(int listener)
{
    g_auto(SvFd) sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int fds[SV_FD_MAX_PASS];
    guint n_fds = 0;
    char name[4096] = "";

    g_assert_cmpint(sv_fd_recv(sock, name, sizeof(name) - 1, fds, &n_fds), >, 0);
    g_assert_cmpuint(n_fds, ==, 1);
    g_assert_true(g_str_has_prefix(name, "/dev/"));
    return fds[0];
}

static void test_terminal(void)
{
    g_autofree char *dir = g_dir_make_tmp("test-console-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "console", NULL);
    g_autofree char *arg = g_strdup_printf("--console-socket=%s", path);
    g_auto(SvFd) listener = sv_unix_listen(path, 0600, 8, NULL);
    g_auto(SvFd) master = -1;
    const char *const more[] = {"--terminal", "--rows=40", "--cols=120", arg, NULL};
    struct winsize size = {.ws_row = 50, .ws_col = 200};
    struct termios settings;
    g_autofree char *typed = NULL;
    guint32 got = 0;
    Shim shim;

    start(&shim, more);
    master = receive_master(listener);
    g_assert_true(shim.attached->terminal);
    g_assert_cmpuint(shim.attached->rows, ==, 40);
    g_assert_cmpuint(shim.attached->cols, ==, 120);
    answer_attach(&shim);
    go(&shim);
    expect_eof(shim.out); /* the caller's own streams are not held */
    g_assert_cmpint(ioctl(master, TIOCSWINSZ, &size), ==, 0);
    expect_request(&shim, "Resize", &got);
    g_assert_cmpuint(got, ==, 50200);
    /* conmon sets this afterwards */
    g_assert_cmpint(tcgetattr(master, &settings), ==, 0);
    settings.c_oflag |= ONLCR | OPOST;
    g_assert_cmpint(tcsetattr(master, TCSANOW, &settings), ==, 0);
    send_data(&shim, SV_STREAM_STDOUT, 0, "a\r\nb\n");
    expect_read(master, "a\r\nb\n");
    expect_ack(&shim, SV_STREAM_STDOUT, 5);
    g_assert_cmpint(write(master, "ls\r\003", 4), ==, 4);
    typed = expect_input(&shim, 0, 4, FALSE);
    g_assert_cmpstr(typed, ==, "ls\r\003");
    send_exit(&shim, 2, 0);
    expect_status(&shim, 0);
    clear(&shim);
    g_assert_true(sv_file_remove_tree(dir, NULL));
}

/* ---- root and what is held */

static guint count_mounts(pid_t pid)
{
    g_autoptr(GPtrArray) mounts = sv_mount_list(pid, NULL);

    return mounts->len;
}

static void test_root(void)
{
    g_autofree char *root = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) tree = sv_mount_new("tmpfs", "mode=0755", 0, &error);
    Shim shim;
    Sandvirt__V1__RootRequest message = SANDVIRT__V1__ROOT_REQUEST__INIT;
    g_autoptr(GBytes) bytes = sv_message_request(2, SV_SERVICE_SHIM, "Root", &message.base, 0);
    g_autofree char *inside = NULL;
    g_autofree char *proc = NULL;
    gsize len = 0;
    const void *data = g_bytes_get_data(bytes, &len);

    g_assert_no_error(error);
    g_assert_cmpint(mkdirat(tree, "proc", 0755), ==, 0);
    g_assert_cmpint(mkdirat(tree, "marker", 0755), ==, 0);
    start(&shim, NULL);
    g_assert_false(shim.attached->has_rootfs);
    g_assert_cmpuint(count_mounts(shim.pid), ==, 2);
    g_assert_cmpint(sv_fd_send(shim.conn, data, len, &tree, 1), ==, (gssize)len);
    expect_response(&shim, 2);
    g_assert_cmpuint(count_mounts(shim.pid), ==, 2);
    inside = g_strdup_printf("/proc/%d/root/marker", (int)shim.pid);
    proc = g_strdup_printf("/proc/%d/root/proc/1/comm", (int)shim.pid);
    g_assert_cmpint(access(inside, F_OK), ==, 0);
    g_assert_cmpint(access(proc, F_OK), ==, 0);
    answer_attach(&shim);
    go(&shim);
    accept_attach(&shim);
    g_assert_true(shim.attached->has_rootfs);
    clear(&shim);
}

static void test_footprint(void)
{
    g_autofree char *smaps = NULL;
    g_autofree char *path = NULL;
    g_autofree char *fds = NULL;
    Shim shim;
    guint n = 0;
    g_autoptr(GDir) dir = NULL;

    start_running(&shim);
    send_data(&shim, SV_STREAM_STDOUT, 0, "x");
    expect_ack(&shim, SV_STREAM_STDOUT, 1);
    /* The caller's own pipe has not become non-blocking. */
    g_assert_cmpint(fcntl(shim.out, F_GETFL) & O_NONBLOCK, ==, 0);
    path = g_strdup_printf("/proc/%d/smaps_rollup", (int)shim.pid);
#ifndef __SANITIZE_ADDRESS__
    const char *pss = NULL;
    if (g_file_get_contents(path, &smaps, NULL, NULL) && (pss = strstr(smaps, "\nPss:"))) {
        g_test_message("PSS: %ld KiB", strtol(pss + 5, NULL, 10));
        g_assert_cmpint(strtol(pss + 5, NULL, 10), <=, 1024);
    }
#endif
    fds = g_strdup_printf("/proc/%d/fd", (int)shim.pid);
    dir = g_dir_open(fds, 0, NULL);
    while (dir && g_dir_read_name(dir))
        n++;
    g_test_message("descriptors: %u", n);
    g_assert_cmpuint(n, <=, 12);
    clear(&shim);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (geteuid() != 0) {
        g_test_message("not root");
        return 77;
    }
    signal(SIGPIPE, SIG_IGN);
    g_test_add_func("/shim/output", test_output);
    g_test_add_func("/shim/attach-again", test_attach_again);
    g_test_add_func("/shim/broken-reader", test_broken_reader);
    g_test_add_func("/shim/input", test_input);
    g_test_add_func("/shim/input-broken", test_input_broken);
    g_test_add_func("/shim/big", test_big);
    g_test_add_func("/shim/exit-drains", test_exit_drains);
    g_test_add_func("/shim/signals", test_signals);
    g_test_add_func("/shim/starter-gone", test_starter_gone);
    g_test_add_func("/shim/monitor-gone-before-go", test_monitor_gone_before_go);
    g_test_add_func("/shim/new-monitor", test_new_monitor);
    g_test_add_func("/shim/launcher", test_launcher);
    g_test_add_func("/shim/terminal", test_terminal);
    g_test_add_func("/shim/root", test_root);
    g_test_add_func("/shim/footprint", test_footprint);
    return g_test_run();
}
