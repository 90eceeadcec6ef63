/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the agent's parts share. Everything runs on the main loop; work that blocks runs in a thread
 * (base/thread.h) that touches nothing of this. */
#pragma once

#include "agent/agent-error.h"
#include "agent/channel.h"
#include "agent/module.h"
#include "agent/reaper.h"
#include "agent/uevent.h"

G_BEGIN_DECLS

#define SV_AGENT_RUN "/run/sandvirt"
#define SV_AGENT_SHARE SV_AGENT_RUN "/share"
#define SV_AGENT_SHM SV_AGENT_RUN "/shm"
#define SV_AGENT_CONTAINERS SV_AGENT_RUN "/c"
#define SV_AGENT_CGROUP "/sys/fs/cgroup"
#define SV_AGENT_CRUN "/usr/bin/crun"
#define SV_AGENT_CRUN_ROOT "/run/crun"

typedef struct SvBlockTable SvBlockTable;
typedef struct SvNetworkWait SvNetworkWait;

typedef struct {
    GMainLoop *loop;
    SvChannel *channel; /* NULL before the port is there */
    SvReaper *reaper;
    SvUevents *uevents;
    SvBlockTable *blocks;
    SvModules *modules;
    char *crun; /* path to run it by; once started */
    GHashTable *processes; /* handle -> SvProcess, owned */
    GHashTable *containers; /* id -> SvContainer, owned */

    gboolean greeted; /* Hello was answered on this connection */
    guint32 next_stream; /* even: requests of the agent */
    GHashTable *forwards; /* handle -> SvForward, owned; NULL: none yet */
    GHashTable *unanswered; /* stream -> event on this connection */

    gboolean started; /* all of the start is done */
    gboolean set_up;
    gpointer network; /* what was configured last: a NetworkRequest, owned; NULL: nothing */
    SvNetworkWait *network_wait; /* at work; nullable */
    guint32 grace_ms; /* TERM to KILL when the machine is asked to power off */
    gboolean shutting_down;
    guint64 boot_memory; /* bytes, before any was plugged */
    gint64 start_ns; /* CLOCK_BOOTTIME */
    gint64 ready_ns;
} SvAgent;

G_END_DECLS
