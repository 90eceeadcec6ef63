/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exec: further processes in a container, from prepare to their end, with a failure or a stranger at
 * every step. And the streams of processes, which are the same for all. */
#include "flow-fixture.h"

#include <signal.h>
#include <string.h>

static void end_flow(FlowContainer *container)
{
    FlowFixture *flow = container->flow;
    flow_delete(container, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* ---- when nothing goes wrong */

static void test_life(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    FlowExec *exec = flow_exec(container);
    SvRecord *record = flow_record(flow, "a");
    g_assert_cmpuint(record->execs->len, ==, 1);
    g_assert_cmpint(((SvExecRecord *)record->execs->pdata[0])->shim_pid, ==, exec->shim->proc->pid);
    sv_record_free(record);
    FlowGuestProcess *guest = flow_agent_find(flow->agent, exec->handle);
    g_assert_true(guest->exec);
    g_assert_nonnull(strstr(guest->config, "\"ls\""));
    g_assert_cmpuint(guest->attaches, ==, 1);
    g_assert_cmpuint(exec->shim->roots, ==, 0);
    flow_agent_exit(flow->agent, exec->handle, 7);
    flow_exec_wait_ended(exec, 7);
    FLOW_WAIT(guest->exit_acked);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    end_flow(container);
}

static void test_several(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_create(flow, "a", NULL); /* READY is enough */
    FlowExec *execs[4];
    for (guint i = 0; i < G_N_ELEMENTS(execs); i++)
        execs[i] = flow_exec(container);
    flow_start(container);
    flow_proc_kill(execs[1]->shim->proc);
    flow_exec_wait_ended(execs[1], 137);
    FLOW_WAIT(flow_agent_find(flow->agent, execs[1]->handle)->state ==
        SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    flow_agent_exit(flow->agent, execs[2]->handle, 0);
    flow_exec_wait_ended(execs[2], 0);
    g_assert_false(execs[0]->shim->proc->ended || execs[3]->shim->proc->ended);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    /* the container ends, and they with it */
    flow_agent_exit(flow->agent, container->handle, 5);
    flow_wait_stopped(container, 5, SV_CAUSE_EXITED);
    flow_exec_wait_ended(execs[0], 137);
    flow_exec_wait_ended(execs[3], 137);
    end_flow(container);
}

/* It is over before its start is answered. */
static void test_quick(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    flow_agent_hold(flow->agent, "Attach");
    FlowExec *exec = flow_exec_prepare(container);
    flow_exec_begin(exec);
    flow_exec_attach(exec);
    FLOW_WAIT(flow_agent_count(flow->agent, "Attach") == 2);
    flow_agent_exit(flow->agent, exec->handle, 3);
    flow_settle();
    g_assert_false(exec->started.done);
    g_assert_cmpuint(exec->shim->exits, ==, 0);
    flow_agent_release(flow->agent, "Attach");
    flow_assert_ok(&exec->started);
    flow_exec_wait_ended(exec, 3);
    FLOW_WAIT(flow_agent_find(flow->agent, exec->handle)->exit_acked);
    end_flow(container);
}

/* More than the guest does well at once: in the order they came, and nobody's turn is lost by who gives up. */
static void test_many(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    const guint at_once = 6; /* of a machine with one CPU */
    FlowExec *execs[16];
    flow_agent_hold(flow->agent, "Exec");
    for (guint i = 0; i < G_N_ELEMENTS(execs); i++) {
        execs[i] = flow_exec_prepare(container);
        flow_exec_begin(execs[i]);
        flow_exec_attach(execs[i]);
    }
    FLOW_WAIT(flow_agent_count(flow->agent, "Exec") == at_once);
    flow_proc_kill(execs[at_once]->shim->proc); /* waits for its turn */
    flow_proc_kill(execs[0]->shim->proc); /* has its turn */
    FLOW_WAIT(execs[at_once]->shim->proc->ended && execs[0]->shim->proc->ended);
    flow_settle();
    g_assert_cmpuint(flow_agent_count(flow->agent, "Exec"), ==, at_once);
    flow_agent_release(flow->agent, "Exec");
    for (guint i = 1; i < G_N_ELEMENTS(execs); i++)
        if (i != at_once)
            flow_assert_ok(&execs[i]->started);
    g_assert_cmpuint(flow_agent_count(flow->agent, "Exec"), ==, G_N_ELEMENTS(execs) - 1);
    end_flow(container);
}

/* ---- a stranger at every step */

typedef enum { AT_PREPARED, AT_SHIM, AT_GUEST, AT_STREAMS, AT_RUNNING, N_POINTS } Point;
static const char *const point_names[] = {"prepared", "shim", "guest", "streams", "running"};
static const char *const point_methods[] = {NULL, NULL, "Exec", "Attach", NULL};

typedef enum {
    DO_ABANDON,
    DO_KILL_SHIM,
    DO_FAIL,
    DO_EXIT,
    DO_END_MACHINE,
    DO_LOSE_CHANNEL,
    DO_DELETE,
    N_DEEDS
} Deed;
static const char *const deed_names[] = {
    "abandon", "kill-shim", "fail", "container-exits", "end-machine", "lose-channel", "delete"};

typedef struct {
    Point point;
    Deed deed;
    gboolean late;
} Case;

static FlowExec *bring_to(FlowContainer *container, const Case *c)
{
    FlowFixture *flow = container->flow;
    const char *method = point_methods[c->point];
    guint seen = method ? flow_agent_count(flow->agent, method) : 0;
    if (method && c->deed == DO_FAIL)
        flow_agent_fail(flow->agent, method, SV_ERR_EXEC_DENIED);
    else if (method)
        flow_agent_hold(flow->agent, method);
    FlowExec *exec = flow_exec_prepare(container);
    if (c->point == AT_PREPARED)
        return exec;
    flow_exec_begin(exec);
    if (c->point != AT_SHIM)
        flow_exec_attach(exec);
    if (c->point == AT_RUNNING)
        flow_assert_ok(&exec->started);
    else if (c->point == AT_SHIM)
        flow_settle();
    else
        FLOW_WAIT(flow_agent_count(flow->agent, method) > seen);
    return exec;
}

static void do_deed(FlowContainer *container, FlowExec *exec, Deed deed, FlowAnswer *answer)
{
    FlowFixture *flow = container->flow;
    answer->done = deed != DO_DELETE;
    switch (deed) {
    case DO_ABANDON:
        sv_exec_abandon(flow->sandbox, exec->handle);
        break;
    case DO_KILL_SHIM:
        flow_proc_kill(exec->shim->proc);
        FLOW_WAIT(exec->shim->proc->ended);
        break;
    case DO_EXIT:
        flow_agent_exit(flow->agent, container->handle, 5);
        break;
    case DO_END_MACHINE:
        sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_FAILED, NULL);
        break;
    case DO_LOSE_CHANNEL:
        flow_agent_close(flow->agent, FALSE);
        break;
    case DO_DELETE:
        sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, answer);
        break;
    default:
        break;
    }
}

static gboolean stays(Deed deed)
{
    return deed == DO_ABANDON || deed == DO_KILL_SHIM || deed == DO_FAIL;
}

static void check_answer(FlowExec *exec, const Case *c)
{
    FLOW_WAIT(exec->started.done);
    if (c->point == AT_RUNNING) {
        g_assert_no_error(exec->started.error);
        return;
    }
    if (c->late && !stays(c->deed))
        return; /* who was first */
    g_assert_nonnull(exec->started.error);
    if (c->deed == DO_FAIL)
        flow_assert_failed(&exec->started, SV_ERR_EXEC_DENIED, "told to fail");
    if (c->deed == DO_ABANDON)
        flow_assert_failed(&exec->started, SV_ERR_CANCELLED, "the caller is gone");
    if (c->deed == DO_KILL_SHIM)
        flow_assert_failed(&exec->started, SV_ERR_CANCELLED, "shim of the exec has died");
}

static void test_case(gconstpointer data)
{
    const Case *c = data;
    const char *method = point_methods[c->point];
    g_auto(FlowAnswer) deleted = {0};
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    FlowExec *exec = bring_to(container, c);
    do_deed(container, exec, c->deed, &deleted);
    if (method && c->late && flow->agent->conn)
        flow_agent_release(flow->agent, method);
    if (c->point == AT_PREPARED && !stays(c->deed)) {
        /* the caller goes on */
        if (c->deed == DO_DELETE)
            flow_assert_ok(&deleted);
        else
            FLOW_WAIT(flow_state(flow, "a") == SV_STATE_STOPPED);
        flow_exec_begin(exec);
    }
    if (c->point != AT_PREPARED || !stays(c->deed))
        check_answer(exec, c);
    flow_assert_ok(&deleted);
    if (c->deed == DO_ABANDON && c->point == AT_RUNNING)
        flow_proc_kill(exec->shim->proc);
    if (c->point == AT_PREPARED)
        flow_proc_kill(exec->shim->proc); /* its starter ends it */
    FLOW_WAIT(exec->shim->proc->ended);
    if (c->point == AT_SHIM && c->deed == DO_ABANDON)
        g_assert_cmpint(exec->shim->proc->status, ==, 137);
    FLOW_WAIT(!g_hash_table_contains(flow->sandbox->processes, GUINT_TO_POINTER(exec->handle)));
    if (method)
        flow_agent_release(flow->agent, method);
    if (method)
        flow_agent_fail(flow->agent, method, SV_ERR_LAST);
    FlowGuestProcess *guest = flow_agent_find(flow->agent, exec->handle);
    if (guest && stays(c->deed)) /* the order to die is behind whatever came late */
        FLOW_WAIT(guest->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    if (stays(c->deed)) {
        g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
        FlowExec *next = flow_exec(container);
        flow_agent_exit(flow->agent, next->handle, 1);
        flow_exec_wait_ended(next, 1);
    }
    if (c->deed != DO_DELETE)
        flow_delete(container, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

static gboolean makes_sense(const Case *c)
{
    if (c->late && !point_methods[c->point])
        return FALSE;
    if (c->deed == DO_FAIL && (!point_methods[c->point] || c->late))
        return FALSE;
    return c->point != AT_PREPARED || c->deed != DO_KILL_SHIM;
}

/* ---- refused */

static void refused(
    FlowFixture *flow, const char *id, const char *json, SvErr code, const char *text)
{
    Sandvirt__V1__ExecPrepareRequest request = SANDVIRT__V1__EXEC_PREPARE_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    guint32 handle = 0;
    guint before = g_hash_table_size(flow->sandbox->processes);
    request.container_id = (char *)id;
    request.process.data = (guint8 *)json;
    request.process.len = strlen(json);
    g_assert_false(sv_exec_prepare(flow->sandbox, &request, &handle, &error));
    g_assert_cmpuint(g_hash_table_size(flow->sandbox->processes), ==, before);
    if (error->code != (int)code || !strstr(error->message, text))
        g_error("%d %s", error->code, error->message);
}

static void test_refused(void)
{
    static const char good[] = "{\"args\":[\"ls\"],\"cwd\":\"/\"}";
    FlowFixture *flow = flow_new(NULL);
    refused(flow, "a", good, SV_ERR_NOT_FOUND, "does not exist");
    FlowContainer *container = flow_register(flow, "a", NULL);
    refused(flow, "a", good, SV_ERR_STATE, "cannot exec in a creating container");
    flow_create_begin(container);
    flow_attach(container);
    flow_assert_ok(&container->created);
    flow_start(container);
    refused(flow, "a", "{", SV_ERR_INVALID, "");
    refused(flow, "a", "{\"args\":7}", SV_ERR_INVALID, "args");
    refused(flow, "a", "{\"args\":[\"ls\"],\"cwd\":\"/\",\"terminal\":7}", SV_ERR_INVALID, "");

    /* of handles that were not prepared */
    Sandvirt__V1__ExecStartRequest request = SANDVIRT__V1__EXEC_START_REQUEST__INIT;
    const guint32 handles[] = {0, container->handle, 4711};
    request.container_id = (char *)"a";
    for (guint i = 0; i < G_N_ELEMENTS(handles); i++) {
        g_auto(FlowAnswer) answer = {0};
        request.handle = handles[i];
        sv_exec_start(flow->sandbox, &request, flow_answered, &answer);
        flow_assert_failed(&answer, SV_ERR_NOT_FOUND, "no such exec");
        sv_exec_abandon(flow->sandbox, handles[i]);
    }
    FlowExec *exec = flow_exec(container);
    g_auto(FlowAnswer) answer = {0};
    request.handle = exec->handle;
    sv_exec_start(flow->sandbox, &request, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_NOT_FOUND, "no such exec");
    g_assert_false(exec->shim->proc->ended);

    sv_fake_emit(flow->hv, SV_HV_EVENT_SUSPENDED, SV_HV_END_UNKNOWN, NULL);
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_PAUSED);
    refused(flow, "a", good, SV_ERR_STATE, "cannot exec in a paused container");
    sv_fake_emit(flow->hv, SV_HV_EVENT_RESUMED, SV_HV_END_UNKNOWN, NULL);
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_RUNNING);
    /* a stop that has begun counts as stopped */
    flow_agent_hold(flow->agent, "Remove");
    flow_agent_exit(flow->agent, container->handle, 1);
    FLOW_WAIT(flow_agent_count(flow->agent, "Remove") == 1);
    refused(flow, "a", good, SV_ERR_STATE, "cannot exec in a stopped container");
    flow_agent_release(flow->agent, "Remove");
    flow_wait_stopped(container, 1, SV_CAUSE_EXITED);
    refused(flow, "a", good, SV_ERR_STATE, "cannot exec in a stopped container");
    end_flow(container);
}

/* ---- streams */

static void test_streams(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    FlowShim *shim = container->shim;
    FlowGuestProcess *guest = flow_guest(container);
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDOUT, 0, "hello ");
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDERR, 0, "error");
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDOUT | SV_FLAG_EOF, 6, "world");
    FLOW_WAIT(shim->eof[SV_STREAM_STDOUT] && shim->out[SV_STREAM_STDERR]->len == 5);
    g_assert_cmpstr(shim->out[SV_STREAM_STDOUT]->str, ==, "hello world");
    g_assert_cmpstr(shim->out[SV_STREAM_STDERR]->str, ==, "error");
    g_assert_false(shim->eof[SV_STREAM_STDERR]);
    flow_shim_ack(shim, SV_STREAM_STDOUT, 11);
    flow_shim_ack(shim, SV_STREAM_STDERR | SV_FLAG_BROKEN, 5);
    FLOW_WAIT(guest->acked[SV_STREAM_STDERR] == 5);
    g_assert_cmpuint(guest->acked[SV_STREAM_STDOUT], ==, 11);
    g_assert_true(guest->flags[SV_STREAM_STDERR] & SV_FLAG_BROKEN);

    flow_shim_input(shim, 0, 0, "type");
    flow_shim_input(shim, SV_FLAG_EOF, 4, "d\n");
    FLOW_WAIT(guest->input_eof && shim->input_acked == 6);
    g_assert_cmpstr(guest->input->str, ==, "typed\n");

    /* it comes again: from where it was; what was not acknowledged is said again */
    flow_shim_close(shim);
    FLOW_WAIT(!sv_sandbox_find(flow->sandbox, "a", NULL)->init->shim);
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDERR, 5, "lost");
    flow_settle();
    flow_attach(container);
    FLOW_WAIT(shim->attached == 2);
    g_assert_cmpuint(guest->attaches, ==, 2);
    g_assert_cmpuint(guest->from[SV_STREAM_STDOUT], ==, 11);
    g_assert_cmpuint(guest->from[SV_STREAM_STDERR], ==, 5);
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDERR, 5, "again");
    FLOW_WAIT(shim->out[SV_STREAM_STDERR]->len == 10);
    g_assert_cmpstr(shim->out[SV_STREAM_STDERR]->str, ==, "erroragain");
    end_flow(container);
}

