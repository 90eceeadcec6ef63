/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stop and delete: from every state, in every way, with a failure or a stranger at every step. The
 * container becomes STOPPED, its exit is recorded once, its shim ends with it, and delete works. */
#include "flow-fixture.h"

#include "base/fd.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef enum { IN_READY, IN_RUNNING, IN_FROZEN, IN_SUSPENDED, N_STATES } In;

static const char *const state_names[] = {"ready", "running", "frozen", "suspended"};

static void freeze(FlowContainer *container, gboolean on)
{
    FlowFixture *flow = container->flow;
    g_auto(FlowAnswer) answer = {0};
    sv_container_pause(flow->sandbox, container->id, on, flow_answered, &answer);
    flow_assert_ok(&answer);
    g_assert_cmpint(flow_state(flow, container->id), ==, on ? SV_STATE_PAUSED : SV_STATE_RUNNING);
}

static void suspend(FlowFixture *flow)
{
    sv_fake_emit(flow->hv, SV_HV_EVENT_SUSPENDED, SV_HV_END_UNKNOWN, NULL);
    FLOW_WAIT(flow->sandbox->record->suspended);
}

static void resume(FlowFixture *flow)
{
    sv_fake_emit(flow->hv, SV_HV_EVENT_RESUMED, SV_HV_END_UNKNOWN, NULL);
    FLOW_WAIT(!flow->sandbox->record->suspended);
}

static FlowContainer *make(FlowFixture *flow, const char *id, In in)
{
    FlowContainer *container = flow_create(flow, id, NULL);
    if (in != IN_READY)
        flow_start(container);
    if (in == IN_FROZEN)
        freeze(container, TRUE);
    if (in == IN_SUSPENDED)
        suspend(flow);
    return container;
}

static void assert_once(FlowFixture *flow, const char *id)
{
    g_autofree char *word = g_strdup_printf("%s:stopped ", id);
    const char *first = strstr(flow->changes->str, word);
    g_assert_nonnull(first);
    g_assert_null(strstr(first + 1, word));
}

static void end_flow(FlowFixture *flow)
{
    flow_assert_clean(flow);
    flow_assert_usable(flow, "again");
    flow_free(flow);
}

/* ---- by signals */

static void kill_with(FlowContainer *container, int signo, gboolean all, FlowAnswer *answer)
{
    sv_container_kill(
        container->flow->sandbox, container->id, signo, all, 0, flow_answered, answer);
    g_assert_false(answer->done);
}

static void test_signals(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    const int fatal[] = {SIGTERM, SIGKILL, SIGUSR1, SIGHUP};
    for (guint i = 0; i < G_N_ELEMENTS(fatal); i++) {
        FlowFixture *flow = flow_new(NULL);
        FlowContainer *container = make(flow, "a", in);
        g_auto(FlowAnswer) answer = {0};
        gboolean ends =
            in == IN_READY || fatal[i] == SIGKILL || (fatal[i] == SIGTERM && in == IN_RUNNING);
        kill_with(container, fatal[i], FALSE, &answer);
        flow_assert_ok(&answer);
        if (in == IN_SUSPENDED && fatal[i] != SIGKILL) {
            /* stays in the channel until the machine runs on */
            g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_PAUSED);
            resume(flow);
            ends = fatal[i] == SIGTERM;
        }
        if (ends)
            flow_wait_stopped(container, 128 + fatal[i], SV_CAUSE_SIGNALLED);
        else if (in != IN_SUSPENDED)
            g_assert_cmpint(
                flow_state(flow, "a"), ==, in == IN_RUNNING ? SV_STATE_RUNNING : SV_STATE_PAUSED);
        if (ends)
            assert_once(flow, "a");
        flow_delete(container, !ends);
        end_flow(flow);
    }
}

