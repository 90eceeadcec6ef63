/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
#include "shim/root.h"
#include "shim/shim.h"
#include "shim/terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATUS_LOST 137 /* as if it was killed */

void sv_shim_init(SvShim *shim)
{
    memset(shim, 0, sizeof(*shim));
    for (int i = 0; i < 3; i++)
        shim->stdio[i].fd = -1;
    shim->signal_fd = shim->watch_fd = -1;
    shim->caller_fd = SV_SHIM_CALLER_FD;
    shim->sock_fd = SV_SHIM_SOCK_FD;
    sv_peer_init(&shim->monitor);
    sv_peer_init(&shim->launcher);
    shim->status = STATUS_LOST;
}

void sv_shim_clear(SvShim *shim)
{
    for (int i = 0; i < 3; i++)
        sv_stdio_close(&shim->stdio[i]);
    sv_descriptors_clear(shim);
    sv_input_clear(&shim->input);
    sv_output_clear(&shim->output[0]);
    sv_output_clear(&shim->output[1]);
    sv_peer_close(&shim->monitor);
    sv_peer_close(&shim->launcher);
    sv_fd_clear(&shim->signal_fd);
    sv_fd_clear(&shim->watch_fd);
    sv_fd_clear(&shim->caller_fd);
    sv_fd_clear(&shim->sock_fd);
}

void sv_shim_tell(SvShim *shim, char kind, const char *text)
{
    g_autofree char *message = g_strdup_printf("%c%s", kind, text);

    if (shim->caller_fd >= 0)
        sv_fd_send(shim->caller_fd, message, MIN(strlen(message), 4096), NULL, 0);
}

/* Every signal is read, none acts; only KILL and STOP cannot be had. */
static gboolean take_signals(SvShim *shim, GError **error)
{
    sigset_t all;

    sigfillset(&all);
    if (sigprocmask(SIG_SETMASK, &all, NULL) == 0)
        shim->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (shim->signal_fd >= 0)
        return TRUE;
    sv_error_set_errno(error, SV_SHIM_ERROR, errno, "take the signals");
    return FALSE;
}

static gboolean open_terminal(SvShim *shim, GError **error)
{
    const SvShimOptions *options = &shim->options;
    int slave = sv_terminal_open(options->console_socket, options->rows, options->cols, error);
    int copy;

    if (slave < 0)
        return FALSE;
    copy = fcntl(slave, F_DUPFD_CLOEXEC, 0);
    sv_stdio_own(&shim->stdio[0], slave);
    sv_stdio_own(&shim->stdio[1], copy);
    return copy >= 0;
}

/* Afterwards 0, 1 and 2 are /dev/null, and the caller's are held nowhere else. */
static gboolean take_streams(SvShim *shim, GError **error)
{
    gboolean console = shim->options.terminal && *shim->options.console_socket;

    for (int i = 0; i < 3; i++)
        if (!sv_stdio_take(&shim->stdio[i], i, error))
            return FALSE;
    if (console) {
        for (int i = 0; i < 3; i++)
            sv_stdio_close(&shim->stdio[i]);
        if (!open_terminal(shim, error))
            return FALSE;
    } else if (shim->options.terminal) {
        /* The caller's own terminal, or pipes. The guest's terminal has one output. */
        sv_stdio_close(&shim->stdio[2]);
    }
    if (shim->options.no_stdin) {
        sv_stdio_close(&shim->stdio[0]);
        sv_input_end(&shim->input);
    }
    return TRUE;
}

static gboolean watch_sockets(SvShim *shim, GError **error)
{
    shim->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (shim->watch_fd >= 0 && fchdir(shim->sock_fd) == 0 &&
        inotify_add_watch(shim->watch_fd, ".", IN_CREATE | IN_MOVED_TO) >= 0 && chdir("/") == 0)
        return TRUE;
    sv_error_set_errno(error, SV_SHIM_ERROR, errno, "watch the sockets");
    return FALSE;
}

static void initial_size(SvShim *shim)
{
    if (!shim->options.terminal)
        return;
    shim->rows = shim->options.rows;
    shim->cols = shim->options.cols;
    if (!sv_terminal_size(shim->stdio[1].fd, &shim->rows, &shim->cols))
        sv_terminal_size(shim->stdio[0].fd, &shim->rows, &shim->cols);
    if (shim->rows == 0 || shim->cols == 0) {
        shim->rows = SV_TERMINAL_ROWS;
        shim->cols = SV_TERMINAL_COLS;
    }
}

gboolean sv_shim_set_up(SvShim *shim, GError **error)
{
    /* A session of its own; in a pid namespace of its own it may have one already (0). */
    if (setsid() < 0 && getsid(0) != getpid()) {
        sv_error_set_errno(error, SV_SHIM_ERROR, errno, "new session");
        return FALSE;
    }
    if (!take_signals(shim, error) || !take_streams(shim, error) ||
        !sv_descriptors_take(shim, error) || !watch_sockets(shim, error) || !sv_root_empty(error))
        return FALSE;
    initial_size(shim);
    return TRUE;
}
