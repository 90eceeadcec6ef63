/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life of a container when nothing goes wrong, and what each verb answers in each state. */
#include "flow-fixture.h"

#include <signal.h>
#include <string.h>

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

/* ---- the verbs: what they bring, and in which state they are refused */

typedef struct {
    FlowAnswer answer;
    char *text; /* of the first file or row */
} Reply;

static void on_reply(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Reply *r = user_data;
    flow_answered(error, &r->answer);
    if (reply && reply->descriptor == &sandvirt__v1__stats_response__descriptor)
        r->text = g_strdup(((const Sandvirt__V1__StatsResponse *)reply)->files[0]->key);
}

static const char *const verbs[] = {"start", "pause", "resume", "stats", "ps", "update", "kill"};

static void call(FlowFixture *flow, const char *verb, Reply *reply)
{
    SvSandbox *sandbox = flow->sandbox;
    if (g_str_equal(verb, "start")) {
        sv_container_start(sandbox, "a", flow_answered, &reply->answer);
    } else if (g_str_equal(verb, "pause") || g_str_equal(verb, "resume")) {
        sv_container_pause(sandbox, "a", g_str_equal(verb, "pause"), flow_answered, &reply->answer);
    } else if (g_str_equal(verb, "stats")) {
        sv_container_stats(sandbox, "a", on_reply, reply);
    } else if (g_str_equal(verb, "ps")) {
        sv_container_ps(sandbox, "a", on_reply, reply);
    } else if (g_str_equal(verb, "update")) {
        Sandvirt__V1__UpdateContainerRequest request = SANDVIRT__V1__UPDATE_CONTAINER_REQUEST__INIT;
        request.container_id = (char *)"a";
        request.resources.data = (guint8 *)"{\"pids\":{\"limit\":9}}";
        request.resources.len = strlen((char *)request.resources.data);
        sv_container_update(sandbox, &request, flow_answered, &reply->answer);
    } else {
        sv_container_kill(sandbox, "a", SIGUSR1, FALSE, 0, flow_answered, &reply->answer);
    }
    g_assert_false(reply->answer.done);
    FLOW_WAIT(reply->answer.done);
}

static void reply_clear(Reply *reply)
{
    flow_answer_clear(&reply->answer);
    g_clear_pointer(&reply->text, g_free);
}

/* As the table of the life cycle has it; without a word to the guest when it says no. */
static void check_verbs(FlowFixture *flow)
{
    SvState state = flow_state(flow, "a");
    for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
        Reply reply = {0};
        g_autoptr(GError) error = NULL;
        if (sv_lifecycle_allows(state, verbs[i], &error))
            continue;
        call(flow, verbs[i], &reply);
        g_assert_nonnull(reply.answer.error);
        g_assert_cmpint(reply.answer.error->code, ==, error->code);
        g_assert_true(g_str_has_prefix(reply.answer.error->message, error->message));
        g_assert_cmpint(flow_state(flow, "a"), ==, state);
        reply_clear(&reply);
    }
}

static void pause_resume(FlowFixture *flow, gboolean freeze)
{
    Reply reply = {0};
    call(flow, freeze ? "pause" : "resume", &reply);
    g_assert_no_error(reply.answer.error);
    reply_clear(&reply);
}

static void test_verbs(void)
{
    FlowFixture *flow = flow_new(NULL);
    check_verbs(flow); /* of nothing */
    FlowContainer *container = flow_create(flow, "a", NULL);
    check_verbs(flow);
    flow_start(container);
    check_verbs(flow);
    Reply reply = {0};
    call(flow, "stats", &reply);
    g_assert_cmpstr(reply.text, ==, "cpu.stat");
    reply_clear(&reply);
    call(flow, "ps", &reply);
    g_assert_no_error(reply.answer.error);
    reply_clear(&reply);
    call(flow, "update", &reply);
    g_assert_no_error(reply.answer.error);
    reply_clear(&reply);
    pause_resume(flow, TRUE);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_PAUSED);
    g_autoptr(SvRecord) frozen = flow_record(flow, "a");
    g_assert_true(frozen->frozen);
    check_verbs(flow);
    pause_resume(flow, FALSE);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    flow_agent_exit(flow->agent, container->handle, 0);
    flow_wait_stopped(container, 0, SV_CAUSE_EXITED);
    check_verbs(flow);
    g_assert_cmpuint(flow_agent_count(flow->agent, "Pause"), ==, 1);
    g_assert_cmpuint(flow_agent_count(flow->agent, "Stats"), ==, 1);
    flow_delete(container, FALSE);
    check_verbs(flow);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* The agent's error is the answer, and nothing has changed. */