static void test_harmless_signals(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    const int signals[] = {0, SIGCHLD, SIGWINCH, SIGURG, SIGCONT};
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", in);
    SvState before = flow_state(flow, "a");
    for (guint i = 0; i < G_N_ELEMENTS(signals); i++) {
        g_auto(FlowAnswer) answer = {0};
        kill_with(container, signals[i], FALSE, &answer);
        flow_assert_ok(&answer);
        g_assert_cmpint(flow_state(flow, "a"), ==, before);
    }
    g_assert_cmpuint(flow_agent_count(flow->agent, "Signal"), ==, in == IN_READY ? 0 : 4);
    flow_delete(container, TRUE);
    end_flow(flow);
}

static void test_signal_stopped(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_run(flow, "a");
    flow_agent_exit(flow->agent, container->handle, 0);
    flow_wait_stopped(container, 0, SV_CAUSE_EXITED);
    for (guint all = 0; all < 2; all++) {
        g_auto(FlowAnswer) answer = {0};
        kill_with(container, SIGKILL, all, &answer);
        if (all)
            flow_assert_ok(&answer);
        else
            flow_assert_failed(&answer, SV_ERR_NOT_RUNNING, "container not running");
    }
    g_auto(FlowAnswer) answer = {0};
    sv_container_kill(flow->sandbox, "b", SIGKILL, TRUE, 0, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_NOT_FOUND, "container does not exist");
    flow_answer_clear(&answer);
    sv_container_start(flow->sandbox, "a", flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_STATE, "cannot start a stopped container");
    flow_answer_clear(&answer);
    sv_container_stop(flow->sandbox, "a", 0, flow_answered, &answer);
    flow_assert_ok(&answer); /* idempotent */
    assert_once(flow, "a");
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* ---- by stop, delete, exit, the shim's death */

static void test_stop(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    for (guint zero = 0; zero < 2; zero++) {
        FlowFixture *flow = flow_new(NULL);
        FlowContainer *container = make(flow, "a", in);
        g_auto(FlowAnswer) answer = {0}, second = {0};
        guint timeout_ms = zero ? 0 : 5000;
        sv_container_stop(flow->sandbox, "a", timeout_ms, flow_answered, &answer);
        sv_container_stop(flow->sandbox, "a", timeout_ms, flow_answered, &second);
        flow_assert_ok(&answer);
        flow_assert_ok(&second);
        g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_STOPPED);
        gboolean term =
            in == IN_READY || (in != IN_SUSPENDED && !zero); /* a frozen one is thawed */
        flow_wait_stopped(container, term ? 143 : 137, SV_CAUSE_SIGNALLED);
        assert_once(flow, "a");
        flow_delete(container, FALSE);
        end_flow(flow);
    }
}

/* It does not heed TERM. */
static void test_stop_late(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    g_auto(FlowAnswer) answer = {0};
    flow->agent->immortal = TRUE;
    gint64 due = g_get_monotonic_time() + 40 * 1000;
    sv_container_stop(flow->sandbox, "a", 40, flow_answered, &answer);
    g_autoptr(SvRecord) record = flow_record(flow, "a"); /* for a monitor that follows */
    g_assert_cmpint(record->kill_at_us, >=, due);
    FLOW_WAIT(flow_agent_count(flow->agent, "Signal") == 1);
    flow_settle();
    flow->agent->immortal = FALSE;
    flow_assert_ok(&answer);
    flow_wait_stopped(container, 137, SV_CAUSE_SIGNALLED);
    flow_delete(container, FALSE);
    end_flow(flow);
}

static void test_delete(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    for (guint force = 0; force < 2; force++) {
        FlowFixture *flow = flow_new(NULL);
        FlowContainer *container = make(flow, "a", in);
        g_auto(FlowAnswer) answer = {0}, second = {0};
        sv_container_delete(flow->sandbox, "a", force, flow_answered, &answer);
        if (!force && in != IN_READY) {
            flow_assert_failed(&answer, SV_ERR_STATE,
                in == IN_RUNNING ? "cannot delete a running container"
                                 : "cannot delete a paused container");
            flow_answer_clear(&answer);
            sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
        }
        sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &second);
        flow_assert_ok(&answer);
        flow_assert_ok(&second);
        g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_GONE);
        g_assert_false(sv_fake_is_running(flow->hv));
        FLOW_WAIT(container->shim->proc->ended);
        g_assert_cmpint(container->shim->proc->status, ==, 137);
        assert_once(flow, "a");
        end_flow(flow);
    }
}

