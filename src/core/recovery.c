/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Taking over from a monitor that died: what the state folder says, held against libvirt and the agent.
 * Shims come by themselves; those that do not are seen by their pidfd. */
#include "core/pod-cgroup.h"
#include "core/disks.h"
#include "core/sandbox-priv.h"

#include "base/fd.h"
#include "base/process.h"

#include <string.h>

static void each(
    SvSandbox *sandbox, void (*func)(SvContainer *container, gpointer data), gpointer data)
{
    g_autoptr(GPtrArray) all = sv_sandbox_containers(sandbox);
    for (guint i = 0; i < all->len; i++)
        func(all->pdata[i], data);
}

/* A stop whose time the former monitor was to wait for. */
static void arm_kill(SvContainer *container, gpointer data)
{
    const SvRecord *record = container->record;
    if (record->kill_at_us && !record->stopping && record->state != SV_STATE_STOPPED)
        sv_container_arm_kill(container);
}

void sv_recovery_finish(SvSandbox *sandbox)
{
    if (!sandbox->recovering)
        return;
    sandbox->recovering = FALSE;
    each(sandbox, arm_kill, NULL);
    if (sandbox->machine == SV_MACHINE_UP)
        sv_disks_hold_again(sandbox);
    SvWaiter recovered = sandbox->recovered;
    sandbox->recovered.done = NULL;
    sv_answer_later(recovered.done, NULL, recovered.user_data);
    if (g_hash_table_size(sandbox->containers) == 0)
        sv_machine_down(sandbox);
    else if (sandbox->machine == SV_MACHINE_ENDED && sv_sandbox_live_containers(sandbox) == 0)
        sv_machine_down(sandbox); /* what was for the machine on the host */
    sv_sandbox_check_idle(sandbox);
}

/* ---- records */

static void load_execs(SvContainer *container)
{
    GPtrArray *execs = container->record->execs;
    for (guint i = 0; i < execs->len; i++) {
        const SvExecRecord *record = execs->pdata[i];
        SvProcess *process = sv_process_new(container, record->handle, TRUE);
        process->in_guest = TRUE;
        sv_process_watch(process, record->shim_pid, record->shim_start);
    }
}

static void load_container(SvSandbox *sandbox, SvRecord *record)
{
    SvContainer *container = sv_container_load_spec(sv_container_new(sandbox, record));
    gboolean live = record->state == SV_STATE_READY || record->state == SV_STATE_RUNNING ||
        record->state == SV_STATE_PAUSED;
    container->in_guest = live || record->state == SV_STATE_CREATING;
    container->init->in_guest = live;
    container->init->terminal = record->terminal;
    if (record->stopping)
        container->init->status = record->pending_status;
    if (record->state == SV_STATE_STOPPED) {
        container->init->status = record->exit_status;
        container->init->exit_wanted = TRUE;
    }
    if (record->shim_pid > 1 &&
        sv_process_is(record->shim_pid, record->shim_start, record->boot_id)) {
        if (!sandbox->netns)
            sandbox->netns = sv_process_ns_inode(record->shim_pid, "net");
        sv_process_watch(container->init, record->shim_pid, record->shim_start);
        if (container->init->exit_wanted)
            sv_process_finish(container->init, container->init->status);
    }
    if (live)
        load_execs(container);
}

static gboolean load_containers(SvSandbox *sandbox, GError **error)
{
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    sv_record_drop_entry(sandbox->paths->root, sandbox->paths->sandbox);
    g_autoptr(GPtrArray) records = sv_record_list(sandbox->paths->root, warnings, error);
    if (!records)
        return FALSE;
    for (guint i = 0; i < records->len; i++) {
        SvRecord *record = records->pdata[i];
        if (g_strcmp0(record->sandbox, sandbox->paths->sandbox) != 0)
            continue;
        g_autofree char *text = sv_record_text(record);
        SvRecord *copy = sv_record_parse(text, strlen(text), error);
        if (!copy)
            return FALSE;
        load_container(sandbox, copy);
    }
    return TRUE;
}

/* ---- each container against what is known */

