/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's channel, streams and ring, with the host played over a socket pair. */
#include "agent/backlog.h"
#include "agent/channel.h"
#include "agent/input.h"
#include "agent/output.h"
#include "agent/ring.h"
#include "rpc/message.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- ring */

static void test_ring(void)
{
    g_autofree guint8 *model = g_malloc(1024 * 1024);
    guint8 got[4096];
    guint64 end = 0;
    SvRing ring;

    sv_ring_init(&ring, 1000);
    for (int round = 0; round < 3000; round++) {
        guint8 data[600];
        gsize want = (gsize)g_test_rand_int_range(0, 600);
        gsize added, n;
        guint64 from;

        for (gsize i = 0; i < want; i++)
            data[i] = (guint8)g_test_rand_int();
        added = sv_ring_append(&ring, data, want);
        memcpy(model + end, data, added);
        end += added;
        g_assert_cmpuint(sv_ring_end(&ring), ==, end);
        g_assert_cmpuint(ring.len, <=, 1000);
        from = ring.base + (ring.len ? (guint64)g_test_rand_int_range(0, (int)ring.len) : 0);
        n = sv_ring_peek(&ring, from, got, sizeof(got));
        g_assert_cmpmem(got, n, model + from, end - from);
        sv_ring_drop(&ring, from);
        g_assert_cmpuint(ring.base, ==, from);
        if (end > 1024 * 1024 - 1024)
            break;
    }
    sv_ring_drop(&ring, end + 100);
    g_assert_cmpuint(ring.base, ==, end);
    sv_ring_clear(&ring);
    g_assert_cmpuint(sv_ring_end(&ring), ==, end);
}

/* ---- backlog */

/* What a frame that was taken says, at @model's place of it. */
static void check_frame(GBytes *frame, const guint8 *model, guint64 offset, guint8 flags)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    SvFrame got;
    guint64 at;
    const guint8 *data;
    gsize len;

    sv_frame_reader_push(reader, g_bytes_get_data(frame, NULL), g_bytes_get_size(frame));
    g_assert_cmpint(sv_frame_reader_next(reader, &got, NULL), ==, 1);
    g_assert_false(sv_frame_reader_is_amid(reader));
    g_assert_true(sv_frame_parse_offset(&got, &at, &data, &len));
    g_assert_cmpuint(got.type, ==, SV_FRAME_DATA);
    g_assert_cmpuint(got.stream, ==, 7);
    g_assert_cmpuint(got.flags, ==, SV_STREAM_STDERR | flags);
    g_assert_cmpuint(at, ==, offset);
    g_assert_cmpmem(data, len, model + offset, len);
}

/* Frames are held for a while after they were taken, as the channel's queue holds them. */
static void test_backlog(void)
{
    const gsize total = 24 * 1024 * 1024;
    g_autofree guint8 *model = g_malloc(total);
    GQueue held = G_QUEUE_INIT;
    SvBacklog backlog;
    guint64 written = 0, checked = 0;
    int ends[2];

    for (gsize i = 0; i < total; i++)
        model[i] = (guint8)(i * 2654435761u >> 13);
    g_assert_cmpint(pipe2(ends, O_NONBLOCK | O_CLOEXEC), ==, 0);
    fcntl(ends[1], F_SETPIPE_SZ, 1024 * 1024);
    sv_backlog_init(&backlog, 7, SV_STREAM_STDERR, SV_STREAM_WINDOW);
    while (written < total) {
        gsize most = g_test_rand_bit() ? 200 : 300 * 1024;
        gsize want = (gsize)g_test_rand_int_range(1, (int)most);
        ssize_t n = write(ends[1], model + written, MIN(want, total - written));

        if (n > 0)
            written += (guint64)n;
        while (sv_backlog_room(&backlog) > 0 && sv_backlog_read(&backlog, ends[0]) > 0)
            if (g_test_rand_bit())
                break;
        g_assert_cmpuint(backlog.len, <=, SV_STREAM_WINDOW);
        while (sv_backlog_unsent(&backlog) && g_test_rand_int_range(0, 4)) {
            guint64 from = backlog.sent;
            g_queue_push_tail(&held, sv_backlog_take(&backlog, 0));
            check_frame(g_queue_peek_tail(&held), model, from, 0);
            checked = MAX(checked, backlog.sent);
        }
        if (g_queue_get_length(&held) > 3)
            g_queue_clear_full(&held, (GDestroyNotify)g_bytes_unref);
        if (backlog.sent > backlog.base && g_test_rand_bit())
            sv_backlog_drop(&backlog,
                backlog.base +
                    (guint64)g_test_rand_int_range(0, (int)(backlog.sent - backlog.base) + 1));
        if (g_test_rand_int_range(0, 20) == 0) {
            g_queue_clear_full(&held, (GDestroyNotify)g_bytes_unref);
            sv_backlog_rewind(&backlog);
            g_assert_cmpuint(backlog.sent, ==, backlog.base);
        }
    }
    g_assert_cmpuint(checked, >, total / 2);
    sv_backlog_clear(&backlog);
    g_assert_cmpuint(backlog.base, ==, sv_backlog_end(&backlog));
    /* What was taken outlives it. */
    g_queue_clear_full(&held, (GDestroyNotify)g_bytes_unref);
    close(ends[0]);
    close(ends[1]);
}