static void test_delete_unknown(void)
{
    FlowFixture *flow = flow_new(NULL);
    g_auto(FlowAnswer) answer = {0};
    sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
    flow_assert_ok(&answer);
    flow_answer_clear(&answer);
    sv_container_delete(flow->sandbox, "a\n", FALSE, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_NOT_FOUND, "container does not exist: \"a\\x0a\"");
    flow_free(flow);
}

static void test_exit(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    const int codes[] = {0, 1, 137, 255, 256 + 7, -1};
    for (guint i = 0; i < G_N_ELEMENTS(codes); i++) {
        FlowFixture *flow = flow_new(NULL);
        FlowContainer *container = make(flow, "a", in);
        int status = codes[i] & 0xff;
        flow_agent_exit(flow->agent, container->handle, codes[i]);
        if (in == IN_SUSPENDED)
            flow_agent_release(flow->agent, NULL);
        flow_wait_stopped(container, status, status > 128 ? SV_CAUSE_SIGNALLED : SV_CAUSE_EXITED);
        FLOW_WAIT(flow_guest(container)->exit_acked);
        /* told twice: nothing happens */
        flow_guest(container)->state = SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING;
        flow_agent_exit(flow->agent, container->handle, 99);
        flow_settle();
        flow_wait_stopped(container, status, status > 128 ? SV_CAUSE_SIGNALLED : SV_CAUSE_EXITED);
        assert_once(flow, "a");
        flow_delete(container, FALSE);
        end_flow(flow);
    }
}

static void test_oom(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    g_autofree char *mark = g_strdup_printf("%s/bundle-a/oom", flow->top);
    flow_agent_oom(flow->agent, "a", 1);
    flow_agent_oom(flow->agent, "nobody", 1);
    FLOW_WAIT(g_file_test(mark, G_FILE_TEST_EXISTS));
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    flow_guest(container)->oom = TRUE;
    flow_agent_exit(flow->agent, container->handle, 137);
    flow_wait_stopped(container, 137, SV_CAUSE_OOM);
    g_autoptr(SvRecord) record = flow_record(flow, "a");
    g_assert_true(record->oom);
    flow_delete(container, FALSE);
    end_flow(flow);
}

