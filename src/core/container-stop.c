/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stop: the one way from READY, RUNNING and PAUSED to STOPPED. Every step is tried and bounded; the
 * exit is recorded once. */
#include "core/disks.h"
#include "core/sandbox-priv.h"

#include <signal.h>

/* How long a stop waits for the reader of the last output. The shim goes on waiting by itself. */
#define SHIM_DRAIN_MS 3000
#define SIGKILL_STATUS (128 + SIGKILL)
#define RELEASE_FIRST_MS 10 /* the guest's FORGETs reach virtiofsd within this, mostly */
/* What the guest still holds then is detached lazily: engines wait 5 s for a killed process to be gone. */
#define RELEASE_LAST_MS 2000

static gboolean guest_reachable(const SvContainer *container)
{
    const SvSandbox *sandbox = container->sandbox;
    /* one with disks has been resumed: they do not go otherwise */
    return sandbox->machine == SV_MACHINE_UP && sv_agent_is_ready(sandbox->agent) &&
        (!sandbox->record->suspended || sv_disks_any_plugged(container));
}

/* What is ordered lies in the channel until somebody resumes it. */
static gboolean guest_sleeps(const SvContainer *container)
{
    const SvSandbox *sandbox = container->sandbox;
    return sandbox->machine == SV_MACHINE_UP && sandbox->record->suspended &&
        sv_agent_is_ready(sandbox->agent) && !guest_reachable(container);
}

/* ---- kill: all processes, then the exit record */

typedef struct {
    SvSandbox *sandbox;
    char *id;
    guint64 ticket;
} Call;

static Call *call_new(SvContainer *container, SvSequence *seq)
{
    Call *call = g_new0(Call, 1);
    call->sandbox = container->sandbox;
    call->id = g_strdup(container->record->id);
    call->ticket = sv_sequence_ticket(seq);
    return call;
}

static void call_free(Call *call)
{
    g_free(call->id);
    g_free(call);
}

static void on_killed(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Call *call = user_data;
    /* A kill that failed because nothing is there any more: the exit event tells, or has told. */
    if (error && !sv_error_is(error, SV_ERR_NOT_FOUND) && !sv_error_is(error, SV_ERR_NOT_RUNNING))
        g_info("container %s: ignoring: kill in the guest: %s", call->id, error->message);
    /* the guest never had it, or tells nothing any more */
    if (error && (sv_error_is(error, SV_ERR_NOT_FOUND) || sv_error_is(error, SV_ERR_CLOSED)))
        sv_ticket_next(call->ticket);
    call_free(call);
}

static void step_kill(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    if (container->sandbox->record->suspended && sv_disks_any_plugged(container))
        sv_machine_resume(container->sandbox);
    if (container->init->status >= 0 || !container->in_guest || !guest_reachable(container)) {
        sv_sequence_next(seq);
        return;
    }
    container->init->exit_ticket = sv_sequence_ticket(seq);
    if (container->init->shim_pidfd < 0) /* dead already when this monitor came */
        sv_process_discard_output(container->init);
    Sandvirt__V1__SignalRequest message = SANDVIRT__V1__SIGNAL_REQUEST__INIT;
    message.container_id = container->record->id;
    message.handle = container->init->handle;
    message.signal = SIGKILL;
    message.all = TRUE;
    sv_agent_call(container->sandbox->agent, "Signal", &message.base, NULL, 0, on_killed,
        call_new(container, seq));
}

/* ---- remove in the guest */

static void on_removed(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Call *call = user_data;
    if (error)
        sv_ticket_fail(call->ticket, g_error_copy(error));
    else
        sv_ticket_next(call->ticket);
    call_free(call);
}

void sv_container_call_remove(
    SvContainer *container, guint timeout_ms, SvCallDone done, gpointer user_data)
{
    SvSandbox *sandbox = container->sandbox;
    Sandvirt__V1__RemoveRequest message = SANDVIRT__V1__REMOVE_REQUEST__INIT;
    message.container_id = container->record->id;
    message.timeout_ms = sandbox->config->stop_ms;
    sv_agent_call(sandbox->agent, "Remove", &message.base,
        &sandvirt__v1__remove_response__descriptor, timeout_ms, done, user_data);
}

