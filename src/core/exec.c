/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exec: a further process in a container. Prepared, then started once its shim is there. */
#include "core/guestspec.h"
#include "core/pod-cgroup.h"
#include "core/sandbox-priv.h"

#include <signal.h>
#include <string.h>

#define EXEC_FAILED_STATUS 255 /* what runc's exec answers for its own failures */
#define SHIM_ATTACH_MS 10000

/* ---- the record: a new monitor must find the shims of running execs */

static void record_add(SvProcess *process)
{
    SvContainer *container = process->container;
    SvExecRecord *record = g_new0(SvExecRecord, 1);
    g_autoptr(GError) error = NULL;
    record->handle = process->handle;
    record->shim_pid = process->shim_pid;
    record->shim_start = process->shim_start;
    g_ptr_array_add(container->record->execs, record);
    if (!sv_container_save(container, &error))
        g_warning("container %s: ignoring: %s", container->record->id, error->message);
}

static void record_remove(SvProcess *process)
{
    SvContainer *container = process->container;
    GPtrArray *execs = container->record->execs;
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < execs->len; i++) {
        const SvExecRecord *record = execs->pdata[i];
        if (record->handle != process->handle)
            continue;
        g_ptr_array_remove_index(execs, i);
        if (!sv_container_save(container, &error))
            g_warning("container %s: ignoring: %s", container->record->id, error->message);
        return;
    }
}

/* ---- prepare */

static SvContainer *find_allowed(SvSandbox *sandbox, const char *id, GError **error)
{
    SvContainer *container = sv_sandbox_find(sandbox, id, error);
    if (!container)
        return NULL;
    SvState state = container->record->stopping ? SV_STATE_STOPPED : container->record->state;
    if (!sv_lifecycle_allows(state, "exec", error))
        return NULL;
    if (!sv_agent_is_ready(sandbox->agent)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_FAILED,
            "container \"%s\": the machine's agent cannot be reached", id);
        return NULL;
    }
    return container;
}

/* One that exists, in the container: crun sets it below the container's own as it is. */
static gboolean check_cgroup(const char *cgroup, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(cgroup, "/", -1);
    g_autofree char *shown = NULL;
    if (!g_strv_contains((const char *const *)parts, "..") && !strchr(cgroup, ':'))
        return TRUE;
    shown = sv_printable(cgroup, 128);
    g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
        "cgroup \"%s\": not a path below the container's (the machine has cgroup v2 only)", shown);
    return FALSE;
}

gboolean sv_exec_prepare(SvSandbox *sandbox, const Sandvirt__V1__ExecPrepareRequest *request,
    guint32 *handle, GError **error)
{
    SvContainer *container = find_allowed(sandbox, request->container_id, error);
    if (!container || !check_cgroup(request->cgroup, error))
        return FALSE;
    g_autoptr(JsonNode) json =
        sv_process_parse((const char *)request->process.data, request->process.len, error);
    if (!json)
        return FALSE;
    gboolean terminal = FALSE;
    gint64 score = 0; /* its range is checked */
    if (!sv_json_get_bool(json_node_get_object(json), "terminal", "process", &terminal, error) ||
        !sv_json_get_int(json_node_get_object(json), "oomScoreAdj", "process", &score, error))
        return FALSE;
    g_autofree char *text = sv_guest_process(json, error);
    if (!text)
        return FALSE;
    SvProcess *process = sv_process_new(container, sandbox->record->next_handle++, TRUE);
    process->process_json = g_steal_pointer(&text);
    process->cgroup = *request->cgroup ? g_strdup(request->cgroup) : NULL;
    process->oom_score_adj = (gint32)score;
    process->program = g_strdup(json_array_get_string_element(
        json_object_get_array_member(json_node_get_object(json), "args"), 0)); /* checked */
    process->terminal = terminal;
    *handle = process->handle;
    return sv_sandbox_save(sandbox, error);
}

/* ---- start */

typedef struct {
    SvSandbox *sandbox;
    char *id; /* of the container */
    guint32 handle;
    guint64 ticket;
    SvTurns *turns; /* a reference of its own */
} Exec;