static void test_shim_killed(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", in);
    flow_proc_kill(container->shim->proc);
    flow_wait_stopped(container, 137, SV_CAUSE_SHIM_KILLED);
    if (in != IN_SUSPENDED)
        g_assert_cmpint(
            flow_guest(container)->state, ==, SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    assert_once(flow, "a");
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* In a suspended machine nothing is waited for, but the order to remove it lies in the channel: it must not
 * live on when the machine does. */
static void test_asleep(gconstpointer data)
{
    const char *how = data;
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    FlowContainer *other = flow_run(flow, "other");
    g_auto(FlowAnswer) answer = {0};
    answer.done = g_str_equal(how, "shim");
    if (g_str_equal(how, "late")) {
        flow->agent->immortal = TRUE;
        sv_container_stop(flow->sandbox, "a", 40, flow_answered, &answer);
    }
    suspend(flow);
    flow->hv_silent = TRUE; /* whoever orders it to be resumed does not wait for that */
    sv_fake_hold(flow->hv, "resume");
    if (g_str_equal(how, "shim"))
        flow_proc_kill(container->shim->proc);
    else if (g_str_equal(how, "stop"))
        sv_container_stop(flow->sandbox, "a", 1000, flow_answered, &answer);
    else if (g_str_equal(how, "delete"))
        sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
    flow_assert_ok(&answer);
    if (!g_str_equal(how, "delete")) {
        flow_wait_stopped(
            container, 137, g_str_equal(how, "shim") ? SV_CAUSE_SHIM_KILLED : SV_CAUSE_SIGNALLED);
        assert_once(flow, "a");
        flow_delete(container, FALSE);
    }
    FLOW_WAIT(flow_agent_count(flow->agent, "Remove") == 1);
    flow->agent->immortal = FALSE;
    flow->hv_silent = FALSE;
    sv_fake_release(flow->hv, "resume");
    if (g_str_equal(how, "shim"))
        resume(flow); /* the others have ordered it */
    FLOW_WAIT(flow_state(flow, "other") == SV_STATE_RUNNING);
    FLOW_WAIT(flow_guest(container)->state == SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
    flow_delete(other, TRUE);
    end_flow(flow);
}

/* The shim only hangs up: nothing happens, and it may come again. */
static void test_shim_hangs_up(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    flow_shim_close(container->shim);
    FLOW_WAIT(!sv_sandbox_find(flow->sandbox, "a", NULL)->init->shim);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    flow_agent_exit(flow->agent, container->handle, 4);
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_STOPPED);
    g_assert_false(container->shim->proc->ended);
    flow_attach(container); /* the exit is told to it now */
    flow_wait_stopped(container, 4, SV_CAUSE_EXITED);
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* ---- a stranger at every step of a stop */

typedef enum { HOLD_KILL, HOLD_REMOVE, HOLD_SHARE, HOLD_SHIM, N_HOLDS } Hold;

static const char *const hold_names[] = {"kill", "remove", "share", "shim"};

typedef enum {
    DO_NOTHING, /* it is late or fails: bounded */
    DO_EXIT,
    DO_END_MACHINE,
    DO_LOSE_CHANNEL,
    DO_LOSE_QEMU,
    DO_KILL_SHIM,
    DO_DELETE,
    DO_KILL,
    DO_STOP,
    DO_SUSPEND,
    N_DEEDS
} Deed;

static const char *const deed_names[] = {"late", "exit", "end-machine", "lose-channel", "lose-qemu",
    "kill-shim", "delete", "kill-again", "stop-again", "suspend"};

typedef struct {
    Hold hold;
    Deed deed;
    gboolean second; /* another container lives in the pod */
} Case;

/* Keeps the container's tree in the share busy. */
static int hold_share(FlowFixture *flow)
{
    SvContainer *core = sv_sandbox_find(flow->sandbox, "a", NULL);
    g_autofree char *path =
        g_strdup_printf("%s/c/%u/rootfs/etc", flow->paths->share_dir, core->record->index);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

static gboolean reached(FlowContainer *container, Hold hold)
{
    FlowFixture *flow = container->flow;
    SvContainer *core = sv_sandbox_find(flow->sandbox, "a", NULL);
    switch (hold) {
    case HOLD_KILL:
        return flow_agent_count(flow->agent, "Signal") > 0;
    case HOLD_REMOVE:
        return flow_agent_count(flow->agent, "Remove") > 0;
    case HOLD_SHARE:
        return core->release_timer != 0;
    default:
        return container->shim->exits > 0;
    }
}

static void do_deed(FlowContainer *container, Deed deed, FlowAnswer *answer)
{
    FlowFixture *flow = container->flow;
    answer->done = deed < DO_DELETE || deed == DO_SUSPEND;
    switch (deed) {
    case DO_EXIT:
        flow_agent_exit(flow->agent, container->handle, 9);
        break;
    case DO_END_MACHINE:
        sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_DESTROYED, NULL);
        break;
    case DO_LOSE_CHANNEL:
        flow_agent_close(flow->agent, FALSE);
        break;
    case DO_LOSE_QEMU:
        flow_agent_close(flow->agent, TRUE);
        break;
    case DO_KILL_SHIM:
        flow_proc_kill(container->shim->proc);
        break;
    case DO_DELETE:
        sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, answer);
        break;
    case DO_KILL:
        sv_container_kill(flow->sandbox, "a", SIGKILL, TRUE, 0, flow_answered, answer);
        break;
    case DO_STOP:
        sv_container_stop(flow->sandbox, "a", 1000, flow_answered, answer);
        break;
    case DO_SUSPEND:
        sv_fake_emit(flow->hv, SV_HV_EVENT_SUSPENDED, SV_HV_END_UNKNOWN, NULL);
        break;
    default:
        break;
    }
}

static gboolean ends_machine(Deed deed)
{
    return deed == DO_END_MACHINE || deed == DO_LOSE_CHANNEL || deed == DO_LOSE_QEMU;
}

static void test_case(gconstpointer data)
{
    const Case *c = data;
    FlowFixture *flow = flow_new("stop_ms = 300");
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    FlowContainer *other = c->second ? flow_run(flow, "other") : NULL;
    g_auto(FlowAnswer) deleted = {0}, answer = {0};
    int fd = -1;
    if (c->hold == HOLD_KILL)
        flow_agent_hold(flow->agent, "Signal");
    if (c->hold == HOLD_REMOVE)
        flow_agent_hold(flow->agent, "Remove");
    if (c->hold == HOLD_SHARE)
        fd = hold_share(flow);
    container->shim->hold_exit = c->hold == HOLD_SHIM;
    gint64 start = g_get_monotonic_time();
    sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &deleted);
    FLOW_WAIT(reached(container, c->hold));
    do_deed(container, c->deed, &answer);
    flow_settle();
    if (c->deed != DO_NOTHING)
        sv_fd_clear(&fd);
    if (c->hold == HOLD_SHIM) {
        flow_settle();
        flow_proc_exit(container->shim->proc, container->shim->exit_status);
    }
    flow_assert_ok(&deleted);
    flow_assert_ok(&answer);
    g_assert_cmpint(g_get_monotonic_time() - start, <, 5 * G_USEC_PER_SEC);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_GONE);
    if (fd >= 0 && other) /* what the guest kept is named */
        g_assert_nonnull(strstr(flow->sandbox->record->warnings->pdata[0], "/share/c/0/rootfs"));
    sv_fd_clear(&fd);
    assert_once(flow, "a");
    FLOW_WAIT(container->shim->proc->ended);
    int status = c->deed == DO_EXIT && c->hold == HOLD_KILL ? 9 : 137;
    g_assert_cmpint(container->shim->proc->status, ==, status);
    if (other && ends_machine(c->deed))
        flow_wait_stopped(other, 137,
            c->deed == DO_END_MACHINE ? SV_CAUSE_DOMAIN_DESTROYED : SV_CAUSE_AGENT_LOST);
    else if (other)
        g_assert_cmpint(flow_state(flow, "other"), ==,
            c->deed == DO_SUSPEND ? SV_STATE_PAUSED : SV_STATE_RUNNING);
    if (flow->agent->conn) {
        flow_agent_release(flow->agent, "Signal");
        flow_agent_release(flow->agent, "Remove");
    }
    if (other)
        flow_delete(other, TRUE);
    flow_assert_clean(flow);
    flow_agent_release(flow->agent, "Signal");
    flow_agent_release(flow->agent, "Remove");
    flow_assert_usable(flow, "again");
    flow_free(flow);
}