static void step_remove(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    SvSandbox *sandbox = container->sandbox;
    gboolean sleeps = guest_sleeps(container);
    container->init->exit_ticket = 0;
    if (!container->in_guest || (!sleeps && !guest_reachable(container))) {
        sv_sequence_next(seq);
        return;
    }
    /* A guest that did not answer the kill is not waited for again, nor one that sleeps; it has the order
     * all the same. */
    container->guest_silent = sleeps || container->init->status < 0;
    sv_container_call_remove(container, container->guest_silent ? 0 : sandbox->config->stop_ms,
        on_removed, call_new(container, seq));
    if (container->guest_silent)
        sv_sequence_next(seq);
}

/* ---- disks */

static void step_disks(SvSequence *seq, gpointer user_data)
{
    sv_disks_unplug(user_data, NULL, sv_ticket_done, sv_sequence_handle(seq));
}

/* What is left in the record has a mount on the host to be put back by the delete. */
static void forget_disks(SvContainer *container)
{
    GPtrArray *disks = container->record->disks;
    for (guint i = disks->len; i > 0; i--) {
        const SvDiskRecord *disk = disks->pdata[i - 1];
        if (!disk->plugged && !disk->host_taken)
            sv_disks_forget(container, disk);
    }
}

/* ---- release on the host */

static void note_busy(SvContainer *container, GPtrArray *busy)
{
    SvSandbox *sandbox = container->sandbox;
    for (guint i = 0; busy && i < busy->len; i++) {
        const char *source = busy->pdata[i];
        g_warning("container %s: \"%s\" is still held by the guest, freed when the machine ends",
            container->record->id, source);
        g_ptr_array_add(sandbox->record->warnings, g_strdup(source));
    }
    g_autoptr(GError) error = NULL;
    if (busy && busy->len && !sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: %s", sandbox->paths->sandbox, error->message);
}

static gboolean try_release(SvContainer *container, gboolean lazy, GError **error)
{
    g_autoptr(GPtrArray) busy = NULL;
    if (!sv_share_release(container->sandbox->paths, container->record->index, lazy, &busy, error))
        return FALSE;
    if (lazy)
        note_busy(container, busy);
    return TRUE;
}

/* The guest has dropped its caches, but its FORGETs pass virtiofsd on their own: no event tells when the
 * last has been worked off, so the unmount itself is the question, with a deadline. */
static gboolean on_release_timer(gpointer user_data)
{
    SvContainer *container = user_data;
    guint64 ticket = sv_sequence_ticket(container->stop);
    GError *error = NULL;
    container->release_timer = 0;
    gboolean last = g_get_monotonic_time() >= container->release_deadline;
    if (try_release(container, last, &error)) {
        sv_ticket_next(ticket);
    } else if (!last && sv_error_is(error, SV_ERR_BUSY)) {
        g_error_free(error);
        container->release_timer = g_timeout_add(RELEASE_FIRST_MS * 2, on_release_timer, container);
    } else {
        sv_ticket_fail(ticket, error);
    }
    return G_SOURCE_REMOVE;
}

static void step_share(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GError *error = NULL;
    gboolean lazy = container->guest_silent || !guest_reachable(container);
    container->stop = seq;
    container->release_deadline = g_get_monotonic_time() +
        (gint64)MIN(container->sandbox->config->unplug_ms, RELEASE_LAST_MS) * 1000;
    if (try_release(container, lazy, &error)) {
        sv_sequence_next(seq);
    } else if (!lazy && sv_error_is(error, SV_ERR_BUSY)) {
        g_error_free(error);
        container->release_timer = g_timeout_add(RELEASE_FIRST_MS, on_release_timer, container);
    } else {
        sv_sequence_fail(seq, error);
    }
}

/* ---- record */

static int final_status(const SvContainer *container)
{
    if (container->forced_status >= 0)
        return container->forced_status;
    if (container->init->status >= 0)
        return container->init->status;
    return container->default_status >= 0 ? container->default_status : SIGKILL_STATUS;
}

static void step_record(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    SvRecord *record = container->record;
    GError *error = NULL;
    record->exit_status = final_status(container);
    record->stopping = FALSE;
    record->frozen = FALSE;
    record->kill_at_us = 0;
    container->in_guest = FALSE;
    container->init->in_guest = FALSE;
    forget_disks(container);
    if (!sv_container_move(container, SV_EVENT_EXITED, &error)) {
        record->stopping = TRUE; /* the next order goes on here */
        sv_sequence_fail(seq, error);
        return;
    }
    g_info("container %s: stopped with status %d (%s)", record->id, record->exit_status,
        sv_cause_name(record->cause));
    sv_sequence_next(seq);
}

/* ---- shims: those of its execs, then its own */

static void step_shims(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, container->sandbox->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        SvProcess *process = value;
        if (process->container == container && process->exec)
            sv_exec_container_gone(process);
    }
    if (container->init->shim_pidfd < 0) {
        sv_sequence_next(seq);
        return;
    }
    container->init->gone_ticket = sv_sequence_ticket(seq);
    sv_process_finish(container->init, container->record->exit_status);
}

