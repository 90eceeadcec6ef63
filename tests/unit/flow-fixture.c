/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "flow-fixture.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"
#include "base/process.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SANDBOX "box"

/* ---- the loop */

static gboolean on_deadline(gpointer user_data)
{
    return G_SOURCE_CONTINUE;
}

gboolean flow_turn(gint64 deadline)
{
    if (g_get_monotonic_time() >= deadline)
        return FALSE;
    GSource *source = g_timeout_source_new(0);
    g_source_set_callback(source, on_deadline, NULL, NULL);
    g_source_set_ready_time(source, deadline);
    g_source_attach(source, NULL);
    g_main_context_iteration(NULL, TRUE);
    g_source_destroy(source);
    g_source_unref(source);
    return TRUE;
}

void flow_settle(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

/* ---- answers */

void flow_answered(const GError *error, gpointer user_data)
{
    FlowAnswer *answer = user_data;
    g_assert_false(answer->done);
    answer->done = TRUE;
    answer->error = error ? g_error_copy(error) : NULL;
}

void flow_answer_clear(FlowAnswer *answer)
{
    g_clear_error(&answer->error);
    answer->done = FALSE;
}

void flow_assert_ok(FlowAnswer *answer)
{
    FLOW_WAIT(answer->done);
    g_assert_no_error(answer->error);
}

void flow_assert_failed(FlowAnswer *answer, SvErr code, const char *text)
{
    FLOW_WAIT(answer->done);
    g_assert_nonnull(answer->error);
    if (!strstr(answer->error->message, text) || answer->error->code != (int)code)
        g_error("error %d \"%s\", expected %d \"%s\"", answer->error->code, answer->error->message,
            code, text);
}

/* ---- the driver */

static void write_file(const char *path, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_file_set_contents(path, text, -1, &error);
    g_assert_no_error(error);
    g_assert_cmpint(g_chmod(path, 0644), ==, 0);
}

static void on_shutdown(gpointer user_data)
{
    FlowFixture *flow = user_data;
    if (flow->hv)
        sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_SHUTDOWN, NULL);
}

/* QEMU's end is the channel's too; in a suspended machine nothing runs. */
static void on_hv_event(SvHv *hv, const SvHvEvent *event, gpointer user_data)
{
    FlowFixture *flow = user_data;
    if (event->type == SV_HV_EVENT_STOPPED)
        flow_agent_close(flow->agent, TRUE);
    if (event->type == SV_HV_EVENT_SUSPENDED)
        flow_agent_hold(flow->agent, NULL);
    if (event->type == SV_HV_EVENT_RESUMED || event->type == SV_HV_EVENT_STOPPED)
        flow_agent_release(flow->agent, NULL);
    if (flow->hv_drop > 0)
        flow->hv_drop--;
    else if (!flow->hv_silent)
        flow->hv_func(hv, event, flow->hv_data);
}

static void bring_agent(FlowFixture *flow)
{
    if (flow->qemu)
        flow_agent_listen_fd(flow->agent, flow_proc_listen(flow->qemu, flow->paths->agent_socket));
    else
        flow_agent_listen(flow->agent, flow->paths->agent_socket);
}

static void on_hv_start(SvHv *hv, const SvMachine *machine, gpointer user_data)
{
    FlowFixture *flow = user_data;
    g_assert_cmpstr(machine->name, ==, flow->paths->domain_name);
    g_assert_cmpstr(machine->agent_socket, ==, flow->paths->agent_socket);
    if (flow->console)
        write_file(flow->paths->console_log, flow->console);
    if (flow->virtiofsd)
        sv_fake_set_share_pid(hv, flow->virtiofsd->pid);
    if (!flow->no_agent)
        bring_agent(flow);
}

static void ignore(SvHv *hv, const GError *error, gpointer user_data)
{
}

