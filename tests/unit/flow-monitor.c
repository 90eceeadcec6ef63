/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "flow-monitor.h"

#include "base/command.h"
#include "base/fd.h"
#include "monitor/server.h"

#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODE "--monitor"
#define TELL_FD 3 /* "R": it listens; "H": the operation that is held was called */

struct FlowMonitor {
    FlowFixture *flow;
    pid_t pid;
    int pidfd, tell_fd;
    guint tell_source;
    gboolean held;
    SvConn *conn;
};

/* ---- the process */

static void on_recovered(const GError *error, gpointer user_data)
{
    FlowFixture *flow = user_data;
    g_assert_no_error(error);
    sv_server_serve(flow->server, flow->sandbox);
}

static void tell(const char *byte)
{
    if (write(TELL_FD, byte, 1) != 1)
        g_error("the test is gone");
}

/* argv: program, MODE, folder of the test, "1" when the domain exists, operation to be held */
gboolean flow_monitor_main(int argc, char **argv)
{
    if (argc != 5 || !g_str_equal(argv[1], MODE))
        return FALSE;
    g_autoptr(GError) error = NULL;
    FlowFixture flow = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    flow_init_log();
    flow.top = argv[2];
    flow.exists = *argv[3] == '1';
    flow.hold_hv = *argv[4] ? argv[4] : NULL;
    flow.no_agent = TRUE; /* it is the test's */
    flow.changes = g_string_new(NULL);
    flow_load(&flow);
    flow.agent = flow_agent_new();
    flow.server = sv_server_new(flow.paths->monitor_socket, &error);
    g_assert_no_error(error);
    flow_open_sandbox(&flow);
    tell("R");
    sv_sandbox_recover(flow.sandbox, on_recovered, &flow);
    for (gboolean told = !flow.hold_hv;;) {
        g_main_context_iteration(NULL, TRUE);
        if (!told && flow.hv && sv_fake_count(flow.hv, flow.hold_hv) > 0) {
            tell("H");
            told = TRUE;
        }
    }
    return TRUE;
}

/* ---- the test's side */

static const SvConnHandlers handlers;

static gboolean on_held(gint fd, GIOCondition condition, gpointer user_data)
{
    FlowMonitor *monitor = user_data;
    char byte = 0;
    monitor->tell_source = 0;
    monitor->held = read(fd, &byte, 1) == 1;
    return G_SOURCE_REMOVE;
}

gboolean flow_monitor_is_held(const FlowMonitor *monitor)
{
    return monitor->held;
}

FlowMonitor *flow_monitor_new(FlowFixture *flow, gboolean exists, const char *hold)
{
    g_autoptr(SvCommand) cmd = sv_command_new("/proc/self/exe");
    g_autoptr(GError) error = NULL;
    FlowMonitor *monitor = g_new0(FlowMonitor, 1);
    int ready[2];
    char byte = 0;
    monitor->flow = flow;
    g_clear_pointer(&flow->sandbox, sv_sandbox_free);
    flow->hv = NULL;
    flow_unlisten(flow);
    g_assert_true(sv_fd_pipe(ready, 0, NULL));
    g_auto(GStrv) env = g_get_environ();
    sv_command_set_environ(cmd, (const char *const *)env);
    sv_command_add_args(cmd, MODE, flow->top, exists ? "1" : "0", hold ? hold : "", NULL);
    sv_command_map_fd(cmd, 2, 1);
    sv_command_map_fd(cmd, 2, 2);
    sv_command_map_fd(cmd, ready[1], TELL_FD);
    g_assert_true(sv_command_spawn(cmd, &monitor->pid, &monitor->pidfd, &error));
    g_assert_no_error(error);
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    monitor->tell_fd = ready[0];
    monitor->tell_source = g_unix_fd_add(ready[0], G_IO_IN | G_IO_HUP, on_held, monitor);
    flow_monitor_call_in(monitor);
    return monitor;
}

void flow_monitor_call_in(FlowMonitor *monitor)
{
    g_autoptr(GError) error = NULL;
    int fd = sv_unix_connect(monitor->flow->paths->monitor_socket, &error);
    g_assert_no_error(error);
    monitor->conn = sv_conn_new(fd, 1, SV_FRAME_MAX, &handlers, monitor);
}

void flow_monitor_hang_up(FlowMonitor *monitor)
{
    g_clear_pointer(&monitor->conn, sv_conn_free);
}

void flow_monitor_kill(FlowMonitor *monitor)
{
    kill(monitor->pid, SIGKILL);
    g_assert_cmpint(waitpid(monitor->pid, NULL, 0), ==, monitor->pid);
    sv_conn_free(monitor->conn);
    if (monitor->tell_source)
        g_source_remove(monitor->tell_source);
    sv_fd_close(monitor->tell_fd);
    sv_fd_close(monitor->pidfd);
    /* its ends of the connections are seen as they would be */
    flow_settle();
    g_free(monitor);
}

static void on_reply(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    if (!sv_error_is(error, SV_ERR_CLOSED))
        flow_answered(error, user_data);
}

void flow_monitor_call(
    FlowMonitor *monitor, const char *method, const ProtobufCMessage *message, FlowAnswer *answer)
{
    sv_conn_call(monitor->conn, SV_SERVICE_MONITOR, method, message, NULL, 0, -1,
        answer ? on_reply : NULL, answer);
}

