/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several containers in one machine: one start and one end of it for all, and nothing of one is the
 * other's. */
#include "flow-fixture.h"

#include "base/mount.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define N 4

static const char *const names[N] = {"a", "b", "c", "d"};

static void begin_all(FlowFixture *flow, FlowContainer **containers)
{
    for (guint i = 0; i < N; i++) {
        containers[i] = flow_register(flow, names[i], NULL);
        flow_create_begin(containers[i]);
        flow_attach(containers[i]);
    }
}

/* ---- one machine */

static void test_together(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *containers[N];
    begin_all(flow, containers);
    for (guint i = 0; i < N; i++)
        flow_assert_ok(&containers[i]->created);
    g_assert_cmpuint(sv_fake_count(flow->hv, "start"), ==, 1);
    g_assert_cmpuint(flow_agent_count(flow->agent, "Setup"), ==, 1);
    g_autoptr(GPtrArray) trees = sv_share_list(flow->paths, NULL);
    g_assert_cmpuint(trees->len, ==, N);
    for (guint i = 0; i < N; i++)
        flow_start(containers[i]);

    /* one ends by itself, one is killed, one loses its shim: the last does not notice */
    flow_agent_exit(flow->agent, containers[0]->handle, 1);
    flow_wait_stopped(containers[0], 1, SV_CAUSE_EXITED);
    g_auto(FlowAnswer) answer = {0};
    sv_container_kill(flow->sandbox, "b", SIGKILL, FALSE, 0, flow_answered, &answer);
    flow_assert_ok(&answer);
    flow_wait_stopped(containers[1], 137, SV_CAUSE_SIGNALLED);
    flow_proc_kill(containers[2]->shim->proc);
    flow_wait_stopped(containers[2], 137, SV_CAUSE_SHIM_KILLED);
    for (guint i = 0; i < 3; i++) {
        flow_delete(containers[i], FALSE);
        g_assert_cmpint(flow_state(flow, "d"), ==, SV_STATE_RUNNING);
        g_assert_true(sv_fake_is_running(flow->hv));
    }
    g_assert_false(containers[3]->shim->proc->ended);
    g_assert_cmpint(
        flow_guest(containers[3])->state, ==, SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING);
    g_autoptr(GPtrArray) left = sv_share_list(flow->paths, NULL);
    g_assert_cmpuint(left->len, ==, 1);
    /* its place is not given again while it lives */
    FlowContainer *again = flow_run(flow, "a");
    g_assert_cmpuint(again->handle, >, containers[3]->handle);
    flow_delete(again, TRUE);
    g_assert_true(sv_fake_is_running(flow->hv));
    flow_delete(containers[3], TRUE);
    g_assert_false(sv_fake_is_running(flow->hv)); /* the last delete has ended it */
    flow_assert_clean(flow);
    flow_free(flow);
}

static void test_failing_together(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *containers[N];
    flow_agent_fail(flow->agent, "Setup", SV_ERR_IO);
    begin_all(flow, containers);
    for (guint i = 0; i < N; i++)
        flow_assert_failed(&containers[i]->created, SV_ERR_IO, "Setup: told to fail");
    flow_assert_clean(flow);
    flow_agent_fail(flow->agent, "Setup", SV_ERR_LAST);
    flow_assert_usable(flow, "a");
    flow_free(flow);
}