/* Goes on with a stop that had begun, or begins the one that is due. */
static void resume_stop(SvContainer *container, SvCause cause, int status)
{
    SvRecord *record = container->record;
    if (record->stopping) {
        cause = record->cause;
        status = record->pending_status >= 0 ? record->pending_status : status;
        record->stopping = FALSE;
    }
    sv_container_begin_stop(container, cause, status, FALSE);
}

static void without_machine(SvContainer *container, gpointer data)
{
    SvSandbox *sandbox = container->sandbox;
    if (container->record->state == SV_STATE_CREATING)
        sv_container_roll_back(container);
    else if (container->record->state != SV_STATE_STOPPED)
        resume_stop(container, sandbox->end_cause,
            sandbox->end_cause == SV_CAUSE_HOST_RESTARTED ? 255 : -1);
}

/* A create is no more than its record when the machine's or the guest's word is not waited for. */
static void roll_back_cut_off(SvContainer *container, gpointer data)
{
    /* a suspended machine does not let disks go: that waits for its word all the same, or for an order */
    gboolean waits = container->sandbox->record->suspended && sv_disks_any_plugged(container);
    if (container->record->state == SV_STATE_CREATING && !waits)
        sv_container_roll_back(container);
}

static void update_paused(SvContainer *container, gpointer data)
{
    sv_container_update_paused(container);
}

static void stop_waiting(SvSandbox *sandbox)
{
    if (sandbox->boot_timer)
        g_source_remove(sandbox->boot_timer);
    sandbox->boot_timer = 0;
}

static void machine_is_gone(SvSandbox *sandbox, SvCause cause)
{
    g_autoptr(GError) error = NULL;
    stop_waiting(sandbox);
    g_clear_pointer(&sandbox->agent, sv_agent_free);
    sandbox->word_wanted = FALSE;
    sandbox->machine = SV_MACHINE_ENDED;
    sandbox->domain_gone = !sandbox->qemu_gone;
    sandbox->end_cause = sandbox->record->cause != SV_CAUSE_NONE ? sandbox->record->cause : cause;
    sandbox->record->ended = TRUE;
    sandbox->record->suspended = FALSE;
    sandbox->record->cause = sandbox->end_cause;
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
    sv_disks_machine_gone(sandbox);
    each(sandbox, without_machine, NULL);
    sv_recovery_finish(sandbox);
}

void sv_recovery_machine_ended(SvSandbox *sandbox, SvCause cause)
{
    gboolean domain_gone = sandbox->domain_gone;
    machine_is_gone(sandbox, cause);
    sandbox->domain_gone = domain_gone;
}

/* Its word will not come. */
void sv_recovery_agent_lost(SvSandbox *sandbox)
{
    stop_waiting(sandbox);
    sandbox->word_wanted = FALSE;
    sandbox->machine = SV_MACHINE_UP;
    each(sandbox, roll_back_cut_off, NULL);
    sv_recovery_finish(sandbox);
}

/* ---- with the agent's word */

typedef struct {
    const Sandvirt__V1__HelloResponse *hello;
} Word;

static const Sandvirt__V1__ProcessInfo *info_of(
    const Sandvirt__V1__HelloResponse *hello, guint32 handle)
{
    for (gsize i = 0; i < hello->n_processes; i++)
        if (hello->processes[i]->handle == handle)
            return hello->processes[i];
    return NULL;
}

/* It was stopped here while the guest could not be reached, and lives on there. */
static void remove_stopped(SvContainer *container)
{
    sv_container_call_remove(container, container->sandbox->config->stop_ms, NULL, NULL);
}

