/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A create that was cut off with its monitor is undone by the next one, from what is recorded. */
#include "core/disks.h"
#include "core/pod-cgroup.h"

#define SHIM_GONE_MS 2000 /* after its SIGKILL */

static void on_removed(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    sv_ticket_done(error, user_data);
}

static void step_remove(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    SvSandbox *sandbox = container->sandbox;
    sv_process_kill_shim(container->init);
    /* a suspended machine lets no disk go */
    if (sandbox->machine == SV_MACHINE_UP && sandbox->record->suspended &&
        sv_disks_any_plugged(container))
        sv_machine_resume(sandbox);
    if (sandbox->machine != SV_MACHINE_UP || !sv_agent_is_ready(sandbox->agent) ||
        sandbox->record->suspended) {
        sv_sequence_next(seq);
        return;
    }
    sv_container_call_remove(container, sandbox->config->stop_ms + SV_AGENT_SILENT_MS, on_removed,
        sv_sequence_handle(seq));
}

static void step_disks(SvSequence *seq, gpointer user_data)
{
    sv_disks_unplug(user_data, NULL, sv_ticket_done, sv_sequence_handle(seq));
}

static void step_host_mounts(SvSequence *seq, gpointer user_data)
{
    sv_disks_restore_mounts(user_data, TRUE, sv_ticket_done, sv_sequence_handle(seq));
}

/* A cgroup is busy as long as the shim is in it. */
static void step_shim(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    if (container->init->shim_pidfd < 0) {
        sv_sequence_next(seq);
        return;
    }
    container->init->gone_ticket = sv_sequence_ticket(seq);
    sv_process_kill_shim(container->init);
}

static void step_cgroup(SvSequence *seq, gpointer user_data)
{
    sv_container_cgroup_remove(user_data);
    sv_sequence_next(seq);
}

static const SvStep steps[] = {
    {"remove", step_remove, NULL, 0},
    {"disks", step_disks, NULL, 0},
    {"host mounts of disks", step_host_mounts, NULL, 0},
    {"share", sv_container_step_unshare, NULL, 0},
    {"shim", step_shim, NULL, SHIM_GONE_MS},
    {"cgroup", step_cgroup, NULL, 0},
    {NULL, NULL, NULL, 0},
};

static void on_rolled_back(SvSequence *seq, const GError *error, gpointer user_data)
{
    SvContainer *container = user_data;
    g_autoptr(GError) failure = g_error_new_literal(SV_CORE_ERROR, SV_ERR_CANCELLED, "rolled back");
    container->removal = NULL;
    sv_container_create_failed(container, failure);
}

static gboolean has_to_wait(const SvContainer *container)
{
    return sv_disks_any_plugged(container) || sv_disks_any_mount(container) ||
        container->record->cgroup;
}

/* Without disks and a cgroup nothing of it has to be waited for. */
static void roll_back_now(SvContainer *container)
{
    SvSandbox *sandbox = container->sandbox;
    g_autoptr(GError) error = NULL;
    sv_process_kill_shim(container->init);
    if (sandbox->machine == SV_MACHINE_UP && sandbox->agent)
        sv_container_call_remove(container, sandbox->config->stop_ms, NULL, NULL);
    if (!sv_share_release(sandbox->paths, container->record->index, TRUE, NULL, &error))
        g_warning("container %s: ignoring: %s", container->record->id, error->message);
    g_clear_error(&error);
    if (!sandbox->recovering) {
        on_rolled_back(NULL, NULL, container);
        return;
    }
    /* the end of the recovery looks after the machine */
    container->record->cause = SV_CAUSE_ROLLED_BACK;
    if (!sv_container_move(container, SV_EVENT_FAILED, &error))
        g_warning("container %s: %s", container->record->id, error->message);
    sv_container_forget(container);
}

void sv_container_roll_back(SvContainer *container)
{
    if (container->removal)
        return;
    g_message("container %s: its create was cut off: rolled back", container->record->id);
    if (!has_to_wait(container)) {
        roll_back_now(container);
        return;
    }
    g_autofree char *label = g_strdup_printf("roll back %s", container->record->id);
    container->removal =
        sv_sequence_start(label, steps, SV_SEQUENCE_CONTINUE, on_rolled_back, container);
}
