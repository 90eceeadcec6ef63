/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A monitor is killed at any moment, and the next one takes over: what it finds in the state folder, what
 * libvirt and the agent say, and the shims that come again. */
#include "flow-monitor.h"

#include "base/file.h"
#include "base/mount.h"
#include "base/process.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

/* A monitor with an agent that is there already. */
static FlowMonitor *begin(FlowFixture *flow)
{
    flow_agent_listen(flow->agent, flow->paths->agent_socket);
    return flow_monitor_new(flow, FALSE, NULL);
}

static void end_flow(FlowFixture *flow)
{
    flow_assert_clean(flow);
    flow_assert_usable(flow, "again");
    flow_free(flow);
}

static void test_running(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    FlowContainer *ready = flow_monitor_create(monitor, "b");
    FlowExec *exec = flow_monitor_exec(monitor, container);
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDOUT, 0, "one ");
    FLOW_WAIT(container->shim->out[SV_STREAM_STDOUT]->len == 4);
    flow_shim_ack(container->shim, SV_STREAM_STDOUT, 4);
    FLOW_WAIT(flow_guest(container)->acked[SV_STREAM_STDOUT] == 4);
    guint64 token = flow->agent->token;
    flow_monitor_kill(monitor);
    FLOW_WAIT(!flow->agent->conn && !container->shim->conn);

    flow_recover(flow, TRUE);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    g_assert_cmpint(flow_state(flow, "b"), ==, SV_STATE_READY);
    g_assert_cmpuint(flow->agent->token, ==, token); /* the session is known by it */
    g_assert_cmpuint(flow_agent_count(flow->agent, "Setup"), ==, 1);
    flow_attach(container);
    flow_exec_attach(exec);
    flow_attach(ready);
    FLOW_WAIT(container->shim->attached == 2 && exec->shim->attached == 2);
    g_assert_cmpuint(flow_guest(container)->from[SV_STREAM_STDOUT], ==, 4);
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDOUT, 4, "two");
    FLOW_WAIT(container->shim->out[SV_STREAM_STDOUT]->len == 7);
    g_assert_cmpstr(container->shim->out[SV_STREAM_STDOUT]->str, ==, "one two");
    flow_agent_exit(flow->agent, exec->handle, 4);
    flow_exec_wait_ended(exec, 4);
    flow_start(ready);
    flow_agent_exit(flow->agent, container->handle, 5);
    flow_wait_stopped(container, 5, SV_CAUSE_EXITED);
    flow_delete(container, FALSE);
    flow_delete(ready, TRUE);
    end_flow(flow);
}

/* ---- what happened while nobody looked */

typedef enum {
    MEANWHILE_EXIT,
    MEANWHILE_SHIM,
    MEANWHILE_BOTH,
    MEANWHILE_DOMAIN,
    MEANWHILE_QEMU, /* libvirt has not noticed */
    MEANWHILE_BOOT,
    MEANWHILE_FORGOTTEN, /* the guest knows nothing of it */
    MEANWHILE_FREEZE,
    MEANWHILE_SUSPEND,
    N_MEANWHILES
} Meanwhile;

static const char *const meanwhile_names[] = {
    "exit", "shim", "exit-and-shim", "domain", "qemu", "boot", "forgotten", "freeze", "suspend"};

