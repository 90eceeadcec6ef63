/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "agent/cgroup.h"
#include "agent/crun.h"
#include "agent/process.h"
#include "agent/service.h"

G_BEGIN_DECLS

typedef struct SvRelease SvRelease;
typedef struct SvStart SvStart;

#define SV_AGENT_ORDERS 16 /* signals that are remembered */

typedef struct {
    SvAgent *agent; /* not owned */
    char *id;
    char *dir; /* bundle: /run/sandvirt/c/ID */
    char *cgroup; /* absolute; of config.json */
    char *share_dir; /* (nullable) below the share */
    guint32 handle; /* of its init */
    gboolean created;
    gboolean removing;
    SvRelease *release; /* at work */
    GPtrArray *removers; /* of SvCall: came while it was being created */
    GPtrArray *mounts; /* targets of mounted disks, in order */
    SvCrun *creating; /* crun create at work */
    guint execs; /* crun exec calls at work */
    int exec_fd; /* hangs up when its init runs the program; -1: none, or started */
    SvStart *starting; /* Start is not answered yet */
    SvCgroupWatch *oom_watch;
    guint64 oom_kills;
    guint64 oom_told; /* of them the host knows */
    gboolean oom_telling; /* is not answered yet */
    guint64
        orders[SV_AGENT_ORDERS]; /* carried out; the next one goes to n_orders % SV_AGENT_ORDERS */
    guint n_orders;
} SvContainer;

SvContainer *sv_container_lookup(SvAgent *agent, const char *id);
/* Found, created and not being removed; else @error. */
SvContainer *sv_container_find(SvAgent *agent, const char *id, GError **error);
SvContainer *sv_container_add(SvAgent *agent, const char *id, GError **error);
void sv_container_drop(SvContainer *container);
void sv_container_free(SvContainer *container); /* for the table */
SvProcess *sv_container_init(SvContainer *container);

/* The cgroup's path is read from /proc/PID/cgroup, and memory.events is watched. */
void sv_container_watch(SvContainer *container, pid_t pid);
/* Answers a Start that waits for the program, as if it ran. */
void sv_container_start_finish(SvContainer *container);
/* An ended process: sets its oom flag; a start of it is over. */
void sv_container_process_ended(SvProcess *process);
/* Tells the host of OOM kills it has not heard of. */
void sv_container_check_oom(SvContainer *container);
/* It has heard of so many. */
void sv_container_oom_told(SvContainer *container, guint64 kills);
/* A new host: what was under way to the former one is forgotten. */
void sv_container_oom_reset(SvContainer *container);

/* Handlers */
void sv_container_create(SvCall *call);
void sv_container_exec(SvCall *call);
void sv_container_start(SvCall *call);
void sv_container_signal(SvCall *call);
void sv_container_pause(SvCall *call);
void sv_container_resume(SvCall *call);
void sv_container_update(SvCall *call);
void sv_container_remove(SvCall *call);
void sv_container_stats(SvCall *call);
void sv_container_ps(SvCall *call);

G_END_DECLS
