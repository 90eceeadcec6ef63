/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Orders to a live container: start, kill, stop, pause, resume, and its statistics. */
#include "core/guestspec.h"
#include "core/sandbox-priv.h"

#include "base/names.h"

#include <signal.h>
#include <string.h>

/* A verb on its way to the agent and back. The container is looked up again: it may have gone, and another one
 * may have its id. */
typedef struct {
    SvSandbox *sandbox;
    char *id;
    guint32 handle;
    guint timer;
    int signo;
    gboolean freeze;
    SvDone done;
    SvReplyDone reply_done;
    gpointer user_data;
} Verb;

static Verb *verb_new(SvContainer *container, SvDone done, gpointer user_data)
{
    Verb *verb = g_new0(Verb, 1);
    verb->sandbox = container->sandbox;
    verb->id = g_strdup(container->record->id);
    verb->handle = container->record->handle;
    verb->done = done;
    verb->user_data = user_data;
    return verb;
}

static void verb_free(Verb *verb)
{
    if (verb->timer)
        g_source_remove(verb->timer);
    g_free(verb->id);
    g_free(verb);
}

/* Answers and frees. */
static void verb_end(Verb *verb, const GError *error)
{
    if (verb->done)
        verb->done(error, verb->user_data);
    verb_free(verb);
}

/* What the verb was about. NULL: @error was CLOSED, and the sandbox itself may be gone; or @failure: the
 * container is. */
static SvContainer *verb_container(const Verb *verb, const GError *error, GError **failure)
{
    SvContainer *container;
    if (sv_error_is(error, SV_ERR_CLOSED))
        return NULL;
    container = sv_sandbox_find(verb->sandbox, verb->id, failure);
    if (!container || container->record->handle == verb->handle)
        return container;
    g_set_error(
        failure, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "container does not exist: \"%s\"", verb->id);
    return NULL;
}

static gboolean on_verb_late(gpointer user_data)
{
    Verb *verb = user_data;
    g_autoptr(GError) error =
        g_error_new_literal(SV_CORE_ERROR, SV_ERR_TIMEOUT, "no answer of the guest in time");
    verb->timer = 0;
    if (verb->done)
        verb->done(error, verb->user_data);
    verb->done = NULL;
    return G_SOURCE_REMOVE;
}

/* An order that the guest carries out all the same when it answers too late for the caller: then @func, which
 * ends @verb, still learns of it. */
static void verb_order(Verb *verb, const char *method, SvCallDone func)
{
    SvSandbox *sandbox = verb->sandbox;
    Sandvirt__V1__ContainerRequest message = SANDVIRT__V1__CONTAINER_REQUEST__INIT;
    message.container_id = verb->id;
    verb->timer = g_timeout_add(sandbox->config->agent_ms, on_verb_late, verb);
    sv_agent_call(sandbox->agent, method, &message.base, NULL, 0, func, verb);
}

SvContainer *sv_container_find_for(
    SvSandbox *sandbox, const char *id, const char *verb, GError **error)
{
    SvContainer *container = sv_sandbox_find(sandbox, id, error);
    if (!container)
        return NULL;
    SvState state = container->record->stopping ? SV_STATE_STOPPED : container->record->state;
    if (!sv_lifecycle_allows(state, verb, error))
        return NULL;
    if (!sv_agent_is_ready(sandbox->agent)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_FAILED,
            "container \"%s\": the machine's agent cannot be reached", id);
        return NULL;
    }
    return container;
}

gboolean sv_sandbox_refuse_suspended(SvSandbox *sandbox, const char *verb, GError **error)
{
    if (!sandbox->record->suspended)
        return FALSE;
    g_set_error(error, SV_CORE_ERROR, SV_ERR_STATE,
        "cannot %s: the machine of sandbox \"%s\" is suspended (virsh resume %s)", verb,
        sandbox->paths->sandbox, sandbox->paths->domain_name);
    return TRUE;
}

/* ---- start */

