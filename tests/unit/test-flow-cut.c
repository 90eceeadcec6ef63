/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A monitor is killed in the middle of something, and the next one takes over: a create is taken back, a
 * stop or an end goes on. */
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

/* ---- killed within create */

typedef enum {
    CUT_REGISTERED,
    CUT_SHIM,
    CUT_CONNECT,
    CUT_START,
    CUT_GREETING,
    CUT_HELLO,
    CUT_SETUP,
    CUT_GUEST,
    CUT_ROOT,
    CUT_STREAMS,
    N_CUTS
} Cut;

static const struct {
    const char *name, *hv, *method;
    gboolean started;
} cuts[N_CUTS] = {
    {"registered", NULL, NULL, FALSE},
    {"shim", NULL, NULL, FALSE},
    {"connect", "connect", NULL, FALSE},
    {"start", "start", NULL, TRUE},
    {"greeting", NULL, NULL, TRUE},
    {"hello", NULL, "Hello", TRUE},
    {"setup", NULL, "Setup", TRUE},
    {"guest", NULL, "Create", TRUE},
    {"root", NULL, NULL, TRUE},
    {"streams", NULL, "Attach", TRUE},
};

typedef struct {
    Cut cut;
    gboolean second; /* beside a container that runs */
    gboolean gone; /* the machine ended too */
    gboolean suspended;
} CutCase;

/* The monitor has come as far as that. */
static void wait_cut(FlowMonitor *monitor, FlowContainer *container, const CutCase *c, guint seen)
{
    FlowFixture *flow = container->flow;
    g_autofree char *record = sv_paths_container_file(flow->paths->root, "a");
    switch (c->cut) {
    case CUT_REGISTERED:
        return;
    case CUT_GREETING:
        FLOW_WAIT(flow->agent->connections > 0);
        return;
    case CUT_ROOT:
        FLOW_WAIT(container->shim->roots > 0);
        return;
    case CUT_CONNECT:
    case CUT_START:
        FLOW_WAIT(flow_monitor_is_held(monitor));
        return;
    case CUT_SHIM: {
        /* nothing of it is seen here: an answer that comes behind it */
        g_auto(FlowAnswer) answer = {0};
        for (guint i = 0; i < 20; i++) {
            flow_answer_clear(&answer);
            flow_monitor_verb(monitor, "Start", container, &answer);
            FLOW_WAIT(answer.done);
        }
        return;
    }
    default:
        FLOW_WAIT(flow_agent_count(flow->agent, cuts[c->cut].method) > seen);
    }
}

