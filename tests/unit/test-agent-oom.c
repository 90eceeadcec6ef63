/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the agent tells what the kernel's OOM killer took: every time there is more, until the host knows it. */
#include "agent/channel.h"
#include "agent/container.h"
#include "agent/event.h"
#include "base/file.h"
#include "rpc/message.h"
#include "rpc/sandvirt.pb-c.h"
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    SvAgent agent;
    SvContainer *container;
    int host;
    SvFrameReader *reader;
    char *dir;
    guint32 stream; /* of the last event */
} Fixture;

static void on_synced(const guint8 *random, gsize len, gpointer user_data)
{
}

static void on_frame(const SvFrame *frame, gpointer user_data)
{
    if (frame->type == SV_FRAME_RESPONSE)
        sv_event_answered(&((Fixture *)user_data)->agent, frame);
}

static const SvChannelFuncs funcs = {on_synced, on_frame};

static void run(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static void count(Fixture *f, guint kills)
{
    g_autofree char *path = g_build_filename(f->dir, "memory.events", NULL);
    char text[64];
    int n = g_snprintf(text, sizeof(text), "max 9\noom %u\noom_kill %u\n", kills, kills);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    /* One change of the file, as the kernel does it. */
    g_assert_cmpint(pwrite(fd, text, (size_t)n, 0), ==, n);
    close(fd);
    run();
}

static void greet(Fixture *f)
{
    guint8 hello[48], answer[32];

    memcpy(hello, sv_sync_magic, 16);
    memset(hello + 16, 0x11, 32);
    g_assert_cmpint(write(f->host, hello, sizeof(hello)), ==, sizeof(hello));
    run();
    g_assert_cmpint(read(f->host, answer, sizeof(answer)), ==, sizeof(answer));
    sv_event_reset(&f->agent);
    f->agent.greeted = TRUE;
    sv_container_oom_reset(f->container);
    run();
}

/* The kills that the next event tells; 0: there is none. */
static guint64 told(Fixture *f)
{
    guint8 bytes[4096];
    ssize_t n = read(f->host, bytes, sizeof(bytes));
    Sandvirt__V1__OomEvent *event;
    SvRequest request;
    SvFrame frame;
    guint64 kills;

    if (n > 0)
        sv_frame_reader_push(f->reader, bytes, (gsize)n);
    if (sv_frame_reader_next(f->reader, &frame, NULL) <= 0)
        return 0;
    g_assert_true(sv_request_parse(&frame, &request, NULL));
    g_assert_cmpstr(request.method, ==, "Oom");
    event = (Sandvirt__V1__OomEvent *)sv_message_unpack(
        &sandvirt__v1__oom_event__descriptor, request.payload, request.payload_len, NULL);
    g_assert_cmpstr(event->container_id, ==, f->container->id);
    kills = event->kills;
    f->stream = request.stream;
    sv_message_free(event);
    sv_request_clear(&request);
    return kills;
}

static void answer(Fixture *f)
{
    g_autoptr(GBytes) bytes = sv_message_response(f->stream, NULL);
    gsize len = 0;
    const void *data = g_bytes_get_data(bytes, &len);

    g_assert_cmpint(write(f->host, data, len), ==, (gssize)len);
    run();
}

static SvContainer *add(Fixture *f, guint32 handle)
{
    SvContainer *container = sv_container_add(&f->agent, "c", NULL);

    container->handle = handle;
    g_free(container->cgroup);
    container->cgroup = g_strdup(f->dir);
    count(f, 0);
    sv_container_watch(container, 0); /* no such process: the cgroup stays */
    return container;
}

static void set_up(Fixture *f, gconstpointer data)
{
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    memset(f, 0, sizeof(*f));
    f->dir = g_dir_make_tmp("sv-oom-XXXXXX", NULL);
    f->agent.channel = sv_channel_new(fds[0], &funcs, f, NULL);
    f->agent.containers =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)sv_container_free);
    f->agent.processes = g_hash_table_new(NULL, NULL);
    f->host = fds[1];
    fcntl(f->host, F_SETFL, O_NONBLOCK);
    f->reader = sv_frame_reader_new(SV_FRAME_MAX);
    f->container = add(f, 1);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    g_hash_table_unref(f->agent.containers);
    g_hash_table_unref(f->agent.processes);
    sv_channel_free(f->agent.channel);
    g_clear_pointer(&f->agent.unanswered, g_hash_table_unref);
    sv_frame_reader_free(f->reader);
    close(f->host);
    g_assert_true(sv_file_remove_tree(f->dir, NULL));
    g_free(f->dir);
}

static void test_each(Fixture *f, gconstpointer data)
{
    greet(f);
    g_assert_cmpuint(told(f), ==, 0);
    for (guint kills = 1; kills <= 3; kills++) {
        count(f, kills);
        g_assert_cmpuint(told(f), ==, kills);
        answer(f);
        count(f, kills); /* another number of the file has changed */
        g_assert_cmpuint(told(f), ==, 0);
    }
}

/* What comes while the host has not answered is told when it has; to a new host again. */
static void test_unanswered(Fixture *f, gconstpointer data)
{
    count(f, 1);
    greet(f); /* it has not heard of the first */
    g_assert_cmpuint(told(f), ==, 1);
    count(f, 2);
    count(f, 5);
    g_assert_cmpuint(told(f), ==, 0);
    answer(f);
    g_assert_cmpuint(told(f), ==, 5);
    greet(f);
    g_assert_cmpuint(told(f), ==, 5);
    answer(f);
    greet(f);
    g_assert_cmpuint(told(f), ==, 0);
}

/* A late answer says nothing about another container of the same name. */
static void test_same_name(Fixture *f, gconstpointer data)
{
    greet(f);
    count(f, 7);
    g_assert_cmpuint(told(f), ==, 7);
    sv_container_drop(f->container);
    f->container = add(f, 2);
    answer(f);
    count(f, 1);
    g_assert_cmpuint(told(f), ==, 1);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, func) g_test_add("/agent/oom/" path, Fixture, NULL, set_up, func, tear_down)
    ADD("each", test_each);
    ADD("unanswered", test_unanswered);
    ADD("same-name", test_same_name);
    return g_test_run();
}
