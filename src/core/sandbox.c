/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sandbox object: its tables, its record, the live metadata, idleness. */
#include "core/pod-cgroup.h"
#include "core/disks.h"
#include "core/sandbox-priv.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/names.h"
#include "base/process.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static void close_hold(gpointer fd)
{
    sv_fd_close(GPOINTER_TO_INT(fd));
}

SvSandbox *sv_sandbox_new(const SvConfig *config, SvPaths *paths, const SvDriver *driver,
    const SvSandboxHandlers *handlers, gpointer user_data)
{
    SvSandbox *sandbox = g_new0(SvSandbox, 1);
    sandbox->config = sv_config_ref(config);
    sandbox->paths = paths;
    sandbox->driver = driver;
    sandbox->handlers = handlers;
    sandbox->user_data = user_data;
    sandbox->containers =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)sv_container_free);
    sandbox->processes = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)sv_process_free);
    sandbox->up_tickets = g_array_new(FALSE, FALSE, sizeof(guint64));
    sandbox->settle_waiters = g_array_new(FALSE, FALSE, sizeof(SvWaiter));
    sandbox->down_waiters = g_array_new(FALSE, FALSE, sizeof(SvWaiter));
    sandbox->machine_times = g_array_new(FALSE, FALSE, sizeof(SvStepTime));
    sandbox->disk_holds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, close_hold);
    sandbox->detaching = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    sandbox->unplugs = g_ptr_array_new();
    sandbox->qemu_pidfd = sandbox->share_pidfd = -1;
    sandbox->guest_turns = sv_turns_new();
    sandbox->network = sv_pod_network_new(sandbox);
    return sandbox;
}

void sv_sandbox_free(SvSandbox *sandbox)
{
    if (!sandbox)
        return;
    guint sources[] = {sandbox->qemu_watch, sandbox->share_watch, sandbox->end_timer,
        sandbox->boot_timer, sandbox->share_timer, sandbox->metadata_idle, sandbox->idle_source};
    for (guint i = 0; i < G_N_ELEMENTS(sources); i++)
        if (sources[i])
            g_source_remove(sources[i]);
    sandbox->metadata_idle = sandbox->idle_source = 0;
    sv_disks_free(sandbox);
    g_hash_table_destroy(sandbox->processes);
    g_hash_table_destroy(sandbox->containers);
    g_array_unref(sandbox->up_tickets);
    g_array_unref(sandbox->down_waiters);
    g_array_unref(sandbox->settle_waiters);
    g_clear_error(&sandbox->down_error);
    sv_agent_free(sandbox->agent);
    sv_turns_unref(sandbox->guest_turns);
    if (sandbox->hv)
        sandbox->hv->ops->free(sandbox->hv);
    sv_pod_network_free(sandbox->network);
    sv_fd_close(sandbox->qemu_pidfd);
    sv_fd_close(sandbox->share_pidfd);
    sv_sandbox_record_free(sandbox->record);
    g_free(sandbox->cgroup_home);
    g_array_unref(sandbox->machine_times);
    sv_paths_free(sandbox->paths);
    sv_config_unref(sandbox->config);
    g_free(sandbox);
}

SvContainer *sv_sandbox_find(SvSandbox *sandbox, const char *id, GError **error)
{
    SvContainer *container = g_hash_table_lookup(sandbox->containers, id);
    if (!container) {
        g_autofree char *name = sv_printable(id, SV_ID_MAX);
        g_set_error(
            error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "container does not exist: \"%s\"", name);
    }
    return container;
}

GPtrArray *sv_sandbox_containers(SvSandbox *sandbox)
{
    GPtrArray *all = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_add(all, value);
    return all;
}

void sv_sandbox_each_record(SvSandbox *sandbox,
    void (*func)(const SvRecord *record, gpointer user_data), gpointer user_data)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        func(((SvContainer *)value)->record, user_data);
}

gboolean sv_sandbox_save(SvSandbox *sandbox, GError **error)
{
    return sv_sandbox_record_save(sandbox->record, sandbox->paths, error);
}

