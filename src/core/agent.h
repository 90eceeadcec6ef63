/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host's end of the channel to the guest's agent. The guest is hostile: lengths are capped by the
 * frame reader, ids and handles are checked by the caller against its own tables. Main thread. */
#pragma once

#include "core/conn.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

#define SV_AGENT_ERROR (sv_agent_error_quark())
GQuark sv_agent_error_quark(void);

typedef struct SvAgent SvAgent;
typedef struct {
    /* The agent has answered the first Hello of this connection. */
    void (*ready)(SvAgent *agent, const Sandvirt__V1__HelloResponse *hello, gpointer user_data);
    /* Call sv_agent_acknowledge with @stream once the exit is recorded. */
    void (*exited)(
        SvAgent *agent, guint32 stream, const Sandvirt__V1__ExitEvent *event, gpointer user_data);
    void (*oom)(SvAgent *agent, const char *container_id, guint64 kills, gpointer user_data);
    void (*shutting_down)(SvAgent *agent, const char *reason, gpointer user_data);
    void (*frame)(SvAgent *agent, const SvFrame *frame, gpointer user_data);
    /* The channel is gone or the guest broke the protocol. Once. */
    void (*lost)(SvAgent *agent, const GError *error, gpointer user_data);
} SvAgentHandlers;

/* Connects to the channel's socket at once (bytes wait for the guest to boot) and synchronises.
 * @token: SV_SYNC_ID_LEN bytes. NULL + error when nobody listens at @path. */
SvAgent *sv_agent_connect(const char *path, const guint8 *token, const SvAgentHandlers *handlers,
    gpointer user_data, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_agent_free(SvAgent *agent);
int sv_agent_fd(const SvAgent *agent);
gboolean sv_agent_is_ready(const SvAgent *agent);

/* As sv_conn_call. An agent that is not connected any more, or NULL: SV_ERR_CLOSED. */
void sv_agent_call(SvAgent *agent, const char *method, const ProtobufCMessage *message,
    const ProtobufCMessageDescriptor *type, guint timeout_ms, SvCallDone done, gpointer user_data);
void sv_agent_acknowledge(SvAgent *agent, guint32 stream);
void sv_agent_send(SvAgent *agent, GBytes *frame); /* takes frame */

G_END_DECLS
