/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/channel.h"
#include "base/error.h"
#include "base/fd.h"
#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Data waits outside the queue when that holds so much, so that an answer is never far behind. */
#define QUEUE_HIGH (512u * 1024)
#define KEY_LEN (SV_SYNC_MAGIC_LEN + SV_SYNC_ID_LEN)
#define SCAN_ROOM (16u * 1024)

struct SvChannel {
    int fd;
    int epoll;
    guint source;
    gboolean want_out;
    gboolean serving;
    const SvChannelFuncs *funcs;
    gpointer user_data;

    SvFrameReader *reader;
    SvSyncScanner *scanner;
    gboolean has_token;
    guint64 session;
    guint64 sessions;

    GQueue queue; /* of GBytes */
    gsize head_done; /* bytes of the first one already written */
    gsize queued;
    GQueue waiters; /* of SvChannelWaiter, not owned */
};

static void watch_output(SvChannel *channel, gboolean on)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET | (on ? (guint32)EPOLLOUT : 0)};

    if (channel->want_out == on)
        return;
    channel->want_out = on;
    if (epoll_ctl(channel->epoll, EPOLL_CTL_MOD, channel->fd, &event) < 0)
        g_warning("channel: epoll: %s", g_strerror(errno));
}

static void clear_queue(SvChannel *channel)
{
    g_queue_clear_full(&channel->queue, (GDestroyNotify)g_bytes_unref);
    channel->head_done = 0;
    channel->queued = 0;
}