/* The frame with the last byte says that it is the last, or one without bytes does. */
static void test_backlog_end(void)
{
    static const guint8 model[] = "abcdef";
    g_autoptr(GBytes) first = NULL, last = NULL, empty = NULL;
    SvBacklog backlog;
    int ends[2];

    g_assert_cmpint(pipe2(ends, O_NONBLOCK | O_CLOEXEC), ==, 0);
    sv_backlog_init(&backlog, 7, SV_STREAM_STDERR, SV_STREAM_WINDOW);
    g_assert_cmpint(write(ends[1], model, 3), ==, 3);
    g_assert_cmpint(sv_backlog_read(&backlog, ends[0]), ==, 3);
    first = sv_backlog_take(&backlog, 0);
    check_frame(first, model, 0, 0);
    g_assert_cmpint(write(ends[1], model + 3, 3), ==, 3);
    g_assert_cmpint(sv_backlog_read(&backlog, ends[0]), ==, 3);
    /* What waits to be written must not grow. */
    check_frame(first, model, 0, 0);
    last = sv_backlog_take(&backlog, SV_FLAG_EOF);
    check_frame(last, model, 3, SV_FLAG_EOF);
    empty = sv_backlog_take(&backlog, SV_FLAG_EOF);
    check_frame(empty, model, 6, SV_FLAG_EOF);
    sv_backlog_drop(&backlog, 1);
    sv_backlog_rewind(&backlog);
    g_clear_pointer(&first, g_bytes_unref);
    first = sv_backlog_take(&backlog, SV_FLAG_EOF);
    check_frame(first, model, 1, 0);
    sv_backlog_drop(&backlog, 100);
    g_assert_cmpuint(backlog.base, ==, 6);
    g_assert_false(sv_backlog_unsent(&backlog));
    sv_backlog_clear(&backlog);
    close(ends[0]);
    close(ends[1]);
}

/* Single bytes that nobody takes fill the backlog long before its limit: each costs what it is kept in. */
static void test_backlog_crumbs(void)
{
    SvBacklog backlog;
    guint n = 0;
    int ends[2];

    g_assert_cmpint(pipe2(ends, O_NONBLOCK | O_CLOEXEC), ==, 0);
    sv_backlog_init(&backlog, 7, SV_STREAM_STDOUT, SV_STREAM_WINDOW);
    while (sv_backlog_room(&backlog) > 0) {
        g_autoptr(GBytes) frame = NULL;

        g_assert_cmpint(write(ends[1], "x", 1), ==, 1);
        g_assert_cmpint(sv_backlog_read(&backlog, ends[0]), ==, 1);
        frame = sv_backlog_take(&backlog, 0);
        n++;
    }
    g_assert_cmpuint(n, >, 4000);
    g_assert_cmpuint(n, <, 16000);
    sv_backlog_drop(&backlog, n);
    g_assert_cmpuint(sv_backlog_room(&backlog), ==, SV_STREAM_WINDOW);
    sv_backlog_clear(&backlog);
    close(ends[0]);
    close(ends[1]);
}