static SvHv *driver_open(const SvConfig *config, const char *uuid, const char *name,
    SvHvEventFunc func, gpointer user_data)
{
    FlowFixture *flow = ((SvSandbox *)user_data)->user_data;
    flow->hv_func = func;
    flow->hv_data = user_data;
    flow->hv = sv_fake_new(on_hv_event, flow);
    if (flow->exists) {
        g_autoptr(SvMachine) machine = sv_machine_new();
        machine->name = g_strdup(name);
        flow->hv->ops->connect(flow->hv, ignore, NULL);
        flow->hv->ops->start(flow->hv, machine, ignore, NULL);
        sv_fake_close(flow->hv);
        if (flow->suspended) {
            flow->hv_drop = 1;
            flow->suspended = FALSE;
            sv_fake_emit(flow->hv, SV_HV_EVENT_SUSPENDED, SV_HV_END_UNKNOWN, NULL);
            flow_agent_hold(flow->agent, NULL);
        }
    }
    sv_fake_set_start_func(flow->hv, on_hv_start, flow);
    if (flow->hold_hv)
        sv_fake_hold(flow->hv, flow->hold_hv);
    if (flow->fail_hv)
        sv_fake_fail_call(flow->hv, flow->fail_hv, SV_ERR_BUSY);
    if (flow->fail_nth)
        sv_fake_fail_nth(flow->hv, flow->fail_nth, SV_ERR_BUSY);
    return flow->hv;
}

static void driver_accel(const SvConfig *config,
    void (*done)(SvAccel accel, const char *reason, const GError *error, gpointer user_data),
    gpointer user_data)
{
    FlowFixture *flow = g_dataset_get_data(config, "flow");
    if (flow->hold_accel) {
        flow->accel_done = done;
        flow->accel_data = user_data;
    } else {
        done(SV_ACCEL_TCG, NULL, NULL, user_data);
    }
}

static const SvDriver driver = {
    .open = driver_open,
    .resolve_accel = driver_accel,
};

static void on_idle(SvSandbox *sandbox, gpointer user_data)
{
    ((FlowFixture *)user_data)->idles++;
}

static void on_changed(SvSandbox *sandbox, const SvRecord *record, SvState old, gpointer user_data)
{
    FlowFixture *flow = user_data;
    g_string_append_printf(flow->changes, "%s:%s ", record->id, sv_state_name(record->state));
}

static void on_oom(SvSandbox *sandbox, const SvRecord *record, gpointer user_data)
{
    ((FlowFixture *)user_data)->ooms++;
}

static const SvSandboxHandlers handlers = {
    .idle = on_idle,
    .changed = on_changed,
    .oom = on_oom,
};

/* ---- the monitor's socket: only shims come here */

typedef struct {
    FlowFixture *flow;
    SvConn *conn;
} Peer;

static void peer_free(gpointer data)
{
    Peer *peer = data;
    sv_conn_free(peer->conn);
    g_free(peer);
}

static void on_peer_request(SvConn *conn, const SvRequest *request, gpointer user_data)
{
    Peer *peer = user_data;
    FlowFixture *flow = peer->flow;
    g_autoptr(GError) error = NULL;
    g_assert_cmpstr(request->method, ==, "Attach");
    Sandvirt__V1__AttachRequest *attach = (Sandvirt__V1__AttachRequest *)sv_message_unpack(
        &sandvirt__v1__attach_request__descriptor, request->payload, request->payload_len, &error);
    g_assert_no_error(error);
    gboolean taken = sv_shim_attach(flow->sandbox, conn, request->stream, attach, &error);
    sv_message_free(attach);
    if (taken) {
        peer->conn = NULL;
        g_ptr_array_remove_fast(flow->peers, peer);
    } else {
        sv_conn_reply_error(conn, request->stream, error);
    }
}

static void on_peer_closed(SvConn *conn, const GError *error, gpointer user_data)
{
    Peer *peer = user_data;
    g_ptr_array_remove_fast(peer->flow->peers, peer);
}

static const SvConnHandlers peer_handlers = {
    .request = on_peer_request,
    .closed = on_peer_closed,
};

static gboolean on_peer(gint fd, GIOCondition condition, gpointer user_data)
{
    FlowFixture *flow = user_data;
    int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(accepted, >=, 0);
    Peer *peer = g_new0(Peer, 1);
    peer->flow = flow;
    peer->conn = sv_conn_new(accepted, 2, SV_FRAME_MAX, &peer_handlers, peer);
    g_ptr_array_add(flow->peers, peer);
    return G_SOURCE_CONTINUE;
}

void flow_listen(FlowFixture *flow)
{
    g_autoptr(GError) error = NULL;
    flow->listener = sv_unix_listen(flow->paths->monitor_socket, 0600, 16, &error);
    g_assert_no_error(error);
    flow->listen_source = g_unix_fd_add(flow->listener, G_IO_IN, on_peer, flow);
}

