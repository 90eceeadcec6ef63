/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/hypervisor.h"
#include "hypervisor/worker.h"

typedef struct {
    gatomicrefcount refs;
    GMainLoop *loop;
    GMutex gate; /* held: the function hangs */
    GString *order;
    int freed, committed, undone;
    guint dones;
    int code;
    char name;
} Task;

static Task *task_new(char name)
{
    Task *task = g_new0(Task, 1);
    g_atomic_ref_count_init(&task->refs);
    task->loop = g_main_loop_new(NULL, FALSE);
    task->name = name;
    task->code = -1;
    g_mutex_init(&task->gate);
    return task;
}

static void task_free(Task *task)
{
    g_main_loop_unref(task->loop);
    g_mutex_clear(&task->gate);
    g_free(task);
}

static gboolean func(SvJob *job, gpointer data, GError **error)
{
    Task *task = data;
    g_mutex_lock(&task->gate);
    g_mutex_unlock(&task->gate);
    if (sv_job_commit(job))
        g_atomic_int_inc(&task->committed);
    else
        g_atomic_int_inc(&task->undone);
    if (task->name != 'f')
        return TRUE;
    g_set_error_literal(error, SV_HV_ERROR, SV_ERR_BUSY, "no");
    return FALSE;
}

static void done(gpointer data, const GError *error)
{
    Task *task = data;
    task->dones++;
    task->code = error != NULL ? error->code : -1;
    if (task->order != NULL)
        g_string_append_c(task->order, task->name);
    g_main_loop_quit(task->loop);
}

static void freed(gpointer data)
{
    g_atomic_int_inc(&((Task *)data)->freed);
}

static SvJob *go(SvWorker *worker, Task *task, SvLane lane, guint deadline_ms)
{
    SvJobSpec spec = {.what = "test",
        .lane = lane,
        .deadline_ms = deadline_ms,
        .func = func,
        .done = done,
        .free = freed};
    SvJob *job = sv_job_new(worker, &spec, task);
    sv_job_start(job);
    return job;
}

static void wait_freed(Task *task)
{
    while (g_atomic_int_get(&task->freed) == 0)
        g_main_context_iteration(NULL, FALSE);
}

static void test_results(void)
{
    SvWorker *worker = sv_worker_new();
    Task *good = task_new('g');
    Task *bad = task_new('f');
    go(worker, good, SV_LANE_CHANGE, 0);
    g_main_loop_run(good->loop);
    g_assert_cmpint(good->code, ==, -1);
    go(worker, bad, SV_LANE_QUERY, 10000);
    g_main_loop_run(bad->loop);
    g_assert_cmpint(bad->code, ==, SV_ERR_BUSY);
    wait_freed(good);
    wait_freed(bad);
    sv_worker_free(worker);
    task_free(good);
    task_free(bad);
}

/* A call that hangs ends by its deadline, its late end is dropped, other lanes go on. */
static void test_deadline(void)
{
    SvWorker *worker = sv_worker_new();
    Task *hung = task_new('h');
    Task *other = task_new('o');
    g_mutex_lock(&hung->gate);
    go(worker, hung, SV_LANE_CHANGE, 20);
    g_main_loop_run(hung->loop);
    g_assert_cmpint(hung->code, ==, SV_ERR_TIMEOUT);
    go(worker, other, SV_LANE_URGENT, 10000);
    g_main_loop_run(other->loop);
    g_assert_cmpint(other->code, ==, -1);
    g_mutex_unlock(&hung->gate);
    wait_freed(hung);
    wait_freed(other);
    g_assert_cmpuint(hung->dones, ==, 1);
    g_assert_cmpint(hung->undone, ==, 1);
    g_assert_cmpint(hung->committed, ==, 0);
    sv_worker_free(worker);
    task_free(hung);
    task_free(other);
}

static void test_order(void)
{
    SvWorker *worker = sv_worker_new();
    g_autoptr(GString) order = g_string_new(NULL);
    Task *tasks[3];
    for (guint i = 0; i < 3; i++) {
        tasks[i] = task_new((char)('1' + i));
        tasks[i]->order = order;
        go(worker, tasks[i], SV_LANE_CHANGE, 10000);
    }
    g_main_loop_run(tasks[2]->loop);
    g_assert_cmpstr(order->str, ==, "123");
    for (guint i = 0; i < 3; i++) {
        wait_freed(tasks[i]);
        task_free(tasks[i]);
    }
    sv_worker_free(worker);
}

static void test_drop(void)
{
    SvWorker *worker = sv_worker_new();
    Task *running = task_new('r');
    Task *queued = task_new('q');
    Task *never = task_new('n');
    g_mutex_lock(&running->gate);
    go(worker, running, SV_LANE_CHANGE, 10000);
    go(worker, queued, SV_LANE_CHANGE, 10000);
    SvJobSpec spec = {
        .what = "never", .deadline_ms = 10000, .func = func, .done = done, .free = freed};
    sv_job_new(worker, &spec, never);
    sv_worker_free(worker);
    g_assert_cmpint(never->freed, ==, 1);
    g_mutex_unlock(&running->gate);
    wait_freed(running);
    wait_freed(queued);
    g_assert_cmpuint(running->dones + queued->dones + never->dones, ==, 0);
    g_assert_cmpint(running->undone + queued->undone, ==, 2);
    task_free(running);
    task_free(queued);
    task_free(never);
}

static void test_never_started(void)
{
    SvWorker *worker = sv_worker_new();
    Task *task = task_new('n');
    SvJobSpec spec = {
        .what = "never", .deadline_ms = 10, .func = func, .done = done, .free = freed};
    sv_job_new(worker, &spec, task);
    g_main_loop_run(task->loop);
    g_assert_cmpint(task->code, ==, SV_ERR_CLOSED);
    g_assert_cmpint(task->freed, ==, 1);
    sv_worker_free(worker);
    sv_worker_free(NULL);
    task_free(task);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hypervisor/worker/results", test_results);
    g_test_add_func("/hypervisor/worker/deadline", test_deadline);
    g_test_add_func("/hypervisor/worker/order", test_order);
    g_test_add_func("/hypervisor/worker/drop", test_drop);
    g_test_add_func("/hypervisor/worker/never-started", test_never_started);
    return g_test_run();
}
