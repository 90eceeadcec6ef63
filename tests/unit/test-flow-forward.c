/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections forwarded to a made up guest: bytes, ends, refusals, and what a hostile guest gets. */
#include "core/forward.h"
#include "flow-agent.h"
#include "flow-fixture.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOW (256 * 1024) /* what is sent ahead */

typedef struct {
    char *top, *path;
    FlowAgent *guest;
    SvAgent *agent;
    gboolean ready;
    SvForwarding *forwarding;
    guint16 port;
} Fixture;

static void on_ready(SvAgent *agent, const Sandvirt__V1__HelloResponse *hello, gpointer user_data)
{
    ((Fixture *)user_data)->ready = TRUE;
}

static void on_frame(SvAgent *agent, const SvFrame *frame, gpointer user_data)
{
    sv_forwarding_frame(((Fixture *)user_data)->forwarding, frame);
}

static void on_lost(SvAgent *agent, const GError *error, gpointer user_data)
{
    ((Fixture *)user_data)->ready = FALSE;
}

static const SvAgentHandlers handlers = {.ready = on_ready, .frame = on_frame, .lost = on_lost};

static SvAgent *ready_agent(gpointer user_data)
{
    Fixture *f = user_data;
    return f->ready ? f->agent : NULL;
}

static int listen_local(guint16 *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, len), ==, 0);
    g_assert_cmpint(listen(fd, 128), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&address, &len), ==, 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void set_up(Fixture *f)
{
    const guint8 token[SV_SYNC_ID_LEN] = {1};
    g_autoptr(GError) error = NULL;
    *f = (Fixture){0};
    f->top = g_dir_make_tmp("sv-forward-XXXXXX", NULL);
    f->path = g_build_filename(f->top, "agent", NULL);
    f->guest = flow_agent_new();
    flow_agent_listen(f->guest, f->path);
    f->agent = sv_agent_connect(f->path, token, &handlers, f, &error);
    g_assert_no_error(error);
    FLOW_WAIT(f->ready);
    int fds[2] = {listen_local(&f->port), -1};
    f->forwarding = sv_forwarding_new(fds, ready_agent, f);
}

static void tear_down(Fixture *f)
{
    sv_agent_free(f->agent);
    sv_forwarding_free(f->forwarding);
    flow_agent_free(f->guest);
    unlink(f->path);
    rmdir(f->top);
    g_free(f->path);
    g_free(f->top);
}

static int connect_client(const Fixture *f)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons(f->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    sv_fd_set_nonblock(fd, TRUE);
    return fd;
}

/* The only connection in the guest. */
static FlowGuestProcess *guest_end(Fixture *f)
{
    GHashTableIter iter;
    gpointer value = NULL;
    FLOW_WAIT(g_hash_table_size(f->guest->processes) == 1);
    g_hash_table_iter_init(&iter, f->guest->processes);
    g_assert_true(g_hash_table_iter_next(&iter, NULL, &value));
    return value;
}

/* Bytes, 0 at the end, -1 with errno; waits for it. */
static ssize_t receive(int fd, char *text, gsize size)
{
    ssize_t n = -1;
    FLOW_WAIT((n = recv(fd, text, size, 0)) >= 0 || errno != EAGAIN);
    return n;
}

static void assert_reset(int fd)
{
    char text[16];
    g_assert_cmpint(receive(fd, text, sizeof text), ==, -1);
    g_assert_cmpint(errno, ==, ECONNRESET);
}

static void test_both_ways(void)
{
    Fixture f;
    char text[16] = "";
    set_up(&f);
    g_auto(SvFd) fd = connect_client(&f);
    FlowGuestProcess *end = guest_end(&f);
    g_assert_true(end->handle & SV_FORWARD_HANDLE);
    g_autofree char *id = g_strdup_printf("forward-%u", f.port);
    g_assert_cmpstr(end->id, ==, id);

    g_assert_cmpint(write(fd, "to guest", 8), ==, 8);
    FLOW_WAIT(end->input->len == 8);
    flow_agent_output(f.guest, end->handle, SV_STREAM_STDOUT, 0, "to host");
    g_assert_cmpint(receive(fd, text, sizeof text), ==, 7);
    g_assert_cmpmem(text, 7, "to host", 7);
    FLOW_WAIT(end->acked[SV_STREAM_STDOUT] == 7);

    /* one end, and the other way goes on */
    shutdown(fd, SHUT_WR);
    FLOW_WAIT(end->input_eof);
    flow_agent_output(f.guest, end->handle, SV_STREAM_STDOUT, 7, "more");
    g_assert_cmpint(receive(fd, text, sizeof text), ==, 4);
    flow_agent_output(f.guest, end->handle, SV_STREAM_STDOUT | SV_FLAG_EOF, 11, "");
    g_assert_cmpint(receive(fd, text, sizeof text), ==, 0);
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
    tear_down(&f);
}

