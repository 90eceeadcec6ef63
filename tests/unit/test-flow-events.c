/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What happens to a machine, in every state of its containers: it ends, of each cause; it is suspended;
 * the connection to libvirt, the channel, QEMU or virtiofsd are lost; the guest breaks the protocol. */
#include "flow-fixture.h"

#include "base/file.h"
#include "base/mount.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <sys/wait.h>
#include <string.h>

typedef enum { IN_READY, IN_RUNNING, IN_FROZEN, IN_SUSPENDED, IN_STOPPED, N_STATES } In;

static const char *const state_names[] = {"ready", "running", "frozen", "suspended", "stopped"};

static void freeze(FlowContainer *container, gboolean on)
{
    g_auto(FlowAnswer) answer = {0};
    sv_container_pause(container->flow->sandbox, container->id, on, flow_answered, &answer);
    flow_assert_ok(&answer);
}

static void emit(FlowFixture *flow, SvHvEventType type)
{
    sv_fake_emit(flow->hv, type, SV_HV_END_UNKNOWN, NULL);
    flow_settle();
}

static FlowContainer *make(FlowFixture *flow, const char *id, In in)
{
    FlowContainer *container = flow_create(flow, id, NULL);
    if (in != IN_READY)
        flow_start(container);
    if (in == IN_FROZEN)
        freeze(container, TRUE);
    if (in == IN_SUSPENDED)
        emit(flow, SV_HV_EVENT_SUSPENDED);
    if (in == IN_STOPPED) {
        flow_agent_exit(flow->agent, container->handle, 8);
        flow_wait_stopped(container, 8, SV_CAUSE_EXITED);
    }
    return container;
}

static void assert_join_refused(FlowFixture *flow)
{
    Sandvirt__V1__RegisterRequest request = SANDVIRT__V1__REGISTER_REQUEST__INIT;
    g_autofree char *bundle = flow_bundle(flow, "late", NULL);
    g_autoptr(GError) error = NULL;
    guint32 handle = 0;
    request.container_id = (char *)"late";
    request.bundle = bundle;
    g_assert_false(sv_sandbox_register(flow->sandbox, &request, 0, &handle, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_RUNNING);
    g_assert_nonnull(strstr(error->message, "delete its containers first"));
}

/* The machine has ended: @container is STOPPED (as it was, when it was before), the host's side is
 * released, delete works. Another container has another machine, in the same sandbox, unless the one that ended
 * was the sandbox's own: then nobody joins any more. */
static void finish(FlowContainer *container, In in, SvCause cause)
{
    FlowFixture *flow = container->flow;
    if (in == IN_STOPPED)
        flow_wait_stopped(container, 8, SV_CAUSE_EXITED);
    else
        flow_wait_stopped(container, 137, cause);
    FLOW_WAIT(flow->sandbox->machine == SV_MACHINE_ENDED && !flow->sandbox->down);
    g_assert_true(sv_sandbox_is_idle(flow->sandbox));
    g_assert_false(sv_mount_is_mountpoint(flow->paths->share_dir));
    g_assert_false(g_file_test(flow->paths->box_dir, G_FILE_TEST_EXISTS));
    g_autoptr(SvSandboxRecord) record = sv_sandbox_record_load(flow->paths, NULL);
    g_assert_true(record->ended);
    g_assert_false(record->suspended);
    g_assert_null(strstr(flow->changes->str, "stopped a:stopped"));

    if (g_str_equal(container->id, flow->paths->sandbox)) {
        assert_join_refused(flow);
    } else {
        FlowContainer *late = flow_run(flow, "late");
        g_autoptr(SvSandboxRecord) renewed = sv_sandbox_record_load(flow->paths, NULL);
        g_assert_false(renewed->ended);
        g_assert_cmpint(renewed->cause, ==, SV_CAUSE_NONE);
        g_assert_cmpstr(renewed->token, !=, record->token);
        g_assert_cmpstr(renewed->title, ==, record->title);
        g_assert_cmpuint(late->handle, >, container->handle);
        g_assert_cmpint(flow_state(flow, container->id), ==, SV_STATE_STOPPED);
        flow_delete(late, TRUE);
    }
    flow_delete(container, FALSE);
    flow_assert_clean(flow);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

/* ---- the domain ends */

typedef struct {
    const char *name;
    SvHvEnd end;
    SvCause cause;
    gboolean panics, guest_shuts_down, shutting_down;
} End;

static const End ends[] = {
    {"unknown", SV_HV_END_UNKNOWN, SV_CAUSE_DOMAIN_CRASHED},
    {"shutdown", SV_HV_END_SHUTDOWN, SV_CAUSE_GUEST_POWERED_OFF},
    {"destroyed", SV_HV_END_DESTROYED, SV_CAUSE_DOMAIN_DESTROYED},
    {"crashed", SV_HV_END_CRASHED, SV_CAUSE_GUEST_PANIC},
    {"failed", SV_HV_END_FAILED, SV_CAUSE_DOMAIN_CRASHED},
    {"panicked", SV_HV_END_FAILED, SV_CAUSE_GUEST_PANIC, .panics = TRUE},
    {"power-button", SV_HV_END_UNKNOWN, SV_CAUSE_GUEST_POWERED_OFF, .guest_shuts_down = TRUE},
    {"shutting-down", SV_HV_END_DESTROYED, SV_CAUSE_GUEST_POWERED_OFF, .shutting_down = TRUE},
};

typedef struct {
    const End *end;
    In in;
} EndCase;

static void test_end(gconstpointer data)
{
    const EndCase *c = data;
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", c->in);
    if (c->end->panics)
        emit(flow, SV_HV_EVENT_PANICKED);
    if (c->end->shutting_down)
        sv_fake_emit(flow->hv, SV_HV_EVENT_SHUTTING_DOWN, SV_HV_END_SHUTDOWN, NULL);
    if (c->end->guest_shuts_down)
        flow_agent_shutting_down(flow->agent);
    flow_settle();
    sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, c->end->end, NULL);
    finish(container, c->in, c->end->cause);
}

static void test_own_ends(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, flow->paths->sandbox, IN_RUNNING);
    sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_FAILED, NULL);
    finish(container, IN_RUNNING, SV_CAUSE_DOMAIN_CRASHED);
}

