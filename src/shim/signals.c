/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sandvirt.pb-c.h"
#include "shim/shim.h"
#include "shim/terminal.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

void sv_shim_resize(SvShim *shim)
{
    guint rows = 0, cols = 0;
    Sandvirt__V1__ResizeRequest request = SANDVIRT__V1__RESIZE_REQUEST__INIT;

    if (!sv_terminal_size(shim->stdio[1].fd, &rows, &cols) &&
        !sv_terminal_size(shim->stdio[0].fd, &rows, &cols))
        return;
    if (rows == shim->rows && cols == shim->cols)
        return;
    shim->rows = rows;
    shim->cols = cols;
    request.handle = shim->options.handle;
    request.rows = rows;
    request.cols = cols;
    if (shim->link >= SV_LINK_ATTACHING)
        sv_peer_request(&shim->monitor, SV_SERVICE_SHIM, "Resize", &request.base);
}

static void on_signal(SvShim *shim, const struct signalfd_siginfo *info)
{
    int signo = (int)info->ssi_signo;
    /* A sender outside of our pid namespace has pid 0; what we cause ourselves (SIGPIPE) has ours. */
    gboolean sent = info->ssi_code <= 0 && info->ssi_pid != (guint32)getpid();

    if (signo == SIGCHLD && !sent)
        return;
    if (signo == SIGWINCH && shim->options.terminal) {
        sv_shim_resize(shim);
        return;
    }
    /* The kernel's: a terminal that was hung up sends HUP, then CONT. */
    if (!sent && signo != SIGHUP)
        return;
    if (signo >= 1 && signo <= 64)
        shim->signals |= G_GUINT64_CONSTANT(1) << (signo - 1);
}

void sv_shim_on_signals(SvShim *shim)
{
    struct signalfd_siginfo info;

    while (read(shim->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        on_signal(shim, &info);
    /* Processes that joined the pid namespace end up here. */
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}
