/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/shim.h"
#include "shim/terminal.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_CHUNK (64 * 1024)

/* Places in the array for poll. */
enum {
    AT_SIGNALS,
    AT_CALLER,
    AT_MONITOR,
    AT_LAUNCHER,
    AT_WATCH,
    AT_STDIN,
    AT_STDOUT,
    AT_STDERR,
    N_AT
};

void sv_shim_end(SvShim *shim, int status)
{
    shim->status = status;
    shim->done = TRUE;
}

/* ---- the caller's descriptors */

/* Input flows only to a process that is there: kept in the caller's pipe before. */
static gboolean wants_input(const SvShim *shim)
{
    return shim->released && !shim->exiting && shim->link == SV_LINK_UP &&
        shim->stdio[0].kind != SV_STDIO_CLOSED && sv_input_room(&shim->input) > 0;
}

gboolean sv_shim_read(SvStdio *io, SvInput *input)
{
    guint8 chunk[READ_CHUNK];
    gsize room = MIN(sv_input_room(input), sizeof(chunk));
    ssize_t n = sv_stdio_read(io, chunk, room);

    if (n > 0)
        sv_input_read(input, chunk, (gsize)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

gboolean sv_shim_write(SvStdio *io, SvOutput *output)
{
    ssize_t n = sv_stdio_write(io, sv_byte_queue_peek(&output->waiting), output->waiting.len);

    if (n >= 0)
        sv_output_wrote(output, (gsize)n);
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static void read_input(SvShim *shim)
{
    if (sv_shim_read(&shim->stdio[0], &shim->input))
        return;
    sv_input_end(&shim->input);
    sv_stdio_close(&shim->stdio[0]);
}

static void write_output(SvShim *shim, guint i)
{
    SvOutput *output = &shim->output[i];
    SvStdio *io = &shim->stdio[1 + i];

    if (shim->options.terminal && io->tty)
        sv_terminal_keep_raw(io->fd);
    if (sv_shim_write(io, output))
        return;
    sv_output_break(output);
    sv_stdio_close(io);
}

/* A stream that has ended is closed here too; one that is closed breaks. */
static void settle_output(SvShim *shim, guint i)
{
    SvOutput *output = &shim->output[i];
    SvStdio *io = &shim->stdio[1 + i];

    if (output->waiting.len > 0 && io->kind == SV_STDIO_CLOSED)
        sv_output_break(output);
    if (output->eof && sv_output_drained(output))
        sv_stdio_close(io);
}

/* ---- the starter */

static void on_caller(SvShim *shim)
{
    char message[16];
    ssize_t n = recv(shim->caller_fd, message, sizeof(message), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && message[0] == SV_SHIM_GO) {
        shim->released = TRUE;
        sv_fd_clear(&shim->caller_fd);
        if (shim->link == SV_LINK_DOWN)
            sv_link_start(shim);
        return;
    }
    /* It has gone or given up before the container was there. */
    sv_shim_end(shim, shim->status);
}

/* ---- the loop */

static void fill_poll(const SvShim *shim, struct pollfd *fds)
{
    for (int i = 0; i < N_AT; i++)
        fds[i] = (struct pollfd){-1, POLLIN, 0};
    fds[AT_SIGNALS].fd = shim->signal_fd;
    fds[AT_CALLER].fd = shim->caller_fd;
    fds[AT_WATCH].fd = shim->watch_fd;
    fds[AT_MONITOR].fd = shim->monitor.fd;
    fds[AT_MONITOR].events = sv_peer_events(&shim->monitor);
    fds[AT_LAUNCHER].fd = shim->launcher.fd;
    fds[AT_LAUNCHER].events = sv_peer_events(&shim->launcher);
    if (wants_input(shim))
        fds[AT_STDIN].fd = shim->stdio[0].fd;
    for (int i = 0; i < 2; i++) {
        if (shim->output[i].waiting.len > 0)
            fds[AT_STDOUT + i] = (struct pollfd){shim->stdio[1 + i].fd, POLLOUT, 0};
    }
    sv_descriptors_fill_poll(shim, fds + N_AT);
}

static void dispatch(SvShim *shim, const struct pollfd *fds)
{
    if (fds[AT_SIGNALS].revents)
        sv_shim_on_signals(shim);
    if (fds[AT_CALLER].revents)
        on_caller(shim);
    if (fds[AT_STDIN].revents)
        read_input(shim);
    for (guint i = 0; i < 2; i++)
        if (fds[AT_STDOUT + i].revents)
            write_output(shim, i);
    sv_descriptors_dispatch(shim, fds + N_AT);
    if (fds[AT_MONITOR].revents && fds[AT_MONITOR].fd == shim->monitor.fd)
        sv_link_on_monitor(shim, fds[AT_MONITOR].revents);
    if (fds[AT_LAUNCHER].revents && fds[AT_LAUNCHER].fd == shim->launcher.fd)
        sv_link_on_launcher(shim);
    if (fds[AT_WATCH].revents)
        sv_link_on_watch(shim);
}

int sv_shim_run(SvShim *shim)
{
    while (!shim->done) {
        struct pollfd fds[N_AT + SV_DESCRIPTORS_MAX];

        settle_output(shim, 0);
        settle_output(shim, 1);
        sv_descriptors_settle(shim);
        sv_serve_push(shim);
        if (shim->done)
            break;
        fill_poll(shim, fds);
        if (poll(fds, N_AT + shim->options.descriptors, -1) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        dispatch(shim, fds);
    }
    return shim->status;
}