void flow_unlisten(FlowFixture *flow)
{
    if (flow->listen_source)
        g_source_remove(flow->listen_source);
    flow->listen_source = 0;
    sv_fd_clear(&flow->listener);
    unlink(flow->paths->monitor_socket);
    g_ptr_array_set_size(flow->peers, 0);
}

/* ---- life */

static GLogWriterOutput log_writer(
    GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
    gboolean bad = (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL)) != 0;
    if (bad || g_getenv("FLOW_LOG"))
        g_log_writer_standard_streams(level, fields, n_fields, user_data);
    if (bad)
        abort();
    return G_LOG_WRITER_HANDLED;
}

static void in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    g_task_return_boolean(task, TRUE);
}

/* What the loop and the first worker thread make for good does not count as left open. */
static void warm_up(void)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, NULL, NULL);
    g_task_run_in_thread(task, in_thread);
    FLOW_WAIT(g_task_get_completed(task));
    flow_settle();
}

void flow_init_log(void)
{
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
    g_log_set_writer_func(log_writer, NULL, NULL);
    signal(SIGPIPE, SIG_IGN);
}

gboolean flow_init(int *argc, char ***argv)
{
    g_test_init(argc, argv, NULL);
    flow_init_log();
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return FALSE;
    warm_up();
    /* no daemon of this host is asked where it mounts */
    return mount("tmpfs", "/run", "tmpfs", 0, NULL) == 0;
}

gboolean flow_part(const char *part)
{
    const char *wanted = g_getenv("FLOW_PART");
    return !wanted || g_str_equal(wanted, part);
}

static guint count_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    guint n = 0;
    while (g_dir_read_name(dir))
        n++;
    return n;
}

static void write_config(FlowFixture *flow, const char *conf)
{
    g_autofree char *kernel = g_build_filename(flow->top, "kernel", NULL);
    g_autofree char *image = g_build_filename(flow->top, "image", NULL);
    g_autofree char *dropin = g_strdup_printf("%s/conf.d/10.conf", flow->top);
    g_autofree char *folder = g_path_get_dirname(dropin);
    g_autofree char *text = g_strdup_printf("[paths]\nrun_dir = %s/run\n"
                                            "[machine]\nkernel = %s\nimage = %s\n"
                                            "image_dir = %s/images\n"
                                            "[timeouts]\nboot_ms = 8000\nagent_ms = 8000\n"
                                            "stop_ms = 8000\nhook_ms = 8000\nunplug_ms = 300\n",
        flow->top, kernel, image, flow->top);
    g_autofree char *more = g_strdup_printf("[timeouts]\n%s\n", conf ? conf : "");
    g_autofree char *path = g_build_filename(flow->top, "conf", NULL);
    write_file(kernel, "kernel");
    write_file(image, "image");
    write_file(path, text);
    g_assert_cmpint(g_mkdir(folder, 0755), ==, 0);
    write_file(dropin, more);
}

void flow_load(FlowFixture *flow)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *root = g_build_filename(flow->top, "root", NULL);
    g_autofree char *path = g_build_filename(flow->top, "conf", NULL);
    flow->config = sv_config_load(path, &error);
    g_assert_no_error(error);
    g_dataset_set_data(flow->config, "flow", flow);
    flow->paths = sv_paths_new(flow->config, root, SANDBOX, TRUE, &error);
    g_assert_no_error(error);
}

void flow_open_sandbox(FlowFixture *flow)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *root = g_build_filename(flow->top, "root", NULL);
    SvPaths *paths = sv_paths_new(flow->config, root, SANDBOX, TRUE, &error);
    g_assert_no_error(error);
    flow->sandbox = sv_sandbox_new(flow->config, paths, &driver, &handlers, flow);
}

