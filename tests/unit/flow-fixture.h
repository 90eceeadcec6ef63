/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A sandbox of core with everything around it made up: the hypervisor driver, the agent, the shims. Only
 * the mounts, the files and the processes are real, in a mount namespace of the test's own. */
#pragma once

#include "core/sandbox-priv.h"
#include "flow-agent.h"
#include "flow-shim.h"
#include "hypervisor/fake.h"

G_BEGIN_DECLS

#define FLOW_WAIT_MS 10000

/* Turns the main loop until @condition holds; the test fails when it does not come true. */
#define FLOW_WAIT(condition)                                                                       \
    G_STMT_START                                                                                   \
    {                                                                                              \
        gint64 flow_end = g_get_monotonic_time() + FLOW_WAIT_MS * G_GINT64_CONSTANT(1000);         \
        while (!(condition))                                                                       \
            if (!flow_turn(flow_end))                                                              \
                g_error("%s:%d: waited in vain for: %s", __FILE__, __LINE__, #condition);          \
    }                                                                                              \
    G_STMT_END

gboolean flow_turn(gint64 deadline); /* one turn of the loop; FALSE when @deadline has passed */
void flow_settle(void); /* turns it until nothing is due */

/* An answer that is waited for. Twice is an error. */
typedef struct {
    gboolean done;
    GError *error;
} FlowAnswer;
void flow_answered(const GError *error, gpointer user_data); /* SvDone with a FlowAnswer */
void flow_answer_clear(FlowAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(FlowAnswer, flow_answer_clear)
void flow_assert_ok(FlowAnswer *answer); /* waits for it */
void flow_assert_failed(FlowAnswer *answer, SvErr code, const char *text); /* contained in it */

typedef struct FlowFixture FlowFixture;

typedef struct {
    FlowFixture *flow;
    char *id;
    guint32 handle;
    FlowShim *shim;
    FlowAnswer started;
} FlowExec;

typedef struct {
    FlowFixture *flow;
    char *id;
    guint32 handle;
    FlowShim *shim; /* nullable */
    FlowAnswer created;
} FlowContainer;

struct FlowFixture {
    char *top;
    const SvConfig *config;
    SvPaths *paths; /* as the sandbox's */
    SvSandbox *sandbox;
    SvHv *hv; /* NULL: not opened */
    SvHvEventFunc hv_func;
    gpointer hv_data;
    FlowAgent *agent;
    GPtrArray *containers; /* FlowContainer */
    GPtrArray *execs; /* FlowExec */
    GPtrArray *peers;
    int listener;
    guint listen_source;
    guint n_fds; /* when it began */
    struct SvServer *server; /* of a monitor of its own (flow-monitor.c) */
    GString *changes; /* "a:ready a:running ..." */
    guint idles;
    guint ooms; /* that were told to who watches */
    /* the driver */
    const char *hold_hv, *fail_hv; /* operations, from the opening on; nullable */
    guint fail_nth;
    gboolean exists, suspended; /* the machine runs already, or would if it were not suspended */
    gboolean no_agent; /* start does not bring an agent */
    const char *console; /* what the machine writes there; nullable */
    gboolean hv_silent; /* its events do not come through */
    guint hv_drop; /* nor the next ones */
    FlowProc *qemu; /* nullable: the agent's socket is its */
    FlowProc *virtiofsd; /* nullable */
    gboolean hold_accel;
    void (*accel_done)(SvAccel accel, const char *reason, const GError *error, gpointer user_data);
    gpointer accel_data;
};

/* What a test program does first: a mount namespace, a log that does not end the test at warnings.
 * FALSE: this host cannot; the tests are skipped. */
gboolean flow_init(int *argc, char ***argv);
/* Whether these tests of a program are to be run: all, or those of the FLOW_PART that the environment names (the
 * build runs the parts side by side). */
gboolean flow_part(const char *part);
void flow_init_log(void);
/* Configuration and paths of flow->top. */
void flow_load(FlowFixture *flow);
/* @conf: lines of [timeouts], nullable. */
FlowFixture *flow_new(const char *conf);
void flow_free(FlowFixture *flow); /* nothing may be left */
/* The state folder as it is, nothing else kept of the sandbox. */
void flow_open_sandbox(FlowFixture *flow);
void flow_listen(FlowFixture *flow);
void flow_unlisten(FlowFixture *flow);

/* @more: members of config.json behind the usual ones, nullable. */
char *flow_bundle(FlowFixture *flow, const char *id, const char *more);
FlowContainer *flow_register(FlowFixture *flow, const char *id, const char *more);
FlowContainer *flow_adopt(FlowFixture *flow, const char *id, guint32 handle); /* registered */
void flow_spawn(FlowContainer *container, int clone_flags); /* its shim, not attached */
void flow_attach(FlowContainer *container);
void flow_create_begin(FlowContainer *container);
FlowContainer *flow_create(FlowFixture *flow, const char *id, const char *more); /* READY */
FlowContainer *flow_run(FlowFixture *flow, const char *id); /* RUNNING */
void flow_start(FlowContainer *container);
void flow_delete(FlowContainer *container, gboolean force); /* and it must work */
/* On disk; GONE when there is no record. */
SvState flow_state(FlowFixture *flow, const char *id);
SvRecord *flow_record(FlowFixture *flow, const char *id); /* nullable */
FlowExec *flow_exec_prepare(FlowContainer *container);
void flow_exec_begin(FlowExec *exec); /* start, not attached */
void flow_exec_attach(FlowExec *exec);
FlowExec *flow_exec(FlowContainer *container); /* runs */
void flow_exec_wait_ended(FlowExec *exec, int status); /* and forgotten */
/* STOPPED with that exit; the shim has been told so, and has ended. */
void flow_wait_stopped(FlowContainer *container, int status, SvCause cause);
FlowGuestProcess *flow_guest(FlowContainer *container);
/* The machine has been ended and nothing at all is left of the sandbox. */
void flow_assert_clean(FlowFixture *flow);
/* Another create of the same sandbox works, and its delete. */
void flow_assert_usable(FlowFixture *flow, const char *id);

G_END_DECLS
