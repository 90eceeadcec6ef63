/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Create: from CREATING to READY, and back over every step when one fails. */
#include "core/pod-cgroup.h"
#include "core/disks.h"
#include "core/sandbox-priv.h"
#include "core/timeline-write.h"

#include "base/fd.h"
#include "base/process.h"

#include <string.h>
#include <unistd.h>

#define SHIM_ATTACH_MS 10000

/* ---- disks: what is asked for is looked at, named and claimed before anything is made of it */

static gboolean claim_disks(SvContainer *container, GError **error)
{
    GPtrArray *disks = container->record->disks;
    if (!sv_disks_plan(container, error))
        return FALSE;
    if (!disks->len)
        return TRUE;
    for (guint i = 0; i < disks->len; i++)
        if (!sv_disk_name(container, disks->pdata[i], error))
            return FALSE;
    if (!sv_sandbox_save(container->sandbox, error) || !sv_container_save(container, error))
        return FALSE;
    for (guint i = 0; i < disks->len; i++)
        if (!sv_disk_claim(container, disks->pdata[i], error))
            return FALSE;
    return TRUE;
}

static void step_disks(SvSequence *seq, gpointer user_data)
{
    GError *error = NULL;
    if (claim_disks(user_data, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

static void undo_disks(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GPtrArray *disks = container->record->disks;
    for (guint i = 0; i < disks->len; i++)
        sv_disk_unclaim(container->sandbox, disks->pdata[i]);
    g_ptr_array_set_size(disks, 0);
    sv_sequence_next(seq);
}

static void step_host_mounts(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    const SvDiskRecord *root = sv_disks_rootfs(container);
    g_autoptr(GError) error = NULL;
    /* the last moment; where the host cannot write either, the guest's runtime tells of what it lacks */
    if (root && root->read_only && !sv_container_make_mount_points(container, &error))
        g_info("container %s: ignoring: %s", container->record->id, error->message);
    sv_disks_take_mounts(user_data, sv_ticket_done, sv_sequence_handle(seq));
}

static void undo_host_mounts(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GPtrArray *disks = container->record->disks;
    for (guint i = 0; i < disks->len; i++)
        sv_disk_unclaim(container->sandbox, disks->pdata[i]);
    sv_disks_restore_mounts(container, TRUE, sv_ticket_done, sv_sequence_handle(seq));
}

static void step_plug(SvSequence *seq, gpointer user_data)
{
    sv_disks_plug(user_data, sv_ticket_done, sv_sequence_handle(seq));
}

static void undo_plug(SvSequence *seq, gpointer user_data)
{
    sv_disks_unplug(user_data, NULL, sv_ticket_done, sv_sequence_handle(seq));
}

static void step_disks_in_guest(SvSequence *seq, gpointer user_data)
{
    sv_disks_await(user_data, sv_ticket_done, sv_sequence_handle(seq));
}

/* ---- shim: it has connected; its network namespace is the pod's */

static gboolean check_netns(SvContainer *container, GError **error)
{
    SvSandbox *sandbox = container->sandbox;
    const SvProcess *init = container->init;
    guint64 netns = sv_process_ns_inode(init->shim_pid, "net");
    /* looked at by its pid: it must still be that process */
    if (init->shim_pidfd < 0 || !netns || !sv_process_is(init->shim_pid, init->shim_start, NULL)) {
        g_set_error_literal(
            error, SV_CORE_ERROR, SV_ERR_CANCELLED, "the container's shim has died");
        return FALSE;
    }
    if (!sandbox->netns)
        sandbox->netns = netns;
    if (netns == sandbox->netns)
        return sv_pod_network_enter(sandbox, container, error);
    g_set_error(error, SV_CORE_ERROR, SV_ERR_PERMISSION,
        "container \"%s\" cannot join sandbox \"%s\": it is in another network namespace",
        container->record->id, sandbox->paths->sandbox);
    return FALSE;
}

static void step_shim(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GError *error = NULL;
    if (!check_netns(container, &error) || !sv_container_save(container, &error))
        sv_sequence_fail(seq, error);
    else if (container->init->shim)
        sv_sequence_next(seq);
    else
        container->init->attach_ticket = sv_sequence_ticket(seq);
}

static void undo_shim(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    SvProcess *init = container->init;
    init->attach_ticket = 0;
    if (init->shim_pidfd < 0) {
        sv_sequence_next(seq);
        return;
    }
    init->gone_ticket = sv_sequence_ticket(seq);
    if (init->shim)
        sv_process_finish(init, 1);
    else
        sv_process_kill_shim(init);
}

/* ---- cgroup: the shim's; undone after the shim has gone */

static void step_cgroup(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GError *error = NULL;
    sv_container_cgroup_enter(container, container->record->shim_pid);
    if (container->record->cgroup_made && !sv_container_save(container, &error))
        sv_sequence_fail(seq, error);
    else
        sv_sequence_next(seq);
}

static void undo_cgroup(SvSequence *seq, gpointer user_data)
{
    sv_container_cgroup_remove(user_data);
    sv_sequence_next(seq);
}

/* ---- machine */

static void step_machine(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    sv_machine_want(container->sandbox, sv_sequence_ticket(seq));
}

static void on_grown(const GError *ignored, gpointer user_data)
{
    sv_ticket_done(NULL, user_data);
}

static void step_grow(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    sv_machine_grow(container->sandbox, on_grown, sv_sequence_handle(seq));
}

/* ---- hooks: the pid is the shim's, its network namespace the pod's */

static void run_hooks(SvSequence *seq, SvContainer *container, SvHookKind kind, const char *status)
{
    sv_hooks_run(container, kind, status, sv_ticket_done, sv_sequence_handle(seq));
}

static void step_prestart(SvSequence *seq, gpointer user_data)
{
    /* the old kind expects what it was given before there were others */
    run_hooks(seq, user_data, SV_HOOK_PRESTART, "created");
}

static void step_create_runtime(SvSequence *seq, gpointer user_data)
{
    run_hooks(seq, user_data, SV_HOOK_CREATE_RUNTIME, "creating");
}

/* ---- network: what the engine, or a hook, has set up */

static void step_network(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    sv_pod_network_want(container->sandbox, sv_sequence_ticket(seq));
}

/* The guest's namespaces cannot be entered from here: on the host, with the rootfs where config.json says. */
static void step_create_container(SvSequence *seq, gpointer user_data)
{
    run_hooks(seq, user_data, SV_HOOK_CREATE_CONTAINER, "creating");
}

/* ---- share: rootfs and bind mounts */

static void step_share(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GError *error = NULL;
    if (sv_container_bind_mounts(container, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

/* ---- shared memory of the engine */

typedef struct {
    guint64 ticket;
    guint pending;
    GError *error;
} Fan; /* several calls, one step */

static void fan_done(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Fan *fan = user_data;
    if (error && !fan->error)
        fan->error = g_error_copy(error);
    if (--fan->pending)
        return;
    if (fan->error)
        sv_ticket_fail(fan->ticket, fan->error);
    else
        sv_ticket_next(fan->ticket);
    g_free(fan);
}

static void step_shm(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    SvSandbox *sandbox = container->sandbox;
    GPtrArray *shms = sandbox->record->shms;
    if (!shms->len) {
        sv_sequence_next(seq);
        return;
    }
    Fan *fan = g_new0(Fan, 1);
    fan->ticket = sv_sequence_ticket(seq);
    fan->pending = shms->len;
    for (guint i = 0; i < shms->len; i++) {
        const SvShmRecord *shm = shms->pdata[i];
        Sandvirt__V1__SharedMemory message = SANDVIRT__V1__SHARED_MEMORY__INIT;
        message.name = shm->name;
        message.size_bytes = shm->size;
        message.mode = shm->mode;
        sv_agent_call(sandbox->agent, "AddSharedMemory", &message.base, NULL,
            sandbox->config->agent_ms, fan_done, fan);
    }
}

/* ---- guest: crun create */

typedef struct {
    SvSandbox *sandbox;
    guint64 ticket;
    guint32 handle;
    SvTurns *turns; /* a reference of its own; NULL: needs none */
} Step;

static Step *step_new(SvContainer *container, SvSequence *seq)
{
    Step *step = g_new0(Step, 1);
    step->sandbox = container->sandbox;
    step->ticket = sv_sequence_ticket(seq);
    step->handle = container->init->handle;
    return step;
}

static void step_free(gpointer data)
{
    Step *step = data;
    sv_turns_unref(step->turns);
    g_free(step);
}

static void on_step_answer(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Step *step = user_data;
    if (error)
        sv_ticket_fail(step->ticket, g_error_copy(error));
    else
        sv_ticket_next(step->ticket);
    if (step->turns)
        sv_turns_end(step->turns);
    step_free(step);
}

static void on_guest_created(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Step *step = user_data;
    if (!error && sv_ticket_valid(step->ticket)) {
        SvProcess *init =
            g_hash_table_lookup(step->sandbox->processes, GUINT_TO_POINTER(step->handle));
        sv_container_set_guest_pid(
            init->container, ((const Sandvirt__V1__CreateResponse *)reply)->pid);
    }
    SvProcess *failed = error
        ? g_hash_table_lookup(step->sandbox->processes, GUINT_TO_POINTER(step->handle))
        : NULL;
    g_autoptr(GError) explained = failed ? sv_disks_explain(failed->container, error) : NULL;
    on_step_answer(reply, explained ? explained : error, user_data);
}

static gboolean create_in_guest(gpointer user_data)
{
    Step *step = user_data;
    SvProcess *init = sv_ticket_valid(step->ticket)
        ? g_hash_table_lookup(step->sandbox->processes, GUINT_TO_POINTER(step->handle))
        : NULL;
    if (!init) {
        step_free(step);
        return FALSE;
    }
    SvContainer *container = init->container;
    SvSandbox *sandbox = step->sandbox;
    GError *error = NULL;
    g_autoptr(GPtrArray) sysctls = NULL;
    g_autoptr(JsonNode) config = sv_container_guest_config(container, &sysctls, &error);
    if (!config) {
        sv_ticket_fail(step->ticket, error);
        step_free(step);
        return FALSE;
    }
    g_autofree char *text = sv_json_text(config, FALSE);
    g_autofree char *share_dir = g_strdup_printf("c/%u", container->record->index);
    Sandvirt__V1__CreateRequest message = SANDVIRT__V1__CREATE_REQUEST__INIT;
    message.container_id = container->record->id;
    message.handle = init->handle;
    message.config.data = (guint8 *)text;
    message.config.len = strlen(text);
    message.terminal = container->record->terminal;
    message.rows = init->rows;
    message.cols = init->cols;
    message.stdin = !container->no_stdin;
    message.share_dir = share_dir;
    message.program = container->spec->args ? container->spec->args[0] : (char *)"";
    message.descriptors = init->descriptors;
    message.n_descriptors = init->n_descriptors;

    g_autofree Sandvirt__V1__Sysctl *items = g_new0(Sandvirt__V1__Sysctl, sysctls->len);
    g_autofree Sandvirt__V1__Sysctl **refs = g_new0(Sandvirt__V1__Sysctl *, sysctls->len);
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < sysctls->len; i++) {
        const char *pair = sysctls->pdata[i];
        const char *equals = strchr(pair, '=');
        char *key = g_strndup(pair, (gsize)(equals - pair));
        g_ptr_array_add(keys, key);
        sandvirt__v1__sysctl__init(&items[i]);
        items[i].key = key;
        items[i].value = (char *)equals + 1;
        refs[i] = &items[i];
    }
    message.net_sysctls = refs;
    message.n_net_sysctls = sysctls->len;

    g_autoptr(GPtrArray) mounts =
        sv_disks_fill_create(container, sandbox->config->device_ms, &message);
    container->in_guest = TRUE;
    init->in_guest = TRUE;
    sv_agent_call(sandbox->agent, "Create", &message.base,
        &sandvirt__v1__create_response__descriptor, sandbox->config->agent_ms, on_guest_created,
        step);
    return TRUE;
}

static void step_guest(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    SvSandbox *sandbox = container->sandbox;
    Step *step = step_new(container, seq);
    step->turns = sv_turns_ref(sandbox->guest_turns);
    sv_turns_take(step->turns, sv_sandbox_guest_turns(sandbox), create_in_guest, step, step_free);
}

static void undo_guest(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    SvSandbox *sandbox = container->sandbox;
    gboolean asked = container->in_guest;
    container->in_guest = FALSE;
    container->init->in_guest = FALSE;
    if (!asked || !sv_agent_is_ready(sandbox->agent)) {
        sv_sequence_next(seq);
        return;
    }
    sv_container_call_remove(container, sandbox->config->stop_ms + SV_AGENT_SILENT_MS,
        on_step_answer, step_new(container, seq));
}

/* ---- root: the container's tree becomes the root of the shim's mount namespace */

static void step_root(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GError *error = NULL;
    if (!container->init->shim) {
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_CANCELLED, "the container's shim has left");
        sv_sequence_fail(seq, error);
        return;
    }
    Sandvirt__V1__RootRequest message = SANDVIRT__V1__ROOT_REQUEST__INIT;
    g_auto(SvFd) tree = -1;
    message.empty = sv_disks_rootfs(container) != NULL;
    if (!message.empty)
        tree =
            sv_share_clone(container->sandbox->paths, container->record->index, "rootfs", &error);
    if (error) {
        sv_sequence_fail(seq, error);
        return;
    }
    sv_conn_call(container->init->shim, SV_SERVICE_SHIM, "Root", &message.base, NULL,
        SHIM_ATTACH_MS, tree, on_step_answer, step_new(container, seq));
}

/* ---- streams */

static void step_streams(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    sv_process_resume_streams(container->init, sv_sequence_ticket(seq));
}

/* ---- ready */

static void step_ready(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GError *error = NULL;
    if (sv_container_move(container, SV_EVENT_CREATED, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

static const SvStep create_steps[] = {
    {"cgroup", step_cgroup, undo_cgroup, 0},
    {"disks", step_disks, undo_disks, 0},
    {"shim", step_shim, undo_shim, SHIM_ATTACH_MS},
    {"machine", step_machine, NULL, 0},
    {"grow", step_grow, NULL, 0},
    {"prestart hooks", step_prestart, NULL, 0},
    {"createRuntime hooks", step_create_runtime, NULL, 0},
    {"network", step_network, NULL, 0},
    {"host mounts of disks", step_host_mounts, undo_host_mounts, 0},
    {"plug disks", step_plug, undo_plug, 0},
    {"disks in the guest", step_disks_in_guest, NULL, 0},
    {"share", step_share, sv_container_step_unshare, 0},
    {"shared memory", step_shm, NULL, 0},
    {"createContainer hooks", step_create_container, NULL, 0},
    {"guest", step_guest, undo_guest, 0},
    {"root", step_root, NULL, 0},
    {"streams", step_streams, NULL, 0},
    {"ready", step_ready, NULL, 0},
    {NULL, NULL, NULL, 0},
};

static void create_answer(SvContainer *container, const GError *error)
{
    SvWaiter created = container->created;
    container->created.done = NULL;
    sv_answer_later(created.done, error, created.user_data);
}

typedef struct {
    SvWaiter created;
    GError *error;
} Failed;

static void on_failed_and_down(const GError *ignored, gpointer user_data)
{
    Failed *failed = user_data;
    failed->created.done(failed->error, failed->created.user_data);
    g_error_free(failed->error);
    g_free(failed);
}

/* Of the last container all callers wait until nothing is left of the machine either. */
static void answer_when_down(SvContainer *container, const GError *error)
{
    GArray *waiters = container->sandbox->down_waiters;
    g_array_append_vals(waiters, container->delete_waiters->data, container->delete_waiters->len);
    g_array_set_size(container->delete_waiters, 0);
    if (!container->created.done)
        return;
    Failed *failed = g_new0(Failed, 1);
    failed->created = container->created;
    failed->error = g_error_copy(error);
    container->created.done = NULL;
    sv_waiters_add(waiters, on_failed_and_down, failed);
}

/* Nothing is left of the container but its record. */
void sv_container_create_failed(SvContainer *container, const GError *error)
{
    SvSandbox *sandbox = container->sandbox;
    g_autoptr(GError) failure = NULL;
    container->record->cause = SV_CAUSE_ROLLED_BACK;
    sv_process_kill_shim(container->init); /* there still when not even the first step was begun */
    if (!sv_container_move(container, SV_EVENT_FAILED, &failure))
        g_warning("container %s: %s", container->record->id, failure->message);
    if (g_hash_table_size(sandbox->containers) == 1)
        answer_when_down(container, error);
    create_answer(container, error);
    sv_waiters_answer(container->stop_waiters, NULL);
    sv_waiters_answer(container->delete_waiters, NULL);
    sv_container_forget(container);
    if (g_hash_table_size(sandbox->containers) == 0 ||
        (sandbox->machine == SV_MACHINE_ENDED && sv_sandbox_live_containers(sandbox) == 0))
        sv_machine_down(sandbox);
}

/* What happened between the record of READY and now. */
static void catch_up(SvContainer *container)
{
    SvSandbox *sandbox = container->sandbox;
    SvProcess *init = container->init;
    int status = init->status;
    if (status >= 0) {
        init->status = -1;
        sv_container_init_exited(container, status, container->record->oom);
    } else if (sandbox->machine == SV_MACHINE_ENDED) {
        sv_container_begin_stop(container, sandbox->end_cause, -1, FALSE);
    } else if (init->shim_pidfd < 0) {
        sv_container_begin_stop(container, SV_CAUSE_SHIM_KILLED, -1, FALSE);
    }
    sv_container_update_paused(container);
}

static void on_created(SvSequence *seq, const GError *error, gpointer user_data)
{
    SvContainer *container = user_data;
    container->create = NULL;
    if (error) {
        sv_container_create_failed(container, error);
        return;
    }
    sv_timeline_write(container, seq);
    create_answer(container, NULL);
    catch_up(container);
}

void sv_container_create(SvSandbox *sandbox, const Sandvirt__V1__CreateContainerRequest *request,
    SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_sandbox_find(sandbox, request->container_id, &error);
    if (container &&
        (container->record->state != SV_STATE_CREATING || container->create || container->removal))
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_STATE, "container \"%s\" is created already",
            request->container_id);
    if (error) {
        sv_answer_later(done, error, user_data);
        return;
    }
    container->created = (SvWaiter){done, user_data};
    container->no_stdin = request->stdin_null;
    container->record->shim_pid = (pid_t)request->shim_pid;
    container->record->shim_start = request->shim_start;
    g_autofree char *label = g_strdup_printf("create %s", request->container_id);
    container->create =
        sv_sequence_start(label, create_steps, SV_SEQUENCE_UNDO, on_created, container);
    sv_process_watch(container->init, (pid_t)request->shim_pid, request->shim_start);
}

void sv_container_cancel_create(SvContainer *container, GError *error)
{
    if (container->record->state != SV_STATE_CREATING)
        g_error_free(error); /* READY is recorded: on_created sees what is due */
    else if (container->create)
        sv_sequence_cancel(container->create, error);
    else if (container->removal || container->record->shim_pid) {
        /* what a former monitor had begun; or on its way back already */
        sv_container_roll_back(container);
        g_error_free(error);
    } else {
        /* registered, never created: nothing but the record */
        sv_container_create_failed(container, error);
        g_error_free(error);
    }
}

void sv_container_abandon(SvSandbox *sandbox, const char *id)
{
    SvContainer *container = sv_sandbox_find(sandbox, id, NULL);
    if (container && container->record->state == SV_STATE_CREATING)
        sv_container_cancel_create(
            container, g_error_new_literal(SV_CORE_ERROR, SV_ERR_CANCELLED, "the caller is gone"));
}