static void on_poststart(const GError *none, gpointer user_data)
{
    verb_end(user_data, NULL);
}

static void on_started(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Verb *verb = user_data;
    g_autoptr(GError) failure = NULL;
    SvContainer *container = verb_container(verb, error, &failure);
    /* A workload that is over already was RUNNING all the same: its exit comes behind this answer. */
    if (container && !error && container->record->state == SV_STATE_READY) {
        if (sv_container_move(container, SV_EVENT_START, &failure)) {
            sv_container_update_paused(container);
            g_clear_handle_id(&verb->timer, g_source_remove); /* the guest's time is over */
            sv_hooks_run_ignored(container, SV_HOOK_POSTSTART, "running", on_poststart, verb);
            return;
        }
    }
    verb_end(verb, error ? error : failure);
}

void sv_container_start(SvSandbox *sandbox, const char *id, SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_container_find_for(sandbox, id, "start", &error);
    if (container)
        sv_sandbox_refuse_suspended(sandbox, "start", &error);
    if (container && !error && container->spec && !container->spec->has_process)
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_INVALID,
            "container \"%s\": cannot start a container without process in config.json", id);
    if (error) {
        sv_answer_later(done, error, user_data);
        return;
    }
    verb_order(verb_new(container, done, user_data), "Start", on_started);
}

/* ---- kill */

static void on_signalled(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Verb *verb = user_data;
    g_autoptr(GError) answer = NULL;
    SvContainer *container = verb_container(verb, error, NULL);
    if (error && sv_error_is(error, SV_ERR_TIMEOUT) && verb->signo == SIGKILL && container) {
        /* The guest hangs. The order waits in the channel; here the container ends now. */
        sv_container_begin_stop(container, SV_CAUSE_SIGNALLED, 128 + SIGKILL, FALSE);
    } else if (error && sv_error_is(error, SV_ERR_CLOSED) && verb->signo == SIGKILL) {
        /* The machine ended under it, and the container with the machine: what was asked for. */
    } else if (error &&
        (sv_error_is(error, SV_ERR_NOT_FOUND) || sv_error_is(error, SV_ERR_NOT_RUNNING))) {
        g_set_error_literal(&answer, SV_CORE_ERROR, SV_ERR_NOT_RUNNING, "container not running");
    } else if (error) {
        answer = g_error_copy(error);
    }
    verb_end(verb, answer);
}

static void signal_guest(
    SvContainer *container, int signo, gboolean all, guint64 order, SvDone done, gpointer user_data)
{
    SvSandbox *sandbox = container->sandbox;
    Verb *verb = verb_new(container, done, user_data);
    verb->signo = signo;
    Sandvirt__V1__SignalRequest message = SANDVIRT__V1__SIGNAL_REQUEST__INIT;
    message.container_id = container->record->id;
    message.handle = container->init->handle;
    message.signal = (guint32)signo;
    message.all = all;
    message.order = order;
    sv_agent_call(sandbox->agent, "Signal", &message.base, NULL,
        signo == SIGKILL ? SV_AGENT_SILENT_MS : sandbox->config->agent_ms, on_signalled, verb);
}

/* KILL in a machine that an administrator has suspended: the guest must run to die, unless nobody else
 * lives in it. */
static void kill_suspended(SvContainer *container)
{
    SvSandbox *sandbox = container->sandbox;
    if (sv_sandbox_live_containers(sandbox) > 1) {
        sv_machine_resume(sandbox);
        return;
    }
    sv_machine_kill(sandbox, SV_CAUSE_SIGNALLED);
}

static void kill_creating(SvContainer *container, int signo, SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (signo != SIGKILL) {
        g_set_error_literal(
            &error, SV_CORE_ERROR, SV_ERR_STATE, "cannot signal a creating container");
        sv_answer_later(done, error, user_data);
        return;
    }
    sv_waiters_add(container->stop_waiters, done, user_data);
    sv_container_cancel_create(
        container, g_error_new_literal(SV_CORE_ERROR, SV_ERR_CANCELLED, "killed while creating"));
}