static void test_cut(gconstpointer data)
{
    const CutCase *c = data;
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *other = NULL;
    const char *method = cuts[c->cut].method;
    flow->agent->mute = c->cut == CUT_GREETING;
    flow_agent_listen(flow->agent, flow->paths->agent_socket);
    FlowMonitor *monitor = flow_monitor_new(flow, FALSE, cuts[c->cut].hv);
    if (c->second)
        other = flow_monitor_run(monitor, "other");
    guint seen = method ? flow_agent_count(flow->agent, method) : 0;
    if (method)
        flow_agent_hold(flow->agent, method);
    FlowContainer *container = flow_monitor_register(monitor, "a");
    if (c->cut != CUT_REGISTERED) {
        flow_monitor_create_begin(monitor, container, FALSE);
        container->shim->hold_root = c->cut == CUT_ROOT;
        if (c->cut != CUT_SHIM)
            flow_attach(container);
    }
    wait_cut(monitor, container, c, seen);
    flow_monitor_kill(monitor);
    if (method)
        flow_agent_release(flow->agent, method);
    flow->agent->mute = FALSE;
    if (c->gone)
        flow_agent_close(flow->agent, TRUE);

    flow->suspended = c->suspended;
    gint64 start = g_get_monotonic_time();
    flow_recover(flow, (c->second || cuts[c->cut].started) && !c->gone);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_GONE);
    if (container->shim)
        FLOW_WAIT(container->shim->proc->ended);
    if (other && c->gone) {
        flow_attach(other);
        flow_wait_stopped(other, 137, SV_CAUSE_DOMAIN_CRASHED);
    } else if (other) {
        g_autoptr(GPtrArray) trees = sv_share_list(flow->paths, NULL);
        g_assert_cmpuint(trees->len, ==, 1);
        g_assert_cmpint(
            flow_state(flow, "other"), ==, c->suspended ? SV_STATE_PAUSED : SV_STATE_RUNNING);
        sv_fake_emit(flow->hv, SV_HV_EVENT_RESUMED, SV_HV_END_UNKNOWN, NULL);
        flow_attach(other);
        FLOW_WAIT(other->shim->attached == 2);
        const FlowGuestProcess *left = flow_agent_find(flow->agent, container->handle);
        FLOW_WAIT(!left || left->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    }
    if (other)
        flow_delete(other, TRUE);
    /* nobody waited for the boot of a machine that nobody needs */
    g_assert_cmpint(g_get_monotonic_time() - start, <, 4 * G_USEC_PER_SEC);
    flow_assert_clean(flow);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

/* ---- killed within a stop */

typedef struct {
    const char *method; /* that is held; NULL: the shim's end */
    gboolean forced; /* a delete --force, else an exit */
    gboolean gone;
} StopCase;

static void test_stopping(gconstpointer data)
{
    const StopCase *c = data;
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    if (c->method)
        flow_agent_hold(flow->agent, c->method);
    container->shim->hold_exit = !c->method;
    if (c->forced)
        flow_monitor_delete(monitor, container, NULL);
    else
        flow_agent_exit(flow->agent, container->handle, 7);
    if (c->method)
        FLOW_WAIT(flow_agent_count(flow->agent, c->method) > 0);
    else
        FLOW_WAIT(container->shim->exits > 0);
    flow_monitor_kill(monitor);
    g_autoptr(SvRecord) record = flow_record(flow, "a");
    g_assert_true(c->method ? record->stopping : record->state == SV_STATE_STOPPED);
    if (c->method)
        flow_agent_release(flow->agent, c->method);
    if (c->gone)
        flow_agent_close(flow->agent, TRUE);
    container->shim->hold_exit = FALSE;
    container->shim->exits = 0;
    flow_recover(flow, !c->gone);
    flow_attach(container);
    flow_wait_stopped(
        container, c->forced ? 137 : 7, c->forced ? SV_CAUSE_SIGNALLED : SV_CAUSE_EXITED);
    g_assert_cmpuint(container->shim->exits, ==, 1);
    if (!c->gone && !c->forced)
        FLOW_WAIT(flow_guest(container)->exit_acked);
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* ---- killed within the end of the machine */

static void test_ending(gconstpointer data)
{
    const char *step = data;
    gboolean destroy = g_str_equal(step, "destroy");
    FlowFixture *flow = flow_new(NULL);
    flow_agent_listen(flow->agent, flow->paths->agent_socket);
    FlowMonitor *monitor = flow_monitor_new(flow, FALSE, destroy ? "destroy" : NULL);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    flow_agent_hold(flow->agent, "Shutdown");
    flow_monitor_delete(monitor, container, NULL);
    FLOW_WAIT(flow_agent_count(flow->agent, "Shutdown") > 0);
    if (destroy) /* the monitor waits no longer for the guest; its driver never answers */
        FLOW_WAIT(flow_monitor_is_held(monitor));
    flow_monitor_kill(monitor);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_GONE);
    g_assert_true(g_file_test(flow->paths->sandbox_file, G_FILE_TEST_EXISTS));
    flow_agent_release(flow->agent, "Shutdown");
    flow_recover(flow, TRUE);
    end_flow(flow);
}

/* ---- the answer to start was lost */

static void test_start_lost(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_create(monitor, "a");
    flow_agent_hold(flow->agent, "Start");
    flow_monitor_verb(monitor, "Start", container, NULL);
    FLOW_WAIT(flow_agent_count(flow->agent, "Start") == 1);
    flow_monitor_kill(monitor);
    flow_guest(container)->state = SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING;
    flow_agent_release(flow->agent, "Start");
    flow_recover(flow, TRUE);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    flow_attach(container);
    flow_delete(container, TRUE);
    end_flow(flow);
}

/* ---- again and again */

static void test_twice(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    FlowExec *exec = flow_monitor_exec(monitor, container);
    flow_agent_hold(flow->agent, "Hello");
    for (guint i = 0; i < 3; i++) {
        flow_monitor_kill(monitor);
        guint seen = flow_agent_count(flow->agent, "Hello");
        monitor = flow_monitor_new(flow, TRUE, NULL);
        flow_attach(container);
        FLOW_WAIT(flow_agent_count(flow->agent, "Hello") > seen);
    }
    flow_agent_release(flow->agent, "Hello");
    FLOW_WAIT(container->shim->attached == 2);
    flow_exec_attach(exec);
    FLOW_WAIT(exec->shim->attached == 2);
    flow_monitor_kill(monitor);
    flow_agent_exit(flow->agent, container->handle, 1);
    flow_recover(flow, TRUE);
    flow_attach(container);
    flow_exec_attach(exec);
    flow_wait_stopped(container, 1, SV_CAUSE_EXITED);
    flow_exec_wait_ended(exec, 137);
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* ---- a caller goes away from a monitor that lives: its answer is due to nobody */

static void test_callers(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_register(monitor, "a");
    flow_agent_hold(flow->agent, "Create");
    flow_monitor_create_begin(monitor, container, TRUE);
    FLOW_WAIT(flow_agent_count(flow->agent, "Create") == 1);
    flow_monitor_hang_up(monitor);
    FLOW_WAIT(container->shim->proc->ended);
    flow_agent_release(flow->agent, "Create");
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_GONE);
    flow_monitor_call_in(monitor);
    g_auto(FlowAnswer) answer = {0};
    flow_monitor_delete(monitor, container, &answer);
    flow_assert_ok(&answer);
    g_assert_false(g_file_test(flow->paths->sandbox_file, G_FILE_TEST_EXISTS));
    flow_monitor_kill(monitor);
    flow_recover(flow, FALSE);
    flow->idles++;
    end_flow(flow);
}

/* A create that comes while the machine of the last one ends waits for that, and is not refused. */
static void test_register_while_ending(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowMonitor *monitor = begin(flow);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    g_auto(FlowAnswer) answer = {0};
    flow_agent_hold(flow->agent, "Shutdown");
    flow_monitor_delete(monitor, container, &answer);
    FLOW_WAIT(flow_agent_count(flow->agent, "Shutdown") > 0);
    g_assert_false(answer.done);
    flow_monitor_register(monitor, "b");
    flow_assert_ok(&answer); /* it had to be first */
    g_assert_cmpint(flow_state(flow, "b"), ==, SV_STATE_CREATING);
    g_assert_false(g_file_test(flow->paths->box_dir, G_FILE_TEST_EXISTS));
    flow_monitor_hang_up(monitor);
    FLOW_WAIT(flow_state(flow, "b") == SV_STATE_GONE);
    flow_agent_release(flow->agent, "Shutdown");
    flow_monitor_kill(monitor);
    flow_recover(flow, FALSE);
    flow->idles++;
    end_flow(flow);
}

static void add_cuts(void)
{
    for (Cut cut = 0; cut < N_CUTS; cut++)
        for (guint second = 0; second < 2; second++)
            for (guint gone = 0; gone < 2; gone++)
                for (guint suspended = 0; suspended < 2; suspended++) {
                    CutCase c = {cut, second, gone, suspended};
                    if (second && cut > CUT_SHIM && cut < CUT_GUEST)
                        continue;
                    if ((gone || suspended) && !second && !cuts[cut].started)
                        continue;
                    if (gone && suspended)
                        continue;
                    g_autofree char *path = g_strdup_printf("/flow/cut/create/%s%s%s%s",
                        cuts[cut].name, second ? "-second" : "", gone ? "-gone" : "",
                        suspended ? "-suspended" : "");
                    g_test_add_data_func_full(path, g_memdup2(&c, sizeof c), test_cut, g_free);
                }
}

static const StopCase stops[] = {
    {"Remove", FALSE, FALSE},
    {"Remove", FALSE, TRUE},
    {"Remove", TRUE, FALSE},
    {"Remove", TRUE, TRUE},
    {"Signal", TRUE, FALSE},
    {"Signal", TRUE, TRUE},
    {NULL, FALSE, FALSE},
    {NULL, FALSE, TRUE},
    {NULL, TRUE, FALSE},
    {NULL, TRUE, TRUE},
};

int main(int argc, char **argv)
{
    if (flow_monitor_main(argc, argv))
        return 0;
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    add_cuts();
    for (guint i = 0; i < G_N_ELEMENTS(stops); i++) {
        g_autofree char *path =
            g_strdup_printf("/flow/cut/stopping/%s%s%s", stops[i].method ? stops[i].method : "shim",
                stops[i].forced ? "-forced" : "", stops[i].gone ? "-gone" : "");
        g_test_add_data_func(path, &stops[i], test_stopping);
    }
    g_test_add_data_func("/flow/cut/ending/shutdown", "shutdown", test_ending);
    g_test_add_data_func("/flow/cut/ending/destroy", "destroy", test_ending);
    g_test_add_func("/flow/cut/start-lost", test_start_lost);
    g_test_add_func("/flow/cut/twice", test_twice);
    g_test_add_func("/flow/cut/callers", test_callers);
    g_test_add_func("/flow/cut/register-while-ending", test_register_while_ending);
    return g_test_run();
}