guint sv_sandbox_live_containers(const SvSandbox *sandbox)
{
    GHashTableIter iter;
    gpointer value;
    guint n = 0;
    g_hash_table_iter_init(&iter, sandbox->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        n += ((SvContainer *)value)->record->state != SV_STATE_STOPPED ||
            ((SvContainer *)value)->stop != NULL;
    return n;
}

/* ---- answers */

typedef struct {
    SvDone done;
    GError *error;
    gpointer user_data;
} Answer;

static gboolean on_answer(gpointer user_data)
{
    Answer *answer = user_data;
    answer->done(answer->error, answer->user_data);
    g_clear_error(&answer->error);
    g_free(answer);
    return G_SOURCE_REMOVE;
}

void sv_answer_later(SvDone done, const GError *error, gpointer user_data)
{
    if (!done)
        return;
    Answer *answer = g_new0(Answer, 1);
    answer->done = done;
    answer->error = error ? g_error_copy(error) : NULL;
    answer->user_data = user_data;
    g_idle_add_full(G_PRIORITY_DEFAULT, on_answer, answer, NULL);
}

void sv_waiters_add(GArray *waiters, SvDone done, gpointer user_data)
{
    SvWaiter waiter = {done, user_data};
    g_array_append_val(waiters, waiter);
}

void sv_waiters_answer(GArray *waiters, const GError *error)
{
    for (guint i = 0; i < waiters->len; i++) {
        SvWaiter *waiter = &g_array_index(waiters, SvWaiter, i);
        sv_answer_later(waiter->done, error, waiter->user_data);
    }
    g_array_set_size(waiters, 0);
}

/* ---- live metadata of the domain */

static void on_metadata(SvHv *hv, const GError *error, gpointer user_data)
{
    if (error)
        g_info("ignoring: metadata of the domain not updated: %s", error->message);
}

static gboolean update_metadata(gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->metadata_idle = 0;
    if (sandbox->machine != SV_MACHINE_UP || !sandbox->hv || !sandbox->hv_connected)
        return G_SOURCE_REMOVE;
    g_autoptr(SvMetadata) metadata = sv_metadata_build(sandbox);
    sandbox->hv->ops->set_metadata(sandbox->hv, metadata, on_metadata, sandbox);
    return G_SOURCE_REMOVE;
}

guint sv_sandbox_guest_turns(const SvSandbox *sandbox)
{
    return 4 + 2 * sandbox->record->vcpus;
}

void sv_sandbox_touch(SvSandbox *sandbox)
{
    if (!sandbox->metadata_idle)
        sandbox->metadata_idle = g_idle_add_full(G_PRIORITY_LOW, update_metadata, sandbox, NULL);
}

/* ---- idleness */

static gboolean has_shims(const SvSandbox *sandbox)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((SvProcess *)value)->shim_pidfd >= 0)
            return TRUE;
    return FALSE;
}

gboolean sv_sandbox_is_idle(const SvSandbox *sandbox)
{
    if (sandbox->recovering || sandbox->up || sandbox->down || sandbox->hooks_running)
        return FALSE;
    if (sandbox->machine != SV_MACHINE_NONE && sandbox->machine != SV_MACHINE_ENDED)
        return FALSE;
    return sv_sandbox_live_containers(sandbox) == 0 && !has_shims(sandbox);
}