/* Nothing can be told to the guest: its container ends here, where its stop goes on. */
static void kill_unreachable(SvContainer *container, int signo, SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (signo == SIGKILL)
        sv_container_begin_stop(container, SV_CAUSE_SIGNALLED, 128 + SIGKILL, FALSE);
    else
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_FAILED,
            "container \"%s\": the machine's agent cannot be reached", container->record->id);
    sv_answer_later(done, error, user_data);
}

void sv_container_kill(SvSandbox *sandbox, const char *id, int signo, gboolean all, guint64 order,
    SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_sandbox_find(sandbox, id, &error);
    SvState state = container ? container->record->state : SV_STATE_GONE;
    if (container && (state == SV_STATE_STOPPED || container->record->stopping) && !all)
        g_set_error_literal(&error, SV_CORE_ERROR, SV_ERR_NOT_RUNNING, "container not running");
    if (error || state == SV_STATE_STOPPED || container->record->stopping) {
        sv_answer_later(done, error, user_data);
    } else if (state == SV_STATE_CREATING) {
        kill_creating(container, signo, done, user_data);
    } else if (state == SV_STATE_READY) {
        if (sv_signal_terminates(signo)) {
            sv_container_begin_stop(container, SV_CAUSE_SIGNALLED, 128 + signo, TRUE);
            sv_waiters_add(container->stop_waiters, done, user_data);
        } else {
            sv_answer_later(done, NULL, user_data);
        }
    } else if (signo == 0) {
        sv_answer_later(done, NULL, user_data);
    } else {
        gboolean waits = sandbox->record->suspended && signo != SIGKILL;
        if (sandbox->record->suspended && !waits)
            kill_suspended(container);
        if (!sv_agent_is_ready(sandbox->agent)) {
            kill_unreachable(container, signo, done, user_data);
            return;
        }
        /* in a suspended machine it is pending, as one for a frozen process is */
        signal_guest(container, signo, all, order, waits ? NULL : done, user_data);
        if (waits)
            sv_answer_later(done, NULL, user_data);
    }
}

/* ---- pause, resume */

static void on_frozen(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Verb *verb = user_data;
    g_autoptr(GError) failure = NULL;
    SvContainer *container = verb_container(verb, error, &failure);
    if (container && !error && !container->record->stopping) {
        container->record->frozen = verb->freeze;
        if (sv_container_save(container, &failure))
            sv_container_update_paused(container);
    }
    verb_end(verb, error ? error : failure);
}

/* ---- stop: TERM, wait, KILL */

static void kill_now(SvContainer *container)
{
    if (container->sandbox->record->suspended)
        kill_suspended(container);
    sv_container_begin_stop(container, SV_CAUSE_SIGNALLED, 128 + SIGKILL, FALSE);
}

static gboolean on_stop_timeout(gpointer user_data)
{
    SvContainer *container = user_data;
    container->stop_timer = 0;
    kill_now(container);
    return G_SOURCE_REMOVE;
}

void sv_container_arm_kill(SvContainer *container)
{
    gint64 left_us = container->record->kill_at_us - g_get_monotonic_time();
    if (container->stop_timer)
        g_source_remove(container->stop_timer);
    container->stop_timer =
        g_timeout_add((guint)CLAMP(left_us / 1000, 0, G_MAXINT), on_stop_timeout, container);
}

/* Neither the caller nor this monitor need live until then. */
static void kill_later(SvContainer *container, guint timeout_ms)
{
    g_autoptr(GError) error = NULL;
    container->record->kill_at_us = g_get_monotonic_time() + timeout_ms * (gint64)1000;
    if (!sv_container_save(container, &error))
        g_warning("container %s: ignoring: %s", container->record->id, error->message);
    sv_container_arm_kill(container);
}