static void with_agent(SvContainer *container, gpointer data)
{
    const Word *word = data;
    SvRecord *record = container->record;
    const Sandvirt__V1__ProcessInfo *info = info_of(word->hello, record->handle);
    if (record->state == SV_STATE_STOPPED || container->stop) {
        if (info)
            remove_stopped(container);
        return;
    }
    if (record->state == SV_STATE_CREATING) {
        sv_container_roll_back(container);
        return;
    }
    if (record->stopping) {
        resume_stop(container, record->cause, -1);
    } else if (!info) {
        resume_stop(container, SV_CAUSE_AGENT_LOST, 255);
    } else if (info->state != SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED) {
        sv_container_set_guest_pid(container, info->pid);
        record->frozen = info->frozen;
        /* the answer to a start may have been lost */
        g_autoptr(GError) error = NULL;
        if (record->state == SV_STATE_READY &&
            info->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING) {
            if (sv_container_move(container, SV_EVENT_START, &error))
                sv_hooks_run_ignored(container, SV_HOOK_POSTSTART, "running", NULL, NULL);
            else
                g_warning("container %s: %s", record->id, error->message);
        }
        sv_container_update_paused(container);
        if (container->init->shim_pidfd < 0)
            resume_stop(container, SV_CAUSE_SHIM_KILLED, -1);
        else
            sv_container_undo_cut_devices(container);
    }
    /* EXITED: the agent tells its exits again after Hello */
}

/* An exec of which the guest knows nothing: it was not started, or its end was told and forgotten. */
static void end_unknown_execs(SvSandbox *sandbox, const Sandvirt__V1__HelloResponse *hello)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        SvProcess *process = value;
        if (process->exec && !process->exit_wanted && !info_of(hello, process->handle)) {
            process->in_guest = FALSE;
            sv_process_finish(process, 255);
        }
    }
}

static void resume_streams(SvSandbox *sandbox)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        SvProcess *process = value;
        if (process->shim && process->in_guest && process->attach_stream)
            sv_process_resume_streams(process, 0);
    }
}

void sv_recovery_agent_ready(SvSandbox *sandbox, const Sandvirt__V1__HelloResponse *hello)
{
    Word word = {hello};
    sandbox->word_wanted = FALSE;
    stop_waiting(sandbox);
    sandbox->machine = SV_MACHINE_UP;
    if (!hello->set_up) {
        /* The former monitor died between boot and set-up: no container can be in it. */
        each(sandbox, without_machine, NULL);
        sv_recovery_finish(sandbox);
        return;
    }
    each(sandbox, with_agent, &word);
    end_unknown_execs(sandbox, hello);
    resume_streams(sandbox);
    sv_pod_network_recover(sandbox);
    sv_sandbox_touch(sandbox);
    sv_recovery_finish(sandbox);
}

static gboolean on_agent_timeout(gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->boot_timer = 0;
    if (!sandbox->recovering)
        return G_SOURCE_REMOVE;
    g_warning("sandbox %s: the agent does not answer the new monitor: the machine is ended",
        sandbox->paths->sandbox);
    sv_recovery_agent_lost(sandbox);
    sv_machine_kill(sandbox, SV_CAUSE_AGENT_LOST);
    return G_SOURCE_REMOVE;
}

/* ---- libvirt's word */

/* A container that is more than the beginning of a create. */
static gboolean any_made(const SvSandbox *sandbox)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((SvContainer *)value)->record->state != SV_STATE_CREATING)
            return TRUE;
    return FALSE;
}

static void ask_agent(SvSandbox *sandbox)
{
    g_autoptr(GError) error = NULL;
    if (!sv_machine_connect_agent(sandbox, &error)) {
        /* nobody serves the channel: QEMU is gone, whatever libvirt will say of it */
        g_info("sandbox %s: %s", sandbox->paths->sandbox, error->message);
        sandbox->qemu_gone = TRUE;
        machine_is_gone(sandbox, SV_CAUSE_DOMAIN_CRASHED);
        return;
    }
    sv_machine_watch_processes(sandbox);
    sandbox->boot_timer = g_timeout_add(sandbox->config->boot_ms, on_agent_timeout, sandbox);
}

