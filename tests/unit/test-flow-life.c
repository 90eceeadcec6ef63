/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life of a container when nothing goes wrong, and what each verb answers in each state. */
#include "flow-fixture.h"

#include <signal.h>

static void test_life(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_create(flow, "a", NULL);
    SvRecord *record = flow_record(flow, "a");
    g_assert_cmpint(record->shim_pid, ==, container->shim->proc->pid);
    g_assert_cmpint(record->exit_status, ==, -1);
    g_assert_cmpint(record->started_us, ==, 0);
    sv_record_free(record);
    g_assert_cmpuint(container->shim->roots, ==, 1);
    g_assert_cmpuint(container->shim->attached, ==, 1);
    g_assert_cmpuint(flow_guest(container)->attaches, ==, 1);
    g_assert_false(sv_sandbox_is_idle(flow->sandbox));

    flow_start(container);
    record = flow_record(flow, "a");
    g_assert_cmpint(record->started_us, >=, record->created_us);
    sv_record_free(record);
    g_assert_cmpint(flow_guest(container)->state, ==, SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING);

    flow_agent_exit(flow->agent, container->handle, 42);
    flow_wait_stopped(container, 42, SV_CAUSE_EXITED);
    FLOW_WAIT(flow_guest(container)->exit_acked);
    g_assert_cmpuint(flow_guest(container)->exits_sent, ==, 1);
    g_assert_true(sv_fake_is_running(flow->hv));

    flow_delete(container, FALSE);
    flow_assert_clean(flow);
    g_assert_cmpstr(flow->changes->str, ==, "a:ready a:running a:stopped a:gone ");
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    g_test_add_func("/flow/life/life", test_life);
    return g_test_run();
}
