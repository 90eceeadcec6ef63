/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/container.h"
#include "agent/release.h"
#include "agent/stdfds.h"
#include "base/file.h"
#include "rpc/sandvirt.pb-c.h"
#include <unistd.h>

typedef struct {
    SvCall *call;
    SvContainer *container;
    SvProcess *process;
    SvStdio *stdio;
    char *spec; /* path of the process's file */
} Exec;

static void exec_free(Exec *exec)
{
    if (exec->spec)
        unlink(exec->spec);
    g_free(exec->spec);
    sv_stdio_free(exec->stdio);
    g_free(exec);
}

/* @error: (transfer full) */
static void fail(Exec *exec, GError *error)
{
    if (exec->process)
        sv_process_drop(exec->process);
    sv_call_fail(exec->call, error);
    g_error_free(error);
    exec_free(exec);
}

static void on_executed(const GError *error, pid_t pid, gint64 spent_us, gpointer user_data)
{
    Exec *exec = user_data;
    SvContainer *container = exec->container;
    SvCall *call = exec->call;
    Sandvirt__V1__ExecResponse response = SANDVIRT__V1__EXEC_RESPONSE__INIT;
    GError *failed = error ? g_error_copy(error) : NULL;
    gboolean current = sv_call_is_current(call);

    container->execs--;
    if (!failed)
        sv_stdio_hand_over(exec->stdio, exec->process, &failed);
    if (failed) {
        fail(exec, failed);
    } else {
        response.pid = (guint32)pid;
        response.agent_ns = (g_get_monotonic_time() - call->began_us) * 1000;
        response.crun_ns = spent_us * 1000;
        exec->process->ordered_us = call->began_us;
        exec->process->oom_before = container->oom_kills;
        sv_call_reply(call, &response.base);
        sv_process_begin(exec->process, pid, SV_PROCESS_RUNNING, current);
        exec_free(exec);
    }
    sv_container_release_check(container);
}

static gboolean run_crun(
    Exec *exec, const char *tag, const Sandvirt__V1__ExecRequest *request, GError **error)
{
    SvContainer *container = exec->container;
    const char *console = sv_stdio_console(exec->stdio);
    const char *args[8] = {"--process", exec->spec, "--detach"};
    gsize n = 3;
    SvCrunCall call = {.verb = "exec",
        .args = args,
        .id = container->id,
        .dir = container->dir,
        .tag = tag,
        .program = request->program,
        .want_pid = TRUE,
        .oom_score_adj = request->oom_score_adj};
    SvCrun *crun;

    if (console) {
        args[n++] = "--console-socket";
        args[n++] = console;
    }
    if (*request->cgroup) {
        args[n++] = "--cgroup";
        args[n++] = request->cgroup;
    }
    sv_stdio_child_fds(exec->stdio, &call);
    crun = sv_crun_start(container->agent, &call, on_executed, exec, error);
    sv_stdio_close_child(exec->stdio);
    if (!crun)
        return FALSE;
    container->execs++;
    return TRUE;
}

static gboolean start(Exec *exec, const Sandvirt__V1__ExecRequest *request, GError **error)
{
    SvContainer *container = exec->container;
    SvProcess *init = sv_container_init(container);
    g_autofree char *tag = g_strdup_printf("exec-%u", request->handle);

    if (!init || init->state == SV_PROCESS_EXITED) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_NOT_RUNNING, "container not running");
        return FALSE;
    }
    exec->process = sv_process_add(container->agent, request->handle, container->id, TRUE, error);
    if (!exec->process)
        return FALSE;
    exec->spec = g_strdup_printf("%s/process-%u.json", container->dir, request->handle);
    if (!sv_file_write_atomic(
            exec->spec, request->process.data, request->process.len, 0600, FALSE, error))
        return FALSE;
    exec->stdio = sv_stdio_new(container->dir, request->handle, request->terminal, request->stdin,
        request->rows, request->cols, error);
    return exec->stdio &&
        sv_stdio_add(exec->stdio, request->descriptors, request->n_descriptors, error) &&
        run_crun(exec, tag, request, error);
}

void sv_container_exec(SvCall *call)
{
    const Sandvirt__V1__ExecRequest *request = (Sandvirt__V1__ExecRequest *)call->message;
    GError *error = NULL;
    Exec *exec = g_new0(Exec, 1);

    exec->call = call;
    exec->container = sv_container_find(call->agent, request->container_id, &error);
    if (!exec->container || !start(exec, request, &error))
        fail(exec, error);
}
