/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Create: whatever fails, whoever goes away, at whatever step: one error with a cause, and nothing is
 * left. The same sandbox creates the same id afterwards. */
#include "flow-fixture.h"

#include "base/fd.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A hook that waits for a byte in TOP/fifo, and shared memory of the engine. */
#define MORE                                                                                       \
    "\"hooks\":{\"%s\":[{\"path\":\"/usr/bin/head\",\"args\":[\"head\",\"-c1\",\"%s/fifo\"]}]},"   \
    "\"mounts\":[{\"destination\":\"/dev/shm\",\"type\":\"bind\",\"source\":\"%s/shm\","           \
    "\"options\":[\"rbind\"]}]"

/* ---- where create is held */

typedef enum {
    AT_REGISTERED,
    AT_SHIM,
    AT_ACCEL,
    AT_CONNECT,
    AT_DOMAIN,
    AT_GREETING,
    AT_HELLO,
    AT_SETUP,
    AT_PRESTART,
    AT_CREATE_RUNTIME,
    AT_NETWORK,
    AT_SHM,
    AT_CREATE_CONTAINER,
    AT_GUEST,
    AT_ROOT,
    AT_STREAMS,
    N_POINTS
} Point;

static const struct {
    const char *name;
    const char *hv; /* operation that is held */
    const char *method; /* of the agent */
} points[N_POINTS] = {
    [AT_REGISTERED] = {"registered"},
    [AT_SHIM] = {"shim"},
    [AT_ACCEL] = {"acceleration"},
    [AT_CONNECT] = {"connect", "connect"},
    [AT_DOMAIN] = {"domain", "start"},
    [AT_GREETING] = {"greeting"},
    [AT_HELLO] = {"hello", NULL, "Hello"},
    [AT_SETUP] = {"setup", NULL, "Setup"},
    [AT_PRESTART] = {"prestart"},
    [AT_CREATE_RUNTIME] = {"createRuntime"},
    [AT_NETWORK] = {"network", NULL, "ConfigureNetwork"},
    [AT_SHM] = {"shm", NULL, "AddSharedMemory"},
    [AT_CREATE_CONTAINER] = {"createContainer"},
    [AT_GUEST] = {"guest", NULL, "Create"},
    [AT_ROOT] = {"root"},
    [AT_STREAMS] = {"streams", NULL, "Attach"},
};

/* What comes in between. */
typedef enum {
    DO_ABANDON,
    DO_KILL,
    DO_STOP,
    DO_DELETE,
    DO_KILL_SHIM,
    DO_END_MACHINE,
    DO_LOSE_CHANNEL,
    DO_LOSE_QEMU,
    N_DEEDS
} Deed;

static const struct {
    const char *name, *text; /* in the error */
    SvErr code;
} deeds[N_DEEDS] = {
    [DO_ABANDON] = {"abandon", "the caller is gone", SV_ERR_CANCELLED},
    [DO_KILL] = {"kill", "killed while creating", SV_ERR_CANCELLED},
    [DO_STOP] = {"stop", "killed while creating", SV_ERR_CANCELLED},
    [DO_DELETE] = {"delete", "deleted while creating", SV_ERR_CANCELLED},
    [DO_KILL_SHIM] = {"kill-shim", "shim has died", SV_ERR_CANCELLED},
    [DO_END_MACHINE] = {"end-machine", "ended", SV_ERR_LAST},
    [DO_LOSE_CHANNEL] = {"lose-channel", "", SV_ERR_LAST},
    [DO_LOSE_QEMU] = {"lose-qemu", "", SV_ERR_LAST},
};

typedef struct {
    Point point;
    Deed deed;
    gboolean late; /* what was held is answered all the same, afterwards */
    gboolean second; /* another container lives in the pod */
} Case;

typedef struct {
    FlowFixture *flow;
    FlowContainer *container, *other;
    int fifo;
    char *more;
} Run;

static void run_init(Run *run, const char *conf, const char *hooks)
{
    FlowFixture *flow = run->flow = flow_new(conf);
    g_autofree char *fifo = g_build_filename(flow->top, "fifo", NULL);
    g_autofree char *shm = g_build_filename(flow->top, "shm", NULL);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_cmpint(g_mkdir(shm, 01777), ==, 0);
    run->fifo = open(fifo, O_RDWR | O_CLOEXEC);
    run->more = g_strdup_printf(MORE, hooks, flow->top, flow->top);
}

