/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/process.h"
#include "agent/container.h"
#include "agent/event.h"
#include "agent/forward.h"
#include "base/fd.h"
#include "base/process.h"
#include "rpc/message.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

SvProcess *sv_process_add(
    SvAgent *agent, guint32 handle, const char *container_id, gboolean exec, GError **error)
{
    SvProcess *process;

    if (handle == 0) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_INVALID, "a process needs a handle");
        return NULL;
    }
    if (sv_process_lookup(agent, handle)) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_EXISTS, "handle %u is in use", handle);
        return NULL;
    }
    process = g_new0(SvProcess, 1);
    process->agent = agent;
    process->handle = handle;
    process->container_id = g_strdup(container_id);
    process->exec = exec;
    process->pidfd = process->tty = -1;
    g_hash_table_insert(agent->processes, GUINT_TO_POINTER(handle), process);
    return process;
}

SvProcess *sv_process_lookup(SvAgent *agent, guint32 handle)
{
    return g_hash_table_lookup(agent->processes, GUINT_TO_POINTER(handle));
}

void sv_process_free(SvProcess *process)
{
    if (!process)
        return;
    if (process->pid > 0 && process->state != SV_PROCESS_EXITED)
        sv_reaper_unwatch(process->agent->reaper, process->pid);
    sv_event_forget_process(process->agent, process->handle);
    sv_output_free(process->out[0]);
    sv_output_free(process->out[1]);
    sv_input_free(process->in);
    sv_fd_clear(&process->pidfd);
    sv_fd_clear(&process->tty);
    g_free(process->container_id);
    g_free(process);
}

void sv_process_drop(SvProcess *process)
{
    g_hash_table_remove(process->agent->processes, GUINT_TO_POINTER(process->handle));
}

static void on_output(SvOutput *output, gpointer user_data)
{
    sv_process_check_exit(user_data);
}

void sv_process_set_pipes(SvProcess *process, int in, int out, int err)
{
    SvChannel *channel = process->agent->channel;

    process->in = sv_input_new(channel, process->handle, in, FALSE);
    process->out[0] =
        sv_output_new(channel, process->handle, SV_STREAM_STDOUT, out, on_output, process);
    process->out[1] =
        sv_output_new(channel, process->handle, SV_STREAM_STDERR, err, on_output, process);
}

void sv_process_set_terminal(SvProcess *process, int master)
{
    SvChannel *channel = process->agent->channel;
    int in = fcntl(master, F_DUPFD_CLOEXEC, 3);
    int out = fcntl(master, F_DUPFD_CLOEXEC, 3);

    process->tty = master;
    process->in = sv_input_new(channel, process->handle, in, TRUE);
    process->out[0] =
        sv_output_new(channel, process->handle, SV_STREAM_STDOUT, out, on_output, process);
}

gboolean sv_process_resize(SvProcess *process, guint rows, guint cols, GError **error)
{
    struct winsize size = {.ws_row = (gushort)rows, .ws_col = (gushort)cols};

    if (process->tty < 0) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_STATE, "the process has no terminal");
        return FALSE;
    }
    if (ioctl(process->tty, TIOCSWINSZ, &size) < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "set the size of the terminal");
        return FALSE;
    }
    return TRUE;
}

static void on_reaped(pid_t pid, int status, gint64 time_ns, gpointer user_data)
{
    SvProcess *process = user_data;

    g_debug("process %u (pid %d) ended with %d", process->handle, pid, status);
    process->state = SV_PROCESS_EXITED;
    process->exit_code = status;
    process->exit_time_ns = time_ns;
    sv_fd_clear(&process->pidfd);
    sv_container_process_ended(process);
    if (process->in)
        sv_input_end(process->in);
    for (int i = 0; i < 2; i++)
        if (process->out[i])
            sv_output_end(process->out[i]);
    sv_forward_process_ended(process);
    sv_process_check_exit(process);
}

void sv_process_begin(SvProcess *process, pid_t pid, SvProcessState state, gboolean attached)
{
    process->pid = pid;
    process->state = state;
    process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process->in)
        sv_input_start(process->in);
    for (int i = 0; i < 2; i++)
        if (process->out[i])
            sv_output_start(process->out[i], attached);
    sv_reaper_watch(process->agent->reaper, pid, on_reaped, process);
}

gboolean sv_process_send_signal(SvProcess *process, int signo, GError **error)
{
    if (process->state == SV_PROCESS_EXITED || process->pidfd < 0) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_NOT_RUNNING, "process not running");
        return FALSE;
    }
    if (!sv_process_signal(process->pidfd, signo)) {
        int errsv = errno;

        if (errsv == ESRCH)
            g_set_error(error, SV_AGENT_ERROR, SV_ERR_NOT_RUNNING, "process not running");
        else
            sv_error_set_errno(error, SV_AGENT_ERROR, errsv, "send signal %d", signo);
        return FALSE;
    }
    return TRUE;
}

void sv_process_take_data(SvProcess *process, const SvFrame *frame)
{
    const guint8 *data = NULL;
    guint64 offset = 0;
    gsize len = 0;

    if ((frame->flags & SV_STREAM_MASK) != SV_STREAM_STDIN || !process->in ||
        !sv_frame_parse_offset(frame, &offset, &data, &len))
        return;
    sv_input_data(process->in, offset, data, len, (frame->flags & SV_FLAG_EOF) != 0);
}

void sv_process_take_ack(SvProcess *process, const SvFrame *frame)
{
    guint stream = frame->flags & SV_STREAM_MASK;
    SvOutput *output;
    guint64 offset = 0;

    if (stream != SV_STREAM_STDOUT && stream != SV_STREAM_STDERR)
        return;
    output = process->out[stream - SV_STREAM_STDOUT];
    if (!output || !sv_frame_parse_offset(frame, &offset, NULL, NULL))
        return;
    if (frame->flags & SV_FLAG_BROKEN)
        sv_output_break(output);
    else
        sv_output_ack(output, offset);
}

void sv_process_reset(SvProcess *process)
{
    process->exit_sent = FALSE;
    for (int i = 0; i < 2; i++)
        if (process->out[i])
            sv_output_reset(process->out[i]);
}

void sv_process_greet(SvProcess *process)
{
    for (int i = 0; i < 2; i++)
        if (process->out[i])
            sv_output_greet(process->out[i]);
    sv_process_check_exit(process);
}

void sv_process_attach(SvProcess *process, guint64 stdout_offset, guint64 stderr_offset)
{
    if (process->out[0])
        sv_output_attach(process->out[0], stdout_offset);
    if (process->out[1])
        sv_output_attach(process->out[1], stderr_offset);
}

void sv_process_discard(SvProcess *process)
{
    for (int i = 0; i < 2; i++)
        if (process->out[i])
            sv_output_break(process->out[i]);
    sv_forward_process_discard(process);
}

void sv_process_check_exit(SvProcess *process)
{
    if (process->state != SV_PROCESS_EXITED || !process->agent->greeted || process->exit_sent ||
        process->exit_acked)
        return;
    for (int i = 0; i < 2; i++)
        if (process->out[i] && !sv_output_done(process->out[i]))
            return;
    if (!sv_forward_process_is_done(process))
        return;
    process->exit_sent = TRUE;
    sv_event_exit(process);
}