static gboolean makes_sense(const Case *c)
{
    if (c->deed == DO_EXIT && c->hold != HOLD_KILL)
        return FALSE; /* it has ended */
    /* each takes two seconds: that long QEMU's end is waited for */
    if ((c->deed == DO_LOSE_CHANNEL && c->second) || (c->deed == DO_LOSE_QEMU && !c->second))
        return FALSE;
    if (c->deed == DO_NOTHING && c->hold == HOLD_SHIM)
        return FALSE; /* test_shim_stays */
    return TRUE;
}

/* ---- a failure at every step */

static void test_failing(gconstpointer data)
{
    const char *method = data;
    const SvErr codes[] = {SV_ERR_FAILED, SV_ERR_NOT_FOUND, SV_ERR_NOT_RUNNING};
    for (guint i = 0; i < G_N_ELEMENTS(codes); i++) {
        FlowFixture *flow = flow_new("stop_ms = 200");
        FlowContainer *container = make(flow, "a", IN_RUNNING);
        flow_agent_fail(flow->agent, method, codes[i]);
        gint64 start = g_get_monotonic_time();
        flow_delete(container, TRUE);
        g_assert_cmpint(g_get_monotonic_time() - start, <, 5 * G_USEC_PER_SEC);
        assert_once(flow, "a");
        flow_assert_clean(flow);
        flow_agent_fail(flow->agent, method, SV_ERR_LAST);
        flow_assert_usable(flow, "again");
        flow_free(flow);
    }
}