/* ---- the fixture */

typedef struct {
    SvChannel *channel;
    int host;
    SvFrameReader *reader;
    guint synced;
    GPtrArray *frames; /* of GBytes: payloads the agent received */
    SvOutput *output;
    SvInput *input;
    int workload[2]; /* the workload's ends of stdin and stdout */
    guint8 token;
} Fixture;

static void on_synced(const guint8 *random, gsize len, gpointer user_data)
{
    Fixture *f = user_data;

    g_assert_cmpuint(len, ==, f->synced ? 16 : 32);
    f->synced++;
    if (f->output)
        sv_output_reset(f->output);
}

static void on_frame(const SvFrame *frame, gpointer user_data)
{
    Fixture *f = user_data;
    const guint8 *data = NULL;
    guint64 offset = 0;
    gsize len = 0;

    g_ptr_array_add(f->frames, g_bytes_new(frame->payload, frame->length));
    if (frame->type < SV_FRAME_DATA)
        return;
    g_assert_true(sv_frame_parse_offset(frame, &offset, &data, &len));
    if (frame->type == SV_FRAME_DATA && f->input)
        sv_input_data(f->input, offset, data, len, (frame->flags & SV_FLAG_EOF) != 0);
    else if (frame->type == SV_FRAME_ACK && f->output && (frame->flags & SV_FLAG_BROKEN))
        sv_output_break(f->output);
    else if (frame->type == SV_FRAME_ACK && f->output)
        sv_output_ack(f->output, offset);
}

static const SvChannelFuncs funcs = {on_synced, on_frame};

static void nothing(SvOutput *output, gpointer user_data)
{
}

static void set_up(Fixture *f, gconstpointer data)
{
    int fds[2], pipes[2][2];
    GError *error = NULL;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    g_assert_cmpint(pipe2(pipes[0], O_CLOEXEC), ==, 0);
    g_assert_cmpint(pipe2(pipes[1], O_CLOEXEC), ==, 0);
    f->channel = sv_channel_new(fds[0], &funcs, f, &error);
    g_assert_no_error(error);
    f->host = fds[1];
    fcntl(f->host, F_SETFL, O_NONBLOCK);
    f->reader = sv_frame_reader_new(SV_FRAME_MAX);
    f->frames = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    f->input = sv_input_new(f->channel, 1, pipes[0][1], FALSE);
    f->output = sv_output_new(f->channel, 1, SV_STREAM_STDOUT, pipes[1][0], nothing, NULL);
    f->workload[0] = pipes[0][0];
    f->workload[1] = pipes[1][1];
    f->token = 0x11;
}

static void tear_down(Fixture *f, gconstpointer data)
{
    sv_output_free(f->output);
    sv_input_free(f->input);
    sv_channel_free(f->channel);
    sv_frame_reader_free(f->reader);
    g_ptr_array_unref(f->frames);
    close(f->host);
    for (int i = 0; i < 2; i++)
        if (f->workload[i] >= 0)
            close(f->workload[i]);
}

