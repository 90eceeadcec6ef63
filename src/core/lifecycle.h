/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle as one table. Who changes a state calls sv_record_set_state (record.h), which asks
 * this table; nobody else. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

#define SV_CORE_ERROR (sv_core_error_quark())
GQuark sv_core_error_quark(void);

typedef enum {
    SV_STATE_CREATING, /* record written; everything may be half made. Left by CREATED or FAILED */
    SV_STATE_READY, /* OCI "created": disks, mounts and a waiting process are held */
    SV_STATE_RUNNING,
    SV_STATE_PAUSED, /* container frozen or machine suspended (two flags) */
    SV_STATE_STOPPED, /* exit recorded; nothing is held in guest and share */
    SV_STATE_GONE, /* no record */
    SV_N_STATES
} SvState;

typedef enum {
    SV_EVENT_CREATED, /* created in the guest */
    SV_EVENT_FAILED, /* create failed, caller gone, KILL or delete --force while CREATING */
    SV_EVENT_START,
    SV_EVENT_EXITED, /* an end recorded: process exit, shim died, domain stopped, kill of READY */
    SV_EVENT_FREEZE, /* frozen or suspended */
    SV_EVENT_THAW, /* neither any more */
    SV_EVENT_DELETE,
    SV_N_EVENTS
} SvEvent;

/* why a container ended; recorded with the exit */
typedef enum {
    SV_CAUSE_NONE,
    SV_CAUSE_EXITED,
    SV_CAUSE_SIGNALLED,
    SV_CAUSE_SHIM_KILLED,
    SV_CAUSE_DOMAIN_DESTROYED,
    SV_CAUSE_DOMAIN_CRASHED,
    SV_CAUSE_GUEST_PANIC,
    SV_CAUSE_GUEST_POWERED_OFF,
    SV_CAUSE_AGENT_LOST,
    SV_CAUSE_SHARE_LOST,
    SV_CAUSE_OOM,
    SV_CAUSE_ROLLED_BACK,
    SV_CAUSE_HOST_RESTARTED,
    SV_CAUSE_DISK_HELD, /* the guest kept a disk: its machine was ended */
    SV_N_CAUSES
} SvCause;

/* FALSE + SV_ERR_STATE with design's text when forbidden. An exit is never a forbidden move: EXITED in
 * STOPPED or GONE leaves *next the same state, in CREATING it is GONE (rolled back). DELETE of a READY
 * container is its stop: *next is STOPPED, a second DELETE ends it. */
gboolean sv_lifecycle_next(SvState state, SvEvent event, SvState *next, GError **error);
const char *sv_state_name(
    SvState state); /* "creating" "ready" "running" "paused" "stopped" "gone" */
const char *sv_state_oci_name(
    SvState state); /* "creating" "created" "running" "paused" "stopped" */
const char *sv_event_name(SvEvent event);
const char *sv_cause_name(SvCause cause); /* "exited", "shim-killed", ... */
gboolean sv_state_parse(const char *text, SvState *state);
gboolean sv_cause_parse(const char *text, SvCause *cause);

/* Whether a verb may work in a state. Verbs: start exec pause resume stats delete ps update kill. FALSE +
 * SV_ERR_STATE: start+STOPPED "cannot start a stopped container"; start+RUNNING "cannot start a running
 * container"; exec+STOPPED "cannot exec in a stopped container"; delete+RUNNING "cannot delete a running
 * container"; stats+STOPPED "cannot stat a stopped container". kill+STOPPED: SV_ERR_NOT_RUNNING
 * "container not running"; anything + GONE: SV_ERR_NOT_FOUND "container does not exist". */
gboolean sv_lifecycle_allows(SvState state, const char *verb, GError **error);
/* The table as Markdown for docs/architecture.md (transfer full). */
char *sv_lifecycle_markdown(void);

G_END_DECLS