static void on_handle(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    guint32 *handle = user_data;
    g_assert_no_error(error);
    /* both answers have it as their only member */
    *handle = reply->descriptor == &sandvirt__v1__register_response__descriptor
        ? ((const Sandvirt__V1__RegisterResponse *)reply)->handle
        : ((const Sandvirt__V1__ExecPrepareResponse *)reply)->handle;
}

FlowContainer *flow_monitor_register(FlowMonitor *monitor, const char *id)
{
    Sandvirt__V1__RegisterRequest request = SANDVIRT__V1__REGISTER_REQUEST__INIT;
    g_autofree char *bundle = flow_bundle(monitor->flow, id, NULL);
    FlowContainer *container = g_new0(FlowContainer, 1);
    container->flow = monitor->flow;
    container->id = g_strdup(id);
    g_ptr_array_add(monitor->flow->containers, container);
    request.container_id = container->id;
    request.bundle = bundle;
    sv_conn_call(monitor->conn, SV_SERVICE_MONITOR, "Register", &request.base,
        &sandvirt__v1__register_response__descriptor, 0, -1, on_handle, &container->handle);
    FLOW_WAIT(container->handle);
    return container;
}

void flow_monitor_create_begin(FlowMonitor *monitor, FlowContainer *container, gboolean attach)
{
    Sandvirt__V1__CreateContainerRequest request = SANDVIRT__V1__CREATE_CONTAINER_REQUEST__INIT;
    flow_spawn(container, 0);
    request.container_id = container->id;
    request.shim_pid = (guint32)container->shim->proc->pid;
    request.shim_start = container->shim->proc->start;
    flow_monitor_call(monitor, "Create", &request.base, &container->created);
    if (attach)
        flow_attach(container);
}

FlowContainer *flow_monitor_create(FlowMonitor *monitor, const char *id)
{
    FlowContainer *container = flow_monitor_register(monitor, id);
    flow_monitor_create_begin(monitor, container, TRUE);
    flow_assert_ok(&container->created);
    FLOW_WAIT(container->shim->attached == 1);
    return container;
}

void flow_monitor_verb(
    FlowMonitor *monitor, const char *method, FlowContainer *container, FlowAnswer *answer)
{
    Sandvirt__V1__ContainerRequest request = SANDVIRT__V1__CONTAINER_REQUEST__INIT;
    request.container_id = container->id;
    flow_monitor_call(monitor, method, &request.base, answer);
}

void flow_monitor_start(FlowMonitor *monitor, FlowContainer *container)
{
    g_auto(FlowAnswer) answer = {0};
    flow_monitor_verb(monitor, "Start", container, &answer);
    flow_assert_ok(&answer);
}

FlowContainer *flow_monitor_run(FlowMonitor *monitor, const char *id)
{
    FlowContainer *container = flow_monitor_create(monitor, id);
    flow_monitor_start(monitor, container);
    return container;
}

void flow_monitor_delete(FlowMonitor *monitor, FlowContainer *container, FlowAnswer *answer)
{
    Sandvirt__V1__DeleteRequest request = SANDVIRT__V1__DELETE_REQUEST__INIT;
    request.container_id = container->id;
    request.force = TRUE;
    flow_monitor_call(monitor, "Delete", &request.base, answer);
}

FlowExec *flow_monitor_exec(FlowMonitor *monitor, FlowContainer *container)
{
    static const char process[] = "{\"args\":[\"ls\"],\"cwd\":\"/\"}";
    Sandvirt__V1__ExecPrepareRequest prepare = SANDVIRT__V1__EXEC_PREPARE_REQUEST__INIT;
    Sandvirt__V1__ExecStartRequest start = SANDVIRT__V1__EXEC_START_REQUEST__INIT;
    FlowExec *exec = g_new0(FlowExec, 1);
    exec->flow = monitor->flow;
    exec->id = g_strdup(container->id);
    g_ptr_array_add(monitor->flow->execs, exec);
    prepare.container_id = exec->id;
    prepare.process.data = (guint8 *)process;
    prepare.process.len = strlen(process);
    sv_conn_call(monitor->conn, SV_SERVICE_MONITOR, "ExecPrepare", &prepare.base,
        &sandvirt__v1__exec_prepare_response__descriptor, 0, -1, on_handle, &exec->handle);
    FLOW_WAIT(exec->handle);
    exec->shim = flow_shim_new(exec->id, exec->handle, 0);
    start.container_id = exec->id;
    start.handle = exec->handle;
    start.shim_pid = (guint32)exec->shim->proc->pid;
    start.shim_start = exec->shim->proc->start;
    flow_exec_attach(exec);
    flow_monitor_call(monitor, "ExecStart", &start.base, &exec->started);
    flow_assert_ok(&exec->started);
    FLOW_WAIT(exec->shim->attached == 1);
    return exec;
}

void flow_recover_begin(FlowFixture *flow, gboolean exists, FlowAnswer *answer)
{
    flow->exists = exists;
    flow_listen(flow);
    flow_open_sandbox(flow);
    sv_sandbox_recover(flow->sandbox, flow_answered, answer);
    g_assert_false(answer->done);
}

void flow_recover(FlowFixture *flow, gboolean exists)
{
    g_auto(FlowAnswer) answer = {0};
    flow_recover_begin(flow, exists, &answer);
    flow_assert_ok(&answer);
}