/* The first one, which started the machine, is given up: the others go on. */
static void test_first_abandoned(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *containers[N];
    flow_agent_hold(flow->agent, "Hello");
    begin_all(flow, containers);
    FLOW_WAIT(flow_agent_count(flow->agent, "Hello") == 1);
    sv_container_abandon(flow->sandbox, "a");
    flow_assert_failed(&containers[0]->created, SV_ERR_CANCELLED, "the caller is gone");
    g_assert_false(containers[1]->created.done);
    flow_agent_release(flow->agent, "Hello");
    for (guint i = 1; i < N; i++)
        flow_assert_ok(&containers[i]->created);
    for (guint i = 1; i < N; i++)
        flow_delete(containers[i], TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* A create that comes while the machine, which nobody needed any more, is being given up. */
static void test_next_while_ending(gconstpointer data)
{
    const char *method = data;
    FlowFixture *flow = flow_new(NULL);
    flow_agent_hold(flow->agent, method);
    FlowContainer *first = flow_register(flow, "a", NULL);
    flow_create_begin(first);
    flow_attach(first);
    FLOW_WAIT(flow_agent_count(flow->agent, method) == 1);
    if (!g_str_equal(method, "Hello")) /* else the start of the machine is still under way */
        flow_agent_release(flow->agent, method);
    sv_container_abandon(flow->sandbox, "a");
    FLOW_WAIT(flow_state(flow, "a") == SV_STATE_GONE);
    flow_agent_release(flow->agent, method);
    /* every turn of the loop: refused with a reason, or done */
    for (guint i = 0; i < 200; i++) {
        Sandvirt__V1__RegisterRequest request = SANDVIRT__V1__REGISTER_REQUEST__INIT;
        g_autofree char *bundle = flow_bundle(flow, "b", NULL);
        g_autoptr(GError) error = NULL;
        guint32 handle = 0;
        request.container_id = (char *)"b";
        request.bundle = bundle;
        if (sv_sandbox_register(flow->sandbox, &request, 0, &handle, &error)) {
            FlowContainer *next = flow_adopt(flow, "b", handle);
            flow_create_begin(next);
            flow_attach(next);
            flow_assert_ok(&next->created);
            flow_delete(next, TRUE);
            break;
        }
        g_assert_true(sv_error_is(error, SV_ERR_BUSY));
        g_main_context_iteration(NULL, TRUE);
    }
    FLOW_WAIT(first->created.done);
    flow_assert_clean(flow);
    flow_free(flow);
}

static void test_delete_together(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *containers[N];
    FlowAnswer answers[N] = {0};
    begin_all(flow, containers);
    for (guint i = 0; i < N; i++)
        flow_assert_ok(&containers[i]->created);
    for (guint i = 0; i < N; i++)
        sv_container_delete(flow->sandbox, names[i], TRUE, flow_answered, &answers[i]);
    for (guint i = 0; i < N; i++)
        flow_assert_ok(&answers[i]);
    g_assert_false(sv_fake_is_running(flow->hv));
    flow_assert_clean(flow);
    /* the next machine has the connection of this one: a driver takes one connect, no second */
    flow_assert_usable(flow, "again");
    g_assert_cmpuint(sv_fake_count(flow->hv, "connect"), ==, 1);
    flow_free(flow);
}

/* One joins while another leaves. */
static void test_join_and_leave(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *first = flow_run(flow, "a");
    g_auto(FlowAnswer) answer = {0};
    FlowContainer *second = flow_register(flow, "b", NULL);
    sv_container_delete(flow->sandbox, "a", TRUE, flow_answered, &answer);
    flow_create_begin(second);
    flow_attach(second);
    flow_assert_ok(&answer);
    flow_assert_ok(&second->created);
    g_assert_cmpuint(sv_fake_count(flow->hv, "start"), ==, 1);
    g_assert_true(first->shim->proc->ended);
    flow_delete(second, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* ---- what they share */

static char *mounts(FlowFixture *flow, const char *shm)
{
    return g_strdup_printf(
        "\"mounts\":[{\"destination\":\"/dev/shm\",\"type\":\"bind\",\"source\":\"%s/%s\"},"
        "{\"destination\":\"/data\",\"type\":\"bind\",\"source\":\"%s/data\","
        "\"options\":[\"rbind\",\"ro\"]}]",
        flow->top, shm, flow->top);
}

static void test_mounts(void)
{
    FlowFixture *flow = flow_new(NULL);
    const char *const dirs[] = {"shm", "shm-other", "data", "data/sub"};
    for (guint i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autofree char *dir = g_build_filename(flow->top, dirs[i], NULL);
        g_assert_cmpint(g_mkdir(dir, 0777), ==, 0);
        if (strstr(dirs[i], "sub"))
            g_assert_cmpint(mount("tmpfs", dir, "tmpfs", 0, NULL), ==, 0);
    }
    g_autofree char *same = mounts(flow, "shm");
    g_autofree char *other = mounts(flow, "shm-other");
    FlowContainer *a = flow_create(flow, "a", same);
    g_assert_cmpuint(flow_agent_count(flow->agent, "AddSharedMemory"), ==, 1);
    FlowContainer *b = flow_create(flow, "b", same);
    FlowContainer *c = flow_create(flow, "c", other);
    g_assert_cmpuint(flow->sandbox->record->shms->len, ==, 2);
    g_assert_nonnull(strstr(flow_guest(a)->config, "shm-0"));
    g_assert_nonnull(strstr(flow_guest(b)->config, "shm-0"));
    g_assert_nonnull(strstr(flow_guest(c)->config, "shm-1"));

    /* recursively, read-only here too, and nothing of it comes back */
    g_autofree char *file = g_strdup_printf("%s/c/0/m1/data/x", flow->paths->share_dir);
    g_autofree char *below = g_strdup_printf("%s/c/0/m1/data/sub/x", flow->paths->share_dir);
    g_autofree char *point = g_strdup_printf("%s/c/0/m1/data/sub", flow->paths->share_dir);
    g_assert_true(sv_mount_is_mountpoint(point));
    g_assert_cmpint(g_open(file, O_CREAT | O_WRONLY, 0600), ==, -1);
    g_assert_cmpint(g_open(below, O_CREAT | O_WRONLY, 0600), ==, -1);
    flow_delete(a, TRUE);
    g_assert_false(g_file_test(point, G_FILE_TEST_EXISTS));
    g_autofree char *source = g_build_filename(flow->top, "data/sub", NULL);
    g_assert_true(sv_mount_is_mountpoint(source));
    flow_delete(b, TRUE);
    flow_delete(c, TRUE);
    g_assert_cmpint(umount2(source, 0), ==, 0);
    flow_assert_clean(flow);
    flow_free(flow);
}

static FlowContainer *with_pid_namespace(FlowFixture *flow, const char *id, const char *more)
{
    FlowContainer *container = flow_register(flow, id, more);
    flow_spawn(container, CLONE_NEWPID);
    flow_attach(container);
    flow_create_begin(container);
    return container;
}

/* A pid namespace is named by the shim of another container and found in the guest. */
static void test_pid_namespace(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *first = with_pid_namespace(flow, "a", NULL);
    flow_assert_ok(&first->created);
    g_autofree char *join = g_strdup_printf(
        "\"linux\":{\"namespaces\":[{\"type\":\"pid\",\"path\":\"/proc/%d/ns/pid\"}]}",
        (int)first->shim->proc->pid);
    FlowContainer *second = with_pid_namespace(flow, "b", join);
    flow_assert_ok(&second->created);
    g_autofree char *path = g_strdup_printf("/proc/%u/ns/pid", 100 + first->handle);
    g_assert_nonnull(strstr(flow_guest(second)->config, path));
    FlowContainer *third = with_pid_namespace(flow, "c",
        "\"linux\":{\"namespaces\":[{\"type\":\"pid\",\"path\":\"/proc/self/ns/pid\"}]}");
    flow_assert_failed(&third->created, SV_ERR_INVALID, "belongs to no container");
    flow_delete(second, TRUE);
    flow_delete(first, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* What virsh shows: kept up to date, or given up without harm. */
static void test_metadata(void)
{
    FlowFixture *flow = flow_new(NULL);
    FlowContainer *first = flow_run(flow, "a");
    FlowContainer *second = flow_create(flow, "b", NULL);
    FLOW_WAIT(sv_fake_metadata(flow->hv)->containers->len == 2);
    flow_agent_exit(flow->agent, first->handle, 2);
    flow_wait_stopped(first, 2, SV_CAUSE_EXITED);
    FLOW_WAIT(!flow->sandbox->metadata_idle);
    flow_settle();
    const GPtrArray *items = sv_fake_metadata(flow->hv)->containers;
    for (guint i = 0; i < items->len; i++) {
        const SvMetadataContainer *item = items->pdata[i];
        gboolean is_first = g_str_equal(item->id, "a");
        g_assert_cmpstr(item->state, ==, is_first ? "stopped" : "created");
        g_assert_cmpstr(item->cause, ==, is_first ? "exited" : NULL);
    }
    sv_fake_fail_call(flow->hv, "set_metadata", SV_ERR_IO);
    flow_start(second);
    flow_settle();
    g_assert_cmpint(flow_state(flow, "b"), ==, SV_STATE_RUNNING);
    flow_delete(first, FALSE);
    flow_delete(second, TRUE);
    flow_assert_clean(flow);
    flow_free(flow);
}

/* ---- hooks whose failure is a warning: start and delete are answered when all have run */

static void test_late_hooks(void)
{
    FlowFixture *flow = flow_new(NULL);
    g_autofree char *more = g_strdup_printf(
        "\"hooks\":{\"poststart\":[{\"path\":\"/bin/false\"},{\"path\":\"/none\"},"
        "{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"cat >%s/started; exit 1\"]}],"
        "\"poststop\":[{\"path\":\"/bin/false\"},"
        "{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"cat >%s/stopped\"]}]}",
        flow->top, flow->top);
    g_autofree char *started = g_build_filename(flow->top, "started", NULL);
    g_autofree char *stopped = g_build_filename(flow->top, "stopped", NULL);
    g_autofree char *text = NULL, *after = NULL;
    FlowContainer *container = flow_create(flow, "a", more);
    flow_start(container);
    g_assert_cmpint(flow_state(flow, "a"), ==, SV_STATE_RUNNING);
    g_assert_true(g_file_get_contents(started, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "\"running\""));
    flow_delete(container, TRUE);
    g_assert_true(g_file_get_contents(stopped, &after, NULL, NULL));
    g_assert_nonnull(strstr(after, "\"stopped\""));
    flow_assert_clean(flow);
    flow_free(flow);
}

int main(int argc, char **argv)
{
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    g_test_add_func("/flow/pod/together", test_together);
    g_test_add_func("/flow/pod/failing-together", test_failing_together);
    g_test_add_func("/flow/pod/first-abandoned", test_first_abandoned);
    g_test_add_data_func("/flow/pod/next-while-ending/hello", "Hello", test_next_while_ending);
    g_test_add_data_func("/flow/pod/next-while-ending/setup", "Setup", test_next_while_ending);
    g_test_add_data_func("/flow/pod/next-while-ending/guest", "Create", test_next_while_ending);
    g_test_add_func("/flow/pod/delete-together", test_delete_together);
    g_test_add_func("/flow/pod/join-and-leave", test_join_and_leave);
    g_test_add_func("/flow/pod/mounts", test_mounts);
    g_test_add_func("/flow/pod/pid-namespace", test_pid_namespace);
    g_test_add_func("/flow/pod/metadata", test_metadata);
    g_test_add_func("/flow/pod/late-hooks", test_late_hooks);
    return g_test_run();
}
