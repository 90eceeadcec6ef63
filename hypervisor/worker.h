/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocking calls in threads, with a deadline, their end on the main loop.
 *
 * A job that passes its deadline is abandoned: its end is reported at once, and what it brings later
 * is dropped. Nothing can interrupt a call that hangs, so it keeps its thread until it returns; each
 * lane has one thread, which also keeps the order of calls. (GTask's own pool is shared by the whole
 * process, and a few calls that hang would use it up.) Threads end when they have had nothing to do
 * for a while: an idle worker costs no wake-up. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
    SV_LANE_CHANGE, /* what changes a domain, in order */
    SV_LANE_QUERY, /* what only asks, and connecting */
    SV_LANE_URGENT, /* the end of a domain: never waits for the others */
    SV_LANE_LAST
} SvLane;

typedef struct SvWorker SvWorker;
typedef struct SvJob SvJob;

/* Runs in a thread. FALSE with @error set: failed. */
typedef gboolean (*SvJobFunc)(SvJob *job, gpointer data, GError **error);
/* Runs on the main loop, exactly once unless the job is dropped. @error is borrowed. */
typedef void (*SvJobDone)(gpointer data, const GError *error);

/* Main thread. */
SvWorker *sv_worker_new(void) G_GNUC_WARN_UNUSED_RESULT;
/* Drops all jobs (their done is not called any more) and does not wait for those that run. */
void sv_worker_free(SvWorker *worker);

typedef struct {
    const char *what; /* for messages; static */
    SvLane lane;
    guint deadline_ms; /* from sv_job_new on; 0: none */
    SvJobFunc func;
    SvJobDone done; /* nullable */
    GDestroyNotify free; /* of @data, after both func and done are over; any thread; nullable */
} SvJobSpec;
/* A job whose deadline runs already; it does nothing until sv_job_start. Belongs to @worker. Main
 * thread. When it never started its time-out is SV_ERR_CLOSED instead of SV_ERR_TIMEOUT. */
SvJob *sv_job_new(SvWorker *worker, const SvJobSpec *spec, gpointer data);
/* Main thread; once; not after the job's end. */
void sv_job_start(SvJob *job);
/* Forgets the job: done is not called any more. Main thread; not after the job's end. */
void sv_job_drop(SvJob *job);
/* Abandons a job that has not committed: it ends soon with SV_ERR_CANCELLED. Main thread; not after the
 * job's end. */
void sv_job_cancel(SvJob *job);
/* In the thread: from here on the job cannot be abandoned. FALSE: it was already, and what was made
 * has to be undone by the caller. Without it a job commits when its func returns. */
gboolean sv_job_commit(SvJob *job) G_GNUC_WARN_UNUSED_RESULT;
/* In the thread: TRUE when nobody waits for the job any more. */
gboolean sv_job_is_abandoned(SvJob *job);

G_END_DECLS
