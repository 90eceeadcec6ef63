/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/crun.h"
#include "agent/crun-error.h"
#include "base/command.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/names.h"
#include "base/process.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_MAX (64u * 1024)
#define PATH_ENV "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct SvCrun {
    SvAgent *agent;
    char *verb;
    char *program; /* nullable */
    char *log_path;
    char *pid_path; /* NULL: not wanted */
    int pidfd;
    gint64 began_us; /* monotonic */
    SvCrunDone done;
    gpointer user_data;
};

char *sv_crun_prepare(void)
{
    g_auto(SvFd) program = open(SV_AGENT_CRUN, O_RDONLY | O_CLOEXEC);
    int copy = memfd_create("crun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat st;

    if (program < 0 || copy < 0 || fstat(program, &st) < 0 ||
        sendfile(copy, program, NULL, (size_t)st.st_size) != st.st_size || fchmod(copy, 0500) < 0 ||
        fcntl(copy, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0) {
        g_warning("ignoring: copy crun: %s", g_strerror(errno));
        sv_fd_close(copy);
        return g_strdup(SV_AGENT_CRUN);
    }
    /* Left open for good. */
    return g_strdup_printf("/proc/%d/fd/%d", (int)getpid(), copy);
}

static void crun_free(SvCrun *crun)
{
    unlink(crun->log_path);
    if (crun->pid_path)
        unlink(crun->pid_path);
    sv_fd_close(crun->pidfd);
    g_free(crun->verb);
    g_free(crun->program);
    g_free(crun->log_path);
    g_free(crun->pid_path);
    g_free(crun);
}

static pid_t read_pid(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    gint64 pid = 0;

    if (!sv_file_read(path, 64, &text, NULL, error) ||
        !sv_parse_int64(g_strchomp(text), 2, G_MAXINT32, &pid, error))
        return 0;
    return (pid_t)pid;
}

static void on_end(pid_t crun_pid, int status, gint64 time_ns, gpointer user_data)
{
    SvCrun *crun = user_data;
    gint64 spent_us = g_get_monotonic_time() - crun->began_us;
    g_autoptr(GError) error = NULL;
    pid_t pid = 0;

    if (status != 0) {
        g_autofree char *text = NULL;

        if (!sv_file_read(crun->log_path, LOG_MAX, &text, NULL, NULL))
            text = NULL;
        error = sv_crun_error(crun->verb, crun->program, text, status);
    } else if (crun->pid_path) {
        pid = read_pid(crun->pid_path, &error);
        if (error)
            g_prefix_error(&error, "crun %s: ", crun->verb);
    }
    if (error)
        g_info("%s", error->message);
    crun->done(error, pid, spent_us, crun->user_data);
    sv_reaper_release(crun->agent->reaper);
    crun_free(crun);
}

SvCrun *sv_crun_start(
    SvAgent *agent, const SvCrunCall *call, SvCrunDone done, gpointer user_data, GError **error)
{
    g_autoptr(SvCommand) cmd = sv_command_new(agent->crun);
    SvCrun *crun = g_new0(SvCrun, 1);
    pid_t pid = 0;

    crun->agent = agent;
    crun->verb = g_strdup(call->verb);
    crun->program = g_strdup(call->program);
    crun->done = done;
    crun->user_data = user_data;
    crun->pidfd = -1;
    crun->log_path = g_strdup_printf("%s/log-%s", call->dir, call->tag);
    unlink(crun->log_path);
    sv_command_set_argv0(cmd, SV_AGENT_CRUN);
    sv_command_add_args(cmd, "--root", SV_AGENT_CRUN_ROOT, "--cgroup-manager", "cgroupfs", "--log",
        crun->log_path, call->verb, NULL);
    for (const char *const *arg = call->args; arg && *arg; arg++)
        sv_command_add_arg(cmd, *arg);
    if (call->want_pid) {
        crun->pid_path = g_strdup_printf("%s/pid-%s", call->dir, call->tag);
        sv_command_add_args(cmd, "--pid-file", crun->pid_path, NULL);
    }
    if (call->n_more_fds > 0) {
        g_autofree char *count = g_strdup_printf("%u", call->n_more_fds);

        sv_command_add_args(cmd, "--preserve-fds", count, NULL);
    }
    sv_command_add_arg(cmd, call->id);
    sv_command_set_env(cmd, "PATH", PATH_ENV);
    for (int i = 0; i < 3; i++)
        sv_command_map_fd(cmd, call->stdio[i], i);
    for (guint i = 0; i < call->n_more_fds; i++)
        sv_command_map_fd(cmd, call->more_fds[i], 3 + (int)i);
    /* crun keeps what it inherits, and has the kernel close it when the program is executed. */
    if (call->until_exec > 0)
        sv_command_map_fd(cmd, call->until_exec, 3 + (int)call->n_more_fds);
    crun->began_us = g_get_monotonic_time();
    if (call->oom_score_adj)
        sv_command_set_oom_score_adj(cmd, call->oom_score_adj);
    if (!sv_command_spawn(cmd, &pid, &crun->pidfd, error)) {
        crun_free(crun);
        return NULL;
    }
    sv_reaper_hold(agent->reaper);
    sv_reaper_watch(agent->reaper, pid, on_end, crun);
    return crun;
}

void sv_crun_kill(SvCrun *crun)
{
    sv_process_signal(crun->pidfd, SIGKILL);
}