/* As much as the window, and more only when it has moved. */
static void test_window(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    FlowShim *shim = container->shim;
    g_autofree char *chunk = g_strnfill(SV_DATA_CHUNK, 'x');
    guint64 sent = 0;
    for (guint round = 0; round < 3; round++) {
        for (guint i = 0; i < SV_STREAM_WINDOW / SV_DATA_CHUNK; i++, sent += SV_DATA_CHUNK)
            flow_agent_output(flow->agent, container->handle, SV_STREAM_STDOUT, sent, chunk);
        FLOW_WAIT(shim->out[SV_STREAM_STDOUT]->len == sent);
        flow_shim_ack(shim, SV_STREAM_STDOUT, sent);
        FLOW_WAIT(flow_guest(container)->acked[SV_STREAM_STDOUT] == sent);
    }
    flow_shim_ack(shim, SV_STREAM_STDOUT, 1); /* never back */
    FLOW_WAIT(flow_guest(container)->acked[SV_STREAM_STDOUT] == 1);
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDOUT, sent, "y");
    FLOW_WAIT(shim->out[SV_STREAM_STDOUT]->len == sent + 1);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    end_flow(container);
}

/* ---- what a shim passes on */

static void test_shim_orders(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_register(flow, "a", NULL);
    flow_spawn(container, 0);
    container->shim->rows = 25;
    container->shim->cols = 81;
    flow_attach(container);
    flow_create_begin(container);
    flow_assert_ok(&container->created);
    g_assert_cmpuint(flow_guest(container)->rows, ==, 25);
    flow_start(container);
    FlowExec *exec = flow_exec(container);
    flow_shim_resize(container->shim, 50, 100);
    flow_shim_resize(exec->shim, 10, 20);
    FLOW_WAIT(flow_agent_find(flow->agent, exec->handle)->rows == 10);
    g_assert_cmpuint(flow_guest(container)->cols, ==, 100);
    flow_shim_signal(exec->shim, SIGTERM);
    FLOW_WAIT(exec->shim->exits);
    flow_exec_wait_ended(exec, 143);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    sv_conn_call(container->shim->conn, SV_SERVICE_SHIM, "Dance", NULL, NULL, 0, -1, NULL, NULL);
    sv_conn_send(container->shim->conn, sv_message_data(container->handle, 3, 0, "x", 1));
    flow_shim_signal(container->shim, SIGTERM);
    flow_wait_stopped(container, 143, SV_CAUSE_SIGNALLED);
    flow_delete(container, FALSE);

    /* to a READY one: its stop */
    FlowContainer *ready = flow_create(flow, "b", NULL);
    flow_shim_signal(ready->shim, SIGTERM);
    flow_wait_stopped(ready, 143, SV_CAUSE_SIGNALLED);
    end_flow(ready);
}

