/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What happens to a machine: libvirt's events, the agent's stream, the processes of QEMU and virtiofsd.
 * Each is a cause with a name; whoever tells first of the end, counts. */
#include "core/pod-cgroup.h"
#include "core/sandbox-priv.h"
#include "core/timeline-write.h"
#include "core/disks.h"

#include "base/fd.h"
#include "base/process.h"

#include <glib-unix.h>
#include <signal.h>
#include <string.h>

/* How long QEMU's own end is waited for when something of it is lost first. */
#define EVENT_GRACE_MS 100
/* The guest cannot close the channel: QEMU is ending, and on a busy host takes its time. What ends it has a
 * name of its own that shall be recorded. */
#define AGENT_GRACE_MS 2000

static void each_container(SvSandbox *sandbox, void (*func)(SvContainer *container))
{
    g_autoptr(GPtrArray) all = sv_sandbox_containers(sandbox);
    for (guint i = 0; i < all->len; i++)
        func(all->pdata[i]);
}

/* ---- the end */

static void stop_with_machine(SvContainer *container)
{
    SvSandbox *sandbox = container->sandbox;
    if (container->create) {
        g_autoptr(GError) error = g_error_new(SV_CORE_ERROR, SV_ERR_FAILED,
            "the machine of sandbox \"%s\" has ended (%s)", sandbox->paths->sandbox,
            sv_cause_name(sandbox->end_cause));
        sv_container_cancel_create(container, g_steal_pointer(&error));
        return;
    }
    /* A step that waits for the guest waits for nothing now. */
    if (container->init->exit_ticket)
        sv_ticket_next(container->init->exit_ticket);
    container->init->exit_ticket = 0;
    if (container->record->state != SV_STATE_CREATING)
        sv_container_begin_stop(container, sandbox->end_cause, -1, FALSE);
}

void sv_machine_ended(SvSandbox *sandbox, SvCause cause)
{
    g_autoptr(GError) error = NULL;
    if (sandbox->end_timer)
        g_source_remove(sandbox->end_timer);
    sandbox->end_timer = 0;
    sv_disks_machine_gone(sandbox);
    if (sandbox->domain_ticket) {
        sv_ticket_next(sandbox->domain_ticket);
        sandbox->domain_ticket = 0;
    }
    if (sandbox->recovering && sandbox->machine == SV_MACHINE_NONE) {
        sv_recovery_machine_ended(sandbox, cause);
        return;
    }
    if (sandbox->machine == SV_MACHINE_ENDED || sandbox->machine == SV_MACHINE_NONE)
        return;
    if (sandbox->end_cause == SV_CAUSE_NONE)
        sandbox->end_cause = cause;
    if (sandbox->machine == SV_MACHINE_ENDING)
        return; /* the down sequence goes on by itself */
    if (sandbox->machine == SV_MACHINE_STARTING) {
        if (sandbox->up)
            sv_sequence_cancel(
                sandbox->up, sv_machine_boot_error(sandbox, "ended before its agent was ready"));
        return;
    }
    g_info("sandbox %s: its machine has ended (%s)", sandbox->paths->sandbox,
        sv_cause_name(sandbox->end_cause));
    sandbox->machine = SV_MACHINE_ENDED;
    sandbox->record->ended = TRUE;
    sandbox->record->suspended = FALSE;
    sandbox->record->cause = sandbox->end_cause;
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
    g_clear_pointer(&sandbox->agent, sv_agent_free);
    each_container(sandbox, stop_with_machine);
    if (sv_sandbox_live_containers(sandbox) == 0)
        sv_machine_down(sandbox);
}

static void on_destroyed(SvHv *hv, const GError *error, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (error)
        g_warning("sandbox %s: its machine could not be ended: %s", sandbox->paths->sandbox,
            error->message);
    else {
        sandbox->domain_gone = TRUE;
        sv_machine_ended(sandbox, SV_CAUSE_DOMAIN_DESTROYED);
    }
}

void sv_machine_kill(SvSandbox *sandbox, SvCause cause)
{
    if (sandbox->machine != SV_MACHINE_UP && sandbox->machine != SV_MACHINE_STARTING)
        return;
    if (sandbox->end_cause == SV_CAUSE_NONE)
        sandbox->end_cause = cause;
    if (sandbox->hv)
        sandbox->hv->ops->destroy(sandbox->hv, sandbox->qemu_pidfd, 1000, on_destroyed, sandbox);
}

