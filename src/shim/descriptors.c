/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Descriptors that the caller gives the process beside the three. In the machine each is a socket, whose two
 * directions are streams as those of stdin and stdout are. The agent keeps nothing of them for another
 * monitor: with the connection they end. */
#include "shim/shim.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static gboolean take(SvDescriptor *descriptor, int fd, GError **error)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0) {
        sv_error_set_errno(error, SV_SHIM_ERROR, errno, "descriptor %d", fd);
        return FALSE;
    }
    descriptor->mode = flags & O_ACCMODE;
    if (!sv_stdio_take(&descriptor->io, fd, error))
        return FALSE;
    close(fd); /* /dev/null by now */
    if (descriptor->mode == O_WRONLY)
        sv_input_end(&descriptor->input);
    if (descriptor->mode == O_RDONLY)
        sv_output_break(&descriptor->output);
    return TRUE;
}

gboolean sv_descriptors_take(SvShim *shim, GError **error)
{
    guint n = shim->options.descriptors;

    shim->descriptors = n > 0 ? g_new0(SvDescriptor, n) : NULL;
    for (guint i = 0; i < n; i++)
        shim->descriptors[i].io.fd = -1;
    for (guint i = 0; i < n; i++)
        if (!take(&shim->descriptors[i], SV_SHIM_FIRST_DESCRIPTOR + (int)i, error))
            return FALSE;
    return TRUE;
}

void sv_descriptors_clear(SvShim *shim)
{
    for (guint i = 0; shim->descriptors && i < shim->options.descriptors; i++) {
        sv_stdio_close(&shim->descriptors[i].io);
        sv_input_clear(&shim->descriptors[i].input);
        sv_output_clear(&shim->descriptors[i].output);
    }
    g_clear_pointer(&shim->descriptors, g_free);
}

void sv_descriptors_break(SvShim *shim)
{
    for (guint i = 0; i < shim->options.descriptors; i++) {
        SvDescriptor *descriptor = &shim->descriptors[i];

        sv_stdio_close(&descriptor->io);
        sv_input_clear(&descriptor->input);
        sv_input_rewind(&descriptor->input);
        sv_input_end(&descriptor->input);
        sv_output_break(&descriptor->output);
    }
}

gboolean sv_descriptors_frame(SvShim *shim, const SvFrame *frame, GError **error)
{
    guint i = sv_descriptor_index(frame->stream);
    guint stream = frame->flags & SV_STREAM_MASK;
    SvDescriptor *descriptor = NULL;
    const guint8 *data = NULL;
    guint64 offset = 0;
    gsize len = 0;

    if (sv_descriptor_owner(frame->stream) != shim->options.handle ||
        i >= shim->options.descriptors ||
        stream != (frame->type == SV_FRAME_ACK ? SV_STREAM_STDIN : SV_STREAM_STDOUT) ||
        !sv_frame_parse_offset(frame, &offset, &data, &len)) {
        g_set_error(error, SV_SHIM_ERROR, SV_ERR_INVALID, "not a frame for this shim");
        return FALSE;
    }
    descriptor = &shim->descriptors[i];
    if (frame->type == SV_FRAME_DATA)
        return sv_output_data(
            &descriptor->output, offset, data, len, (frame->flags & SV_FLAG_EOF) != 0, error);
    return sv_input_ack(&descriptor->input, offset, (frame->flags & SV_FLAG_BROKEN) != 0, error);
}

/* Nothing comes any more: who reads at the other end of a socket is told. */
static void settle(SvDescriptor *descriptor)
{
    SvOutput *output = &descriptor->output;
    gboolean out_over = output->broken || (output->eof && sv_output_drained(output));
    gboolean in_over = descriptor->input.eof || descriptor->input.broken;

    if (output->waiting.len > 0 && descriptor->io.kind == SV_STDIO_CLOSED)
        sv_output_break(output);
    if (descriptor->io.kind == SV_STDIO_CLOSED || !out_over)
        return;
    if (in_over)
        sv_stdio_close(&descriptor->io);
    else if (descriptor->io.kind == SV_STDIO_SOCKET)
        shutdown(descriptor->io.fd, SHUT_WR);
}

void sv_descriptors_settle(SvShim *shim)
{
    for (guint i = 0; i < shim->options.descriptors; i++)
        settle(&shim->descriptors[i]);
}

/* Input flows only to a process that is there: kept in the caller's pipe before. */
static gboolean wants_input(const SvShim *shim, const SvDescriptor *descriptor)
{
    return shim->released && !shim->exiting && shim->link == SV_LINK_UP &&
        descriptor->io.kind != SV_STDIO_CLOSED && sv_input_room(&descriptor->input) > 0;
}

void sv_descriptors_fill_poll(const SvShim *shim, struct pollfd *fds)
{
    for (guint i = 0; i < shim->options.descriptors; i++) {
        const SvDescriptor *descriptor = &shim->descriptors[i];
        short events = wants_input(shim, descriptor) ? POLLIN : 0;

        if (descriptor->output.waiting.len > 0)
            events |= POLLOUT;
        fds[i] = (struct pollfd){events ? descriptor->io.fd : -1, events, 0};
    }
}

void sv_descriptors_dispatch(SvShim *shim, const struct pollfd *fds)
{
    for (guint i = 0; i < shim->options.descriptors; i++) {
        SvDescriptor *descriptor = &shim->descriptors[i];

        if (!fds[i].revents)
            continue;
        if (fds[i].events & POLLIN && !sv_shim_read(&descriptor->io, &descriptor->input))
            sv_input_end(&descriptor->input);
        if (fds[i].events & POLLOUT && !sv_shim_write(&descriptor->io, &descriptor->output))
            sv_output_break(&descriptor->output);
    }
}

gboolean sv_descriptors_drained(const SvShim *shim)
{
    for (guint i = 0; i < shim->options.descriptors; i++)
        if (!sv_output_drained(&shim->descriptors[i].output))
            return FALSE;
    return TRUE;
}
