/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An agent without a guest: answers what the host asks, or fails, or is silent, as it is told to; its
 * processes are rows of a table. On the main loop. */
#pragma once

#include "core/conn.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

typedef struct {
    guint32 handle;
    char *id;
    gboolean exec, frozen, oom;
    Sandvirt__V1__ProcessState state;
    int code; /* EXITED */
    guint attaches;
    guint64 from[3]; /* offsets of the last Attach */
    guint64 acked[3]; /* of ACK frames */
    guint8 flags[3]; /* of ACK frames, all together */
    char *config; /* config.json or process.json */
    guint rows, cols;
    GString *input;
    gboolean term_pending; /* it is frozen */
    gboolean input_eof;
    guint exits_sent;
    gboolean exit_acked;
} FlowGuestProcess;

typedef struct {
    int listener;
    guint listen_source, greet_source;
    int greeting_fd; /* connected, greeting not complete */
    GByteArray *greeting;
    SvConn *conn; /* nullable */
    guint connections;
    gboolean mute; /* does not answer a greeting */
    gboolean immortal; /* signals do nothing */
    gboolean deaf; /* does not acknowledge input */
    guint64 disk_bytes; /* size of every disk */
    guint disks; /* that were waited for: "/dev/vda" 254:0, "/dev/vdb" 254:16, ... */
    gboolean forgetful; /* Remove does not end what is left */
    GHashTable *plans; /* method -> Plan */
    GHashTable *processes; /* handle -> FlowGuestProcess */
    gboolean set_up;
    char *resources, *first; /* of the last Update; "FILE=TEXT " for each */
    guint64 token; /* first bytes of what the host sent */
    void (*on_shutdown)(gpointer user_data); /* Shutdown was answered; nullable */
    gpointer user_data;
} FlowAgent;

FlowAgent *flow_agent_new(void);
void flow_agent_free(FlowAgent *agent);
void flow_agent_listen(FlowAgent *agent, const char *path);
void flow_agent_listen_fd(FlowAgent *agent, int fd); /* takes it */
/* Hangs up; the processes stay. @for_good: nobody can connect again either, the processes are gone. */
void flow_agent_close(FlowAgent *agent, gboolean for_good);

/* Every later call of @method fails with @code; SV_ERR_LAST takes it back. */
void flow_agent_fail(FlowAgent *agent, const char *method, SvErr code);
/* The next @n calls of @method go well, whatever it is told otherwise. */
void flow_agent_spare(FlowAgent *agent, const char *method, guint n);
/* Calls of @method (NULL: all, for another reason) stay without an answer; release carries them out. */
void flow_agent_hold(FlowAgent *agent, const char *method);
void flow_agent_release(FlowAgent *agent, const char *method);
guint flow_agent_count(FlowAgent *agent, const char *method); /* calls that have come */

FlowGuestProcess *flow_agent_find(FlowAgent *agent, guint32 handle); /* nullable */
FlowGuestProcess *flow_agent_add(FlowAgent *agent, guint32 handle, const char *id);
/* The process ends: the event is sent (again after each Hello until it is acknowledged). */
void flow_agent_exit(FlowAgent *agent, guint32 handle, int code);
void flow_agent_oom(FlowAgent *agent, const char *id, guint64 kills);
void flow_agent_shutting_down(FlowAgent *agent);
void flow_agent_output(
    FlowAgent *agent, guint32 handle, guint8 flags, guint64 offset, const char *text);
void flow_agent_raw(FlowAgent *agent, const void *data, gsize len);

G_END_DECLS
