/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a machine and of everything on the host that was for it. Every step is tried. */
#include "core/host-cgroup.h"
#include "core/pod-cgroup.h"
#include "core/sandbox-priv.h"
#include "core/uids.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- shutdown: the guest syncs and powers off */

static void on_shutdown(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    g_autofree SvMachineStep *step = user_data;
    if (error)
        sv_ticket_fail(step->ticket, g_error_copy(error));
    /* else: the end of the domain is the answer */
}

static void step_shutdown(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (sandbox->qemu_gone && !sandbox->domain_gone && sandbox->hv) {
        /* libvirt sees it too, in a moment, and says why; a destroy would cover that up */
        sandbox->domain_ticket = sv_sequence_ticket(seq);
        return;
    }
    if (sandbox->domain_gone || !sv_agent_is_ready(sandbox->agent) || sandbox->record->suspended) {
        sv_sequence_next(seq);
        return;
    }
    sandbox->domain_ticket = sv_sequence_ticket(seq);
    Sandvirt__V1__ShutdownRequest message = SANDVIRT__V1__SHUTDOWN_REQUEST__INIT;
    sv_agent_call(sandbox->agent, "Shutdown", &message.base, NULL, 0, on_shutdown,
        sv_machine_step(sandbox, seq));
}

/* ---- destroy */

static void on_destroyed(SvHv *hv, const GError *error, gpointer user_data)
{
    g_autofree SvMachineStep *step = user_data;
    SvSandbox *sandbox = step->sandbox;
    g_clear_error(&sandbox->down_error);
    if (error) {
        sandbox->down_error = g_error_copy(error);
        sv_ticket_fail(step->ticket, g_error_copy(error));
    } else {
        sandbox->domain_gone = TRUE;
        sv_ticket_next(step->ticket);
    }
}

static void step_destroy(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->domain_ticket = 0;
    if (sandbox->domain_gone || !sandbox->hv) {
        sv_sequence_next(seq);
        return;
    }
    sandbox->end_guessed = FALSE; /* the event that follows is of this, and no cause */
    sandbox->hv->ops->destroy(
        sandbox->hv, sandbox->qemu_pidfd, 1000, on_destroyed, sv_machine_step(sandbox, seq));
}

static gboolean still_runs(const SvSandbox *sandbox)
{
    return !sandbox->domain_gone && !sandbox->qemu_gone;
}

/* ---- virtiofsd ends with QEMU; it holds the share */

static void step_virtiofsd(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    g_clear_pointer(&sandbox->agent, sv_agent_free);
    if (sandbox->share_pidfd < 0) {
        if (!still_runs(sandbox) && !sandbox->share_seen)
            sv_share_end_servers(sandbox->paths, sandbox->config);
        sv_sequence_next(seq);
        return;
    }
    sandbox->share_ticket = sv_sequence_ticket(seq);
    if (sandbox->domain_gone || sandbox->qemu_gone)
        sv_process_signal(sandbox->share_pidfd, SIGTERM);
}

/* ---- the pod's network namespace: the taps went with QEMU */

static void step_network(SvSequence *seq, gpointer user_data)
{
    sv_pod_network_release(user_data, sv_sequence_ticket(seq));
}

/* ---- the host's side */