static void run(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static void host_send(Fixture *f, const void *data, gsize len)
{
    g_assert_cmpint(write(f->host, data, len), ==, (gssize)len);
    run();
}

static void host_send_bytes(Fixture *f, GBytes *bytes)
{
    gsize len = 0;
    const void *data = g_bytes_get_data(bytes, &len);

    host_send(f, data, len);
    g_bytes_unref(bytes);
}

/* Begins a session and eats the answer, with whatever stands before it. */
static void host_sync(Fixture *f, guint8 session)
{
    guint8 hello[48], key[32];
    g_autoptr(SvSyncScanner) scanner = NULL;
    gsize found = 0;

    memcpy(hello, sv_sync_magic, 16);
    memset(hello + 16, f->token, 16);
    memset(hello + 32, session, 16);
    memcpy(key, sv_sync_magic, 16);
    memset(key + 16, session, 16);
    scanner = sv_sync_scanner_new(key, 32, 0);
    host_send(f, hello, sizeof(hello));
    while (!found) {
        guint8 bytes[4096];
        ssize_t n = read(f->host, bytes, sizeof(bytes));

        if (n < 0)
            run();
        else
            found = sv_sync_scanner_feed(scanner, bytes, (gsize)n, NULL);
        if (found) {
            sv_frame_reader_reset(f->reader);
            sv_frame_reader_push(f->reader, bytes + found, (gsize)n - found);
        }
    }
}

/* The next frame of the agent; FALSE when there is none. */
static gboolean host_next(Fixture *f, SvFrame *frame)
{
    for (;;) {
        gsize room = 0;
        guint8 *space;
        ssize_t n;
        int r = sv_frame_reader_next(f->reader, frame, NULL);

        g_assert_cmpint(r, >=, 0);
        if (r > 0)
            return TRUE;
        run();
        space = sv_frame_reader_space(f->reader, &room);
        n = read(f->host, space, room);
        if (n <= 0)
            return FALSE;
        sv_frame_reader_added(f->reader, (gsize)n);
    }
}

/* Collects DATA of the output from @offset on until there is nothing more; acknowledges when @ack. */
static GByteArray *host_collect(Fixture *f, guint64 offset, gboolean ack, gboolean *eof)
{
    GByteArray *all = g_byte_array_new();
    SvFrame frame;

    *eof = FALSE;
    while (host_next(f, &frame)) {
        const guint8 *data = NULL;
        guint64 at = 0;
        gsize len = 0;

        if (frame.type != SV_FRAME_DATA)
            continue;
        g_assert_true(sv_frame_parse_offset(&frame, &at, &data, &len));
        g_assert_cmpuint(at, ==, offset + all->len);
        g_byte_array_append(all, data, (guint)len);
        if (frame.flags & SV_FLAG_EOF)
            *eof = TRUE;
        if (ack)
            host_send_bytes(f, sv_message_ack(1, SV_STREAM_STDOUT, offset + all->len));
    }
    return all;
}

/* ---- channel */

static void test_sync(Fixture *f, gconstpointer data)
{
    g_assert_cmpuint(sv_channel_session(f->channel), ==, 0);
    host_send(f, "noise", 5);
    host_sync(f, 1);
    g_assert_cmpuint(f->synced, ==, 1);
    host_send_bytes(f, sv_message_request(1, "s", "m", NULL, 0));
    g_assert_cmpuint(f->frames->len, ==, 1);
    /* Half a frame, then a new session: the half is dropped. */
    host_send(f, "\0\0\0\144\0\0\0\1\1", 9);
    host_sync(f, 2);
    g_assert_cmpuint(f->synced, ==, 2);
    host_send_bytes(f, sv_message_request(3, "s", "m", NULL, 0));
    g_assert_cmpuint(f->frames->len, ==, 2);
}

/* Once a token is known another one is no session, whatever the workload writes. */
static void test_token(Fixture *f, gconstpointer data)
{
    guint8 forged[48];

    host_sync(f, 1);
    memcpy(forged, sv_sync_magic, 16);
    memset(forged + 16, 0x22, 32);
    host_send_bytes(f, sv_message_data(7, 0, 0, forged, sizeof(forged)));
    g_assert_cmpuint(f->synced, ==, 1);
    g_assert_cmpuint(f->frames->len, ==, 1);
}

/* A start that was broken off at every byte, then a whole one. */
static void test_half_sync(Fixture *f, gconstpointer data)
{
    guint8 half[48];

    memcpy(half, sv_sync_magic, 16);
    memset(half + 16, f->token, 16);
    memset(half + 32, 0x77, 16);
    for (guint8 len = 0; len < sizeof(half); len++) {
        guint before = f->frames->len;

        host_send(f, half, len);
        host_sync(f, (guint8)(len + 1));
        host_send_bytes(f, sv_message_request(1, "s", "m", NULL, 0));
        g_assert_cmpuint(f->frames->len, ==, before + 1);
    }
}

static void test_broken_peer(Fixture *f, gconstpointer data)
{
    host_sync(f, 1);
    host_send(f, "\0\0\0\0\0\0\0\1\x63\0", 10);
    g_assert_cmpuint(sv_channel_session(f->channel), ==, 0);
    host_sync(f, 2);
    g_assert_cmpuint(f->synced, ==, 2);
}

/* ---- output */

static void test_output(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) got = NULL;
    gboolean eof = FALSE;

    host_sync(f, 1);
    sv_output_start(f->output, TRUE);
    g_assert_cmpint(write(f->workload[1], "hello", 5), ==, 5);
    got = host_collect(f, 0, TRUE, &eof);
    g_assert_cmpmem(got->data, got->len, "hello", 5);
    g_assert_false(eof);
    g_assert_cmpuint(f->output->backlog.len, ==, 0);
    close(f->workload[1]);
    f->workload[1] = -1;
    g_byte_array_unref(g_steal_pointer(&got));
    got = host_collect(f, 5, TRUE, &eof);
    g_assert_cmpuint(got->len, ==, 0);
    g_assert_true(eof);
    g_assert_true(sv_output_done(f->output));
}