/* The record of the exit cannot be written: said, not forgotten, and made good by the next order, whichever. */
static void test_record(gconstpointer data)
{
    const char *verb = data;
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    g_autofree char *path = sv_paths_container_file(flow->paths->root, "a");
    g_autofree char *below = g_build_filename(path, "x", NULL);
    g_auto(FlowAnswer) answer = {0};
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(below, 0700), ==, 0);
    flow_agent_exit(flow->agent, container->handle, 6);
    FLOW_WAIT(container->shim->proc->ended);
    g_assert_cmpint(container->shim->proc->status, ==, 6);
    sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_FAILED, "could not be stopped");
    flow_answer_clear(&answer);
    g_assert_cmpint(g_rmdir(below), ==, 0);
    g_assert_cmpint(g_rmdir(path), ==, 0);
    if (g_str_equal(verb, "stop")) {
        sv_container_stop(flow->sandbox, "a", 1000, flow_answered, &answer);
        flow_assert_ok(&answer);
        flow_wait_stopped(container, 6, SV_CAUSE_EXITED);
        assert_once(flow, "a");
    }
    flow_delete(container, g_str_equal(verb, "force"));
    end_flow(flow);
}

/* ---- a guest that says nothing at all */

static void test_silent(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    for (guint verb = 0; verb < 3; verb++) {
        FlowFixture *flow = flow_new(NULL);
        FlowContainer *container = make(flow, "a", in);
        g_auto(FlowAnswer) answer = {0};
        flow_agent_hold(flow->agent, NULL);
        gint64 start = g_get_monotonic_time();
        if (verb == 0)
            kill_with(container, SIGKILL, FALSE, &answer);
        else if (verb == 1)
            sv_container_stop(flow->sandbox, "a", 100, flow_answered, &answer);
        else
            sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
        flow_assert_ok(&answer);
        if (verb < 2) {
            flow_wait_stopped(
                container, in == IN_READY && verb == 1 ? 143 : 137, SV_CAUSE_SIGNALLED);
            flow_delete(container, TRUE);
        }
        g_assert_cmpint(g_get_monotonic_time() - start, <, 5 * G_USEC_PER_SEC);
        assert_once(flow, "a");
        flow_assert_clean(flow);
        flow_agent_release(flow->agent, NULL);
        end_flow(flow);
    }
}

/* Engines wait 5 s for a killed process to be gone, whatever a device may take to leave. */
static void test_share_held(void)
{
    FlowFixture *flow = flow_new("unplug_ms = 60000");
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    g_auto(FlowAnswer) answer = {0};
    int fd = hold_share(flow);
    gint64 start = g_get_monotonic_time();
    kill_with(container, SIGKILL, FALSE, &answer);
    flow_assert_ok(&answer);
    flow_wait_stopped(container, 137, SV_CAUSE_SIGNALLED);
    g_assert_cmpint(g_get_monotonic_time() - start, <, 4 * G_USEC_PER_SEC);
    g_assert_cmpuint(flow->sandbox->record->warnings->len, >, 0);
    sv_fd_clear(&fd);
    flow_delete(container, FALSE);
    end_flow(flow);
}

/* The caller's reader takes nothing: the stop waits for it a while, the shim as long as it lives; a delete
 * ends it. */