/* A shim speaks while nobody is there to hear it. */
static void test_deaf_guest(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    FlowExec *exec = flow_exec(container);
    sv_fake_hold(flow->hv, "destroy");
    flow_agent_close(flow->agent, FALSE);
    FLOW_WAIT(!flow->sandbox->agent);
    flow_shim_input(container->shim, 0, 0, "x");
    flow_shim_ack(container->shim, SV_STREAM_STDOUT, 0);
    flow_shim_resize(exec->shim, 1, 1);
    flow_shim_signal(exec->shim, SIGTERM);
    flow_settle();
    flow_shim_close(exec->shim);
    flow_exec_attach(exec);
    flow_settle();
    sv_fake_release(flow->hv, "destroy");
    flow_wait_stopped(container, 137, SV_CAUSE_AGENT_LOST);
    flow_exec_wait_ended(exec, 137);
    end_flow(container);
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    g_test_add_func("/flow/exec/life", test_life);
    g_test_add_func("/flow/exec/several", test_several);
    g_test_add_func("/flow/exec/quick", test_quick);
    g_test_add_func("/flow/exec/many", test_many);
    for (Point point = 0; point < N_POINTS; point++)
        for (Deed deed = 0; deed < N_DEEDS; deed++)
            for (guint late = 0; late < 2; late++) {
                Case c = {point, deed, late};
                if (!makes_sense(&c))
                    continue;
                g_autofree char *path = g_strdup_printf("/flow/exec/%s/%s%s", point_names[point],
                    deed_names[deed], late ? "-late" : "");
                g_test_add_data_func_full(path, g_memdup2(&c, sizeof c), test_case, g_free);
            }
    g_test_add_func("/flow/exec/refused", test_refused);
    g_test_add_func("/flow/streams/streams", test_streams);
    g_test_add_func("/flow/streams/window", test_window);
    g_test_add_func("/flow/streams/shim-orders", test_shim_orders);
    g_test_add_func("/flow/streams/deaf-guest", test_deaf_guest);
    return g_test_run();
}
