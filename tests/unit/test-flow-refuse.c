/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Create when something answers with an error, or too late, or is not there: the error says why, nothing
 * is left, and the same sandbox creates the same id once the cause is gone. */
#include "flow-fixture.h"

#include "base/fd.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const char *name;
    const char *conf;
    const char *more; /* of config.json; %s is the folder of the test */
    void (*prepare)(FlowFixture *flow); /* before register */
    void (*before_create)(FlowContainer *container); /* nullable */
    SvErr code;
    const char *text;
} Case;

#define SHM "\"mounts\":[{\"destination\":\"/dev/shm\",\"type\":\"bind\",\"source\":\"%s/shm\"}]"
#define HOOK(kind, path, args)                                                                     \
    "\"hooks\":{\"" kind "\":[{\"path\":\"" path "\",\"args\":" args "}]}"

/* ---- the driver */

static void fail_connect(FlowFixture *flow)
{
    flow->fail_hv = "connect";
}

static void fail_start(FlowFixture *flow)
{
    flow->fail_hv = "start";
}

static void no_agent(FlowFixture *flow)
{
    flow->no_agent = TRUE;
}

static void no_kernel(FlowFixture *flow)
{
    g_autofree char *kernel = g_build_filename(flow->top, "kernel", NULL);
    g_assert_cmpint(g_unlink(kernel), ==, 0);
}

/* ---- the agent */

static void mute(FlowFixture *flow)
{
    flow->agent->mute = TRUE;
    flow->console = "Kernel panic - not syncing: \033[1mno init\n";
}

static void fail_hello(FlowFixture *flow)
{
    flow_agent_fail(flow->agent, "Hello", SV_ERR_FAILED);
}

static void fail_setup(FlowFixture *flow)
{
    flow_agent_fail(flow->agent, "Setup", SV_ERR_IO);
}

static void hold_setup(FlowFixture *flow)
{
    flow_agent_hold(flow->agent, "Setup");
}

static void fail_shm(FlowFixture *flow)
{
    flow_agent_fail(flow->agent, "AddSharedMemory", SV_ERR_LIMIT);
}

static void hold_shm(FlowFixture *flow)
{
    flow_agent_hold(flow->agent, "AddSharedMemory");
}

static void fail_create(FlowFixture *flow)
{
    flow_agent_fail(flow->agent, "Create", SV_ERR_EXEC_NOT_FOUND);
}

static void hold_create(FlowFixture *flow)
{
    flow_agent_hold(flow->agent, "Create");
}

static void fail_streams(FlowFixture *flow)
{
    flow_agent_fail(flow->agent, "Attach", SV_ERR_NOT_FOUND);
}

/* The undoing meets the next failure. */
static void fail_remove(FlowFixture *flow)
{
    flow_agent_fail(flow->agent, "Attach", SV_ERR_NOT_FOUND);
    flow_agent_fail(flow->agent, "Remove", SV_ERR_IO);
    flow_agent_fail(flow->agent, "Shutdown", SV_ERR_IO);
}

static void hold_remove(FlowFixture *flow)
{
    flow_agent_fail(flow->agent, "Attach", SV_ERR_NOT_FOUND);
    flow_agent_hold(flow->agent, "Remove");
    flow_agent_hold(flow->agent, "Shutdown");
}

/* ---- what the container names */

static void make_shm(FlowFixture *flow)
{
    g_autofree char *shm = g_build_filename(flow->top, "shm", NULL);
    g_assert_cmpint(g_mkdir(shm, 01777), ==, 0);
}

static void lose_rootfs(FlowContainer *container)
{
    g_autofree char *etc =
        g_strdup_printf("%s/bundle-%s/rootfs/etc", container->flow->top, container->id);
    g_autofree char *rootfs = g_path_get_dirname(etc);
    g_assert_cmpint(g_rmdir(etc), ==, 0);
    g_assert_cmpint(g_rmdir(rootfs), ==, 0);
}

/* ---- the shim */

static void fail_root(FlowContainer *container)
{
    container->shim->fail_root = TRUE;
}

static void kill_shim(FlowContainer *container)
{
    flow_proc_kill(container->shim->proc);
    FLOW_WAIT(container->shim->proc->ended);
}

static void other_start_time(FlowContainer *container)
{
    container->shim->proc->start++;
}

/* ---- the disk */

/* A folder in the place of a file: rename(2) onto it fails. */
static void block_file(const char *path)
{
    g_autofree char *below = g_build_filename(path, "x", NULL);
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents(below, 0700), ==, 0);
}

static void block_record(FlowContainer *container)
{
    g_autofree char *path = sv_paths_container_file(container->flow->paths->root, container->id);
    block_file(path);
}

static void block_sandbox_record(FlowContainer *container)
{
    block_file(container->flow->paths->sandbox_file);
}