/* The bounds make `kill KILL` and `delete --force` of a hung guest end within 5 s in all. */
static const SvStep stop_steps[] = {
    {"kill", step_kill, NULL, 1500},
    {"remove", step_remove, NULL, 0},
    {"disks", step_disks, NULL, 0},
    {"share", step_share, NULL, 0},
    {"record", step_record, NULL, 0},
    {"shims", step_shims, NULL, SHIM_DRAIN_MS},
    {NULL, NULL, NULL, 0},
};

static void on_stopped(SvSequence *seq, const GError *error, gpointer user_data)
{
    SvContainer *container = user_data;
    SvSandbox *sandbox = container->sandbox;
    container->stop = NULL;
    if (error)
        g_warning("container %s: ignoring: %s", container->record->id, error->message);
    /* an exit that could not be recorded is told again to the next monitor */
    if (container->record->state == SV_STATE_STOPPED) {
        if (container->init->event_stream && sandbox->agent)
            sv_agent_acknowledge(sandbox->agent, container->init->event_stream);
        container->init->event_stream = 0;
    }
    sv_waiters_answer(container->stop_waiters, NULL);
    if (sandbox->machine == SV_MACHINE_ENDED && sv_sandbox_live_containers(sandbox) == 0)
        sv_machine_down(sandbox);
    sv_sandbox_check_idle(sandbox);
}

static SvCause cause_of(int status, gboolean oom)
{
    if (oom)
        return SV_CAUSE_OOM;
    return status > 128 ? SV_CAUSE_SIGNALLED : SV_CAUSE_EXITED;
}

void sv_container_begin_stop(SvContainer *container, SvCause cause, int status, gboolean forced)
{
    SvRecord *record = container->record;
    g_autoptr(GError) error = NULL;
    if (record->state == SV_STATE_STOPPED || container->stop || container->create ||
        container->removal)
        return;
    /* else it has ended, and only its record could not be written */
    if (!record->stopping) {
        record->stopping = TRUE;
        record->cause = cause;
        record->pending_status = status;
        container->default_status = status;
        if (forced)
            container->forced_status = status;
    }
    if (!sv_container_save(container, &error))
        g_warning("container %s: ignoring: %s", record->id, error->message);
    g_autofree char *label = g_strdup_printf("stop %s", record->id);
    container->stop =
        sv_sequence_start(label, stop_steps, SV_SEQUENCE_CONTINUE, on_stopped, container);
}

void sv_container_init_exited(SvContainer *container, int status, gboolean oom)
{
    SvProcess *init = container->init;
    if (init->status >= 0)
        return; /* once */
    init->status = status & 0xff;
    container->record->oom |= oom;
    if (container->stop) {
        /* It may have ended by itself just before it was to be killed: then that is the truth. */
        if (container->record->cause == SV_CAUSE_SHIM_KILLED && init->status != SIGKILL_STATUS)
            container->record->cause = cause_of(init->status, oom);
        if (init->exit_ticket)
            sv_ticket_next(init->exit_ticket);
        init->exit_ticket = 0;
        return;
    }
    sv_container_begin_stop(container, cause_of(init->status, oom), init->status, FALSE);
}