static void step_share(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    GError *error = NULL;
    if (sandbox->share_pidfd >= 0)
        sv_process_signal(sandbox->share_pidfd, SIGKILL);
    sandbox->share_ticket = 0;
    if (sv_share_destroy(sandbox->paths, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

static void step_files(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    g_autofree char *log =
        g_strdup_printf("/var/log/libvirt/qemu/%s.log", sandbox->paths->domain_name);
    g_autofree char *share_log =
        g_strdup_printf("/var/log/libvirt/qemu/%s-fs0-virtiofsd.log", sandbox->paths->domain_name);
    const char *names[] = {sandbox->paths->agent_socket, log, share_log};
    GError *error = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        if (unlink(names[i]) < 0 && errno != ENOENT && !error)
            sv_error_set_errno(&error, SV_CORE_ERROR, errno, "remove \"%s\"", names[i]);
    if (error)
        sv_sequence_fail(seq, error);
    else
        sv_sequence_next(seq);
}

/* Only when QEMU is gone for sure: the next machine gets its user, and the cgroup is empty. */
static void step_user(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (sandbox->record && !still_runs(sandbox)) {
        sv_uids_release(sandbox->config, sandbox->paths, sandbox->record->uid);
        sandbox->record->uid = -1;
        sv_cgroup_remove_machine(SV_CGROUP_TOP, sandbox->paths->domain_name);
        sv_pod_cgroup_end(sandbox);
    }
    sv_sequence_next(seq);
}

static void step_record(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    /* The deletes of containers come, and find that the machine has ended; a machine that could not be
     * ended is not forgotten. */
    if (g_hash_table_size(sandbox->containers) > 0 || still_runs(sandbox)) {
        sv_sequence_next(seq);
        return;
    }
    /* The lock beside it stays with this monitor: the next container of the sandbox may be its too. */
    GError *error = NULL;
    if (sv_file_remove_tree(sandbox->paths->sandbox_file, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

static const SvStep down_steps[] = {
    {"shutdown", step_shutdown, NULL, 600},
    {"destroy", step_destroy, NULL, 15000},
    {"virtiofsd", step_virtiofsd, NULL, 1000},
    {"network", step_network, NULL, 10000},
    {"share", step_share, NULL, 0},
    {"files", step_files, NULL, 0},
    {"user", step_user, NULL, 0},
    {"record", step_record, NULL, 0},
    {NULL, NULL, NULL, 0},
};

static void forget_machine(SvSandbox *sandbox)
{
    g_clear_error(&sandbox->down_error);
    sandbox->machine = SV_MACHINE_NONE;
    sandbox->end_cause = SV_CAUSE_NONE;
    sandbox->word_wanted = sandbox->record_lost = FALSE;
    sandbox->domain_gone = sandbox->qemu_gone = sandbox->end_guessed = FALSE;
    sandbox->share_seen = FALSE;
    sandbox->netns = 0;
    /* the timers too: what they are for would be the next machine's end */
    guint *sources[] = {
        &sandbox->qemu_watch, &sandbox->share_watch, &sandbox->end_timer, &sandbox->share_timer};
    for (guint i = 0; i < G_N_ELEMENTS(sources); i++) {
        if (*sources[i])
            g_source_remove(*sources[i]);
        *sources[i] = 0;
    }
    sv_fd_clear(&sandbox->qemu_pidfd);
    sv_fd_clear(&sandbox->share_pidfd);
}

/* As new: the next create of the same sandbox may come before this monitor has ended. */
static void reset(SvSandbox *sandbox)
{
    g_clear_pointer(&sandbox->record, sv_sandbox_record_free);
    forget_machine(sandbox);
}

/* What belongs to the sandbox and not to its machine. */
static void keep_of(SvSandboxRecord *record, SvSandboxRecord *old)
{
    record->title = g_steal_pointer(&old->title);
    record->hostname = g_steal_pointer(&old->hostname);
    record->netns = g_steal_pointer(&old->netns);
    record->host_network = old->host_network;
    record->netns_id = old->netns_id;
    record->next_link = old->next_link;
    record->next_handle = old->next_handle;
    record->next_index = old->next_index;
    record->next_disk = old->next_disk;
    memcpy(record->exits, old->exits, sizeof record->exits);
    record->monitor_restarts = old->monitor_restarts;
    record->pod_cpu = old->pod_cpu;
    record->pod_memory = old->pod_memory;
}

gboolean sv_machine_renew(SvSandbox *sandbox, GError **error)
{
    SvSandboxRecord *old = sandbox->record;
    if (!sv_sandbox_make_record(sandbox, error)) {
        sandbox->record = old;
        return FALSE;
    }
    keep_of(sandbox->record, old);
    sv_sandbox_record_free(old);
    forget_machine(sandbox);
    return TRUE;
}

static void on_down(SvSequence *seq, const GError *error, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->down = NULL;
    sandbox->machine = SV_MACHINE_ENDED;
    /* A domain that still runs must not be reported as deleted. */
    g_autoptr(GError) failure = NULL;
    const GError *cause = sandbox->down_error ? sandbox->down_error : error;
    if (error && still_runs(sandbox))
        g_set_error(&failure, SV_CORE_ERROR, cause->code,
            "the machine of sandbox \"%s\" still runs: %s", sandbox->paths->sandbox,
            cause->message);
    gboolean empty = g_hash_table_size(sandbox->containers) == 0 && !failure;
    /* The last delete may have come on the way: its record is this round's or the next one's. */
    if (empty && !g_file_test(sandbox->paths->sandbox_file, G_FILE_TEST_EXISTS))
        sandbox->down_again = FALSE;
    if (sandbox->down_again) {
        sv_machine_down(sandbox);
    } else {
        sv_waiters_answer(sandbox->down_waiters, failure);
        if (empty)
            reset(sandbox);
    }
    sv_sandbox_check_idle(sandbox);
}

gboolean sv_machine_wait_for_end(SvSandbox *sandbox, SvDone done, gpointer user_data)
{
    gboolean failed = sandbox->machine == SV_MACHINE_ENDED && !sandbox->down;
    if (!failed && !sandbox->down && !sandbox->down_again)
        return FALSE;
    sv_waiters_add(sandbox->down_waiters, done, user_data);
    if (failed)
        sv_machine_down(sandbox);
    return TRUE;
}

void sv_sandbox_wait_for_end(SvSandbox *sandbox, SvDone done, gpointer user_data)
{
    if (!sv_machine_wait_for_end(sandbox, done, user_data))
        sv_answer_later(done, NULL, user_data);
}

void sv_machine_down(SvSandbox *sandbox)
{
    if (sandbox->down || sandbox->up) {
        sandbox->down_again = TRUE;
        if (sandbox->up)
            sv_sequence_cancel(sandbox->up,
                g_error_new_literal(
                    SV_CORE_ERROR, SV_ERR_CANCELLED, "nobody needs the machine any more"));
        return;
    }
    sandbox->down_again = FALSE;
    if (!sandbox->record || !sandbox->record->started)
        sandbox->domain_gone = TRUE;
    sandbox->machine = SV_MACHINE_ENDING;
    sandbox->down =
        sv_sequence_start("end the machine", down_steps, SV_SEQUENCE_CONTINUE, on_down, sandbox);
}