static const Case cases[] = {
    {"connect", NULL, NULL, fail_connect, NULL, SV_ERR_BUSY, "connect: told to fail"},
    {"start", NULL, NULL, fail_start, NULL, SV_ERR_BUSY, "start: told to fail"},
    {"no-agent", NULL, NULL, no_agent, NULL, SV_ERR_NOT_FOUND, ".agent"},
    {"no-kernel", NULL, NULL, no_kernel, NULL, SV_ERR_NOT_FOUND, "kernel"},
    {"boot", "boot_ms = 50", NULL, mute, NULL, SV_ERR_TIMEOUT,
        "did not answer in time; its console ends: Kernel panic - not syncing: \\x1b[1mno init"},
    {"hello", NULL, NULL, fail_hello, NULL, SV_ERR_TIMEOUT, "its console ends: (nothing)"},
    {"setup", NULL, NULL, fail_setup, NULL, SV_ERR_IO, "Setup: told to fail"},
    {"setup-late", "agent_ms = 50", NULL, hold_setup, NULL, SV_ERR_TIMEOUT, "in time"},
    {"shm", NULL, SHM, fail_shm, NULL, SV_ERR_LIMIT, "AddSharedMemory: told to fail"},
    {"shm-late", "agent_ms = 50", SHM, hold_shm, NULL, SV_ERR_TIMEOUT, "in time"},
    {"guest", NULL, NULL, fail_create, NULL, SV_ERR_EXEC_NOT_FOUND, "Create: told to fail"},
    {"guest-late", "agent_ms = 50", NULL, hold_create, NULL, SV_ERR_TIMEOUT, "in time"},
    {"streams", NULL, NULL, fail_streams, NULL, SV_ERR_NOT_FOUND, "Attach: told to fail"},
    {"remove", NULL, NULL, fail_remove, NULL, SV_ERR_NOT_FOUND, "Attach: told to fail"},
    {"remove-late", "stop_ms = 50", NULL, hold_remove, NULL, SV_ERR_NOT_FOUND,
        "Attach: told to fail"},
    {"rootfs", NULL, NULL, NULL, lose_rootfs, SV_ERR_NOT_FOUND, "rootfs"},
    {"mount", NULL, "\"mounts\":[{\"destination\":\"/m\",\"type\":\"bind\",\"source\":\"%s/no\"}]",
        NULL, NULL, SV_ERR_NOT_FOUND, "/no\" of \"/m\""},
    {"hook", NULL, HOOK("prestart", "/bin/sh", "[\"sh\",\"-c\",\"echo no net >&2; exit 3\"]"), NULL,
        NULL, SV_ERR_FAILED, "prestart hook \"/bin/sh\" exited with status 3: no net"},
    {"hook-missing", NULL, HOOK("createRuntime", "/no/hook", "[\"hook\"]"), NULL, NULL,
        SV_ERR_NOT_FOUND, "createRuntime hook \"/no/hook\""},
    {"hook-container", NULL, HOOK("createContainer", "/bin/false", "[\"false\"]"), NULL, NULL,
        SV_ERR_FAILED, "createContainer hook \"/bin/false\" exited with status 1"},
    {"hook-late", "hook_ms = 50", HOOK("createRuntime", "/bin/sleep", "[\"sleep\",\"60\"]"), NULL,
        NULL, SV_ERR_TIMEOUT, "createRuntime hook"},
    {"root", NULL, NULL, NULL, fail_root, SV_ERR_IO, "cannot enter the root"},
    {"dead-shim", NULL, NULL, NULL, kill_shim, SV_ERR_CANCELLED, "shim has died"},
    {"other-shim", NULL, NULL, NULL, other_start_time, SV_ERR_CANCELLED, "shim has died"},
    {"record", NULL, NULL, NULL, block_record, SV_ERR_LAST, "state.json"},
    {"sandbox-record", NULL, NULL, NULL, block_sandbox_record, SV_ERR_LAST, "sandbox.json"},
};

/* The cause goes away. */
static void repair(FlowFixture *flow)
{
    static const char *const methods[] = {
        "Hello", "Setup", "AddSharedMemory", "Create", "Attach", "Remove", "Shutdown"};
    g_autofree char *kernel = g_build_filename(flow->top, "kernel", NULL);
    if (flow->hv && flow->fail_hv)
        sv_fake_fail_call(flow->hv, flow->fail_hv, SV_ERR_LAST);
    flow->fail_hv = NULL;
    flow->no_agent = flow->agent->mute = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        flow_agent_fail(flow->agent, methods[i], SV_ERR_LAST);
        flow_agent_release(flow->agent, methods[i]);
    }
    g_assert_true(g_file_set_contents(kernel, "kernel", -1, NULL));
    g_assert_cmpint(g_chmod(kernel, 0644), ==, 0);
}

