/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A sandbox and its containers, as the monitor drives them. Everything here runs on the main loop and
 * returns at once; results come through SvDone. The record files are written here and nowhere else. */
#pragma once

#include "core/conn.h"
#include "core/hypervisor.h"
#include "core/record.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

typedef struct SvSandbox SvSandbox;
typedef struct SvContainer SvContainer;

/* @error: NULL on success, borrowed. Called once, never from inside the call that was given it. */
typedef void (*SvDone)(const GError *error, gpointer user_data);
/* @reply: NULL on error; borrowed. */
typedef void (*SvReplyDone)(const ProtobufCMessage *reply, const GError *error, gpointer user_data);

/* What core needs of hypervisor/: filled by the monitor's main, or by a test with the fake driver. */
typedef struct {
    SvHv *(*open)(const SvConfig *config, const char *uuid, const char *name, SvHvEventFunc func,
        gpointer user_data);
    /* Resolves acceleration (auto: tries). @done gets the answer on the loop: @reason (nullable) why it
     * is not what was hoped for, @error when it could not be found out. Both borrowed. */
    void (*resolve_accel)(const SvConfig *config,
        void (*done)(SvAccel accel, const char *reason, const GError *error, gpointer user_data),
        gpointer user_data);
} SvDriver;

typedef struct {
    /* Nothing is left to watch: no container that is not STOPPED, no machine, nothing under way. The
     * monitor may end when no caller is connected either. */
    void (*idle)(SvSandbox *sandbox, gpointer user_data);
    /* A container changed its state (events --state). */
    void (*changed)(SvSandbox *sandbox, const SvRecord *record, SvState old, gpointer user_data);
    /* The kernel's OOM killer took further processes of a container. (nullable) */
    void (*oom)(SvSandbox *sandbox, const SvRecord *record, gpointer user_data);
} SvSandboxHandlers;

/* @config (ref taken), @paths (taken). The caller holds the sandbox's lock for life. */
SvSandbox *sv_sandbox_new(const SvConfig *config, SvPaths *paths, const SvDriver *driver,
    const SvSandboxHandlers *handlers, gpointer user_data) G_GNUC_WARN_UNUSED_RESULT;
void sv_sandbox_free(SvSandbox *sandbox);

/* Takes over what a former monitor left: state folder, libvirt, agent. @done when every container is
 * known again (their stops may go on afterwards). A sandbox without a record: nothing to do. */
void sv_sandbox_recover(SvSandbox *sandbox, SvDone done, gpointer user_data);
/* TRUE when sv_sandbox_handlers.idle would be true now. */
gboolean sv_sandbox_is_idle(const SvSandbox *sandbox);
/* At the monitor's end, its lock still held: of a sandbox that is no more not even the lock's folder stays. */
void sv_sandbox_clean_up(SvSandbox *sandbox);
/* Answered when nothing is under way: recovery, starts, stops, ends. */
void sv_sandbox_settle(SvSandbox *sandbox, SvDone done, gpointer user_data);
void sv_sandbox_each_record(SvSandbox *sandbox,
    void (*func)(const SvRecord *record, gpointer user_data), gpointer user_data);
/* After a register that failed with SV_ERR_BUSY: called when the former machine has ended (tried again when it
 * could not be; @error then), so that it is worth another attempt. */
void sv_sandbox_wait_for_end(SvSandbox *sandbox, SvDone done, gpointer user_data);

/* ---- verbs. Unknown id: SV_ERR_NOT_FOUND "container does not exist". */

/* Writes the record (CREATING). Out: handle of the init process. @owner: uid of the caller. SV_ERR_BUSY: the
 * former machine of the sandbox is still ending. */
gboolean sv_sandbox_register(SvSandbox *sandbox, const Sandvirt__V1__RegisterRequest *request,
    uid_t owner, guint32 *handle, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Runs create to READY; on failure everything is undone and the record is gone when @done is called. */
void sv_container_create(SvSandbox *sandbox, const Sandvirt__V1__CreateContainerRequest *request,
    SvDone done, gpointer user_data);
/* The caller of register/create is gone: rolls back unless READY is recorded. */
void sv_container_abandon(SvSandbox *sandbox, const char *id);
void sv_container_start(SvSandbox *sandbox, const char *id, SvDone done, gpointer user_data);
/* @order: as in KillRequest. */
void sv_container_kill(SvSandbox *sandbox, const char *id, int signo, gboolean all, guint64 order,
    SvDone done, gpointer user_data);
void sv_container_stop(
    SvSandbox *sandbox, const char *id, guint timeout_ms, SvDone done, gpointer user_data);
void sv_container_delete(
    SvSandbox *sandbox, const char *id, gboolean force, SvDone done, gpointer user_data);
void sv_container_pause(
    SvSandbox *sandbox, const char *id, gboolean freeze, SvDone done, gpointer user_data);
void sv_container_update(SvSandbox *sandbox, const Sandvirt__V1__UpdateContainerRequest *request,
    SvDone done, gpointer user_data);
/* StatsResponse / PsResponse of the agent */
void sv_container_stats(SvSandbox *sandbox, const char *id, SvReplyDone done, gpointer user_data);
void sv_container_ps(SvSandbox *sandbox, const char *id, SvReplyDone done, gpointer user_data);

gboolean sv_exec_prepare(SvSandbox *sandbox, const Sandvirt__V1__ExecPrepareRequest *request,
    guint32 *handle, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_exec_start(SvSandbox *sandbox, const Sandvirt__V1__ExecStartRequest *request, SvDone done,
    gpointer user_data);
/* The caller is gone between prepare and the answer of start. */
void sv_exec_abandon(SvSandbox *sandbox, guint32 handle);

/* ---- shims. A connection whose first request was Attach. Takes @conn on success; the answer to
 * @stream is sent when the streams may flow. */
gboolean sv_shim_attach(SvSandbox *sandbox, SvConn *conn, guint32 stream,
    const Sandvirt__V1__AttachRequest *request, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