void sv_sandbox_clean_up(SvSandbox *sandbox)
{
    g_autoptr(GError) error = NULL;
    if (sandbox->record || g_hash_table_size(sandbox->containers) > 0 ||
        g_file_test(sandbox->paths->sandbox_file, G_FILE_TEST_EXISTS))
        return;
    unlink(sandbox->paths->owner_file);
    if (!sv_file_remove_tree(sandbox->paths->state_dir, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
}

static gboolean is_settled(const SvSandbox *sandbox)
{
    GHashTableIter iter;
    gpointer value;
    if (sandbox->recovering || sandbox->up || sandbox->down || sandbox->hooks_running)
        return FALSE;
    g_hash_table_iter_init(&iter, sandbox->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((SvContainer *)value)->stop || ((SvContainer *)value)->create)
            return FALSE;
    return TRUE;
}

void sv_sandbox_settle(SvSandbox *sandbox, SvDone done, gpointer user_data)
{
    sv_waiters_add(sandbox->settle_waiters, done, user_data);
    sv_sandbox_check_idle(sandbox);
}

static gboolean on_idle(gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->idle_source = 0;
    if (is_settled(sandbox))
        sv_waiters_answer(sandbox->settle_waiters, NULL);
    if (sv_sandbox_is_idle(sandbox))
        sandbox->handlers->idle(sandbox, sandbox->user_data);
    return G_SOURCE_REMOVE;
}

void sv_sandbox_check_idle(SvSandbox *sandbox)
{
    if (!sandbox->idle_source)
        sandbox->idle_source = g_idle_add_full(G_PRIORITY_LOW, on_idle, sandbox, NULL);
}

/* ---- register */

gboolean sv_sandbox_make_record(SvSandbox *sandbox, GError **error)
{
    guint8 token[SV_SYNC_ID_LEN];
    if (getrandom(token, sizeof token, 0) != sizeof token) {
        sv_error_set_errno(error, SV_CORE_ERROR, EIO, "getrandom");
        return FALSE;
    }
    SvSandboxRecord *record = sv_sandbox_record_new(sandbox->paths->sandbox);
    g_autoptr(GString) hex = g_string_new(NULL);
    for (guint i = 0; i < sizeof token; i++)
        g_string_append_printf(hex, "%02x", token[i]);
    g_free(record->token);
    record->token = g_strdup(hex->str);
    g_free(record->root);
    record->root = g_strdup(sandbox->paths->root);
    g_free(record->boot_id);
    record->boot_id = sv_process_boot_id();
    g_free(record->config_path);
    record->config_path = g_strdup(sandbox->config->path);
    record->uid = -1;
    record->next_handle = 1;
    sandbox->record = record;
    return TRUE;
}

static void set_title(SvSandbox *sandbox, const SvContainer *container)
{
    SvSandboxRecord *record = sandbox->record;
    if (!record->title && container->pod->pod_name) {
        g_autofree char *space = sv_printable(container->pod->pod_namespace, 64);
        g_autofree char *name = sv_printable(container->pod->pod_name, 128);
        record->title = *space ? g_strdup_printf("%s/%s", space, name) : g_strdup(name);
    }
    if (!record->title)
        record->title = g_strdup(container->record->id);
    if (!record->hostname && container->spec->hostname)
        record->hostname = g_strdup(container->spec->hostname);
}

/* Whether the next container may have another machine. An engine that has made a container for the sandbox itself
 * has seen that one end, and makes another sandbox; one that has not (CRI-O without pause containers) goes on
 * with this sandbox, and never deletes what has ended before that. */
static gboolean may_be_renewed(const SvSandbox *sandbox)
{
    return !g_hash_table_contains(sandbox->containers, sandbox->paths->sandbox) &&
        sv_sandbox_live_containers(sandbox) == 0;
}

static gboolean check_register(
    SvSandbox *sandbox, const Sandvirt__V1__RegisterRequest *request, GError **error)
{
    if (!sv_id_check(request->container_id, "container id", error))
        return FALSE;
    if (request->bundle[0] != '/') {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "bundle is not an absolute path");
        return FALSE;
    }
    g_autofree char *dir = sv_paths_container_dir(sandbox->paths->root, request->container_id);
    if (g_hash_table_contains(sandbox->containers, request->container_id) ||
        g_file_test(dir, G_FILE_TEST_EXISTS)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_EXISTS,
            "container with given ID already exists: \"%s\"", request->container_id);
        return FALSE;
    }
    if (request->mount_ns && request->mount_ns != sv_process_ns_inode(0, "mnt")) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "the caller's mount namespace is not the one of sandvirt-monitor: start "
            "sandvirt-launcher and the libvirt daemon where the engine's mounts are seen");
        return FALSE;
    }
    gboolean ended = sandbox->machine == SV_MACHINE_ENDED ||
        sandbox->machine == SV_MACHINE_ENDING || sandbox->down_again;
    if (ended && may_be_renewed(sandbox) && g_hash_table_size(sandbox->containers) > 0 &&
        sandbox->machine == SV_MACHINE_ENDED && !sandbox->down_again &&
        (sandbox->domain_gone || sandbox->qemu_gone))
        return TRUE;
    if (ended && may_be_renewed(sandbox)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_BUSY,
            "the former machine of sandbox \"%s\" has not ended yet%s%s", sandbox->paths->sandbox,
            sandbox->down_error ? ": " : "",
            sandbox->down_error ? sandbox->down_error->message : "");
        return FALSE;
    }
    if (ended) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_RUNNING,
            "the machine of sandbox \"%s\" has ended (%s): delete its containers first",
            sandbox->paths->sandbox, sv_cause_name(sandbox->end_cause));
        return FALSE;
    }
    return TRUE;
}

gboolean sv_sandbox_register(SvSandbox *sandbox, const Sandvirt__V1__RegisterRequest *request,
    uid_t owner, guint32 *handle, GError **error)
{
    if (!check_register(sandbox, request, error))
        return FALSE;
    g_autoptr(SvSpec) spec = sv_spec_load(request->bundle, error);
    if (!spec)
        return FALSE;
    g_autoptr(SvPod) pod = sv_pod_from_spec(spec, request->container_id, error);
    if (!pod)
        return FALSE;
    if (!sandbox->record && !sv_sandbox_make_record(sandbox, error))
        return FALSE;
    if (sandbox->machine == SV_MACHINE_ENDED && !sv_machine_renew(sandbox, error))
        return FALSE;

    SvRecord *record = sv_record_new(request->container_id);
    record->sandbox = g_strdup(sandbox->paths->sandbox);
    record->bundle = g_strdup(request->bundle);
    record->name = pod->container_name ? sv_printable(pod->container_name, 128) : NULL;
    record->rootfs = g_strdup(spec->root_path);
    record->handle = sandbox->record->next_handle++;
    record->index = sandbox->record->next_index++;
    record->terminal = spec->terminal;
    record->created_us = g_get_real_time();
    record->owner = owner;
    g_hash_table_unref(record->annotations);
    record->annotations = g_hash_table_ref(spec->annotations);

    SvContainer *container = sv_container_new(sandbox, record);
    container->spec = g_steal_pointer(&spec);
    container->pod = g_steal_pointer(&pod);
    set_title(sandbox, container);
    sv_machine_note_demand(container);
    /* The sandbox first: a container's record always finds its sandbox. */
    if (!sv_pod_cgroup_choose(container, request->systemd_cgroup, error) ||
        !sv_sandbox_save(sandbox, error) ||
        !sv_record_create(record, sandbox->paths->root, error)) {
        sv_container_drop(container);
        if (g_hash_table_size(sandbox->containers) == 0)
            sv_machine_down(sandbox);
        return FALSE;
    }
    *handle = record->handle;
    return TRUE;
}
