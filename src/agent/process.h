/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A process the host knows by a handle: the init of a container, or an exec. */
#pragma once

#include "agent/agent.h"
#include "agent/input.h"
#include "agent/output.h"

G_BEGIN_DECLS

typedef enum {
    SV_PROCESS_CREATING, /* crun is at work; not shown to the host */
    SV_PROCESS_CREATED,
    SV_PROCESS_RUNNING,
    SV_PROCESS_EXITED,
} SvProcessState;

typedef struct {
    SvAgent *agent; /* not owned */
    guint32 handle;
    char *container_id;
    gboolean exec;
    SvProcessState state;
    pid_t pid;
    int pidfd;
    int exit_code;
    gint64 exit_time_ns;
    gboolean oom;
    gint64 ordered_us; /* monotonic: when the host asked for it; of an exec */
    guint64 oom_before; /* oom_kill of its cgroup when it began */

    SvOutput *out[2]; /* stdout (or the terminal), stderr; NULL: none */
    SvInput *in;
    int tty; /* a terminal's master, for its size; -1 */
    guint n_descriptors; /* beside the three: agent/forward.h */

    gboolean exit_sent; /* on this connection */
    gboolean exit_acked;
} SvProcess;

/* New entry in the table; SV_ERR_EXISTS or SV_ERR_INVALID. */
SvProcess *sv_process_add(
    SvAgent *agent, guint32 handle, const char *container_id, gboolean exec, GError **error);
SvProcess *sv_process_lookup(SvAgent *agent, guint32 handle);
void sv_process_drop(SvProcess *process); /* out of the table, freed */
void sv_process_free(SvProcess *process); /* for the table */

/* Takes the descriptors (-1: none) of the agent's ends. A terminal has @out only. */
void sv_process_set_pipes(SvProcess *process, int in, int out, int err);
void sv_process_set_terminal(SvProcess *process, int master);
gboolean sv_process_resize(SvProcess *process, guint rows, guint cols, GError **error);

/* crun has told the pid: state, streams and the watch for its end. @attached: the host of this connection
 * follows it. */
void sv_process_begin(SvProcess *process, pid_t pid, SvProcessState state, gboolean attached);
gboolean sv_process_send_signal(SvProcess *process, int signo, GError **error);

/* A frame for one of its streams. */
void sv_process_take_data(SvProcess *process, const SvFrame *frame);
void sv_process_take_ack(SvProcess *process, const SvFrame *frame);
/* The connection changes. */
void sv_process_reset(SvProcess *process);
void sv_process_greet(SvProcess *process);
void sv_process_attach(SvProcess *process, guint64 stdout_offset, guint64 stderr_offset);
/* Nobody will read its output: close and discard, so that its exit can be told. */
void sv_process_discard(SvProcess *process);
/* Sends the exit event when it is time. */
void sv_process_check_exit(SvProcess *process);

G_END_DECLS
