/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Delete: stop when it must, then the record; the machine with its last container. */
#include "core/pod-cgroup.h"
#include "core/disks.h"
#include "core/sandbox-priv.h"

#include <signal.h>

typedef struct {
    SvSandbox *sandbox;
    char *id;
} Removal;

static Removal *removal_new(SvContainer *container)
{
    Removal *removal = g_new0(Removal, 1);
    removal->sandbox = container->sandbox;
    removal->id = g_strdup(container->record->id);
    return removal;
}

/* The container; NULL: it has gone. */
static SvContainer *removal_end(Removal *removal)
{
    SvContainer *container = sv_sandbox_find(removal->sandbox, removal->id, NULL);
    g_free(removal->id);
    g_free(removal);
    return container;
}

/* ---- poststop hooks: the callers hear of the delete when both are over */

typedef struct {
    GArray *waiters;
    guint pending;
    GError *error; /* of the delete */
} PostStop;

static void poststop_end(const GError *error, gpointer user_data)
{
    PostStop *stop = user_data;
    if (error && !stop->error)
        stop->error = g_error_copy(error);
    if (--stop->pending > 0)
        return;
    /* at once: the monitor may end behind this */
    for (guint i = 0; i < stop->waiters->len; i++) {
        const SvWaiter *waiter = &g_array_index(stop->waiters, SvWaiter, i);
        waiter->done(stop->error, waiter->user_data);
    }
    g_array_unref(stop->waiters);
    g_clear_error(&stop->error);
    g_free(stop);
}

static void run_poststop(SvContainer *container)
{
    GArray *waiters = container->delete_waiters;
    PostStop *stop = g_new0(PostStop, 1);
    stop->pending = 2;
    stop->waiters = g_array_new(FALSE, FALSE, sizeof(SvWaiter));
    g_array_append_vals(stop->waiters, waiters->data, waiters->len);
    g_array_set_size(waiters, 0);
    sv_waiters_add(waiters, poststop_end, stop);
    sv_hooks_run_ignored(container, SV_HOOK_POSTSTOP, "stopped", poststop_end, stop);
}

static void finish(SvContainer *container);

static void on_mounts_restored(const GError *error, gpointer user_data)
{
    SvContainer *container = removal_end(user_data);
    if (!container)
        return;
    container->deleting = FALSE;
    finish(container);
}

/* The machine's end, for those who deleted its last container. */
static void finish(SvContainer *container)
{
    if (sv_disks_any_mount(container)) {
        container->deleting = TRUE;
        sv_disks_restore_mounts(container, FALSE, on_mounts_restored, removal_new(container));
        return;
    }
    SvSandbox *sandbox = container->sandbox;
    g_autoptr(GError) error = NULL;
    if (container->spec && container->spec->hooks[SV_HOOK_POSTSTOP]->len > 0)
        run_poststop(container);
    if (!sv_container_move(container, SV_EVENT_DELETE, &error)) {
        /* the next delete finds it as it is; what else can go, goes */
        g_warning("container %s: %s", container->record->id, error->message);
        sv_waiters_answer(container->delete_waiters, error);
        if (sv_sandbox_live_containers(sandbox) == 0)
            sv_machine_down(sandbox);
        return;
    }
    sv_container_cgroup_remove(container);
    if (g_hash_table_size(sandbox->containers) > 1) {
        sandbox->record->exits[container->record->cause]++;
        if (!sv_sandbox_save(sandbox, &error))
            g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
        sv_waiters_answer(container->delete_waiters, NULL);
        sv_container_forget(container);
        return;
    }
    /* the callers wait until nothing is left of the machine */
    g_array_append_vals(
        sandbox->down_waiters, container->delete_waiters->data, container->delete_waiters->len);
    g_array_set_size(container->delete_waiters, 0);
    sv_container_forget(container);
    sv_machine_down(sandbox);
}

static void on_stopped(const GError *error, gpointer user_data)
{
    SvContainer *container = removal_end(user_data);
    if (!container)
        return; /* rolled back: its waiters have been answered */
    container->deleting = FALSE;
    if (container->record->state == SV_STATE_STOPPED) {
        finish(container);
        return;
    }
    g_autoptr(GError) failure = g_error_new(SV_CORE_ERROR, SV_ERR_FAILED,
        "container \"%s\" could not be stopped: its record cannot be written",
        container->record->id);
    sv_waiters_answer(container->delete_waiters, failure);
    /* Nothing of it runs any more: a machine of its own need not wait for its record. */
    if (sv_sandbox_live_containers(container->sandbox) == 1)
        sv_machine_down(container->sandbox);
}

static void stop_first(SvContainer *container)
{
    if (container->deleting)
        return;
    container->deleting = TRUE;
    sv_waiters_add(container->stop_waiters, on_stopped, removal_new(container));
    SvSandbox *sandbox = container->sandbox;
    if (sandbox->record->suspended && sv_sandbox_live_containers(sandbox) <= 1)
        sv_machine_kill(sandbox, SV_CAUSE_SIGNALLED);
    else if (sandbox->record->suspended)
        sv_machine_resume(sandbox);
    sv_container_begin_stop(container, SV_CAUSE_SIGNALLED, 128 + SIGKILL, FALSE);
}

void sv_container_delete(
    SvSandbox *sandbox, const char *id, gboolean force, SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_sandbox_find(sandbox, id, &error);
    if (!container && force && g_hash_table_size(sandbox->containers) == 0 &&
        sv_machine_wait_for_end(sandbox, done, user_data))
        return;
    if (!container) {
        sv_answer_later(done, force ? NULL : error, user_data);
        return;
    }
    SvRecord *record = container->record;
    gboolean busy = record->state == SV_STATE_RUNNING || record->state == SV_STATE_PAUSED ||
        record->state == SV_STATE_CREATING;
    if (!force && busy && !record->stopping &&
        !sv_lifecycle_allows(record->state, "delete", &error)) {
        sv_answer_later(done, error, user_data);
        return;
    }
    sv_waiters_add(container->delete_waiters, done, user_data);
    if (record->state == SV_STATE_CREATING) {
        sv_container_cancel_create(container,
            g_error_new_literal(SV_CORE_ERROR, SV_ERR_CANCELLED, "deleted while creating"));
    } else if (record->state == SV_STATE_STOPPED && !container->stop) {
        if (!container->deleting)
            finish(container);
    } else {
        stop_first(container);
    }
}