/* The record is of another boot of the host. */
static void change_boot(const char *path)
{
    g_autofree char *text = NULL;
    g_autofree char *own = sv_process_boot_id();
    gsize len = 0;
    g_assert_true(sv_file_read(path, 1024 * 1024, &text, &len, NULL));
    char *at = strstr(text, own);
    g_assert_nonnull(at);
    for (; at; at = strstr(at, own))
        memset(at, 'f', 8);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void meanwhile(FlowContainer *container, Meanwhile what)
{
    FlowFixture *flow = container->flow;
    g_autofree char *record = sv_paths_container_file(flow->paths->root, container->id);
    switch (what) {
    case MEANWHILE_EXIT:
        flow_agent_exit(flow->agent, container->handle, 6);
        break;
    case MEANWHILE_BOTH:
        flow_agent_exit(flow->agent, container->handle, 6);
        /* fall through */
    case MEANWHILE_SHIM:
        flow_proc_kill(container->shim->proc);
        FLOW_WAIT(container->shim->proc->ended);
        break;
    case MEANWHILE_DOMAIN:
    case MEANWHILE_QEMU:
        flow_agent_close(flow->agent, TRUE);
        break;
    case MEANWHILE_BOOT:
        flow_agent_close(flow->agent, TRUE);
        flow_proc_kill(container->shim->proc);
        FLOW_WAIT(container->shim->proc->ended);
        change_boot(record);
        change_boot(flow->paths->sandbox_file);
        break;
    case MEANWHILE_FORGOTTEN:
        g_hash_table_remove(flow->agent->processes, GUINT_TO_POINTER(container->handle));
        break;
    case MEANWHILE_FREEZE:
        flow_guest(container)->frozen = TRUE;
        break;
    default:
        break;
    }
}

typedef struct {
    Meanwhile what;
    gboolean ready; /* READY, else RUNNING */
} Case;

static void check_live(FlowContainer *container, const Case *c)
{
    FlowFixture *flow = container->flow;
    SvState live = c->ready ? SV_STATE_READY : SV_STATE_PAUSED;
    g_assert_cmpint(flow_state(flow, "a"), ==, live);
    flow_attach(container);
    if (c->what == MEANWHILE_FREEZE)
        FLOW_WAIT(container->shim->attached == 2);
    if (c->what == MEANWHILE_SUSPEND) {
        flow_settle();
        g_assert_cmpuint(container->shim->attached, ==, 1);
        sv_fake_emit(flow->hv, SV_HV_EVENT_RESUMED, SV_HV_END_UNKNOWN, NULL);
        FLOW_WAIT(container->shim->attached == 2);
        g_assert_cmpint(flow_state(flow, "a"), ==, c->ready ? SV_STATE_READY : SV_STATE_RUNNING);
    }
    flow_agent_exit(flow->agent, container->handle, 2);
    flow_wait_stopped(container, 2, SV_CAUSE_EXITED);
}

static void test_meanwhile(gconstpointer data)
{
    const Case *c = data;
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container =
        c->ready ? flow_monitor_create(monitor, "a") : flow_monitor_run(monitor, "a");
    flow_monitor_kill(monitor);
    meanwhile(container, c->what);
    gboolean lives = c->what == MEANWHILE_FREEZE || c->what == MEANWHILE_SUSPEND;
    gboolean exists = c->what != MEANWHILE_DOMAIN && c->what != MEANWHILE_BOOT;
    flow->suspended = c->what == MEANWHILE_SUSPEND;
    flow_recover(flow, exists);
    if (c->what == MEANWHILE_FREEZE && c->ready)
        flow_guest(container)->frozen = FALSE;
    if (!lives && !container->shim->proc->ended)
        flow_attach(container);
    switch (c->what) {
    case MEANWHILE_EXIT:
    case MEANWHILE_BOTH:
        flow_wait_stopped(container, 6, SV_CAUSE_EXITED);
        FLOW_WAIT(flow_guest(container)->exit_acked);
        break;
    case MEANWHILE_SHIM:
        flow_wait_stopped(container, 137, SV_CAUSE_SHIM_KILLED);
        g_assert_cmpint(
            flow_guest(container)->state, ==, SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
        break;
    case MEANWHILE_DOMAIN:
    case MEANWHILE_QEMU:
        flow_wait_stopped(container, 137, SV_CAUSE_DOMAIN_CRASHED);
        break;
    case MEANWHILE_BOOT:
        flow_wait_stopped(container, 255, SV_CAUSE_HOST_RESTARTED);
        g_assert_null(flow->hv);
        break;
    case MEANWHILE_FORGOTTEN:
        flow_wait_stopped(container, 255, SV_CAUSE_AGENT_LOST);
        break;
    default:
        check_live(container, c);
        break;
    }
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* ---- execs */

static void test_execs(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    FlowExec *runs = flow_monitor_exec(monitor, container);
    FlowExec *exits = flow_monitor_exec(monitor, container);
    FlowExec *killed = flow_monitor_exec(monitor, container);
    FlowExec *forgotten = flow_monitor_exec(monitor, container);
    flow_monitor_kill(monitor);
    flow_agent_exit(flow->agent, exits->handle, 9);
    flow_proc_kill(killed->shim->proc);
    FLOW_WAIT(killed->shim->proc->ended);
    g_hash_table_remove(flow->agent->processes, GUINT_TO_POINTER(forgotten->handle));
    flow_recover(flow, TRUE);
    flow_attach(container);
    flow_exec_attach(runs);
    flow_exec_attach(exits);
    flow_exec_attach(forgotten);
    flow_exec_wait_ended(exits, 9);
    flow_exec_wait_ended(killed, 137);
    flow_exec_wait_ended(forgotten, 255);
    FLOW_WAIT(flow_agent_find(flow->agent, killed->handle)->state ==
        SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    FLOW_WAIT(runs->shim->attached == 2);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    /* handles go on, none comes again */
    FlowExec *next = flow_exec(container);
    g_assert_cmpuint(next->handle, >, forgotten->handle);
    flow_agent_exit(flow->agent, container->handle, 0);
    flow_wait_stopped(container, 0, SV_CAUSE_EXITED);
    flow_exec_wait_ended(runs, 137);
    flow_exec_wait_ended(next, 137);
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* ---- libvirt or the agent do not answer the new monitor */

static void test_no_libvirt(gconstpointer data)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    flow_monitor_kill(monitor);
    flow->fail_hv = data;
    flow_recover(flow, TRUE);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    flow_attach(container);
    FLOW_WAIT(container->shim->attached == 2);
    /* it comes back: compared with, and needed for the end */
    sv_fake_fail_call(flow->hv, data, SV_ERR_LAST);
    sv_fake_emit(flow->hv, SV_HV_EVENT_CONNECTED, SV_HV_END_UNKNOWN, NULL);
    flow_settle();
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    flow_delete(container, TRUE);
    flow->fail_hv = NULL;
    end_flow(flow);
}

typedef enum { SILENT_LATE, SILENT_CHANNEL, SILENT_DOMAIN, SILENT_SHIM, SILENT_MUTE } Silent;

static void test_silent(gconstpointer data)
{
    Silent how = GPOINTER_TO_UINT(data);
    g_auto(FlowAnswer) answer = {0};
    FlowFixture *flow = flow_new(how == SILENT_LATE ? "boot_ms = 200" : NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    FlowContainer *cut = flow_monitor_register(monitor, "cut");
    flow_agent_hold(flow->agent, "Create");
    flow_monitor_create_begin(monitor, cut, TRUE);
    FLOW_WAIT(flow_agent_count(flow->agent, "Create") == 2);
    flow_monitor_kill(monitor);
    flow_agent_release(flow->agent, "Create");
    if (how == SILENT_MUTE)
        flow->agent->mute = TRUE;
    else
        flow_agent_hold(flow->agent, "Hello");
    guint connections = flow->agent->connections;
    flow_recover_begin(flow, TRUE, &answer);
    FLOW_WAIT(flow->agent->connections > connections);
    flow_attach(container);
    flow_settle();
    gint64 start = g_get_monotonic_time();
    SvCause cause = SV_CAUSE_AGENT_LOST;
    if (how == SILENT_CHANNEL || how == SILENT_MUTE) {
        flow_agent_close(flow->agent, TRUE);
    } else if (how == SILENT_DOMAIN) {
        sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_FAILED, NULL);
        cause = SV_CAUSE_DOMAIN_CRASHED;
    } else if (how == SILENT_SHIM) {
        flow_proc_kill(container->shim->proc);
        FLOW_WAIT(container->shim->proc->ended);
        flow_settle();
        /* it is stopped in the guest too, when that answers */
        g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
        flow_agent_release(flow->agent, "Hello");
        cause = SV_CAUSE_SHIM_KILLED;
    }
    flow_assert_ok(&answer);
    flow_wait_stopped(container, 137, cause);
    g_assert_cmpint(g_get_monotonic_time() - start, <, 4 * G_USEC_PER_SEC);
    FLOW_WAIT(flow_state(flow, "cut") == SV_STATE_GONE);
    if (how == SILENT_SHIM)
        g_assert_cmpint(
            flow_guest(container)->state, ==, SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    flow_delete(container, FALSE);
    flow_agent_release(flow->agent, "Hello");
    flow->agent->mute = FALSE;
    end_flow(flow);
}

/* ---- orders for a suspended machine whose agent has not spoken to the new monitor */

static void test_suspended_orders(gconstpointer data)
{
    const char *verb = data;
    for (guint alone = 0; alone < 2; alone++) {
        FlowFixture *flow = flow_new(NULL);
        FlowMonitor *monitor = begin(flow);
        FlowContainer *container = flow_monitor_run(monitor, "a");
        FlowContainer *other = alone ? NULL : flow_monitor_run(monitor, "b");
        g_auto(FlowAnswer) answer = {0};
        flow_monitor_kill(monitor);
        flow->suspended = TRUE;
        flow_recover(flow, TRUE);
        g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_PAUSED);
        flow_attach(container);
        if (other)
            flow_attach(other);
        if (g_str_equal(verb, "kill"))
            sv_container_kill(flow->sandbox, "a", SIGKILL, FALSE, 0, flow_answered, &answer);
        else if (g_str_equal(verb, "stop"))
            sv_container_stop(flow->sandbox, "a", 1000, flow_answered, &answer);
        else
            sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
        flow_assert_ok(&answer);
        FLOW_WAIT(container->shim->proc->ended);
        g_assert_cmpint(container->shim->proc->status, ==, 137);
        if (!g_str_equal(verb, "delete")) {
            flow_wait_stopped(container, 137, SV_CAUSE_SIGNALLED);
            flow_delete(container, FALSE);
        }
        if (other) {
            FLOW_WAIT(flow_state(flow, "b") == SV_STATE_RUNNING);
            FLOW_WAIT(other->shim->attached == 2);
            FLOW_WAIT(flow_guest(container)->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
            flow_delete(other, TRUE);
        }
        end_flow(flow);
    }
}

static void test_suspended_term(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    g_auto(FlowAnswer) answer = {0};
    flow_monitor_kill(monitor);
    flow->suspended = TRUE;
    flow_recover(flow, TRUE);
    flow_attach(container);
    sv_container_kill(flow->sandbox, "a", SIGTERM, FALSE, 0, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_FAILED, "cannot be reached");
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_PAUSED);
    flow_delete(container, TRUE);
    end_flow(flow);
}

/* RUNNING is told when the guest can be asked, not before. */
static void test_suspended_resumed(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    flow_monitor_kill(monitor);
    flow->suspended = TRUE;
    flow_recover(flow, TRUE);
    flow_attach(container);
    flow_agent_hold(flow->agent, "Hello");
    sv_fake_emit(flow->hv, SV_HV_EVENT_RESUMED, SV_HV_END_UNKNOWN, NULL);
    FLOW_WAIT(!flow->sandbox->record->suspended);
    flow_settle();
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_PAUSED);
    flow_agent_release(flow->agent, "Hello");
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_RUNNING);
    g_assert_true(sv_agent_is_ready(flow->sandbox->agent));
    flow_delete(container, TRUE);
    end_flow(flow);
}

/* ---- a stop that waited for its KILL, and nobody asks again: the time is in the record */

static void test_kill_due(gconstpointer data)
{
    gint64 wait_us = GPOINTER_TO_INT(data) * (gint64)1000;
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    flow_monitor_kill(monitor);
    g_autoptr(GError) error = NULL;
    g_autoptr(SvRecord) record = flow_record(flow, "a");
    gint64 due = g_get_monotonic_time() + wait_us;
    record->kill_at_us = due;
    g_assert_true(sv_record_save(record, flow->paths->root, &error));
    flow_recover(flow, TRUE);
    flow_attach(container);
    flow_wait_stopped(container, 137, SV_CAUSE_SIGNALLED);
    g_assert_cmpint(g_get_monotonic_time(), >=, due);
    g_assert_cmpint(flow_guest(container)->state, ==, SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    g_autoptr(SvRecord) stopped = flow_record(flow, "a");
    g_assert_cmpint(stopped->kill_at_us, ==, 0);
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* ---- what stands in the folder is odd */

static void test_stopped(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    FlowContainer *other = flow_monitor_run(monitor, "b");
    flow_agent_exit(flow->agent, container->handle, 3);
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_STOPPED && container->shim->proc->ended);
    flow_monitor_kill(monitor);
    flow_recover(flow, TRUE);
    flow_attach(other);
    flow_wait_stopped(container, 3, SV_CAUSE_EXITED);
    g_assert_cmpint(flow_state(flow, "b"), ==, SV_STATE_RUNNING);
    flow_delete(container, FALSE);
    flow_delete(other, TRUE);
    end_flow(flow);
}

/* Everything has ended, only the records are left. */
static void test_ended(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_CRASHED, NULL);
    flow_wait_stopped(container, 137, SV_CAUSE_GUEST_PANIC);
    FLOW_WAIT(!flow->sandbox->down && flow->sandbox->machine == SV_MACHINE_ENDED);
    g_assert_true(sv_sandbox_is_idle(flow->sandbox));
    g_clear_pointer(&flow->sandbox, sv_sandbox_free);
    flow->hv = NULL;
    flow_unlisten(flow);
    flow_recover(flow, FALSE);
    g_assert_null(flow->hv);
    flow_wait_stopped(container, 137, SV_CAUSE_GUEST_PANIC);
    g_assert_true(flow->sandbox->end_cause == SV_CAUSE_GUEST_PANIC);
    FLOW_WAIT(sv_sandbox_is_idle(flow->sandbox));
    flow_delete(container, FALSE);
    end_flow(flow);
}

static void test_nothing(void)
{
    FlowFixture *flow = flow_new(NULL);
    g_clear_pointer(&flow->sandbox, sv_sandbox_free);
    flow_unlisten(flow);
    flow_recover(flow, FALSE);
    g_assert_null(flow->sandbox->record);
    g_assert_true(sv_sandbox_is_idle(flow->sandbox));
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

static void test_damaged(gconstpointer data)
{
    gboolean sandbox = data != NULL;
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    FlowContainer *other = flow_monitor_run(monitor, "b");
    FlowContainer *cut = flow_monitor_register(monitor, "cut");
    flow_monitor_kill(monitor);
    g_autofree char *path = sv_paths_container_file(flow->paths->root, "a");
    g_assert_true(g_file_set_contents(sandbox ? flow->paths->sandbox_file : path, "{", -1, NULL));
    flow_recover(flow, TRUE);
    g_assert_cmpint(flow_state(flow, cut->id), ==, SV_STATE_GONE);
    flow_attach(container);
    flow_attach(other);
    if (sandbox) {
        flow_wait_stopped(container, 137, SV_CAUSE_AGENT_LOST);
        flow_wait_stopped(other, 137, SV_CAUSE_AGENT_LOST);
        flow_delete(container, FALSE);
        flow_delete(other, FALSE);
    } else {
        /* the healthy one is not hidden; the other's shim learns that nobody knows it */
        FLOW_WAIT(container->shim->attach_code == SV_ERR_NOT_FOUND);
        FLOW_WAIT(other->shim->attached == 2);
        flow_proc_kill(container->shim->proc);
        flow_delete(other, TRUE);
        g_assert_true(sv_record_remove(flow->paths->root, flow->paths->sandbox, "a", NULL));
    }
    end_flow(flow);
}

static void add_meanwhiles(void)
{
    for (Meanwhile what = 0; what < N_MEANWHILES; what++)
        for (guint ready = 0; ready < 2; ready++) {
            Case c = {what, ready};
            g_autofree char *path = g_strdup_printf("/flow/recovery/meanwhile/%s/%s",
                ready ? "ready" : "running", meanwhile_names[what]);
            g_test_add_data_func_full(path, g_memdup2(&c, sizeof c), test_meanwhile, g_free);
        }
}

static const char *const silents[] = {"late", "channel", "domain", "shim", "mute"};
static const char *const orders[] = {"kill", "stop", "delete"};

int main(int argc, char **argv)
{
    if (flow_monitor_main(argc, argv))
        return 0;
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    g_test_add_func("/flow/recovery/running", test_running);
    add_meanwhiles();
    g_test_add_func("/flow/recovery/execs", test_execs);
    g_test_add_data_func("/flow/recovery/no-libvirt/connect", "connect", test_no_libvirt);
    g_test_add_data_func("/flow/recovery/no-libvirt/status", "status", test_no_libvirt);
    for (guint i = 0; i < G_N_ELEMENTS(silents); i++) {
        g_autofree char *path = g_strdup_printf("/flow/recovery/silent/%s", silents[i]);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_silent);
    }
    for (guint i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autofree char *path = g_strdup_printf("/flow/recovery/suspended/%s", orders[i]);
        g_test_add_data_func(path, orders[i], test_suspended_orders);
    }
    g_test_add_func("/flow/recovery/suspended/term", test_suspended_term);
    g_test_add_func("/flow/recovery/suspended/resumed", test_suspended_resumed);
    g_test_add_data_func("/flow/recovery/kill-due/later", GINT_TO_POINTER(300), test_kill_due);
    g_test_add_data_func("/flow/recovery/kill-due/past", GINT_TO_POINTER(-5000), test_kill_due);
    g_test_add_func("/flow/recovery/stopped", test_stopped);
    g_test_add_func("/flow/recovery/ended", test_ended);
    g_test_add_func("/flow/recovery/nothing", test_nothing);
    g_test_add_data_func("/flow/recovery/damaged/container", NULL, test_damaged);
    g_test_add_data_func("/flow/recovery/damaged/sandbox", "sandbox", test_damaged);
    return g_test_run();
}