static void test_guest_ends_first(void)
{
    Fixture f;
    char text[16];
    set_up(&f);
    g_auto(SvFd) fd = connect_client(&f);
    FlowGuestProcess *end = guest_end(&f);
    flow_agent_output(f.guest, end->handle, SV_STREAM_STDOUT | SV_FLAG_EOF, 0, "bye");
    g_assert_cmpint(receive(fd, text, sizeof text), ==, 3);
    g_assert_cmpint(receive(fd, text, sizeof text), ==, 0);
    g_assert_cmpint(write(fd, "still", 5), ==, 5);
    FLOW_WAIT(end->input->len == 5);
    sv_fd_clear(&fd);
    FLOW_WAIT(end->input_eof);
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
    tear_down(&f);
}

static void test_refused(void)
{
    Fixture f;
    set_up(&f);
    flow_agent_fail(f.guest, "Forward", SV_ERR_CLOSED);
    g_auto(SvFd) fd = connect_client(&f);
    assert_reset(fd);
    g_assert_cmpuint(sv_forwarding_count(f.forwarding), ==, 0);
    tear_down(&f);
}

static void reset(SvFd *fd)
{
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    sv_fd_clear(fd);
}

/* The client is gone before the guest has answered. */
static void test_client_leaves(void)
{
    Fixture f;
    set_up(&f);
    flow_agent_hold(f.guest, "Forward");
    g_auto(SvFd) fd = connect_client(&f);
    FLOW_WAIT(flow_agent_count(f.guest, "Forward") == 1);
    reset(&fd);
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
    flow_agent_release(f.guest, "Forward");
    FlowGuestProcess *end = guest_end(&f);
    FLOW_WAIT(end->input_eof);
    FLOW_WAIT(end->flags[SV_STREAM_STDOUT] & SV_FLAG_BROKEN);
    g_assert_cmpuint(sv_forwarding_count(f.forwarding), ==, 0);
    tear_down(&f);
}

/* It had said its end, and is killed while it waits for the answer. */
static void test_reset_after_end(void)
{
    Fixture f;
    set_up(&f);
    g_auto(SvFd) fd = connect_client(&f);
    FlowGuestProcess *end = guest_end(&f);
    shutdown(fd, SHUT_WR);
    FLOW_WAIT(end->input_eof);
    flow_settle();
    g_assert_cmpuint(sv_forwarding_count(f.forwarding), ==, 1);
    reset(&fd);
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
    FLOW_WAIT(end->flags[SV_STREAM_STDOUT] & SV_FLAG_BROKEN);
    tear_down(&f);
}

/* It is killed while the guest takes nothing more. */
static void test_reset_when_full(void)
{
    Fixture f;
    g_autofree char *bytes = g_malloc0(WINDOW);
    set_up(&f);
    f.guest->deaf = TRUE;
    g_auto(SvFd) fd = connect_client(&f);
    FlowGuestProcess *end = guest_end(&f);
    while (end->input->len < WINDOW) {
        if (write(fd, bytes, WINDOW) < 0)
            g_assert_cmpint(errno, ==, EAGAIN);
        flow_settle();
    }
    reset(&fd);
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
    FLOW_WAIT(end->input_eof);
    tear_down(&f);
}

/* A guest that reads nothing gets a window, and the client waits. */
static void test_window(void)
{
    Fixture f;
    g_autofree char *bytes = g_malloc0(WINDOW);
    gsize sent = 0;
    set_up(&f);
    f.guest->deaf = TRUE;
    g_auto(SvFd) fd = connect_client(&f);
    FlowGuestProcess *end = guest_end(&f);
    for (guint idle = 0; idle < 20;) {
        ssize_t n = write(fd, bytes, WINDOW);
        sent += n > 0 ? (gsize)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        flow_settle();
    }
    g_assert_cmpuint(sent, >, WINDOW);
    g_assert_cmpuint(end->input->len, ==, WINDOW);
    tear_down(&f);
}

