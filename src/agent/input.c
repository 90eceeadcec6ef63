/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/input.h"
#include "base/fd.h"
#include "rpc/message.h"
#include <errno.h>
#include <glib-unix.h>
#include <sys/socket.h>
#include <unistd.h>

/* The host keeps at most one window unacknowledged; twice that is a host that does not count. */
#define INPUT_MAX (2 * SV_STREAM_WINDOW)

static gboolean on_event(gint fd, GIOCondition condition, gpointer user_data);

static void send_ack(SvInput *input)
{
    guint8 flags = SV_STREAM_STDIN | (input->broken ? SV_FLAG_BROKEN : 0);
    guint64 offset = input->broken ? sv_ring_end(&input->ring) : input->ring.base;

    sv_channel_send(input->channel, sv_message_ack(input->handle, flags, offset));
}

static void close_fd(SvInput *input)
{
    if (input->source) {
        g_source_remove(input->source);
        input->source = 0;
    }
    if (input->fd < 0)
        return;
    if (input->socket)
        shutdown(input->fd, SHUT_WR);
    sv_fd_clear(&input->fd);
    if (input->closed)
        input->closed(input->user_data);
}

static void set_broken(SvInput *input)
{
    if (input->broken)
        return;
    input->broken = TRUE;
    close_fd(input);
    sv_ring_clear(&input->ring);
    send_ack(input);
}

static void watch(SvInput *input)
{
    gboolean out = input->ring.len > 0;

    if (input->fd < 0 || (input->source && input->watch_out == out))
        return;
    if (input->source)
        g_source_remove(input->source);
    input->watch_out = out;
    /* A terminal's master reports a hang-up that its output side handles. */
    if (input->terminal && !out)
        input->source = 0;
    else
        input->source =
            g_unix_fd_add(input->fd, out ? G_IO_OUT | G_IO_ERR : G_IO_ERR, on_event, input);
}

static void write_out(SvInput *input)
{
    guint64 before = input->ring.base;

    while (input->fd >= 0 && input->ring.len > 0) {
        ssize_t n = sv_ring_write_fd(&input->ring, input->fd, SV_DATA_CHUNK);

        if (n > 0) {
            sv_ring_drop(&input->ring, input->ring.base + (gsize)n);
        } else if (n < 0 && errno == EAGAIN) {
            break;
        } else if (n < 0 && errno != EINTR) {
            input->reset = errno == ECONNRESET;
            set_broken(input);
            return;
        }
    }
    if (input->ring.base != before)
        send_ack(input);
    if (input->eof && input->ring.len == 0 && !input->terminal) {
        close_fd(input);
        sv_ring_clear(&input->ring);
    }
    watch(input);
}

static gboolean on_event(gint fd, GIOCondition condition, gpointer user_data)
{
    SvInput *input = user_data;

    /* The last reader closed the pipe. */
    if (condition & (G_IO_ERR | G_IO_HUP | G_IO_NVAL))
        set_broken(input);
    else
        write_out(input);
    return G_SOURCE_CONTINUE;
}

SvInput *sv_input_new(SvChannel *channel, guint32 handle, int fd, gboolean terminal)
{
    SvInput *input = g_new0(SvInput, 1);

    input->channel = channel;
    input->handle = handle;
    input->fd = fd;
    input->terminal = terminal;
    input->broken = fd < 0;
    sv_ring_init(&input->ring, INPUT_MAX);
    if (fd >= 0)
        sv_fd_set_nonblock(fd, TRUE);
    return input;
}

void sv_input_free(SvInput *input)
{
    if (!input)
        return;
    input->closed = NULL;
    close_fd(input);
    sv_ring_clear(&input->ring);
    g_free(input);
}

void sv_input_start(SvInput *input)
{
    watch(input);
}

void sv_input_data(SvInput *input, guint64 offset, const guint8 *data, gsize len, gboolean eof)
{
    guint64 end = sv_ring_end(&input->ring);

    if (input->broken || input->eof) {
        send_ack(input);
        return;
    }
    if (offset > end) {
        g_warning("input of %u: gap at %" G_GUINT64_FORMAT ", ignoring %" G_GSIZE_FORMAT " bytes",
            input->handle, end, len);
        return;
    }
    if (offset + len > end) {
        gsize skip = (gsize)(end - offset);
        gsize added = sv_ring_append(&input->ring, data + skip, len - skip);

        if (added < len - skip) {
            g_warning("input of %u: more than the window, ignoring the rest", input->handle);
            eof = FALSE;
        }
    } else if (len > 0) {
        send_ack(input); /* the answer to it was lost */
    }
    if (eof)
        input->eof = TRUE;
    write_out(input);
}

void sv_input_end(SvInput *input)
{
    if (input->broken)
        return;
    if (input->fd >= 0)
        set_broken(input);
}

guint64 sv_input_received(const SvInput *input)
{
    return sv_ring_end(&input->ring);
}