void sv_container_stop(
    SvSandbox *sandbox, const char *id, guint timeout_ms, SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_sandbox_find(sandbox, id, &error);
    if (!container) {
        sv_answer_later(done, error, user_data);
        return;
    }
    SvRecord *record = container->record;
    if (record->state == SV_STATE_STOPPED && !container->stop) {
        sv_answer_later(done, NULL, user_data);
        return;
    }
    if (record->state == SV_STATE_CREATING) {
        kill_creating(container, SIGKILL, done, user_data);
        return;
    }
    sv_waiters_add(container->stop_waiters, done, user_data);
    if (container->stop)
        return;
    if (record->stopping) { /* only to be recorded */
        sv_container_begin_stop(container, SV_CAUSE_SIGNALLED, 128 + SIGKILL, FALSE);
        return;
    }
    if (record->state == SV_STATE_READY) {
        sv_container_begin_stop(container, SV_CAUSE_SIGNALLED, 128 + SIGTERM, TRUE);
        return;
    }
    if (timeout_ms == 0 || !sv_agent_is_ready(sandbox->agent) || sandbox->record->suspended) {
        kill_now(container);
        return;
    }
    kill_later(container, timeout_ms);
    signal_guest(container, SIGTERM, FALSE, 0, NULL, NULL);
    if (record->frozen) /* else it could only be killed */
        verb_order(verb_new(container, NULL, NULL), "Resume", on_frozen);
}

void sv_container_pause(
    SvSandbox *sandbox, const char *id, gboolean freeze, SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    const char *name = freeze ? "pause" : "resume";
    SvContainer *container = sv_container_find_for(sandbox, id, name, &error);
    if (container)
        sv_sandbox_refuse_suspended(sandbox, name, &error);
    if (error) {
        sv_answer_later(done, error, user_data);
        return;
    }
    Verb *verb = verb_new(container, done, user_data);
    verb->freeze = freeze;
    verb_order(verb, freeze ? "Pause" : "Resume", on_frozen);
}

/* ---- stats, ps */

static void on_reply(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Verb *verb = user_data;
    verb->reply_done(reply, error, verb->user_data);
    verb_free(verb);
}

static gboolean on_reply_error(gpointer user_data)
{
    Verb *verb = user_data;
    g_autoptr(GError) error = g_error_new_literal(SV_CORE_ERROR, verb->signo, verb->id);
    verb->reply_done(NULL, error, verb->user_data);
    verb_free(verb);
    return G_SOURCE_REMOVE;
}

static void ask(SvSandbox *sandbox, const char *id, const char *name, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, SvReplyDone done,
    gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_container_find_for(sandbox, id, name, &error);
    Verb *verb = g_new0(Verb, 1);
    verb->reply_done = done;
    verb->user_data = user_data;
    if (container)
        sv_sandbox_refuse_suspended(sandbox, name, &error);
    if (error) {
        verb->id = g_strdup(error->message);
        verb->signo = error->code;
        g_idle_add(on_reply_error, verb);
        return;
    }
    verb->sandbox = sandbox;
    verb->id = g_strdup(id);
    sv_agent_call(sandbox->agent, method, message, type, sandbox->config->agent_ms, on_reply, verb);
}

void sv_container_stats(SvSandbox *sandbox, const char *id, SvReplyDone done, gpointer user_data)
{
    Sandvirt__V1__StatsRequest message = SANDVIRT__V1__STATS_REQUEST__INIT;
    message.container_id = (char *)id;
    ask(sandbox, id, "stats", "Stats", &message.base, &sandvirt__v1__stats_response__descriptor,
        done, user_data);
}

void sv_container_ps(SvSandbox *sandbox, const char *id, SvReplyDone done, gpointer user_data)
{
    Sandvirt__V1__PsRequest message = SANDVIRT__V1__PS_REQUEST__INIT;
    message.container_id = (char *)id;
    ask(sandbox, id, "ps", "Ps", &message.base, &sandvirt__v1__ps_response__descriptor, done,
        user_data);
}