static void test_hostile(gconstpointer data)
{
    guint what = GPOINTER_TO_UINT(data);
    Fixture f;
    g_autofree char *much = g_strnfill(SV_DATA_CHUNK, 'x');
    char text[4096];
    set_up(&f);
    g_auto(SvFd) fd = connect_client(&f);
    FlowGuestProcess *end = guest_end(&f);
    guint32 handle = end->handle;
    switch (what) {
    case 0: /* a gap */
        flow_agent_output(f.guest, handle, SV_STREAM_STDOUT, 5, "gap");
        break;
    case 1: /* more than the window, which nobody has read */
        for (guint i = 0; i < 64; i++)
            flow_agent_output(f.guest, handle, SV_STREAM_STDOUT, (guint64)i * SV_DATA_CHUNK, much);
        break;
    case 2: /* an acknowledgement of what was never sent */
        sv_conn_send(f.guest->conn, sv_message_ack(handle, SV_STREAM_STDIN, 1000));
        break;
    case 3: /* bytes after the end */
        flow_agent_output(f.guest, handle, SV_STREAM_STDOUT | SV_FLAG_EOF, 0, "");
        flow_agent_output(f.guest, handle, SV_STREAM_STDOUT, 0, "late");
        flow_settle();
        g_assert_cmpint(receive(fd, text, sizeof text), ==, 0);
        break;
    default: /* of nothing known, and of a stream that is none */
        flow_agent_output(f.guest, handle ^ 1, SV_STREAM_STDOUT, 0, "unknown");
        flow_agent_output(f.guest, handle, SV_STREAM_STDERR, 0, "no stream");
        sv_conn_send(f.guest->conn, sv_message_ack(handle, SV_STREAM_STDERR, 0));
        flow_agent_output(f.guest, handle, SV_STREAM_STDOUT, 0, "fine");
        g_assert_cmpint(receive(fd, text, sizeof text), ==, 4);
        break;
    }
    if (what <= 2) {
        FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
        if (what != 1) /* what was passed on before comes first */
            assert_reset(fd);
        FLOW_WAIT(end->flags[SV_STREAM_STDOUT] & SV_FLAG_BROKEN);
    } else {
        g_assert_cmpuint(sv_forwarding_count(f.forwarding), ==, 1);
    }
    tear_down(&f);
}

/* The guest's reader is gone. */
static void test_broken(void)
{
    Fixture f;
    set_up(&f);
    g_auto(SvFd) fd = connect_client(&f);
    FlowGuestProcess *end = guest_end(&f);
    sv_conn_send(f.guest->conn, sv_message_ack(end->handle, SV_STREAM_STDIN | SV_FLAG_BROKEN, 0));
    flow_agent_output(f.guest, end->handle, SV_STREAM_STDOUT | SV_FLAG_EOF, 0, "");
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
    tear_down(&f);
}

/* The guest's server lost the connection, which is no end like others. */
static void test_reset_by_guest(void)
{
    Fixture f;
    char text[16];
    set_up(&f);
    g_auto(SvFd) fd = connect_client(&f);
    FlowGuestProcess *end = guest_end(&f);
    flow_agent_output(f.guest, end->handle, SV_STREAM_STDOUT, 0, "part");
    g_assert_cmpint(receive(fd, text, sizeof text), ==, 4);
    flow_agent_output(f.guest, end->handle, SV_STREAM_STDOUT | SV_FLAG_EOF | SV_FLAG_BROKEN, 4, "");
    assert_reset(fd);
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
    FLOW_WAIT(end->flags[SV_STREAM_STDOUT] & SV_FLAG_BROKEN);
    tear_down(&f);
}

/* More than there can be wait for their turn. */
static void test_many(void)
{
    enum { MANY = 300, MOST = 256 };
    Fixture f;
    int fds[MANY];
    set_up(&f);
    for (guint i = 0; i < MANY; i++) {
        fds[i] = connect_client(&f);
        flow_settle();
    }
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == MOST);
    flow_settle();
    g_assert_cmpuint(g_hash_table_size(f.guest->processes), ==, MOST);
    for (guint i = 0; i < MANY; i++) {
        FLOW_WAIT(g_hash_table_size(f.guest->processes) > i);
        SvFd fd = fds[i];
        reset(&fd);
    }
    FLOW_WAIT(g_hash_table_size(f.guest->processes) == MANY);
    FLOW_WAIT(sv_forwarding_count(f.forwarding) == 0);
    tear_down(&f);
}

static void test_without_agent(void)
{
    Fixture f;
    set_up(&f);
    f.ready = FALSE;
    g_auto(SvFd) fd = connect_client(&f);
    assert_reset(fd);
    tear_down(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forward/both-ways", test_both_ways);
    g_test_add_func("/forward/guest-ends-first", test_guest_ends_first);
    g_test_add_func("/forward/refused", test_refused);
    g_test_add_func("/forward/client-leaves", test_client_leaves);
    g_test_add_func("/forward/reset-after-end", test_reset_after_end);
    g_test_add_func("/forward/reset-when-full", test_reset_when_full);
    g_test_add_func("/forward/window", test_window);
    g_test_add_data_func("/forward/hostile/gap", GUINT_TO_POINTER(0), test_hostile);
    g_test_add_data_func("/forward/hostile/much", GUINT_TO_POINTER(1), test_hostile);
    g_test_add_data_func("/forward/hostile/ack", GUINT_TO_POINTER(2), test_hostile);
    g_test_add_data_func("/forward/hostile/late", GUINT_TO_POINTER(3), test_hostile);
    g_test_add_data_func("/forward/hostile/unknown", GUINT_TO_POINTER(4), test_hostile);
    g_test_add_func("/forward/broken", test_broken);
    g_test_add_func("/forward/reset-by-guest", test_reset_by_guest);
    g_test_add_func("/forward/many", test_many);
    g_test_add_func("/forward/without-agent", test_without_agent);
    return g_test_run();
}