static void test_case(gconstpointer data)
{
    const Case *c = data;
    FlowFixture *flow = flow_new(c->conf);
    g_autofree char *more = NULL;
    if (c->more) {
        g_auto(GStrv) parts = g_strsplit(c->more, "%s", -1);
        more = g_strjoinv(flow->top, parts);
    }
    make_shm(flow);
    if (c->prepare)
        c->prepare(flow);
    FlowContainer *container = flow_register(flow, "a", more);
    flow_spawn(container, 0);
    flow_attach(container);
    if (c->before_create)
        c->before_create(container);
    flow_create_begin(container);
    FLOW_WAIT(container->created.done);
    g_assert_nonnull(container->created.error);
    flow_assert_failed(&container->created,
        c->code == SV_ERR_LAST ? (SvErr)container->created.error->code : c->code, c->text);
    if (c->before_create == other_start_time)
        flow_proc_kill(container->shim->proc); /* not ours to end */
    flow_assert_clean(flow);
    g_assert_cmpstr(flow->changes->str, ==, "a:gone ");
    repair(flow);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

/* ---- the n-th call of the driver, whichever it is */

static void test_nth(void)
{
    for (guint n = 1; n <= 4; n++) {
        FlowFixture *flow = flow_new(NULL);
        flow->fail_nth = n;
        FlowContainer *container = flow_register(flow, "a", NULL);
        flow_create_begin(container);
        flow_attach(container);
        FLOW_WAIT(container->created.done);
        g_assert_true((container->created.error != NULL) == (n <= 2)); /* connect, start */
        if (n > 2)
            flow_delete(container, TRUE);
        flow_assert_clean(flow);
        sv_fake_fail_nth(flow->hv, 0, SV_ERR_BUSY);
        flow->fail_nth = 0;
        flow_assert_usable(flow, "a");
        flow_free(flow);
    }
}

/* ---- READY cannot be recorded */

static void test_ready_record(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_register(flow, "a", NULL);
    flow_agent_hold(flow->agent, "Attach");
    flow_create_begin(container);
    flow_attach(container);
    FLOW_WAIT(flow_agent_count(flow->agent, "Attach") > 0);
    block_record(container);
    flow_agent_release(flow->agent, "Attach");
    FLOW_WAIT(container->created.done);
    g_assert_nonnull(container->created.error);
    g_assert_nonnull(strstr(container->created.error->message, "state.json"));
    flow_assert_clean(flow);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

/* ---- the domain cannot be destroyed while the start is undone: said, and tried again later */

static void test_destroy(void)
{
    FlowFixture *flow = flow_new(NULL);
    flow->fail_hv = "destroy";
    flow_agent_fail(flow->agent, "Setup", SV_ERR_IO);
    flow_agent_fail(flow->agent, "Shutdown", SV_ERR_IO);
    FlowContainer *container = flow_register(flow, "a", NULL);
    flow_create_begin(container);
    flow_attach(container);
    flow_assert_failed(&container->created, SV_ERR_IO, "Setup: told to fail");
    g_assert_true(sv_fake_is_running(flow->hv));
    /* it is not forgotten while it runs */
    g_assert_true(g_file_test(flow->paths->sandbox_file, G_FILE_TEST_EXISTS));
    g_auto(FlowAnswer) answer = {0};
    sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_BUSY, "still runs");
    flow_answer_clear(&answer);
    sv_fake_fail_call(flow->hv, "destroy", SV_ERR_LAST);
    sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
    flow_assert_ok(&answer);
    flow_assert_clean(flow);
    repair(flow);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

/* ---- register */

static void assert_refused(
    FlowFixture *flow, const char *id, const char *bundle, SvErr code, const char *text)
{
    Sandvirt__V1__RegisterRequest request = SANDVIRT__V1__REGISTER_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    guint32 handle = 0;
    request.container_id = (char *)id;
    request.bundle = (char *)bundle;
    g_assert_false(sv_sandbox_register(flow->sandbox, &request, 0, &handle, &error));
    if (error->code != (int)code || !strstr(error->message, text))
        g_error("\"%s\": %d", error->message, error->code);
}

static void test_register(void)
{
    FlowFixture *flow = flow_new(NULL);
    g_autofree char *bundle = flow_bundle(flow, "a", NULL);
    g_autofree char *bad = flow_bundle(flow, "bad", "\"hooks\":7");
    assert_refused(flow, "../a", bundle, SV_ERR_INVALID, "container id");
    assert_refused(flow, ".a", bundle, SV_ERR_INVALID, "container id");
    assert_refused(flow, "", bundle, SV_ERR_INVALID, "container id");
    assert_refused(flow, "a", "bundle-a", SV_ERR_INVALID, "absolute");
    assert_refused(flow, "a", "", SV_ERR_INVALID, "absolute");
    assert_refused(flow, "a", "/no/bundle", SV_ERR_NOT_FOUND, "bundle");
    assert_refused(flow, "a", bad, SV_ERR_INVALID, "hooks");
    g_assert_null(flow->sandbox->record);
    /* something else has that name in the state folder, since it was looked at: it stays */
    g_autofree char *path = g_build_filename(flow->paths->root, "a", NULL);
    g_assert_cmpint(symlink("/no/where", path), ==, 0);
    assert_refused(flow, "a", bundle, SV_ERR_EXISTS, "a");
    g_assert_cmpint(g_unlink(path), ==, 0);
    flow_assert_clean(flow);

    FlowContainer *container = flow_create(flow, "a", NULL);
    assert_refused(flow, "a", bundle, SV_ERR_EXISTS, "already exists");
    g_auto(FlowAnswer) answer = {0};
    Sandvirt__V1__CreateContainerRequest request = SANDVIRT__V1__CREATE_CONTAINER_REQUEST__INIT;
    request.container_id = (char *)"a";
    sv_container_create(flow->sandbox, &request, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_STATE, "created already");
    flow_answer_clear(&answer);
    request.container_id = (char *)"b";
    sv_container_create(flow->sandbox, &request, flow_answered, &answer);
    flow_assert_failed(&answer, SV_ERR_NOT_FOUND, "does not exist");
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_READY);
    sv_container_abandon(flow->sandbox, "a"); /* too late */
    sv_container_abandon(flow->sandbox, "b");
    flow_settle();
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_READY);
    flow_delete(container, FALSE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* ---- shims that are not the container's */

static void test_foreign_shims(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_register(flow, "a", NULL);
    flow_create_begin(container);
    FlowShim *other = flow_shim_new("a", container->handle, 0);
    flow_shim_attach(other, flow->paths->monitor_socket);
    FLOW_WAIT(other->attach_code >= 0);
    g_assert_cmpint(other->attach_code, ==, SV_ERR_PERMISSION);
    other->handle += 7;
    other->attach_code = -1;
    flow_shim_attach(other, flow->paths->monitor_socket);
    FLOW_WAIT(other->attach_code >= 0);
    g_assert_cmpint(other->attach_code, ==, SV_ERR_NOT_FOUND);
    flow_shim_free(other);
    container->shim->id[0] = 'b';
    flow_attach(container);
    FLOW_WAIT(container->shim->attach_code >= 0);
    g_assert_cmpint(container->shim->attach_code, ==, SV_ERR_NOT_FOUND);
    container->shim->id[0] = 'a';
    /* twice: the last one counts */
    flow_attach(container);
    flow_settle();
    flow_attach(container);
    flow_assert_ok(&container->created);
    FLOW_WAIT(container->shim->attached == 1);
    g_assert_cmpuint(container->shim->roots, ==, 1);
    flow_delete(container, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

static void test_netns(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *first = flow_run(flow, "a");
    FlowContainer *second = flow_register(flow, "b", NULL);
    flow_spawn(second, CLONE_NEWNET);
    flow_attach(second);
    flow_create_begin(second);
    flow_assert_failed(&second->created, SV_ERR_PERMISSION, "another network namespace");
    FLOW_WAIT(second->shim->proc->ended);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    flow_delete(first, TRUE);
    flow_assert_clean(flow);
    /* the next pod of that name may have another one */
    FlowContainer *third = flow_register(flow, "a", NULL);
    flow_spawn(third, CLONE_NEWNET);
    flow_attach(third);
    flow_create_begin(third);
    flow_assert_ok(&third->created);
    flow_delete(third, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* Nobody connects; the bound of the step is fixed. */
static void test_shim_late(void)
{
    if (!g_test_slow()) {
        g_test_skip("takes ten seconds");
        return;
    }
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *container = flow_register(flow, "a", NULL);
    flow_create_begin(container);
    gint64 end = g_get_monotonic_time() + 11 * G_USEC_PER_SEC;
    while (!container->created.done && flow_turn(end))
        ;
    flow_assert_failed(&container->created, SV_ERR_TIMEOUT, "shim timed out");
    flow_assert_clean(flow);
    flow_free(flow);
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/flow/refuse/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], test_case);
    }
    g_test_add_func("/flow/refuse/nth", test_nth);
    g_test_add_func("/flow/refuse/ready-record", test_ready_record);
    g_test_add_func("/flow/refuse/destroy", test_destroy);
    g_test_add_func("/flow/refuse/register", test_register);
    g_test_add_func("/flow/refuse/foreign-shims", test_foreign_shims);
    g_test_add_func("/flow/refuse/netns", test_netns);
    g_test_add_func("/flow/refuse/shim-late", test_shim_late);
    return g_test_run();
}
