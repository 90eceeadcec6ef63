/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "flow-proc.h"

#include "base/command.h"
#include "base/fd.h"
#include "base/process.h"

#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CONTROL_FD 3

static void reap(FlowProc *proc)
{
    siginfo_t info = {0};
    int r = TEMP_FAILURE_RETRY(waitid(P_PID, (id_t)proc->pid, &info, WEXITED));
    g_assert_cmpint(r, ==, 0);
    proc->ended = TRUE;
    proc->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static gboolean on_end(gint fd, GIOCondition condition, gpointer user_data)
{
    FlowProc *proc = user_data;
    proc->watch = 0;
    reap(proc);
    if (proc->on_end)
        proc->on_end(proc->user_data);
    return G_SOURCE_REMOVE;
}

FlowProc *flow_proc_new(const char *arg, int clone_flags)
{
    FlowProc *proc = g_new0(FlowProc, 1);
    g_autoptr(SvCommand) cmd = sv_command_new(FLOW_HELPER);
    g_autoptr(GError) error = NULL;
    int pair[2];
    int r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
    g_assert_cmpint(r, ==, 0);
    if (arg)
        sv_command_add_arg(cmd, arg);
    sv_command_set_clone_flags(cmd, clone_flags);
    sv_command_map_fd(cmd, pair[1], CONTROL_FD);
    gboolean started = sv_command_spawn(cmd, &proc->pid, &proc->pidfd, &error);
    g_assert_no_error(error);
    g_assert_true(started);
    sv_fd_close(pair[1]);
    proc->control = pair[0];
    g_assert_true(sv_process_start_time(proc->pid, &proc->start));
    proc->watch = g_unix_fd_add(proc->pidfd, G_IO_IN, on_end, proc);
    return proc;
}

void flow_proc_free(FlowProc *proc)
{
    if (!proc)
        return;
    if (proc->watch)
        g_source_remove(proc->watch);
    if (!proc->ended) {
        flow_proc_kill(proc);
        reap(proc);
    }
    sv_fd_close(proc->pidfd);
    sv_fd_close(proc->control);
    g_free(proc);
}

static int order(FlowProc *proc, char what, const char *path)
{
    g_autofree char *text = g_strdup_printf("%c%s", what, path);
    int fds[SV_FD_MAX_PASS];
    guint n_fds = 0;
    char answer;
    if (send(proc->control, text, strlen(text), MSG_NOSIGNAL) < 0)
        return -1;
    gint64 deadline = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;
    g_assert_cmpint(sv_fd_wait(proc->control, G_IO_IN, deadline), >, 0);
    ssize_t n = sv_fd_recv(proc->control, &answer, 1, fds, &n_fds);
    return n == 1 && answer == 'k' && n_fds == 1 ? fds[0] : -1;
}

int flow_proc_connect(FlowProc *proc, const char *path)
{
    return order(proc, 'c', path);
}

int flow_proc_listen(FlowProc *proc, const char *path)
{
    return order(proc, 'l', path);
}

void flow_proc_exit(FlowProc *proc, int status)
{
    const char text[] = {'x', (char)status};
    send(proc->control, text, sizeof text, MSG_NOSIGNAL);
}

void flow_proc_kill(FlowProc *proc)
{
    if (!proc->ended)
        sv_process_signal(proc->pidfd, SIGKILL);
}