static guint8 pattern(guint64 i)
{
    return (guint8)(i * 31 + (i >> 8));
}

/* Writes from @from until the pipe is full; returns the new end. */
static guint64 workload_write(Fixture *f, guint64 from, guint64 upto)
{
    fcntl(f->workload[1], F_SETFL, O_NONBLOCK);
    while (from < upto) {
        guint8 bytes[4096];
        gsize n = (gsize)MIN(sizeof(bytes), upto - from);
        ssize_t done;

        for (gsize i = 0; i < n; i++)
            bytes[i] = pattern(from + i);
        done = write(f->workload[1], bytes, n);
        if (done < 0) {
            g_assert_cmpint(errno, ==, EAGAIN);
            break;
        }
        from += (guint64)done;
        run();
    }
    return from;
}

/* A host that does not acknowledge stops the stream at the window; the next session goes on from
 * any offset that is not acknowledged. */
static void test_window_and_resume(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) first = NULL, again = NULL;
    guint64 total = 3 * SV_STREAM_WINDOW, written = 0, acked = 700001;
    gboolean eof = FALSE;

    host_sync(f, 1);
    sv_output_start(f->output, TRUE);
    first = g_byte_array_new();
    for (int i = 0; i < 1000; i++) {
        g_autoptr(GByteArray) part = NULL;

        written = workload_write(f, written, total);
        part = host_collect(f, first->len, FALSE, &eof);
        g_byte_array_append(first, part->data, part->len);
        if (part->len == 0)
            break;
    }
    /* Less what it costs to keep it in pieces. */
    g_assert_cmpuint(first->len, <=, SV_STREAM_WINDOW);
    g_assert_cmpuint(first->len, >, SV_STREAM_WINDOW / 8 * 7);
    host_send_bytes(f, sv_message_ack(1, SV_STREAM_STDOUT, acked));
    host_sync(f, 2);
    /* Nothing flows before Hello and Attach. */
    again = host_collect(f, 0, FALSE, &eof);
    g_assert_cmpuint(again->len, ==, 0);
    sv_output_greet(f->output);
    sv_output_attach(f->output, acked);
    while (!eof) {
        g_autoptr(GByteArray) part = NULL;

        written = workload_write(f, written, total);
        if (written == total && f->workload[1] >= 0) {
            close(f->workload[1]);
            f->workload[1] = -1;
        }
        part = host_collect(f, acked + again->len, TRUE, &eof);
        g_byte_array_append(again, part->data, part->len);
    }
    g_assert_cmpuint(acked + again->len, ==, total);
    for (guint64 i = 0; i < again->len; i++)
        g_assert_cmpuint(again->data[i], ==, pattern(acked + i));
}

/* The reader on the host is gone: the workload gets EPIPE. */
static void test_output_broken(Fixture *f, gconstpointer data)
{
    host_sync(f, 1);
    sv_output_start(f->output, TRUE);
    host_send_bytes(f, sv_message_ack(1, SV_STREAM_STDOUT | SV_FLAG_BROKEN, 0));
    g_assert_true(sv_output_done(f->output));
    g_assert_cmpint(write(f->workload[1], "x", 1), ==, -1);
    g_assert_cmpint(errno, ==, EPIPE);
}

