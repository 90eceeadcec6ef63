/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/foreground.h"
#include "base/command.h"
#include "base/fd.h"
#include "base/process.h"
#include "cli/options.h"
#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

void sv_foreground_begin(SvForeground *fg, gboolean terminal)
{
    struct termios settings;
    sigset_t all;

    sigfillset(&all);
    fg->active = sigprocmask(SIG_SETMASK, &all, &fg->old_mask) == 0;
    fg->raw = terminal && tcgetattr(STDIN_FILENO, &fg->old_settings) == 0;
    if (!fg->raw)
        return;
    settings = fg->old_settings;
    cfmakeraw(&settings);
    fg->raw = tcsetattr(STDIN_FILENO, TCSANOW, &settings) == 0;
}

void sv_foreground_end(SvForeground *fg)
{
    if (fg->raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &fg->old_settings);
    if (fg->active)
        sigprocmask(SIG_SETMASK, &fg->old_mask, NULL);
    fg->raw = fg->active = FALSE;
}

/* The shim tells the guest; a change of size it looks up itself. */
static void pass_signals(int signal_fd, int pidfd)
{
    struct signalfd_siginfo info;

    while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGPIPE)
            sv_process_signal(pidfd, (int)info.ssi_signo);
}

int sv_foreground_wait(SvForeground *fg, pid_t pid, int pidfd, GError **error)
{
    g_auto(SvFd) signal_fd = -1;
    sigset_t all;
    int status;

    sigfillset(&all);
    signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "signalfd");
        return -1;
    }
    for (;;) {
        struct pollfd fds[] = {{pidfd, POLLIN, 0}, {signal_fd, POLLIN, 0}};

        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            sv_error_set_errno(error, SV_CLI_ERROR, errno, "poll");
            return -1;
        }
        if (fds[1].revents)
            pass_signals(signal_fd, pidfd);
        if (fds[0].revents)
            break;
    }
    status = sv_command_wait(pid);
    if (status < 0)
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "wait for process %d", (int)pid);
    return status;
}