/* ---- libvirt */

static SvCause cause_of_end(SvHvEnd end)
{
    switch (end) {
    case SV_HV_END_SHUTDOWN:
        return SV_CAUSE_GUEST_POWERED_OFF;
    case SV_HV_END_DESTROYED:
        return SV_CAUSE_DOMAIN_DESTROYED;
    case SV_HV_END_CRASHED:
        return SV_CAUSE_GUEST_PANIC;
    default:
        return SV_CAUSE_DOMAIN_CRASHED;
    }
}

static void set_suspended(SvSandbox *sandbox, gboolean suspended)
{
    g_autoptr(GError) error = NULL;
    if (!sandbox->record || sandbox->record->suspended == suspended)
        return;
    sandbox->record->suspended = suspended;
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
    if (!suspended && sv_agent_is_ready(sandbox->agent)) {
        Sandvirt__V1__TimeRequest message = SANDVIRT__V1__TIME_REQUEST__INIT;
        message.time_ns = g_get_real_time() * 1000;
        sv_agent_call(
            sandbox->agent, "Time", &message.base, NULL, sandbox->config->agent_ms, NULL, NULL);
    }
    if (!suspended)
        sv_pod_network_look(sandbox);
    each_container(sandbox, sv_container_update_paused);
}

static void on_resumed(SvHv *hv, const GError *error, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (error)
        g_warning("sandbox %s: ignoring: resume: %s", sandbox->paths->sandbox, error->message);
    else
        set_suspended(sandbox, FALSE);
}

void sv_machine_resume(SvSandbox *sandbox)
{
    sandbox->hv->ops->resume(sandbox->hv, on_resumed, sandbox);
}

/* Paused, by whomever and for what, is not ended. */
gboolean sv_machine_lives(const SvHvStatus *status)
{
    return status->exists && status->id >= 0;
}