/* The process ends, a child of it keeps the pipe open: the end is told, later bytes are dropped. */
static void test_output_end(Fixture *f, gconstpointer data)
{
    g_autoptr(GByteArray) got = NULL;
    gboolean eof = FALSE;

    host_sync(f, 1);
    sv_output_start(f->output, TRUE);
    g_assert_cmpint(write(f->workload[1], "rest", 4), ==, 4);
    sv_output_end(f->output);
    got = host_collect(f, 0, TRUE, &eof);
    g_assert_cmpmem(got->data, got->len, "rest", 4);
    g_assert_true(eof);
    for (int i = 0; i < 100; i++) {
        g_assert_cmpint(write(f->workload[1], "late bytes", 10), ==, 10);
        run();
    }
    /* Also when the process is forgotten. */
    sv_output_free(f->output);
    f->output = NULL;
    for (int i = 0; i < 100; i++) {
        g_assert_cmpint(write(f->workload[1], "late bytes", 10), ==, 10);
        run();
    }
    close(f->workload[1]);
    f->workload[1] = -1;
    run();
}

/* ---- input */

static void test_input(Fixture *f, gconstpointer data)
{
    char got[64] = "";
    SvFrame frame;
    guint64 offset = 0;

    host_sync(f, 1);
    sv_input_start(f->input);
    host_send_bytes(f, sv_message_data(1, SV_STREAM_STDIN, 0, "abcdef", 6));
    host_send_bytes(f, sv_message_data(1, SV_STREAM_STDIN, 3, "defghi", 6)); /* partly known */
    host_send_bytes(f, sv_message_data(1, SV_STREAM_STDIN, 20, "x", 1));
    host_send_bytes(f, sv_message_data(1, SV_STREAM_STDIN | SV_FLAG_EOF, 9, "", 0));
    g_assert_cmpint(read(f->workload[0], got, sizeof(got)), ==, 9);
    g_assert_cmpstr(got, ==, "abcdefghi");
    g_assert_cmpint(read(f->workload[0], got, sizeof(got)), ==, 0);
    while (host_next(f, &frame)) {
        g_assert_cmpuint(frame.type, ==, SV_FRAME_ACK);
        g_assert_cmpuint(frame.flags, ==, SV_STREAM_STDIN);
        g_assert_true(sv_frame_parse_offset(&frame, &offset, NULL, NULL));
    }
    g_assert_cmpuint(offset, ==, 9);
    g_assert_cmpuint(sv_input_received(f->input), ==, 9);
}

/* The workload closes its input: the host is told without having sent anything. */
static void test_input_broken(Fixture *f, gconstpointer data)
{
    SvFrame frame;

    host_sync(f, 1);
    sv_input_start(f->input);
    close(f->workload[0]);
    f->workload[0] = -1;
    run();
    g_assert_true(host_next(f, &frame));
    g_assert_cmpuint(frame.type, ==, SV_FRAME_ACK);
    g_assert_cmpuint(frame.flags, ==, SV_STREAM_STDIN | SV_FLAG_BROKEN);
    host_send_bytes(f, sv_message_data(1, SV_STREAM_STDIN, 0, "abc", 3));
    g_assert_true(host_next(f, &frame));
    g_assert_cmpuint(frame.flags, ==, SV_STREAM_STDIN | SV_FLAG_BROKEN);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*func)(Fixture *f, gconstpointer data);
    } tests[] = {
        {"/agent/channel/sync", test_sync},
        {"/agent/channel/token", test_token},
        {"/agent/channel/half-sync", test_half_sync},
        {"/agent/channel/broken-peer", test_broken_peer},
        {"/agent/output/plain", test_output},
        {"/agent/output/window-and-resume", test_window_and_resume},
        {"/agent/output/broken", test_output_broken},
        {"/agent/output/end", test_output_end},
        {"/agent/input/plain", test_input},
        {"/agent/input/broken", test_input_broken},
    };

    signal(SIGPIPE, SIG_IGN);
    g_test_init(&argc, &argv, NULL);
    /* Warnings about the peer are wanted here. */
    g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_ERROR);
    g_test_add_func("/agent/ring", test_ring);
    g_test_add_func("/agent/backlog", test_backlog);
    g_test_add_func("/agent/backlog/end", test_backlog_end);
    g_test_add_func("/agent/backlog/crumbs", test_backlog_crumbs);
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].name, Fixture, NULL, set_up, tests[i].func, tear_down);
    return g_test_run();
}