static void exec_free(gpointer data)
{
    Exec *exec = data;
    sv_turns_unref(exec->turns);
    g_free(exec->id);
    g_free(exec);
}

static void kill_handle(SvSandbox *sandbox, char *id, guint32 handle)
{
    Sandvirt__V1__SignalRequest message = SANDVIRT__V1__SIGNAL_REQUEST__INIT;
    message.container_id = id;
    message.handle = handle;
    message.signal = SIGKILL;
    sv_agent_call(
        sandbox->agent, "Signal", &message.base, NULL, sandbox->config->agent_ms, NULL, NULL);
}

static void step_shim(SvSequence *seq, gpointer user_data)
{
    SvProcess *process = user_data;
    if (process->shim)
        sv_sequence_next(seq);
    else
        process->attach_ticket = sv_sequence_ticket(seq);
}

static void on_exec(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Exec *exec = user_data;
    /* Given up meanwhile: the order to kill it came before there was anything to kill. */
    if (!error && !sv_ticket_valid(exec->ticket))
        kill_handle(exec->sandbox, exec->id, exec->handle);
    if (!error) { /* its own word, for the share of the host in a measured exec */
        const Sandvirt__V1__ExecResponse *answer = (const Sandvirt__V1__ExecResponse *)reply;

        g_debug("exec in %s: guest %.1f ms, crun %.1f ms", exec->id, (double)answer->agent_ns / 1e6,
            (double)answer->crun_ns / 1e6);
    }
    if (error)
        sv_ticket_fail(exec->ticket, g_error_copy(error));
    else
        sv_ticket_next(exec->ticket);
    sv_turns_end(exec->turns);
    exec_free(exec);
}

static gboolean exec_in_guest(gpointer user_data)
{
    Exec *exec = user_data;
    if (!sv_ticket_valid(exec->ticket)) {
        exec_free(exec);
        return FALSE;
    }
    SvSandbox *sandbox = exec->sandbox;
    SvProcess *process = g_hash_table_lookup(sandbox->processes, GUINT_TO_POINTER(exec->handle));
    Sandvirt__V1__ExecRequest message = SANDVIRT__V1__EXEC_REQUEST__INIT;
    message.container_id = process->container->record->id;
    message.handle = process->handle;
    message.process.data = (guint8 *)process->process_json;
    message.process.len = strlen(process->process_json);
    message.cgroup = process->cgroup ? process->cgroup : (char *)"";
    message.oom_score_adj = process->oom_score_adj;
    message.program = process->program;
    message.terminal = process->terminal;
    message.rows = process->rows;
    message.cols = process->cols;
    message.stdin = !process->no_stdin;
    message.descriptors = process->descriptors;
    message.n_descriptors = process->n_descriptors;
    process->in_guest = TRUE;
    sv_agent_call(sandbox->agent, "Exec", &message.base, &sandvirt__v1__exec_response__descriptor,
        sandbox->config->agent_ms, on_exec, exec);
    return TRUE;
}

static void step_guest(SvSequence *seq, gpointer user_data)
{
    SvProcess *process = user_data;
    SvSandbox *sandbox = process->container->sandbox;
    Exec *exec = g_new0(Exec, 1);
    exec->sandbox = sandbox;
    exec->id = g_strdup(process->container->record->id);
    exec->handle = process->handle;
    exec->ticket = sv_sequence_ticket(seq);
    exec->turns = sv_turns_ref(sandbox->guest_turns);
    sv_turns_take(exec->turns, sv_sandbox_guest_turns(sandbox), exec_in_guest, exec, exec_free);
}

static void step_streams(SvSequence *seq, gpointer user_data)
{
    sv_process_resume_streams(user_data, sv_sequence_ticket(seq));
}

static const SvStep exec_steps[] = {
    {"shim", step_shim, NULL, SHIM_ATTACH_MS},
    {"guest", step_guest, NULL, 0},
    {"streams", step_streams, NULL, 0},
    {NULL, NULL, NULL, 0},
};