FlowFixture *flow_new(const char *conf)
{
    FlowFixture *flow = g_new0(FlowFixture, 1);
    g_autoptr(GError) error = NULL;
    flow->n_fds = count_fds();
    flow->top = g_dir_make_tmp("sv-flow-XXXXXX", &error);
    g_assert_no_error(error);
    g_assert_cmpint(mount("tmpfs", flow->top, "tmpfs", 0, "mode=0755"), ==, 0);
    write_config(flow, conf);
    flow_load(flow);
    g_assert_true(sv_file_mkdirs(flow->paths->sock_dir, 0700, NULL));
    flow->changes = g_string_new(NULL);
    flow->containers = g_ptr_array_new();
    flow->execs = g_ptr_array_new();
    flow->peers = g_ptr_array_new_with_free_func(peer_free);
    flow->listener = -1;
    flow->agent = flow_agent_new();
    flow->agent->on_shutdown = on_shutdown;
    flow->agent->user_data = flow;
    flow_listen(flow);
    flow_open_sandbox(flow);
    return flow;
}

static void container_free(FlowContainer *container)
{
    flow_shim_free(container->shim);
    flow_answer_clear(&container->created);
    g_free(container->id);
    g_free(container);
}

static void exec_free(FlowExec *exec)
{
    flow_shim_free(exec->shim);
    flow_answer_clear(&exec->started);
    g_free(exec->id);
    g_free(exec);
}

void flow_free(FlowFixture *flow)
{
    g_autoptr(GError) error = NULL;
    flow_settle();
    for (guint i = 0; i < flow->containers->len; i++)
        container_free(flow->containers->pdata[i]);
    g_ptr_array_unref(flow->containers);
    for (guint i = 0; i < flow->execs->len; i++)
        exec_free(flow->execs->pdata[i]);
    g_ptr_array_unref(flow->execs);
    flow_settle();
    sv_sandbox_free(flow->sandbox);
    flow_unlisten(flow);
    g_ptr_array_unref(flow->peers);
    flow_agent_free(flow->agent);
    flow_proc_free(flow->qemu);
    flow_proc_free(flow->virtiofsd);
    flow_settle();
    g_dataset_destroy(flow->config);
    sv_config_unref(flow->config);
    sv_paths_free(flow->paths);
    g_assert_true(sv_mount_umount(flow->top, FALSE, &error));
    g_assert_no_error(error);
    g_assert_cmpint(g_rmdir(flow->top), ==, 0);
    g_assert_cmpuint(count_fds(), ==, flow->n_fds);
    g_string_free(flow->changes, TRUE);
    g_free(flow->top);
    g_free(flow);
}

/* ---- containers */

char *flow_bundle(FlowFixture *flow, const char *id, const char *more)
{
    char *bundle = g_strdup_printf("%s/bundle-%s", flow->top, id);
    g_autofree char *rootfs = g_build_filename(bundle, "rootfs", "etc", NULL);
    g_autofree char *config = g_build_filename(bundle, "config.json", NULL);
    g_autofree char *text = g_strdup_printf(
        "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"rootfs\"},"
        "\"process\":{\"args\":[\"sh\"],\"cwd\":\"/\",\"user\":{\"uid\":0,\"gid\":0}}%s%s}",
        more ? "," : "", more ? more : "");
    g_assert_cmpint(g_mkdir_with_parents(rootfs, 0755), ==, 0);
    write_file(config, text);
    return bundle;
}

FlowContainer *flow_adopt(FlowFixture *flow, const char *id, guint32 handle)
{
    FlowContainer *container = g_new0(FlowContainer, 1);
    container->flow = flow;
    container->id = g_strdup(id);
    container->handle = handle;
    g_ptr_array_add(flow->containers, container);
    return container;
}

