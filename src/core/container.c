/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The container object, the setter of its state, and what is told when it changes. */
#include "core/sandbox-priv.h"

#include "base/file.h"
#include "base/process.h"

SvContainer *sv_container_new(SvSandbox *sandbox, SvRecord *record)
{
    SvContainer *container = g_new0(SvContainer, 1);
    container->sandbox = sandbox;
    container->record = record;
    container->forced_status = container->default_status = -1;
    container->stop_waiters = g_array_new(FALSE, FALSE, sizeof(SvWaiter));
    container->delete_waiters = g_array_new(FALSE, FALSE, sizeof(SvWaiter));
    container->init = sv_process_new(container, record->handle, FALSE);
    g_hash_table_insert(sandbox->containers, record->id, container);
    return container;
}

void sv_container_free(SvContainer *container)
{
    if (!container)
        return;
    if (container->release_timer)
        g_source_remove(container->release_timer);
    if (container->stop_timer)
        g_source_remove(container->stop_timer);
    g_array_unref(container->stop_waiters);
    g_array_unref(container->delete_waiters);
    for (guint i = 0; i < G_N_ELEMENTS(container->guest_ns); i++)
        g_free(container->guest_ns[i]);
    sv_pod_free(container->pod);
    sv_spec_free(container->spec);
    sv_record_free(container->record);
    g_free(container);
}

/* Handles of processes that belong to @container. */
static GArray *handles_of(SvContainer *container)
{
    GArray *handles = g_array_new(FALSE, FALSE, sizeof(guint32));
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, container->sandbox->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        SvProcess *process = value;
        if (process->container == container)
            g_array_append_val(handles, process->handle);
    }
    return handles;
}

void sv_container_drop(SvContainer *container)
{
    SvSandbox *sandbox = container->sandbox;
    g_autoptr(GArray) handles = handles_of(container);
    for (guint i = 0; i < handles->len; i++) {
        gpointer handle = GUINT_TO_POINTER(g_array_index(handles, guint32, i));
        /* one whose reader takes nothing: nobody can ask for its container any more */
        sv_process_kill_shim(g_hash_table_lookup(sandbox->processes, handle));
        g_hash_table_remove(sandbox->processes, handle);
    }
    g_hash_table_remove(sandbox->containers, container->record->id);
    sv_sandbox_touch(sandbox);
    sv_sandbox_check_idle(sandbox);
}

void sv_container_forget(SvContainer *container)
{
    const SvPaths *paths = container->sandbox->paths;
    const SvRecord *record = container->record;
    g_autoptr(GError) error = NULL;
    /* the id of one that is gone may be another sandbox's by now */
    if (record->state != SV_STATE_GONE &&
        !sv_record_remove(paths->root, paths->sandbox, record->id, &error))
        g_warning("container %s: record not removed: %s", record->id, error->message);
    sv_container_drop(container);
}

gboolean sv_container_save(SvContainer *container, GError **error)
{
    return sv_record_save(container->record, container->sandbox->paths->root, error);
}

static void on_changed(const SvRecord *record, SvState old, gpointer user_data)
{
    SvContainer *container = user_data;
    SvSandbox *sandbox = container->sandbox;
    sv_sandbox_touch(sandbox);
    if (sandbox->handlers->changed)
        sandbox->handlers->changed(sandbox, record, old, sandbox->user_data);
}

gboolean sv_container_move(SvContainer *container, SvEvent event, GError **error)
{
    return sv_record_set_state(
        container->record, event, container->sandbox->paths->root, on_changed, container, error);
}

void sv_container_update_paused(SvContainer *container)
{
    SvRecord *record = container->record;
    SvAgent *agent = container->sandbox->agent;
    /* Resumed under a monitor that the guest has not answered yet: it runs for the caller when it can be asked. */
    gboolean paused = record->frozen || container->sandbox->record->suspended ||
        (record->state == SV_STATE_PAUSED && agent && !sv_agent_is_ready(agent));
    g_autoptr(GError) error = NULL;
    SvEvent event;
    if (paused && record->state == SV_STATE_RUNNING)
        event = SV_EVENT_FREEZE;
    else if (!paused && record->state == SV_STATE_PAUSED)
        event = SV_EVENT_THAW;
    else
        return;
    if (!sv_container_move(container, event, &error))
        g_warning("container %s: %s", record->id, error->message);
}

/* After a recovery: config.json may have changed or gone; then what needs it is skipped. */
SvContainer *sv_container_load_spec(SvContainer *container)
{
    g_autoptr(GError) error = NULL;
    if (!container->spec)
        container->spec = sv_spec_load(container->record->bundle, &error);
    if (container->spec && !container->pod)
        container->pod = sv_pod_from_spec(container->spec, container->record->id, NULL);
    if (error)
        g_info("container %s: ignoring: %s", container->record->id, error->message);
    return container;
}

static const char *const ns_types[] = {"pid", "ipc", "uts"};

void sv_container_set_guest_pid(SvContainer *container, guint32 pid)
{
    for (guint i = 0; i < G_N_ELEMENTS(ns_types); i++) {
        g_free(container->guest_ns[i]);
        container->guest_ns[i] =
            pid > 1 ? g_strdup_printf("/proc/%u/ns/%s", pid, ns_types[i]) : NULL;
    }
}

const char *sv_container_guest_ns(SvContainer *container, const char *type)
{
    for (guint i = 0; i < G_N_ELEMENTS(ns_types); i++)
        if (g_str_equal(type, ns_types[i]))
            return container->guest_ns[i];
    return NULL;
}

/* Once: a hostile guest tells it without end. */
static void record_oom(SvContainer *container)
{
    g_autoptr(GError) error = NULL;
    container->record->oom = TRUE;
    g_autofree char *path = g_build_filename(container->record->bundle, "oom", NULL);
    /* CRI-O looks for this file; the bundle may be read-only or gone */
    if (!sv_container_save(container, &error) ||
        !sv_file_write_atomic(path, "", 0, 0644, FALSE, &error))
        g_info("container %s: ignoring: %s", container->record->id, error->message);
}

void sv_container_note_oom(SvContainer *container, guint64 kills)
{
    SvSandbox *sandbox = container->sandbox;
    if (kills <= container->oom_kills)
        return;
    container->oom_kills = kills;
    if (!container->record->oom)
        record_oom(container);
    if (sandbox->handlers->oom)
        sandbox->handlers->oom(sandbox, container->record, sandbox->user_data);
}
