/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/output.h"
#include "base/fd.h"
#include "rpc/message.h"
#include <errno.h>
#include <glib-unix.h>
#include <unistd.h>

static void update_source(SvOutput *output);

static void stop_reading(SvOutput *output)
{
    if (output->source) {
        g_source_remove(output->source);
        output->source = 0;
    }
}

static void close_fd(SvOutput *output)
{
    stop_reading(output);
    sv_fd_clear(&output->fd);
}

static gboolean sendable(const SvOutput *output)
{
    if (output->broken || !output->greeted || output->eof_sent)
        return FALSE;
    if (!output->attached)
        return output->eof && output->backlog.len == 0; /* only the end is left to be told */
    return sv_backlog_unsent(&output->backlog) || output->eof;
}

/* One DATA frame. */
static gboolean send_one(SvChannelWaiter *waiter)
{
    SvOutput *output = (SvOutput *)waiter;
    GBytes *frame;
    guint8 flags;

    if (!sendable(output))
        return FALSE;
    flags = output->reset ? SV_FLAG_EOF | SV_FLAG_BROKEN : SV_FLAG_EOF;
    frame = sv_backlog_take(&output->backlog, output->eof ? flags : 0);
    output->eof_sent = output->eof && !sv_backlog_unsent(&output->backlog);
    sv_channel_send(output->channel, frame);
    if (output->eof_sent)
        output->func(output, output->user_data);
    return sendable(output);
}

static void pump(SvOutput *output)
{
    if (sendable(output))
        sv_channel_wait(output->channel, &output->waiter);
}

static void set_eof(SvOutput *output)
{
    if (output->eof)
        return;
    output->eof = TRUE;
    pump(output);
}

/* Reads and drops what nobody will get, so that what is left in the container can end. */
static void discard(SvOutput *output)
{
    guint8 waste[16 * 1024];
    ssize_t n = read(output->fd, waste, sizeof(waste));

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_fd(output);
}

/* One read; FALSE when there is nothing now, or no more at all. */
static gboolean fill(SvOutput *output)
{
    ssize_t n = sv_backlog_read(&output->backlog, output->fd);

    if (n > 0) {
        pump(output);
        return TRUE;
    }
    if (n < 0 && errno == EINTR)
        return TRUE;
    if (n < 0 && errno == EAGAIN) {
        if (output->ended)
            set_eof(output);
        return FALSE;
    }
    /* A terminal answers EIO when its other side is closed. */
    if (n < 0 && errno != EIO) {
        g_debug("output of %u: %s", output->handle, g_strerror(errno));
        output->reset = output->connection;
    }
    close_fd(output);
    set_eof(output);
    return FALSE;
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer user_data)
{
    SvOutput *output = user_data;

    if (output->eof)
        discard(output);
    else
        fill(output);
    update_source(output);
    return G_SOURCE_CONTINUE;
}

/* Reads only while there is room. The source is gone meanwhile: a hang-up is always reported. */
static void update_source(SvOutput *output)
{
    gboolean want = output->fd >= 0 && (output->eof || sv_backlog_room(&output->backlog) > 0);

    if (want && !output->source)
        output->source =
            g_unix_fd_add(output->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, output);
    else if (!want)
        stop_reading(output);
}

/* After the process's end everything that is there is read, as far as there is room. */
static void drain(SvOutput *output)
{
    while (output->fd >= 0 && !output->eof && sv_backlog_room(&output->backlog) > 0)
        if (!fill(output))
            break;
    update_source(output);
}

SvOutput *sv_output_new(SvChannel *channel, guint32 handle, guint8 stream, int fd,
    SvOutputFunc func, gpointer user_data)
{
    SvOutput *output = g_new0(SvOutput, 1);

    output->waiter.func = send_one;
    output->channel = channel;
    output->handle = handle;
    output->func = func;
    output->user_data = user_data;
    output->fd = fd;
    sv_fd_set_nonblock(fd, TRUE);
    sv_backlog_init(&output->backlog, handle, stream, SV_STREAM_WINDOW);
    return output;
}

static gboolean on_leftover(gint fd, GIOCondition condition, gpointer user_data)
{
    guint8 waste[16 * 1024];
    ssize_t n = read(fd, waste, sizeof(waste));

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return G_SOURCE_CONTINUE;
    close(fd);
    return G_SOURCE_REMOVE;
}

void sv_output_free(SvOutput *output)
{
    if (!output)
        return;
    /* A child that the process left behind may still write, and is not to be killed by that. */
    if (output->ended && output->fd >= 0)
        g_unix_fd_add(sv_fd_steal(&output->fd), G_IO_IN | G_IO_HUP | G_IO_ERR, on_leftover, NULL);
    sv_channel_forget_waiter(output->channel, &output->waiter);
    close_fd(output);
    sv_backlog_clear(&output->backlog);
    g_free(output);
}

void sv_output_start(SvOutput *output, gboolean attached)
{
    output->attached = attached;
    output->greeted = attached;
    update_source(output);
}

void sv_output_reset(SvOutput *output)
{
    output->greeted = output->attached = output->eof_sent = FALSE;
    sv_backlog_rewind(&output->backlog);
    sv_channel_forget_waiter(output->channel, &output->waiter);
}

void sv_output_greet(SvOutput *output)
{
    output->greeted = TRUE;
    pump(output);
}

void sv_output_attach(SvOutput *output, guint64 offset)
{
    output->attached = TRUE;
    output->eof_sent = FALSE;
    sv_backlog_drop(&output->backlog, offset);
    sv_backlog_rewind(&output->backlog);
    if (output->ended)
        drain(output);
    update_source(output);
    pump(output);
}

void sv_output_ack(SvOutput *output, guint64 offset)
{
    if (output->broken)
        return;
    sv_backlog_drop(&output->backlog, MIN(offset, output->backlog.sent));
    if (output->ended && !output->eof)
        drain(output);
    if (output->eof && output->backlog.len == 0)
        sv_backlog_clear(&output->backlog);
    update_source(output);
    pump(output);
}

void sv_output_break(SvOutput *output)
{
    if (output->broken)
        return;
    output->broken = TRUE;
    output->eof = TRUE;
    close_fd(output);
    sv_backlog_clear(&output->backlog);
    sv_channel_forget_waiter(output->channel, &output->waiter);
    output->func(output, output->user_data);
}

void sv_output_end(SvOutput *output)
{
    output->ended = TRUE;
    drain(output);
}

gboolean sv_output_done(const SvOutput *output)
{
    return output->broken || output->eof_sent;
}
