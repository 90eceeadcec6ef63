/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One connection that speaks frames, on the main loop: calls with deadlines, requests of the peer,
 * data frames, descriptors. Used towards the agent, the shims and the command line. Main thread. */
#pragma once

#include "rpc/message.h"

G_BEGIN_DECLS

typedef struct SvConn SvConn;

typedef struct {
    /* Answer with sv_conn_reply or sv_conn_reply_error and request->stream, now or later.
     * (nullable: every request is answered UNSUPPORTED) */
    void (*request)(SvConn *conn, const SvRequest *request, gpointer user_data);
    /* A DATA or ACK frame. (nullable: dropped) */
    void (*frame)(SvConn *conn, const SvFrame *frame, gpointer user_data);
    /* Once: the peer is gone or broke the protocol. Pending calls have failed with
     * SV_ERR_CLOSED before. The owner still frees @conn. */
    void (*closed)(SvConn *conn, const GError *error, gpointer user_data);
} SvConnHandlers;

/* @fd: taken, made non-blocking. @first_stream: 1 for the side that connected, 2 for the other.
 * @max_payload: longest frame accepted. @handlers: static. */
SvConn *sv_conn_new(int fd, guint32 first_stream, guint32 max_payload,
    const SvConnHandlers *handlers, gpointer user_data) G_GNUC_WARN_UNUSED_RESULT;
/* Closes; pending calls get SV_ERR_CLOSED from the loop's next turn, when @conn and its owner may be
 * gone: their done looks at nothing but what it owns then. Safe inside handlers. NULL is fine. */
void sv_conn_free(SvConn *conn);
/* From now on other handlers get what comes (an accepted connection has told what it is). */
void sv_conn_set_handlers(SvConn *conn, const SvConnHandlers *handlers, gpointer user_data);
int sv_conn_fd(const SvConn *conn);
gboolean sv_conn_is_closed(const SvConn *conn);

/* @reply: (nullable) of the type asked for, borrowed; @error: NULL on success, borrowed. */
typedef void (*SvCallDone)(const ProtobufCMessage *reply, const GError *error, gpointer user_data);

/* @type NULL: the answer carries nothing. @timeout_ms 0: no deadline. After the deadline @done gets
 * SV_ERR_TIMEOUT and the late answer is dropped. @done: nullable; never called inside the call.
 * @pass_fd: -1, or a descriptor sent with the frame (not consumed). */
void sv_conn_call(SvConn *conn, const char *service, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, guint timeout_ms,
    int pass_fd, SvCallDone done, gpointer user_data);
/* What such a call gets when there is no connection for it: SV_ERR_CLOSED, from the loop's next turn. */
void sv_conn_refuse(SvCallDone done, gpointer user_data);
void sv_conn_reply(SvConn *conn, guint32 stream, const ProtobufCMessage *message);
void sv_conn_reply_error(SvConn *conn, guint32 stream, const GError *error);
/* Queues a ready frame. Takes @frame. */
void sv_conn_send(SvConn *conn, GBytes *frame);
gsize sv_conn_queued(const SvConn *conn); /* bytes not yet written */
/* Bytes come first that are no frames: they are dropped until @scanner (taken) has completed, then
 * @synced is called. */
void sv_conn_expect_sync(
    SvConn *conn, SvSyncScanner *scanner, void (*synced)(SvConn *conn, gpointer user_data));

G_END_DECLS