static void test_shim_stays(gconstpointer data)
{
    gboolean drains = data != NULL;
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    g_auto(FlowAnswer) answer = {0};
    container->shim->hold_exit = TRUE;
    gint64 start = g_get_monotonic_time();
    flow_agent_exit(flow->agent, container->handle, 3);
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_STOPPED);
    sv_container_stop(flow->sandbox, "a", 1000, flow_answered, &answer);
    if (drains)
        flow_proc_exit(container->shim->proc, 3);
    flow_assert_ok(&answer);
    gint64 took = g_get_monotonic_time() - start;
    g_assert_cmpint(took, <, (drains ? 2 : 4) * G_USEC_PER_SEC);
    g_assert_true(container->shim->proc->ended == drains);
    g_autoptr(SvRecord) record = flow_record(flow, "a");
    g_assert_cmpint(record->exit_status, ==, 3);
    flow_delete(container, FALSE);
    FLOW_WAIT(container->shim->proc->ended);
    g_assert_cmpint(container->shim->proc->status, ==, drains ? 3 : 137);
    end_flow(flow);
}

static void add_for_states(const char *name, GTestDataFunc func)
{
    for (guint in = 0; in < N_STATES; in++) {
        g_autofree char *path = g_strdup_printf("/flow/stop/%s/%s", name, state_names[in]);
        g_test_add_data_func(path, GUINT_TO_POINTER(in), func);
    }
}

static void add_cases(void)
{
    for (guint second = 0; second < 2; second++)
        for (Hold hold = 0; hold < N_HOLDS; hold++)
            for (Deed deed = 0; deed < N_DEEDS; deed++) {
                const char *part = second ? "second" : "alone";
                Case c = {hold, deed, second};
                if (!flow_part(part) || !makes_sense(&c))
                    continue;
                g_autofree char *path = g_strdup_printf(
                    "/flow/stop/%s/%s/%s", part, hold_names[hold], deed_names[deed]);
                g_test_add_data_func_full(path, g_memdup2(&c, sizeof c), test_case, g_free);
            }
}

static void add_rest(void)
{
    add_for_states("signals", test_signals);
    add_for_states("harmless-signals", test_harmless_signals);
    g_test_add_func("/flow/stop/signal-stopped", test_signal_stopped);
    add_for_states("stop", test_stop);
    g_test_add_func("/flow/stop/stop-late", test_stop_late);
    add_for_states("delete", test_delete);
    g_test_add_func("/flow/stop/delete-unknown", test_delete_unknown);
    add_for_states("exit", test_exit);
    g_test_add_func("/flow/stop/oom", test_oom);
    add_for_states("shim-killed", test_shim_killed);
    const char *const asleep[] = {"shim", "stop", "delete", "late"};
    for (guint i = 0; i < G_N_ELEMENTS(asleep); i++) {
        g_autofree char *path = g_strdup_printf("/flow/stop/asleep/%s", asleep[i]);
        g_test_add_data_func(path, asleep[i], test_asleep);
    }
    g_test_add_func("/flow/stop/shim-hangs-up", test_shim_hangs_up);
    g_test_add_data_func("/flow/stop/failing/signal", "Signal", test_failing);
    g_test_add_data_func("/flow/stop/failing/remove", "Remove", test_failing);
    g_test_add_data_func("/flow/stop/failing/shutdown", "Shutdown", test_failing);
    g_test_add_data_func("/flow/stop/record/force", "force", test_record);
    g_test_add_data_func("/flow/stop/record/delete", "delete", test_record);
    g_test_add_data_func("/flow/stop/record/stop", "stop", test_record);
    g_test_add_func("/flow/stop/share-held", test_share_held);
    g_test_add_data_func("/flow/stop/silent/ready", GUINT_TO_POINTER(IN_READY), test_silent);
    g_test_add_data_func("/flow/stop/silent/running", GUINT_TO_POINTER(IN_RUNNING), test_silent);
    g_test_add_data_func(
        "/flow/stop/silent/suspended", GUINT_TO_POINTER(IN_SUSPENDED), test_silent);
    g_test_add_data_func("/flow/stop/shim-stays", NULL, test_shim_stays);
    g_test_add_data_func("/flow/stop/shim-drains", "drains", test_shim_stays);
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    add_cases();
    if (flow_part("rest"))
        add_rest();
    return g_test_run();
}