/* ---- suspended and resumed */

static void assert_state(FlowFixture *flow, SvState state)
{
    g_assert_cmpstr(sv_state_name(flow_state(flow, "a")), ==, sv_state_name(state));
}

static void test_suspend(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_READY);
    g_auto(FlowAnswer) answer = {0};
    emit(flow, SV_HV_EVENT_SUSPENDED);
    assert_state(flow, SV_STATE_READY);
    sv_container_start(flow->sandbox, "a", flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_STATE, "is suspended (virsh resume sandvirt-box");
    flow_answer_clear(&answer);
    emit(flow, SV_HV_EVENT_RESUMED);
    g_assert_cmpuint(flow_agent_count(flow->agent, "Time"), ==, 1);
    flow_start(container);
    emit(flow, SV_HV_EVENT_SUSPENDED);
    assert_state(flow, SV_STATE_PAUSED);
    emit(flow, SV_HV_EVENT_SUSPENDED);
    sv_container_pause(flow->sandbox, "a", FALSE, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_STATE, "is suspended");
    flow_answer_clear(&answer);
    emit(flow, SV_HV_EVENT_RESUMED);
    assert_state(flow, SV_STATE_RUNNING);
    /* frozen and suspended: PAUSED until it is neither */
    freeze(container, TRUE);
    emit(flow, SV_HV_EVENT_SUSPENDED);
    emit(flow, SV_HV_EVENT_RESUMED);
    assert_state(flow, SV_STATE_PAUSED);
    freeze(container, FALSE);
    assert_state(flow, SV_STATE_RUNNING);
    g_assert_cmpstr(
        flow->changes->str, ==, "a:ready a:running a:paused a:running a:paused a:running ");
    flow_delete(container, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* ---- KILL and delete in a suspended machine in which others live: it is resumed */

static void test_suspended_pod(void)
{
    for (guint verb = 0; verb < 3; verb++) {
        FlowFixture *flow = flow_new(NULL);
        FlowContainer *container = make(flow, "a", IN_RUNNING);
        FlowContainer *other = make(flow, "b", IN_SUSPENDED);
        g_auto(FlowAnswer) answer = {0};
        if (verb == 0)
            sv_container_kill(flow->sandbox, "a", SIGKILL, FALSE, 0, flow_answered, &answer);
        else if (verb == 1)
            sv_container_stop(flow->sandbox, "a", 5000, flow_answered, &answer);
        else
            sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
        flow_assert_ok(&answer);
        FLOW_WAIT(container->shim->proc->ended);
        g_assert_cmpint(container->shim->proc->status, ==, 137);
        g_assert_cmpuint(sv_fake_count(flow->hv, "resume"), ==, 1);
        FLOW_WAIT(flow_state(flow, "b") == SV_STATE_RUNNING);
        /* it died in the guest, not only here */
        g_assert_cmpint(
            flow_guest(container)->state, ==, SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED);
        g_assert_false(other->shim->proc->ended);
        flow_delete(other, TRUE);
        if (verb < 2)
            flow_delete(container, FALSE);
        flow_assert_clean(flow);
        flow_free(flow);
    }
}

/* ---- the connection to libvirt */

static void test_disconnected(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", in);
    SvState before = flow_state(flow, "a");
    emit(flow, SV_HV_EVENT_DISCONNECTED);
    emit(flow, SV_HV_EVENT_CONNECTED);
    g_assert_cmpuint(sv_fake_count(flow->hv, "status"), ==, 1);
    assert_state(flow, before);
    /* nobody can say how it is */
    sv_fake_fail_call(flow->hv, "status", SV_ERR_IO);
    emit(flow, SV_HV_EVENT_CONNECTED);
    assert_state(flow, before);
    sv_fake_fail_call(flow->hv, "status", SV_ERR_LAST);
    /* without libvirt all goes on */
    emit(flow, SV_HV_EVENT_DISCONNECTED);
    if (in == IN_READY)
        flow_start(container);
    if (in != IN_SUSPENDED && in != IN_STOPPED) {
        flow_agent_exit(flow->agent, container->handle, 5);
        flow_wait_stopped(container, 5, SV_CAUSE_EXITED);
    }
    emit(flow, SV_HV_EVENT_CONNECTED);
    flow_delete(container, in == IN_SUSPENDED);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* Its end was missed. */
static void test_missed_end(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", in);
    emit(flow, SV_HV_EVENT_DISCONNECTED);
    flow->hv_silent = TRUE;
    emit(flow, SV_HV_EVENT_STOPPED);
    flow->hv_silent = FALSE;
    assert_state(flow,
        in == IN_READY         ? SV_STATE_READY
            : in == IN_RUNNING ? SV_STATE_RUNNING
            : in == IN_STOPPED ? SV_STATE_STOPPED
                               : SV_STATE_PAUSED);
    emit(flow, SV_HV_EVENT_CONNECTED);
    finish(container, in, SV_CAUSE_DOMAIN_CRASHED);
}

static void test_missed_suspend(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    emit(flow, SV_HV_EVENT_DISCONNECTED);
    flow->hv_silent = TRUE;
    emit(flow, SV_HV_EVENT_SUSPENDED);
    emit(flow, SV_HV_EVENT_CONNECTED);
    flow->hv_silent = FALSE;
    emit(flow, SV_HV_EVENT_CONNECTED);
    assert_state(flow, SV_STATE_PAUSED);
    flow->hv_silent = TRUE;
    emit(flow, SV_HV_EVENT_RESUMED);
    flow->hv_silent = FALSE;
    emit(flow, SV_HV_EVENT_CONNECTED);
    assert_state(flow, SV_STATE_RUNNING);
    flow_delete(container, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* ---- the channel, QEMU, virtiofsd */

static void test_channel(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", in);
    flow_agent_close(flow->agent, FALSE);
    finish(container, in, SV_CAUSE_AGENT_LOST);
}

/* It is libvirt's answer that is missing: what is asked for meanwhile is bounded. */
static void test_channel_and_destroy(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    g_auto(FlowAnswer) answer = {0};
    sv_fake_fail_call(flow->hv, "destroy", SV_ERR_TIMEOUT);
    flow_agent_close(flow->agent, FALSE);
    FLOW_WAIT(sv_fake_count(flow->hv, "destroy") == 1);
    flow_settle();
    sv_container_kill(flow->sandbox, "a", SIGKILL, FALSE, 0, flow_answered, &answer);
    flow_assert_ok(&answer);
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_STOPPED);
    flow_answer_clear(&answer);
    sv_container_delete(flow->sandbox, "a", FALSE, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_TIMEOUT, "still runs: destroy: told to fail");
    flow_answer_clear(&answer);
    sv_fake_fail_call(flow->hv, "destroy", SV_ERR_LAST);
    sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
    flow_assert_ok(&answer);
    flow_assert_clean(flow);
    g_assert_true(container->shim->proc->ended);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

static FlowFixture *flow_with_processes(void)
{
    FlowFixture *flow = flow_new(NULL);
    g_autofree char *name = g_strdup_printf("guest=%s,debug", flow->paths->domain_name);
    flow->qemu = flow_proc_new(name, 0);
    flow->virtiofsd = flow_proc_new("virtiofsd", 0);
    return flow;
}

static void fresh_processes(FlowFixture *flow)
{
    flow_proc_free(flow->qemu);
    flow_proc_free(flow->virtiofsd);
    flow->qemu = flow->virtiofsd = NULL;
    sv_fake_set_share_pid(flow->hv, -1);
}

static void test_qemu(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    /* libvirt's word: never, later, before */
    for (guint word = 0; word < 3; word++) {
        FlowFixture *flow = flow_with_processes();
        FlowContainer *container = make(flow, "a", in);
        g_assert_cmpint(flow->sandbox->qemu_pidfd, >=, 0);
        g_assert_cmpint(flow->sandbox->share_pidfd, >=, 0);
        if (word == 2)
            sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_DESTROYED, NULL);
        flow_proc_kill(flow->qemu);
        FLOW_WAIT(flow->qemu->ended);
        if (word == 1) {
            FLOW_WAIT(flow->sandbox->machine == SV_MACHINE_ENDED);
            sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_DESTROYED, NULL);
        }
        if (in != IN_STOPPED)
            flow_wait_stopped(
                container, 137, word == 0 ? SV_CAUSE_DOMAIN_CRASHED : SV_CAUSE_DOMAIN_DESTROYED);
        FLOW_WAIT(flow->virtiofsd->ended); /* told to */
        g_assert_cmpint(flow->virtiofsd->status, ==, 128 + SIGTERM);
        fresh_processes(flow);
        finish(container, in, word == 0 ? SV_CAUSE_DOMAIN_CRASHED : SV_CAUSE_DOMAIN_DESTROYED);
    }
}

/* Another process than QEMU serves the channel: never taken for it. */
static void test_not_qemu(void)
{
    FlowFixture *flow = flow_new(NULL);
    flow->qemu = flow_proc_new("guest=sandvirt-boxer,debug", 0);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    g_assert_cmpint(flow->sandbox->qemu_pidfd, ==, -1);
    flow_proc_kill(flow->qemu);
    FLOW_WAIT(flow->qemu->ended);
    flow_settle();
    assert_state(flow, SV_STATE_RUNNING);
    flow_delete(container, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

static void test_virtiofsd(gconstpointer data)
{
    In in = GPOINTER_TO_UINT(data);
    FlowFixture *flow = flow_with_processes();
    FlowContainer *container = make(flow, "a", in);
    flow_proc_kill(flow->virtiofsd);
    if (in != IN_STOPPED)
        flow_wait_stopped(container, 137, SV_CAUSE_SHARE_LOST);
    FLOW_WAIT(flow->sandbox->machine == SV_MACHINE_ENDED);
    fresh_processes(flow);
    finish(container, in, SV_CAUSE_SHARE_LOST);
}

/* virtiofsd dies before it can be watched: nobody waits for a guest that hangs on its share. */
static void test_virtiofsd_early(void)
{
    FlowFixture *flow = flow_with_processes();
    FlowContainer *container = flow_register(flow, "a", NULL);
    flow_agent_hold(flow->agent, "Setup");
    flow_proc_kill(flow->virtiofsd);
    FLOW_WAIT(flow->virtiofsd->ended);
    flow_create_begin(container);
    flow_attach(container);
    flow_assert_failed(&container->created, SV_ERR_FAILED, "lost its shared folder");
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_GONE);
    flow_agent_release(flow->agent, "Setup");
    flow_assert_clean(flow);
    flow_free(flow);
}

/* virtiofsd does not end with QEMU. */
static void test_virtiofsd_stays(void)
{
    FlowFixture *flow = flow_with_processes();
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    siginfo_t info;
    kill(flow->virtiofsd->pid, SIGSTOP); /* TERM does not reach it, once it has stopped */
    g_assert_cmpint(waitid(P_PID, (id_t)flow->virtiofsd->pid, &info, WSTOPPED | WNOWAIT), ==, 0);
    flow_delete(container, TRUE);
    FLOW_WAIT(flow->virtiofsd->ended);
    g_assert_cmpint(flow->virtiofsd->status, ==, 137);
    flow_assert_clean(flow);
    fresh_processes(flow);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

/* The last delete comes while the end of the machine is under way: answered when all is gone. */
static void test_delete_while_ending(void)
{
    FlowFixture *flow = flow_with_processes();
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    kill(flow->virtiofsd->pid, SIGSTOP); /* holds the end up */
    sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_FAILED, NULL);
    flow_wait_stopped(container, 137, SV_CAUSE_DOMAIN_CRASHED);
    FLOW_WAIT(flow->sandbox->share_ticket);
    flow_delete(container, FALSE);
    g_assert_false(g_file_test(flow->paths->sandbox_file, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(flow->paths->box_dir, G_FILE_TEST_EXISTS));
    g_assert_true(flow->virtiofsd->ended);
    flow_assert_clean(flow);
    fresh_processes(flow);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

/* ---- the guest breaks the protocol */

static GBytes *data_frame(guint32 handle, guint8 flags, guint64 offset, gsize len)
{
    g_autofree char *bytes = g_malloc0(len);
    return sv_message_data(handle, flags, offset, bytes, len);
}

static GBytes *bad_frame(guint32 handle, guint n)
{
    guint8 raw[SV_FRAME_HEADER + 8] = {0};
    switch (n) {
    case 0: /* more than the window */
        return data_frame(handle, SV_STREAM_STDOUT, SV_STREAM_WINDOW, 1);
    case 1:
        return data_frame(handle, SV_STREAM_STDERR, SV_STREAM_WINDOW - 1, 2);
    case 2: /* an offset that wraps around */
        return data_frame(handle, SV_STREAM_STDOUT, G_MAXUINT64, 1);
    case 3: /* output on the input, on a stream that does not exist */
        return data_frame(handle, SV_STREAM_STDIN, 0, 1);
    case 4:
        return data_frame(handle, 3, 0, 1);
    case 5: /* an acknowledgement of output */
        return sv_message_ack(handle, SV_STREAM_STDOUT, 0);
    case 6: /* one with bytes */
        sv_frame_put_header(raw, 4, handle, SV_FRAME_ACK, 0);
        return g_bytes_new(raw, SV_FRAME_HEADER + 4);
    case 7: /* without an offset */
        sv_frame_put_header(raw, 0, handle, SV_FRAME_DATA, SV_STREAM_STDOUT);
        return g_bytes_new(raw, SV_FRAME_HEADER);
    case 8: /* no frame at all */
        memset(raw, 0xff, sizeof raw);
        return g_bytes_new(raw, sizeof raw);
    case 9:
        sv_frame_put_header(raw, SV_FRAME_MAX + 1, handle, SV_FRAME_DATA, 0);
        return g_bytes_new(raw, sizeof raw);
    case 10: /* a request that is none */
        memset(raw, 0xff, sizeof raw);
        sv_frame_put_header(raw, 8, 2, SV_FRAME_REQUEST, 0);
        return g_bytes_new(raw, sizeof raw);
    case 11: { /* an event that is none */
        Sandvirt__V1__Request request = SANDVIRT__V1__REQUEST__INIT;
        guint8 packed[256];
        request.service = (char *)SV_SERVICE_HOST;
        request.method = (char *)"Exit";
        request.payload.data = (guint8 *)"\xff\xff\xff\xff";
        request.payload.len = 4;
        gsize len = sandvirt__v1__request__pack(&request, packed + SV_FRAME_HEADER);
        sv_frame_put_header(packed, (guint32)len, 2, SV_FRAME_REQUEST, 0);
        return g_bytes_new(packed, SV_FRAME_HEADER + len);
    }
    default:
        return NULL;
    }
}

static void test_bad_frames(void)
{
    g_autoptr(GBytes) frame = NULL;
    for (guint n = 0; (frame = bad_frame(1, n)); n++) {
        FlowFixture *flow = flow_new(NULL);
        FlowContainer *container = make(flow, "a", IN_RUNNING);
        g_assert_cmpuint(container->handle, ==, 1);
        flow_agent_raw(flow->agent, g_bytes_get_data(frame, NULL), g_bytes_get_size(frame));
        finish(container, IN_RUNNING, SV_CAUSE_AGENT_LOST);
        g_clear_pointer(&frame, g_bytes_unref);
    }
}

/* What is odd but harms nobody. */
static void test_odd_frames(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    FlowGuestProcess *ghost = flow_agent_add(flow->agent, 999, "a");
    flow_agent_output(flow->agent, 999, SV_STREAM_STDOUT, 0, "nobody's");
    flow_agent_output(flow->agent, 0, SV_STREAM_STDOUT, 0, "nobody's");
    ghost->state = SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING;
    flow_agent_exit(flow->agent, 999, 1);
    FLOW_WAIT(ghost->exit_acked);
    sv_conn_call(flow->agent->conn, SV_SERVICE_HOST, "Dance", NULL, NULL, 0, -1, NULL, NULL);
    sv_conn_call(flow->agent->conn, "sandvirt.v1.Monitor", "Delete", NULL, NULL, 0, -1, NULL, NULL);
    sv_conn_reply(flow->agent->conn, 12345, NULL);
    flow_agent_shutting_down(flow->agent);
    flow_settle();
    /* another container's name at its handle: the handle counts */
    FlowContainer *other = make(flow, "b", IN_RUNNING);
    flow_guest(other)->id[0] = 'a';
    flow_agent_exit(flow->agent, other->handle, 2);
    flow_wait_stopped(other, 2, SV_CAUSE_EXITED);
    assert_state(flow, SV_STATE_RUNNING);
    flow_guest(other)->id[0] = 'b';
    flow_delete(other, FALSE);
    /* output all the same */
    flow_agent_output(flow->agent, container->handle, SV_STREAM_STDOUT, 0, "words");
    FLOW_WAIT(container->shim->out[SV_STREAM_STDOUT]->len == 5);
    flow_delete(container, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* Every OOM event once written to the disk would be a way to wear it out. */
static void test_oom_flood(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    g_autofree char *path = sv_paths_container_file(flow->paths->root, "a");
    flow_agent_oom(flow->agent, "a", 1);
    FLOW_WAIT(sv_sandbox_find(flow->sandbox, "a", NULL)->record->oom);
    flow_settle();
    GStatBuf before, after;
    g_assert_cmpint(g_stat(path, &before), ==, 0);
    for (guint i = 0; i < 1000; i++)
        flow_agent_oom(flow->agent, "a", i + 1);
    flow_settle();
    g_assert_cmpuint(flow->ooms, ==, 1000); /* each new one; the first was told again */
    g_assert_cmpint(g_stat(path, &after), ==, 0);
    g_assert_cmpuint(before.st_ino, ==, after.st_ino);
    flow_agent_exit(flow->agent, container->handle, 137);
    flow_wait_stopped(container, 137, SV_CAUSE_SIGNALLED);
    g_autoptr(SvRecord) record = flow_record(flow, "a");
    g_assert_true(record->oom); /* though the exit does not say it again */
    flow_delete(container, FALSE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* ---- orders under way when the machine ends: each is answered */

static void on_reply(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    flow_answered(error, user_data);
}

static void test_pending(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *ready = make(flow, "ready", IN_READY);
    FlowContainer *container = make(flow, "a", IN_RUNNING);
    FlowAnswer answers[7] = {0};
    Sandvirt__V1__UpdateContainerRequest update = SANDVIRT__V1__UPDATE_CONTAINER_REQUEST__INIT;
    update.container_id = (char *)"a";
    update.resources.data = (guint8 *)"{}";
    update.resources.len = 2;
    flow_agent_hold(flow->agent, NULL);
    sv_container_start(flow->sandbox, "ready", flow_answered, &answers[0]);
    sv_container_pause(flow->sandbox, "a", TRUE, flow_answered, &answers[1]);
    sv_container_update(flow->sandbox, &update, flow_answered, &answers[2]);
    sv_container_stats(flow->sandbox, "a", on_reply, &answers[3]);
    sv_container_ps(flow->sandbox, "a", on_reply, &answers[4]);
    sv_container_kill(flow->sandbox, "a", SIGUSR1, FALSE, 0, flow_answered, &answers[5]);
    sv_container_stop(flow->sandbox, "a", 5000, flow_answered, &answers[6]);
    FLOW_WAIT(flow_agent_count(flow->agent, "Signal") == 2);
    sv_fake_emit(flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_FAILED, NULL);
    for (guint i = 0; i < 6; i++)
        flow_assert_failed(&answers[i], SV_ERR_CLOSED, "closed");
    flow_assert_ok(&answers[6]); /* it is stopped */
    flow_wait_stopped(ready, 137, SV_CAUSE_DOMAIN_CRASHED);
    flow_wait_stopped(container, 137, SV_CAUSE_DOMAIN_CRASHED);
    for (guint i = 0; i < G_N_ELEMENTS(answers); i++)
        flow_answer_clear(&answers[i]);
    flow_delete(ready, FALSE);
    flow_delete(container, FALSE);
    flow_assert_clean(flow);
    flow_free(flow);
}

static void add_for_states(const char *name, GTestDataFunc func)
{
    for (guint in = 0; in < N_STATES; in++) {
        g_autofree char *path = g_strdup_printf("/flow/events/%s/%s", name, state_names[in]);
        g_test_add_data_func(path, GUINT_TO_POINTER(in), func);
    }
}

static void add_ends(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++)
        for (guint in = 0; in < N_STATES; in++) {
            EndCase c = {&ends[i], in};
            g_autofree char *path =
                g_strdup_printf("/flow/events/end/%s/%s", ends[i].name, state_names[in]);
            g_test_add_data_func_full(path, g_memdup2(&c, sizeof c), test_end, g_free);
        }
}

static void add_rest(void)
{
    g_test_add_func("/flow/events/own-ends", test_own_ends);
    g_test_add_func("/flow/events/suspend", test_suspend);
    g_test_add_func("/flow/events/suspended-pod", test_suspended_pod);
    add_for_states("disconnected", test_disconnected);
    add_for_states("missed-end", test_missed_end);
    g_test_add_func("/flow/events/missed-suspend", test_missed_suspend);
    add_for_states("channel", test_channel);
    g_test_add_func("/flow/events/channel-and-destroy", test_channel_and_destroy);
    add_for_states("qemu", test_qemu);
    g_test_add_func("/flow/events/not-qemu", test_not_qemu);
    add_for_states("virtiofsd", test_virtiofsd);
    g_test_add_func("/flow/events/virtiofsd-early", test_virtiofsd_early);
    g_test_add_func("/flow/events/virtiofsd-stays", test_virtiofsd_stays);
    g_test_add_func("/flow/events/delete-while-ending", test_delete_while_ending);
    g_test_add_func("/flow/events/bad-frames", test_bad_frames);
    g_test_add_func("/flow/events/odd-frames", test_odd_frames);
    g_test_add_func("/flow/events/oom-flood", test_oom_flood);
    g_test_add_func("/flow/events/pending", test_pending);
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    if (flow_part("end"))
        add_ends();
    if (flow_part("rest"))
        add_rest();
    return g_test_run();
}