static void run_clear(Run *run)
{
    sv_fd_close(run->fifo);
    g_free(run->more);
    flow_free(run->flow);
}

static void pass_hook(Run *run)
{
    g_assert_cmpint(write(run->fifo, "x", 1), ==, 1);
}

static void hold(Run *run, Point point)
{
    FlowFixture *flow = run->flow;
    flow->hold_accel = point == AT_ACCEL;
    flow->hold_hv = points[point].hv;
    flow->agent->mute = point == AT_GREETING;
    if (points[point].method)
        flow_agent_hold(flow->agent, points[point].method);
}

static gboolean is_hook(Point point)
{
    return point == AT_PRESTART || point == AT_CREATE_RUNTIME || point == AT_CREATE_CONTAINER;
}

static gboolean reached(Run *run, Point point)
{
    FlowFixture *flow = run->flow;
    switch (point) {
    case AT_REGISTERED:
        return TRUE;
    case AT_SHIM:
        return sv_sandbox_find(flow->sandbox, "a", NULL)->init->attach_ticket != 0;
    case AT_ACCEL:
        return flow->accel_done != NULL;
    case AT_GREETING:
        return flow->agent->connections > 0;
    case AT_PRESTART:
    case AT_CREATE_RUNTIME:
    case AT_CREATE_CONTAINER:
        return flow->sandbox->hooks_running > 0;
    case AT_ROOT:
        return run->container->shim->roots > 0;
    default:
        return points[point].hv ? flow->hv && sv_fake_count(flow->hv, points[point].hv) > 0
                                : flow_agent_count(flow->agent, points[point].method) > 0;
    }
}

static void let_go(Run *run, const Case *c)
{
    FlowFixture *flow = run->flow;
    if (c->point == AT_ACCEL)
        flow->accel_done(SV_ACCEL_TCG, NULL, NULL, flow->accel_data);
    flow->hold_accel = FALSE;
    flow->agent->mute = FALSE;
    if (points[c->point].hv)
        sv_fake_release(flow->hv, points[c->point].hv);
    if (is_hook(c->point))
        pass_hook(run);
    if (points[c->point].method && c->late)
        flow_agent_release(flow->agent, points[c->point].method);
    if (c->point == AT_ROOT && c->late)
        flow_shim_answer_root(run->container->shim, TRUE);
}

static void do_deed(Run *run, Deed deed, FlowAnswer *answer)
{
    FlowFixture *flow = run->flow;
    answer->done = deed == DO_ABANDON || deed >= DO_KILL_SHIM;
    switch (deed) {
    case DO_ABANDON:
        sv_container_abandon(flow->sandbox, "a");
        break;
    case DO_KILL:
        sv_container_kill(flow->sandbox, "a", SIGKILL, FALSE, 0, flow_answered, answer);
        break;
    case DO_STOP:
        sv_container_stop(flow->sandbox, "a", 5000, flow_answered, answer);
        break;
    case DO_DELETE:
        sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, answer);
        break;
    case DO_KILL_SHIM:
        flow_proc_kill(run->container->shim->proc);
        FLOW_WAIT(run->container->shim->proc->ended);
        break;
    case DO_END_MACHINE:
        sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_FAILED, NULL);
        break;
    case DO_LOSE_CHANNEL:
        flow_agent_close(flow->agent, FALSE);
        break;
    case DO_LOSE_QEMU:
        flow_agent_close(flow->agent, TRUE);
        break;
    case N_DEEDS:
        g_assert_not_reached();
    }
}

static gboolean ends_machine(Deed deed)
{
    return deed == DO_END_MACHINE || deed == DO_LOSE_CHANNEL || deed == DO_LOSE_QEMU;
}

/* Whether the case can be at all. */
static gboolean makes_sense(const Case *c)
{
    if (c->second && c->point > AT_SHIM && c->point < AT_PRESTART)
        return FALSE; /* the machine is up */
    /* each takes two seconds: that long QEMU's end is waited for */
    if (c->deed >= DO_LOSE_CHANNEL && (c->late || c->second != (c->deed == DO_LOSE_QEMU)))
        return FALSE;
    if (c->second && c->point == AT_NETWORK)
        return FALSE; /* it has it */
    if (c->point == AT_REGISTERED && c->deed == DO_KILL_SHIM)
        return FALSE;
    if (c->late && !points[c->point].method && c->point != AT_ROOT)
        return FALSE;
    if (!ends_machine(c->deed) || c->second)
        return TRUE;
    return c->point >= (c->deed == DO_END_MACHINE ? AT_DOMAIN : AT_GREETING);
}