static void test_failing_verbs(void)
{
    static const char *const methods[] = {
        "Start", "Pause", "Resume", "Stats", "Ps", "Update", "Signal"};
    static const SvState after[] = {SV_STATE_RUNNING, SV_STATE_PAUSED, SV_STATE_RUNNING};
    for (guint late = 0; late < 2; late++) {
        FlowFixture *flow = flow_new("agent_ms = 50");
        FlowContainer *container = flow_create(flow, "a", NULL);
        for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
            Reply reply = {0};
            SvState state = flow_state(flow, "a");
            if (late)
                flow_agent_hold(flow->agent, methods[i]);
            else
                flow_agent_fail(flow->agent, methods[i], SV_ERR_LIMIT);
            call(flow, verbs[i], &reply);
            flow_assert_failed(&reply.answer, late ? SV_ERR_TIMEOUT : SV_ERR_LIMIT,
                late ? "in time" : "told to fail");
            g_assert_cmpint(flow_state(flow, "a"), ==, state);
            reply_clear(&reply);
            flow_agent_fail(flow->agent, methods[i], SV_ERR_LAST);
            flow_agent_release(flow->agent, methods[i]);
            flow_settle();
            if (late && i < G_N_ELEMENTS(after)) /* the guest has done it all the same */
                FLOW_WAIT(flow_state(flow, "a") == after[i]);
            else if (i == 0)
                flow_start(container);
            else if (i < G_N_ELEMENTS(after))
                pause_resume(flow, i == 1);
        }
        flow_delete(container, TRUE);
        flow_assert_clean(flow);
        flow_free(flow);
    }
}

/* A workload that is over before its start was answered. */
static void test_quick(gconstpointer data)
{
    gboolean wait = data != NULL;
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_create(flow, "a", NULL);
    g_auto(FlowAnswer) answer = {0};
    flow_agent_hold(flow->agent, "Start");
    sv_container_start(flow->sandbox, "a", flow_answered, &answer);
    FLOW_WAIT(flow_agent_count(flow->agent, "Start") == 1);
    flow_agent_exit(flow->agent, container->handle, 3);
    if (wait)
        flow_wait_stopped(container, 3, SV_CAUSE_EXITED);
    flow_agent_release(flow->agent, "Start");
    flow_assert_ok(&answer);
    flow_wait_stopped(container, 3, SV_CAUSE_EXITED);
    flow_delete(container, FALSE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* A start that is answered when its container has gone and another one has its id. */
static void test_late_for_another(void)
{
    FlowFixture *flow = flow_new("agent_ms = 50\nstop_ms = 100");
    FlowContainer *first = flow_create(flow, "a", NULL);
    FlowContainer *other = flow_run(flow, "b");
    g_auto(FlowAnswer) answer = {0};
    flow_agent_hold(flow->agent, "Start");
    sv_container_start(flow->sandbox, "a", flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_TIMEOUT, "in time");
    flow_delete(first, TRUE);
    FlowContainer *second = flow_create(flow, "a", NULL);
    flow_agent_release(flow->agent, "Start");
    flow_settle();
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_READY);
    flow_delete(second, FALSE);
    flow_delete(other, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* It ends between crun's create and READY: that is an end, not a failed create. */
static void test_ends_while_creating(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_register(flow, "a", NULL);
    flow_agent_hold(flow->agent, "Attach");
    flow_create_begin(container);
    flow_attach(container);
    FLOW_WAIT(flow_agent_count(flow->agent, "Attach") == 1);
    flow_agent_exit(flow->agent, container->handle, 137);
    flow_settle();
    flow_agent_release(flow->agent, "Attach");
    flow_assert_ok(&container->created);
    flow_wait_stopped(container, 137, SV_CAUSE_SIGNALLED);
    g_assert_cmpstr(flow->changes->str, ==, "a:ready a:stopped ");
    FLOW_WAIT(flow_guest(container)->exit_acked);
    flow_delete(container, FALSE);
    flow_assert_clean(flow);
    flow_free(flow);
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    g_test_add_func("/flow/life/life", test_life);
    g_test_add_func("/flow/life/verbs", test_verbs);
    g_test_add_func("/flow/life/failing-verbs", test_failing_verbs);
    g_test_add_data_func("/flow/life/quick", NULL, test_quick);
    g_test_add_data_func("/flow/life/quick-stopped", "wait", test_quick);
    g_test_add_func("/flow/life/late-for-another", test_late_for_another);
    g_test_add_func("/flow/life/ends-while-creating", test_ends_while_creating);
    return g_test_run();
}