static void on_status(SvHv *hv, const SvHvStatus *status, const GError *error, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (error) {
        g_info("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
        return;
    }
    if (!sv_machine_lives(status)) {
        sandbox->domain_gone = TRUE;
        sv_machine_ended(sandbox, SV_CAUSE_DOMAIN_CRASHED);
    } else {
        set_suspended(sandbox, status->suspended);
    }
}

void sv_machine_compare(SvSandbox *sandbox)
{
    sandbox->hv->ops->status(sandbox->hv, on_status, sandbox);
}

/* libvirt knows better why QEMU died than its pidfd did. */
static void correct_cause(SvSandbox *sandbox, SvCause cause)
{
    SvCause guess = sandbox->end_cause;
    g_autoptr(GError) error = NULL;
    if (!sandbox->end_guessed || cause == guess || !sandbox->record)
        return;
    sandbox->end_guessed = FALSE;
    sandbox->end_cause = sandbox->record->cause = cause;
    g_autoptr(GPtrArray) all = sv_sandbox_containers(sandbox);
    for (guint i = 0; i < all->len; i++) {
        SvContainer *container = all->pdata[i];
        if (container->record->cause != guess)
            continue;
        container->record->cause = cause;
        if (!sv_container_save(container, &error))
            g_warning("container %s: ignoring: %s", container->record->id, error->message);
        g_clear_error(&error);
    }
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
}

/* A late word about the former machine: the one that this sandbox has now was not started yet. */
static gboolean is_of_former(const SvSandbox *sandbox)
{
    return !sandbox->recovering && (!sandbox->record || !sandbox->record->started);
}

void sv_machine_on_event(SvHv *hv, const SvHvEvent *event, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    switch (event->type) {
    case SV_HV_EVENT_STOPPED:
        if (is_of_former(sandbox))
            break;
        sandbox->domain_gone = TRUE;
        correct_cause(sandbox, cause_of_end(event->end));
        sv_machine_ended(sandbox, cause_of_end(event->end));
        break;
    case SV_HV_EVENT_SHUTTING_DOWN:
        if (sandbox->end_cause == SV_CAUSE_NONE)
            sandbox->end_cause = cause_of_end(event->end);
        break;
    case SV_HV_EVENT_PANICKED:
        if (sandbox->end_cause == SV_CAUSE_NONE)
            sandbox->end_cause = SV_CAUSE_GUEST_PANIC;
        break;
    case SV_HV_EVENT_SUSPENDED:
        set_suspended(sandbox, TRUE);
        break;
    case SV_HV_EVENT_RESUMED:
        set_suspended(sandbox, FALSE);
        break;
    case SV_HV_EVENT_DISCONNECTED:
        g_info("sandbox %s: connection to libvirt lost", sandbox->paths->sandbox);
        break;
    case SV_HV_EVENT_CONNECTED:
        sandbox->hv_connected = TRUE;
        sv_disks_connected(sandbox);
        sv_sandbox_touch(sandbox);
        if (sandbox->machine == SV_MACHINE_UP)
            sv_machine_compare(sandbox);
        break;
    case SV_HV_EVENT_DEVICE_REMOVED:
        sv_disks_removed(sandbox, event->alias);
        break;
    case SV_HV_EVENT_REMOVAL_FAILED:
        break; /* it is asked for again */
    }
}

/* ---- processes */

static gboolean on_qemu_exit(gint fd, GIOCondition condition, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->qemu_watch = 0;
    sandbox->qemu_gone = TRUE;
    if (sandbox->domain_gone || sandbox->machine == SV_MACHINE_ENDING)
        return G_SOURCE_REMOVE; /* there libvirt's own word is waited for */
    /* libvirt's word comes some 0.2 s later: nobody waits for that, it only corrects the cause. */
    sandbox->end_guessed = sandbox->end_cause == SV_CAUSE_NONE;
    sv_machine_ended(sandbox, SV_CAUSE_DOMAIN_CRASHED);
    return G_SOURCE_REMOVE;
}

static gboolean on_share_exit(gint fd, GIOCondition condition, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->share_watch = 0;
    sv_fd_clear(&sandbox->share_pidfd);
    if (sandbox->share_ticket) {
        sv_ticket_next(sandbox->share_ticket);
        sandbox->share_ticket = 0;
    }
    /* It ends with QEMU too: only when QEMU lives on is it the cause. */
    if ((sandbox->machine == SV_MACHINE_UP || sandbox->machine == SV_MACHINE_STARTING) &&
        !sandbox->share_timer)
        sandbox->share_timer = g_timeout_add(EVENT_GRACE_MS, sv_machine_on_share_lost, sandbox);
    return G_SOURCE_REMOVE;
}

gboolean sv_machine_on_share_lost(gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->share_timer = 0;
    if (sandbox->machine == SV_MACHINE_STARTING && sandbox->up) {
        sandbox->end_cause = SV_CAUSE_SHARE_LOST;
        sv_sequence_cancel(sandbox->up,
            g_error_new(SV_CORE_ERROR, SV_ERR_FAILED,
                "the machine of sandbox \"%s\" lost its shared folder: virtiofsd has ended",
                sandbox->paths->sandbox));
    } else if (sandbox->machine == SV_MACHINE_UP && !sandbox->domain_gone && !sandbox->end_timer)
        sv_machine_kill(sandbox, SV_CAUSE_SHARE_LOST);
    return G_SOURCE_REMOVE;
}

/* QEMU is the peer of the agent's channel; only a process that carries our domain's name is ever taken
 * for it (before virDomainCreateXML has returned the peer is the libvirt daemon). */
static void watch_qemu(SvSandbox *sandbox)
{
    pid_t pid = 0;
    if (sandbox->qemu_pidfd >= 0 || !sandbox->agent ||
        !sv_unix_peer(sv_agent_fd(sandbox->agent), &pid, NULL, NULL) || pid <= 1)
        return;
    guint64 start;
    if (!sv_process_start_time(pid, &start))
        return;
    int pidfd = sv_process_open(pid, start);
    g_autofree char *cmdline = sv_process_cmdline(pid);
    g_autofree char *mark = g_strdup_printf("guest=%s,", sandbox->paths->domain_name);
    if (pidfd < 0 || !cmdline || !strstr(cmdline, mark)) {
        sv_fd_close(pidfd);
        return;
    }
    sandbox->qemu_pidfd = pidfd;
    sandbox->qemu_watch = g_unix_fd_add(pidfd, G_IO_IN, on_qemu_exit, sandbox);
}

static void watch_share(SvSandbox *sandbox)
{
    guint64 start;
    if (sandbox->share_pidfd >= 0 || !sandbox->hv)
        return;
    int pid = sandbox->hv->ops->share_pid(sandbox->hv);
    if (pid <= 1)
        return;
    if (sv_process_start_time(pid, &start))
        sandbox->share_pidfd = sv_process_open(pid, start);
    sandbox->share_seen = TRUE;
    if (sandbox->share_pidfd >= 0)
        sandbox->share_watch = g_unix_fd_add(sandbox->share_pidfd, G_IO_IN, on_share_exit, sandbox);
    else if (!sandbox->share_timer) /* ended before it could be watched: the guest would hang */
        sandbox->share_timer = g_timeout_add(EVENT_GRACE_MS, sv_machine_on_share_lost, sandbox);
}

void sv_machine_watch_processes(SvSandbox *sandbox)
{
    watch_qemu(sandbox);
    watch_share(sandbox);
    sv_pod_cgroup_place(sandbox);
}

/* ---- agent */

static void on_agent_ready(
    SvAgent *agent, const Sandvirt__V1__HelloResponse *hello, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (sandbox->agent_ticket) {
        sv_timeline_note_agent(sandbox, hello);
        sv_ticket_next(sandbox->agent_ticket);
        sandbox->agent_ticket = 0;
    }
    if (sandbox->word_wanted)
        sv_recovery_agent_ready(sandbox, hello);
}

static void on_agent_exited(
    SvAgent *agent, guint32 stream, const Sandvirt__V1__ExitEvent *event, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    SvProcess *process = g_hash_table_lookup(sandbox->processes, GUINT_TO_POINTER(event->handle));
    if (!process || process->status >= 0) {
        sv_agent_acknowledge(agent, stream); /* nobody waits for it any more */
        return;
    }
    process->event_stream = stream;
    if (process->exec) {
        g_debug("exec in %s: over after %.1f ms in the guest", process->container->record->id,
            (double)event->guest_ns / 1e6);
        sv_exec_exited(process, event->exit_code);
    } else {
        sv_container_init_exited(process->container, event->exit_code, event->oom);
    }
}

static void on_agent_oom(
    SvAgent *agent, const char *container_id, guint64 kills, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    SvContainer *container = sv_sandbox_find(sandbox, container_id, NULL);
    if (container)
        sv_container_note_oom(container, kills);
}

static void on_agent_shutting_down(SvAgent *agent, const char *reason, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (sandbox->end_cause == SV_CAUSE_NONE && sandbox->machine == SV_MACHINE_UP)
        sandbox->end_cause = SV_CAUSE_GUEST_POWERED_OFF;
}

static gboolean on_agent_grace(gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->end_timer = 0;
    sv_machine_kill(sandbox, SV_CAUSE_AGENT_LOST);
    return G_SOURCE_REMOVE;
}

static void on_agent_lost(SvAgent *agent, const GError *error, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    g_info("sandbox %s: channel to the agent: %s", sandbox->paths->sandbox, error->message);
    g_clear_pointer(&sandbox->agent, sv_agent_free);
    if (sandbox->agent_ticket) {
        sv_ticket_fail(sandbox->agent_ticket,
            sv_machine_boot_error(sandbox, "closed its channel before it was ready"));
        sandbox->agent_ticket = 0;
        return;
    }
    if (sandbox->recovering)
        sv_recovery_agent_lost(sandbox);
    /* Mostly QEMU's end is behind it, and its own news come at once. */
    if (sandbox->machine == SV_MACHINE_UP && !sandbox->end_timer && !sandbox->qemu_gone)
        sandbox->end_timer = g_timeout_add(AGENT_GRACE_MS, on_agent_grace, sandbox);
}

const SvAgentHandlers sv_machine_agent_handlers = {
    .ready = on_agent_ready,
    .exited = on_agent_exited,
    .oom = on_agent_oom,
    .shutting_down = on_agent_shutting_down,
    .frame = sv_process_agent_frame,
    .lost = on_agent_lost,
};