static void check_other(Run *run, const Case *c)
{
    FlowFixture *flow = run->flow;
    if (!run->other)
        return;
    if (ends_machine(c->deed)) {
        flow_wait_stopped(run->other, 137,
            c->deed == DO_END_MACHINE ? SV_CAUSE_DOMAIN_CRASHED : SV_CAUSE_AGENT_LOST);
    } else {
        g_autoptr(GPtrArray) trees = sv_share_list(flow->paths, NULL);
        g_assert_cmpint(flow_state(flow, "other"), ==, SV_STATE_RUNNING);
        g_assert_cmpuint(trees->len, ==, 1);
        g_assert_cmpstr(trees->pdata[0], ==, "0/rootfs");
        g_assert_false(run->other->shim->proc->ended);
        g_assert_cmpint(
            flow_guest(run->other)->state, ==, SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING);
        const FlowGuestProcess *left = flow_agent_find(flow->agent, run->container->handle);
        g_assert_true(
            !left || c->late || left->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    }
    flow_delete(run->other, TRUE);
}

static void test_case(gconstpointer data)
{
    const Case *c = data;
    Run run = {0};
    g_auto(FlowAnswer) answer = {0};
    run_init(&run, NULL, is_hook(c->point) ? points[c->point].name : "prestart");
    FlowFixture *flow = run.flow;
    if (c->second)
        run.other = flow_run(flow, "other");
    hold(&run, c->point);
    run.container = flow_register(flow, "a", run.more);
    if (c->point != AT_REGISTERED) {
        flow_spawn(run.container, c->point == AT_NETWORK ? CLONE_NEWNET : 0);
        flow_create_begin(run.container);
        run.container->shim->hold_root = c->point == AT_ROOT;
        if (c->point != AT_SHIM)
            flow_attach(run.container);
    }
    if (c->point > AT_CREATE_RUNTIME && !is_hook(c->point))
        pass_hook(&run);
    guint seen =
        points[c->point].method ? flow_agent_count(flow->agent, points[c->point].method) : 0;
    FLOW_WAIT(reached(&run, c->point) &&
        (!points[c->point].method ||
            flow_agent_count(flow->agent, points[c->point].method) > seen));

    do_deed(&run, c->deed, &answer);
    flow_settle();
    let_go(&run, c);
    if (c->point == AT_REGISTERED && ends_machine(c->deed)) {
        /* the caller is still there, and goes on */
        flow_create_begin(run.container);
        flow_attach(run.container);
        pass_hook(&run);
    }
    if (run.container->shim) {
        SvErr code = deeds[c->deed].code;
        FLOW_WAIT(run.container->created.done);
        g_assert_nonnull(run.container->created.error);
        if (code == SV_ERR_LAST)
            code = (SvErr)run.container->created.error->code;
        flow_assert_failed(&run.container->created, code, deeds[c->deed].text);
        /* the answer means that all is undone */
        g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_GONE);
        if (!run.other)
            g_assert_false(flow->hv && sv_fake_is_running(flow->hv));
    }
    flow_assert_ok(&answer);
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_GONE);
    g_assert_null(strstr(flow->changes->str, "a:ready"));
    if (run.container->shim)
        FLOW_WAIT(run.container->shim->proc->ended);
    check_other(&run, c);
    flow_assert_clean(flow);
    g_assert_cmpuint(flow->sandbox->hooks_running, ==, 0);
    if (points[c->point].method)
        flow_agent_release(flow->agent, points[c->point].method);
    flow_assert_usable(flow, "a");
    run_clear(&run);
}

static void add_cases(gboolean second)
{
    for (Point point = 0; point < N_POINTS; point++)
        for (Deed deed = 0; deed < N_DEEDS; deed++)
            for (guint late = 0; late < 2; late++) {
                Case c = {point, deed, late, second};
                if (!makes_sense(&c))
                    continue;
                g_autofree char *path =
                    g_strdup_printf("/flow/create/%s/%s/%s%s", second ? "second" : "first",
                        points[point].name, deeds[deed].name, late ? "-late" : "");
                g_test_add_data_func_full(path, g_memdup2(&c, sizeof c), test_case, g_free);
            }
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    if (flow_part("first"))
        add_cases(FALSE);
    if (flow_part("second"))
        add_cases(TRUE);
    return g_test_run();
}
