/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/worker.h"

#include "core/hypervisor.h"

typedef enum { STATE_OPEN, STATE_COMMITTED, STATE_ABANDONED } JobState;

struct SvWorker {
    GThreadPool *lanes[SV_LANE_LAST];
    GHashTable *jobs; /* set of SvJob, each holds a reference; main thread only */
};

struct SvJob {
    gatomicrefcount refs; /* main thread's set, the thread */
    int state; /* JobState; atomic */
    SvJobSpec spec; /* immutable */
    gpointer data;
    GError *error; /* the thread's until it is delivered */
    /* main thread only */
    SvWorker *worker; /* NULL: over or dropped */
    guint timer;
    gboolean started;
};

static void job_unref(SvJob *job)
{
    if (!g_atomic_ref_count_dec(&job->refs))
        return;
    if (job->spec.free != NULL)
        job->spec.free(job->data);
    g_clear_error(&job->error);
    g_free(job);
}

/* Takes the job out of its worker; the caller has a reference of its own. */
static void leave(SvJob *job)
{
    SvWorker *worker = job->worker;
    if (job->timer != 0)
        g_source_remove(job->timer);
    job->timer = 0;
    job->worker = NULL;
    if (worker != NULL)
        g_hash_table_remove(worker->jobs, job);
}

static void end(SvJob *job, const GError *error)
{
    g_atomic_ref_count_inc(&job->refs);
    leave(job);
    if (job->spec.done != NULL)
        job->spec.done(job->data, error);
    job_unref(job);
}

static gboolean deliver(gpointer data)
{
    SvJob *job = data;
    if (job->worker != NULL && g_atomic_int_get(&job->state) == STATE_COMMITTED)
        end(job, job->error);
    return G_SOURCE_REMOVE;
}

static gboolean on_deadline(gpointer data)
{
    SvJob *job = data;
    job->timer = 0;
    if (!g_atomic_int_compare_and_exchange(&job->state, STATE_OPEN, STATE_ABANDONED))
        return G_SOURCE_REMOVE; /* its result is on the way */
    g_autoptr(GError) error = NULL;
    if (job->started)
        g_set_error(&error, SV_HV_ERROR, SV_ERR_TIMEOUT, "%s: libvirt gave no answer in %u ms",
            job->spec.what, job->spec.deadline_ms);
    else
        g_set_error(&error, SV_HV_ERROR, SV_ERR_CLOSED, "%s: no connection to libvirt for %u ms",
            job->spec.what, job->spec.deadline_ms);
    end(job, error);
    return G_SOURCE_REMOVE;
}

static void run(gpointer item, gpointer unused)
{
    SvJob *job = item;
    g_autoptr(GError) error = NULL;
    /* even an abandoned one: it has things to let go of in the thread */
    job->spec.func(job, job->data, &error);
    g_atomic_int_compare_and_exchange(&job->state, STATE_OPEN, STATE_COMMITTED);
    if (g_atomic_int_get(&job->state) == STATE_ABANDONED && error != NULL)
        g_debug("ignoring the late end of %s: %s", job->spec.what, error->message);
    job->error = g_steal_pointer(&error);
    /* not invoke: this thread must not become the owner of an idle main context */
    GSource *source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, deliver, job, (GDestroyNotify)job_unref);
    g_source_attach(source, NULL);
    g_source_unref(source);
}

SvWorker *sv_worker_new(void)
{
    SvWorker *worker = g_new0(SvWorker, 1);
    for (guint i = 0; i < SV_LANE_LAST; i++)
        worker->lanes[i] = g_thread_pool_new(run, NULL, 1, FALSE, NULL);
    worker->jobs = g_hash_table_new_full(NULL, NULL, (GDestroyNotify)job_unref, NULL);
    return worker;
}

void sv_worker_free(SvWorker *worker)
{
    if (worker == NULL)
        return;
    g_autoptr(GList) jobs = g_hash_table_get_keys(worker->jobs);
    for (GList *item = jobs; item != NULL; item = item->next)
        sv_job_drop(item->data);
    g_hash_table_unref(worker->jobs);
    for (guint i = 0; i < SV_LANE_LAST; i++)
        g_thread_pool_free(worker->lanes[i], FALSE, FALSE);
    g_free(worker);
}

SvJob *sv_job_new(SvWorker *worker, const SvJobSpec *spec, gpointer data)
{
    SvJob *job = g_new0(SvJob, 1);
    g_atomic_ref_count_init(&job->refs);
    job->spec = *spec;
    job->data = data;
    job->worker = worker;
    g_hash_table_add(worker->jobs, job);
    if (spec->deadline_ms > 0)
        job->timer = g_timeout_add(spec->deadline_ms, on_deadline, job);
    return job;
}

void sv_job_start(SvJob *job)
{
    g_return_if_fail(job->worker != NULL && !job->started);
    job->started = TRUE;
    g_atomic_ref_count_inc(&job->refs);
    g_thread_pool_push(job->worker->lanes[job->spec.lane], job, NULL);
}

void sv_job_drop(SvJob *job)
{
    g_return_if_fail(job->worker != NULL);
    g_atomic_int_compare_and_exchange(&job->state, STATE_OPEN, STATE_ABANDONED);
    leave(job);
}

static gboolean on_cancelled(gpointer data)
{
    SvJob *job = data;
    job->timer = 0;
    g_autoptr(GError) error = NULL;
    g_set_error(&error, SV_HV_ERROR, SV_ERR_CANCELLED, "%s: given up", job->spec.what);
    end(job, error);
    return G_SOURCE_REMOVE;
}

void sv_job_cancel(SvJob *job)
{
    g_return_if_fail(job->worker != NULL);
    if (!g_atomic_int_compare_and_exchange(&job->state, STATE_OPEN, STATE_ABANDONED))
        return;
    g_clear_handle_id(&job->timer, g_source_remove);
    job->timer = g_idle_add_full(G_PRIORITY_DEFAULT, on_cancelled, job, NULL);
}

gboolean sv_job_commit(SvJob *job)
{
    return g_atomic_int_compare_and_exchange(&job->state, STATE_OPEN, STATE_COMMITTED) ||
        g_atomic_int_get(&job->state) == STATE_COMMITTED;
}

gboolean sv_job_is_abandoned(SvJob *job)
{
    return g_atomic_int_get(&job->state) == STATE_ABANDONED;
}