static void flush(SvChannel *channel)
{
    GBytes *head;

    while ((head = g_queue_peek_head(&channel->queue))) {
        gsize len = 0;
        const guint8 *data = g_bytes_get_data(head, &len);
        ssize_t n = write(channel->fd, data + channel->head_done, len - channel->head_done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            g_debug("channel: write: %s", g_strerror(errno));
        if (n <= 0) {
            watch_output(channel, TRUE);
            return;
        }
        channel->head_done += (gsize)n;
        channel->queued -= (gsize)n;
        if (channel->head_done == len) {
            g_bytes_unref(g_queue_pop_head(&channel->queue));
            channel->head_done = 0;
        }
    }
    watch_output(channel, FALSE);
}

static void enqueue(SvChannel *channel, GBytes *bytes)
{
    channel->queued += g_bytes_get_size(bytes);
    g_queue_push_tail(&channel->queue, bytes);
    flush(channel);
}

/* In turn, one frame each, until the queue is long or nobody has any more. */
static void serve_waiters(SvChannel *channel)
{
    if (channel->serving)
        return;
    channel->serving = TRUE;
    while (channel->session && channel->queued < QUEUE_HIGH) {
        SvChannelWaiter *waiter = g_queue_pop_head(&channel->waiters);

        if (!waiter)
            break;
        waiter->queued = FALSE;
        if (waiter->func(waiter) && !waiter->queued) {
            waiter->queued = TRUE;
            g_queue_push_tail(&channel->waiters, waiter);
        }
    }
    channel->serving = FALSE;
}

/* ---- input */

static void begin_session(SvChannel *channel, const guint8 *tail)
{
    const guint8 *session = tail;
    gsize len = SV_SYNC_ID_LEN;
    guint8 *answer = g_malloc(KEY_LEN);

    if (!channel->has_token) {
        guint8 key[KEY_LEN];

        memcpy(key, sv_sync_magic, SV_SYNC_MAGIC_LEN);
        memcpy(key + SV_SYNC_MAGIC_LEN, tail, SV_SYNC_ID_LEN);
        sv_sync_scanner_free(channel->scanner);
        channel->scanner = sv_sync_scanner_new(key, KEY_LEN, SV_SYNC_ID_LEN);
        /* The start of the next pattern may lie in this tail. */
        sv_sync_scanner_feed(channel->scanner, tail, 2 * SV_SYNC_ID_LEN, NULL);
        channel->has_token = TRUE;
        session = tail + SV_SYNC_ID_LEN;
        len = 2 * SV_SYNC_ID_LEN;
    }
    memcpy(answer, sv_sync_magic, SV_SYNC_MAGIC_LEN);
    memcpy(answer + SV_SYNC_MAGIC_LEN, session, SV_SYNC_ID_LEN);
    clear_queue(channel);
    sv_frame_reader_reset(channel->reader);
    channel->session = ++channel->sessions;
    g_info("channel: session %" G_GUINT64_FORMAT, channel->session);
    enqueue(channel, g_bytes_new_take(answer, KEY_LEN));
    channel->funcs->synced(tail, len, channel->user_data);
}

static void hand_out_frames(SvChannel *channel)
{
    g_autoptr(GError) error = NULL;
    SvFrame frame;
    int r;

    while (channel->session && (r = sv_frame_reader_next(channel->reader, &frame, &error)) != 0) {
        if (r < 0) {
            g_info("channel: %s; waiting for a new session", error->message);
            channel->session = 0;
            clear_queue(channel);
            sv_frame_reader_reset(channel->reader);
            return;
        }
        channel->funcs->frame(&frame, channel->user_data);
    }
}

/* @in_place: the bytes already lie in the reader's space. */
static void take_bytes(SvChannel *channel, const guint8 *data, gsize len, gboolean in_place)
{
    guint8 tail[2 * SV_SYNC_ID_LEN];
    gsize used = sv_sync_scanner_feed(channel->scanner, data, len, tail);
    g_autofree guint8 *rest = NULL;

    if (used == 0) {
        if (!channel->session)
            return;
        if (in_place)
            sv_frame_reader_added(channel->reader, len);
        else
            sv_frame_reader_push(channel->reader, data, len);
        hand_out_frames(channel);
        return;
    }
    rest = g_memdup2(data + used, len - used);
    begin_session(channel, tail);
    take_bytes(channel, rest, len - used, FALSE);
}

static void read_all(SvChannel *channel)
{
    for (;;) {
        guint8 scan[SCAN_ROOM];
        guint8 *space = scan;
        gsize room = sizeof(scan);
        gboolean in_place = channel->session != 0;
        ssize_t n;

        if (in_place)
            space = sv_frame_reader_space(channel->reader, &room);
        n = read(channel->fd, space, room);
        if (n > 0)
            take_bytes(channel, space, (gsize)n, in_place);
        else if (n == 0 || errno != EINTR)
            return; /* 0: the host's end is closed; the next edge tells of the next one */
    }
}

static gboolean on_event(gint fd, GIOCondition condition, gpointer user_data)
{
    SvChannel *channel = user_data;
    struct epoll_event event;

    if (epoll_wait(channel->epoll, &event, 1, 0) != 1)
        return G_SOURCE_CONTINUE;
    read_all(channel);
    flush(channel);
    serve_waiters(channel);
    return G_SOURCE_CONTINUE;
}

/* ---- public */

SvChannel *sv_channel_new(int fd, const SvChannelFuncs *funcs, gpointer user_data, GError **error)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    SvChannel *channel = g_new0(SvChannel, 1);

    channel->fd = fd;
    channel->funcs = funcs;
    channel->user_data = user_data;
    channel->reader = sv_frame_reader_new(SV_FRAME_MAX);
    channel->scanner = sv_sync_scanner_new(sv_sync_magic, SV_SYNC_MAGIC_LEN, 2 * SV_SYNC_ID_LEN);
    g_queue_init(&channel->queue);
    g_queue_init(&channel->waiters);
    channel->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (channel->epoll < 0 || !sv_fd_set_nonblock(fd, TRUE) ||
        epoll_ctl(channel->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
        sv_error_set_errno(error, SV_RPC_ERROR, errno, "watch the channel");
        sv_channel_free(channel);
        return NULL;
    }
    channel->source = g_unix_fd_add(channel->epoll, G_IO_IN, on_event, channel);
    return channel;
}

void sv_channel_free(SvChannel *channel)
{
    SvChannelWaiter *waiter;

    if (!channel)
        return;
    if (channel->source)
        g_source_remove(channel->source);
    while ((waiter = g_queue_pop_head(&channel->waiters)))
        waiter->queued = FALSE;
    clear_queue(channel);
    sv_frame_reader_free(channel->reader);
    sv_sync_scanner_free(channel->scanner);
    sv_fd_close(channel->epoll);
    sv_fd_close(channel->fd);
    g_free(channel);
}

guint64 sv_channel_session(const SvChannel *channel)
{
    return channel->session;
}

void sv_channel_send(SvChannel *channel, GBytes *frame)
{
    if (channel->session)
        enqueue(channel, frame);
    else
        g_bytes_unref(frame);
}

void sv_channel_wait(SvChannel *channel, SvChannelWaiter *waiter)
{
    if (!waiter->queued) {
        waiter->queued = TRUE;
        g_queue_push_tail(&channel->waiters, waiter);
    }
    serve_waiters(channel);
}

void sv_channel_forget_waiter(SvChannel *channel, SvChannelWaiter *waiter)
{
    if (waiter->queued)
        g_queue_remove(&channel->waiters, waiter);
    waiter->queued = FALSE;
}
