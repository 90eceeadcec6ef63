/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One call of crun, without blocking. */
#pragma once

#include "agent/agent.h"

G_BEGIN_DECLS

/* Path (transfer full) by which crun starts fastest. It runs itself anew out of a sealed copy, so that
 * no container reaches its program through /proc/PID/exe; on the memory file system of an initramfs it
 * does so twice, which takes longer than its work. A sealed copy made once spares that. */
char *sv_crun_prepare(void) G_GNUC_WARN_UNUSED_RESULT;

typedef struct SvCrun SvCrun;
/* @error: what crun said, NULL on success. @pid: from the pid file, 0 when none was asked for. @spent_us:
 * how long crun's process was there. The call is freed when this returns. Unknown processes that end
 * meanwhile are still remembered. */
typedef void (*SvCrunDone)(const GError *error, pid_t pid, gint64 spent_us, gpointer user_data);

typedef struct {
    const char *verb;
    const char *const *args; /* options of the verb, NULL-terminated; may be NULL */
    const char *id;
    const char *dir; /* where its log and pid file go */
    const char *tag; /* distinguishes calls in the same @dir */
    const char *program; /* that is to run, for the text of an error; may be NULL */
    gboolean want_pid; /* passes --pid-file */
    int stdio[3]; /* -1: /dev/null; not consumed */
    const int *more_fds; /* those from 3 on, which the process gets too; not consumed */
    guint n_more_fds;
    int oom_score_adj; /* of crun and what it starts */
    int until_exec; /* which the process has only until it runs its program; 0: none; not consumed */
} SvCrunCall;

SvCrun *sv_crun_start(SvAgent *agent, const SvCrunCall *call, SvCrunDone done, gpointer user_data,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Kills it; @done is called as usual. */
void sv_crun_kill(SvCrun *crun);

G_END_DECLS