FlowContainer *flow_register(FlowFixture *flow, const char *id, const char *more)
{
    Sandvirt__V1__RegisterRequest request = SANDVIRT__V1__REGISTER_REQUEST__INIT;
    g_autofree char *bundle = flow_bundle(flow, id, more);
    g_autoptr(GError) error = NULL;
    guint32 handle = 0;
    request.container_id = (char *)id;
    request.bundle = bundle;
    gboolean ok = sv_sandbox_register(flow->sandbox, &request, 0, &handle, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    g_assert_cmpint(flow_state(flow, id), ==, SV_STATE_CREATING);
    return flow_adopt(flow, id, handle);
}

void flow_spawn(FlowContainer *container, int clone_flags)
{
    container->shim = flow_shim_new(container->id, container->handle, clone_flags);
}

void flow_attach(FlowContainer *container)
{
    flow_shim_attach(container->shim, container->flow->paths->monitor_socket);
}

void flow_create_begin(FlowContainer *container)
{
    Sandvirt__V1__CreateContainerRequest request = SANDVIRT__V1__CREATE_CONTAINER_REQUEST__INIT;
    if (!container->shim)
        flow_spawn(container, 0);
    request.container_id = container->id;
    request.shim_pid = (guint32)container->shim->proc->pid;
    request.shim_start = container->shim->proc->start;
    sv_container_create(container->flow->sandbox, &request, flow_answered, &container->created);
    g_assert_false(container->created.done);
}

FlowContainer *flow_create(FlowFixture *flow, const char *id, const char *more)
{
    FlowContainer *container = flow_register(flow, id, more);
    flow_spawn(container, 0);
    flow_attach(container);
    flow_create_begin(container);
    flow_assert_ok(&container->created);
    g_assert_cmpint(flow_state(flow, id), ==, SV_STATE_READY);
    return container;
}

void flow_start(FlowContainer *container)
{
    FlowFixture *flow = container->flow;
    g_auto(FlowAnswer) answer = {0};
    sv_container_start(flow->sandbox, container->id, flow_answered, &answer);
    flow_assert_ok(&answer);
    g_assert_cmpint(flow_state(flow, container->id), ==, SV_STATE_RUNNING);
}

FlowContainer *flow_run(FlowFixture *flow, const char *id)
{
    FlowContainer *container = flow_create(flow, id, NULL);
    flow_start(container);
    return container;
}

void flow_delete(FlowContainer *container, gboolean force)
{
    FlowFixture *flow = container->flow;
    g_auto(FlowAnswer) answer = {0};
    sv_container_delete(flow->sandbox, container->id, force, flow_answered, &answer);
    g_assert_false(answer.done);
    flow_assert_ok(&answer);
    g_assert_cmpint(flow_state(flow, container->id), ==, SV_STATE_GONE);
}

SvRecord *flow_record(FlowFixture *flow, const char *id)
{
    g_autoptr(GError) error = NULL;
    SvRecord *record = sv_record_load(flow->paths->root, id, &error);
    if (!record)
        g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
    return record;
}

SvState flow_state(FlowFixture *flow, const char *id)
{
    g_autoptr(SvRecord) record = flow_record(flow, id);
    return record ? record->state : SV_STATE_GONE;
}

FlowGuestProcess *flow_guest(FlowContainer *container)
{
    return flow_agent_find(container->flow->agent, container->handle);
}

void flow_wait_stopped(FlowContainer *container, int status, SvCause cause)
{
    FlowFixture *flow = container->flow;
    FlowShim *shim = container->shim;
    FLOW_WAIT(flow_state(flow, container->id) == SV_STATE_STOPPED);
    g_autoptr(SvRecord) record = flow_record(flow, container->id);
    g_assert_cmpint(record->exit_status, ==, status);
    g_assert_cmpstr(sv_cause_name(record->cause), ==, sv_cause_name(cause));
    g_assert_false(record->stopping);
    g_assert_cmpint(record->finished_us, >=, record->created_us);
    FLOW_WAIT(shim->proc->ended);
    if (shim->exits) {
        g_assert_cmpuint(shim->exits, ==, 1);
        g_assert_cmpint(shim->exit_status, ==, status);
        g_assert_cmpint(shim->proc->status, ==, status);
    }
    SvContainer *core = sv_sandbox_find(flow->sandbox, container->id, NULL);
    g_assert_nonnull(core);
    FLOW_WAIT(!core->stop);
}

/* ---- execs */

FlowExec *flow_exec_prepare(FlowContainer *container)
{
    static const char process[] =
        "{\"args\":[\"ls\"],\"cwd\":\"/\",\"user\":{\"uid\":0,\"gid\":0}}";
    Sandvirt__V1__ExecPrepareRequest request = SANDVIRT__V1__EXEC_PREPARE_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    FlowFixture *flow = container->flow;
    FlowExec *exec = g_new0(FlowExec, 1);
    exec->flow = flow;
    exec->id = g_strdup(container->id);
    g_ptr_array_add(flow->execs, exec);
    request.container_id = container->id;
    request.process.data = (guint8 *)process;
    request.process.len = strlen(process);
    gboolean ok = sv_exec_prepare(flow->sandbox, &request, &exec->handle, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    exec->shim = flow_shim_new(container->id, exec->handle, 0);
    return exec;
}

void flow_exec_begin(FlowExec *exec)
{
    Sandvirt__V1__ExecStartRequest request = SANDVIRT__V1__EXEC_START_REQUEST__INIT;
    request.container_id = exec->id;
    request.handle = exec->handle;
    request.shim_pid = (guint32)exec->shim->proc->pid;
    request.shim_start = exec->shim->proc->start;
    sv_exec_start(exec->flow->sandbox, &request, flow_answered, &exec->started);
    g_assert_false(exec->started.done);
}

void flow_exec_attach(FlowExec *exec)
{
    flow_shim_attach(exec->shim, exec->flow->paths->monitor_socket);
}

FlowExec *flow_exec(FlowContainer *container)
{
    FlowExec *exec = flow_exec_prepare(container);
    flow_exec_attach(exec);
    flow_exec_begin(exec);
    flow_assert_ok(&exec->started);
    FLOW_WAIT(exec->shim->attached == 1);
    return exec;
}

void flow_exec_wait_ended(FlowExec *exec, int status)
{
    GHashTable *processes = exec->flow->sandbox->processes;
    FLOW_WAIT(exec->shim->proc->ended);
    g_assert_cmpint(exec->shim->proc->status, ==, status);
    FLOW_WAIT(!g_hash_table_contains(processes, GUINT_TO_POINTER(exec->handle)));
    g_autoptr(SvRecord) record = flow_record(exec->flow, exec->id);
    for (guint i = 0; record && i < record->execs->len; i++)
        g_assert_cmpuint(((SvExecRecord *)record->execs->pdata[i])->handle, !=, exec->handle);
}

/* ---- nothing is left */

static void assert_no_mounts(FlowFixture *flow)
{
    g_autoptr(GPtrArray) mounts = sv_mount_list(0, NULL);
    g_autofree char *below = g_strconcat(flow->top, "/", NULL);
    for (guint i = 0; i < mounts->len; i++) {
        const SvMountInfo *info = mounts->pdata[i];
        if (g_str_has_prefix(info->target, below))
            g_error("still mounted: %s", info->target);
    }
}

/* A folder of which nothing may be left but @allowed. */
static void assert_empty(const char *path, const char *allowed)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)))
        if (!allowed || !g_str_equal(name, allowed))
            g_error("still there: %s/%s", path, name);
}