static void on_status(SvHv *hv, const SvHvStatus *status, const GError *error, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (!sandbox->recovering)
        return; /* its end was told meanwhile */
    if (error) {
        /* libvirt cannot be asked now; it is compared with when the connection is back */
        g_warning("sandbox %s: %s", sandbox->paths->sandbox, error->message);
        ask_agent(sandbox);
        return;
    }
    if (!sv_machine_lives(status)) {
        machine_is_gone(sandbox, SV_CAUSE_DOMAIN_CRASHED);
        return;
    }
    if (!any_made(sandbox)) {
        /* Its start was cut off: nobody waits for that guest. The end of the sandbox destroys it. */
        sandbox->machine = SV_MACHINE_UP;
        sandbox->word_wanted = FALSE;
        sandbox->end_cause = SV_CAUSE_DOMAIN_CRASHED;
        each(sandbox, without_machine, NULL);
        sv_recovery_finish(sandbox);
        sv_machine_kill(sandbox, SV_CAUSE_DOMAIN_CRASHED);
        return;
    }
    if (sandbox->record_lost) {
        sv_recovery_agent_lost(sandbox);
        sv_machine_kill(sandbox, SV_CAUSE_AGENT_LOST);
        return;
    }
    sandbox->record->suspended = status->suspended;
    if (status->running) {
        ask_agent(sandbox);
        return;
    }
    /* The guest is silent until it runs on; that is no fault of it, and its containers are known as
     * they were. Its word is taken when it comes. */
    g_autoptr(GError) failure = NULL;
    sandbox->machine = SV_MACHINE_UP;
    if (!sv_machine_connect_agent(sandbox, &failure)) {
        sandbox->qemu_gone = TRUE;
        machine_is_gone(sandbox, SV_CAUSE_DOMAIN_CRASHED);
        return;
    }
    sv_machine_watch_processes(sandbox);
    each(sandbox, roll_back_cut_off, NULL);
    each(sandbox, update_paused, NULL);
    sv_recovery_finish(sandbox);
}

static void on_connected(SvHv *hv, const GError *error, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (!sandbox->recovering)
        return;
    if (error) {
        g_warning("sandbox %s: %s", sandbox->paths->sandbox, error->message);
        ask_agent(sandbox);
        return;
    }
    sandbox->hv_connected = TRUE;
    hv->ops->status(hv, on_status, sandbox);
}

static gboolean has_containers(const SvSandbox *sandbox)
{
    g_autoptr(GPtrArray) records = sv_record_list(sandbox->paths->root, NULL, NULL);
    for (guint i = 0; records && i < records->len; i++)
        if (g_strcmp0(((SvRecord *)records->pdata[i])->sandbox, sandbox->paths->sandbox) == 0)
            return TRUE;
    return FALSE;
}

void sv_sandbox_recover(SvSandbox *sandbox, SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    sandbox->record = sv_sandbox_record_load(sandbox->paths, &error);
    if (!sandbox->record && sv_error_is(error, SV_ERR_NOT_FOUND) && !has_containers(sandbox)) {
        sv_answer_later(done, NULL, user_data);
        return;
    }
    if (!sandbox->record) {
        g_warning("sandbox %s: its record is lost: its machine, if there is one, is ended: %s",
            sandbox->paths->sandbox, error->message);
        g_clear_error(&error);
        if (!sv_sandbox_make_record(sandbox, &error)) {
            sv_answer_later(done, error, user_data);
            return;
        }
        /* The channel's token is lost with it: nobody can speak with the agent any more. */
        sandbox->record->started = sandbox->record_lost = TRUE;
    }
    sandbox->record->monitor_restarts++;
    sandbox->recovering = sandbox->word_wanted = TRUE;
    sandbox->recovered = (SvWaiter){done, user_data};
    if (!load_containers(sandbox, &error)) {
        g_warning("sandbox %s: %s", sandbox->paths->sandbox, error->message);
        g_clear_error(&error);
    }
    sv_pod_network_find(sandbox);
    sv_pod_cgroup_begin(sandbox);
    g_autofree char *boot_id = sv_process_boot_id();
    if (g_strcmp0(sandbox->record->boot_id, boot_id) != 0) {
        machine_is_gone(sandbox, SV_CAUSE_HOST_RESTARTED);
    } else if (sandbox->record->ended || !sandbox->record->started) {
        machine_is_gone(sandbox, SV_CAUSE_DOMAIN_DESTROYED);
    } else {
        sv_machine_open_hv(sandbox);
        sandbox->hv->ops->connect(sandbox->hv, on_connected, sandbox);
    }
}