static void kill_in_guest(SvProcess *process)
{
    SvSandbox *sandbox = process->container->sandbox;
    if (!process->in_guest || process->status >= 0 || !sv_agent_is_ready(sandbox->agent))
        return;
    kill_handle(sandbox, process->container->record->id, process->handle);
}

static void on_exec_started(SvSequence *seq, const GError *error, gpointer user_data)
{
    SvProcess *process = user_data;
    SvWaiter started = process->started;
    process->started.done = NULL;
    process->starting = NULL;
    /* At once: a process that is over already sends its shim away next, and the caller, who watches the
     * shim, must have the answer before. */
    if (started.done)
        started.done(error, started.user_data);
    if (!error) {
        if (process->ended_early)
            sv_process_finish(process, process->status);
        return;
    }
    kill_in_guest(process);
    process->in_guest = FALSE;
    if (process->shim_pidfd < 0)
        sv_exec_shim_gone(process);
    else if (process->shim)
        sv_process_finish(process, EXEC_FAILED_STATUS);
    else
        sv_process_kill_shim(process); /* it has not come, and has nothing to write */
}

void sv_exec_start(SvSandbox *sandbox, const Sandvirt__V1__ExecStartRequest *request, SvDone done,
    gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    SvProcess *process = g_hash_table_lookup(sandbox->processes, GUINT_TO_POINTER(request->handle));
    if (!process || !process->exec || process->shim_pidfd >= 0)
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "no such exec was prepared");
    else
        find_allowed(sandbox, process->container->record->id, &error);
    if (error) {
        if (process && process->exec && process->shim_pidfd < 0)
            g_hash_table_remove(sandbox->processes, GUINT_TO_POINTER(request->handle));
        sv_answer_later(done, error, user_data);
        return;
    }
    process->started = (SvWaiter){done, user_data};
    process->no_stdin = request->stdin_null;
    g_autofree char *label = g_strdup_printf("exec in %s", process->container->record->id);
    process->starting =
        sv_sequence_start(label, exec_steps, SV_SEQUENCE_UNDO, on_exec_started, process);
    sv_process_watch(process, (pid_t)request->shim_pid, request->shim_start);
    sv_container_cgroup_enter(process->container, (pid_t)request->shim_pid);
    record_add(process);
}

/* ---- end */

void sv_exec_exited(SvProcess *process, int status)
{
    if (process->status >= 0)
        return;
    process->in_guest = FALSE;
    if (process->starting) {
        /* over before its start was answered: told to the shim right behind that answer */
        process->ended_early = TRUE;
        process->status = status & 0xff;
        return;
    }
    sv_process_finish(process, status & 0xff);
}

void sv_exec_shim_gone(SvProcess *process)
{
    SvSandbox *sandbox = process->container->sandbox;
    if (process->starting) {
        sv_sequence_cancel(process->starting,
            g_error_new_literal(SV_CORE_ERROR, SV_ERR_CANCELLED, "the shim of the exec has died"));
        return;
    }
    kill_in_guest(process);
    if (process->event_stream && sandbox->agent)
        sv_agent_acknowledge(sandbox->agent, process->event_stream);
    record_remove(process);
    g_hash_table_remove(sandbox->processes, GUINT_TO_POINTER(process->handle));
}

void sv_exec_container_gone(SvProcess *process)
{
    if (process->starting)
        sv_sequence_cancel(process->starting,
            g_error_new_literal(SV_CORE_ERROR, SV_ERR_NOT_RUNNING,
                "container not running: it ended before the process was started"));
    else if (!process->exit_wanted)
        sv_process_finish(process, 128 + SIGKILL);
}

void sv_exec_abandon(SvSandbox *sandbox, guint32 handle)
{
    SvProcess *process = g_hash_table_lookup(sandbox->processes, GUINT_TO_POINTER(handle));
    if (!process || !process->exec)
        return;
    if (process->starting)
        sv_sequence_cancel(process->starting,
            g_error_new_literal(SV_CORE_ERROR, SV_ERR_CANCELLED, "the caller is gone"));
    else if (process->shim_pidfd < 0 && process->status < 0 && !process->in_guest)
        g_hash_table_remove(sandbox->processes, GUINT_TO_POINTER(handle));
}