void flow_assert_clean(FlowFixture *flow)
{
    SvSandbox *sandbox = flow->sandbox;
    FLOW_WAIT(sv_sandbox_is_idle(sandbox) && sandbox->machine == SV_MACHINE_NONE);
    FLOW_WAIT(sandbox->idle_source == 0);
    g_assert_cmpuint(flow->idles, >, 0);
    g_assert_cmpuint(g_hash_table_size(sandbox->containers), ==, 0);
    g_assert_cmpuint(g_hash_table_size(sandbox->processes), ==, 0);
    g_assert_null(sandbox->record);
    g_assert_null(sandbox->agent);
    g_assert_cmpint(sandbox->qemu_pidfd, ==, -1);
    g_assert_cmpint(sandbox->share_pidfd, ==, -1);
    g_assert_true(!flow->hv || !sv_fake_is_running(flow->hv));
    assert_no_mounts(flow);
    g_autofree char *sandboxes = g_build_filename(flow->paths->root, ".sandbox", NULL);
    g_autofree char *boxes = g_path_get_dirname(flow->paths->box_dir);
    g_autofree char *boots = g_path_get_dirname(flow->paths->boot_dir);
    assert_empty(flow->paths->root, ".sandbox");
    assert_empty(sandboxes, flow->paths->sandbox);
    assert_empty(flow->paths->state_dir, "lock"); /* the monitor's, for life */
    assert_empty(boxes, NULL);
    assert_empty(boots, NULL);
    assert_empty(flow->paths->sock_dir, flow->paths->monitor_name);
    for (guint i = 0; i < flow->containers->len; i++) {
        FlowContainer *container = flow->containers->pdata[i];
        FLOW_WAIT(!container->shim || container->shim->proc->ended);
    }
}

void flow_assert_usable(FlowFixture *flow, const char *id)
{
    FlowContainer *container = flow_run(flow, id);
    flow_agent_exit(flow->agent, container->handle, 3);
    flow_wait_stopped(container, 3, SV_CAUSE_EXITED);
    flow_delete(container, FALSE);
    flow_assert_clean(flow);
}
