/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* protobuf-c messages in and out of frames. */
#pragma once

#include "base/error.h"
#include "rpc/frame.h"
#include <protobuf-c/protobuf-c.h>

G_BEGIN_DECLS

/* Service names */
#define SV_SERVICE_AGENT "sandvirt.v1.Agent" /* host -> agent */
#define SV_SERVICE_HOST "sandvirt.v1.Host" /* agent -> host: events, answered (= acknowledged) */
#define SV_SERVICE_MONITOR "sandvirt.v1.Monitor" /* command line -> monitor */
#define SV_SERVICE_SHIM "sandvirt.v1.Shim" /* monitor -> shim, and shim -> monitor */
#define SV_SERVICE_LAUNCHER "sandvirt.v1.Launcher"

/* A whole frame (header + Request/Response), (transfer full). @message NULL: empty payload. */
GBytes *sv_message_request(guint32 stream, const char *service, const char *method,
    const ProtobufCMessage *message, gint64 timeout_ns) G_GNUC_WARN_UNUSED_RESULT;
GBytes *sv_message_response(guint32 stream, const ProtobufCMessage *message)
    G_GNUC_WARN_UNUSED_RESULT;
/* @error: its code and its text (made valid UTF-8) travel in Status. A Response with a Status, whatever
 * its code (SV_ERR_FAILED is 0), is an error; success has none. */
GBytes *sv_message_error(guint32 stream, const GError *error) G_GNUC_WARN_UNUSED_RESULT;
GBytes *sv_message_data(guint32 handle, guint8 flags, guint64 offset, const void *data, gsize len)
    G_GNUC_WARN_UNUSED_RESULT;
GBytes *sv_message_ack(guint32 handle, guint8 flags, guint64 offset) G_GNUC_WARN_UNUSED_RESULT;

/* Checked unpacking; frees with protobuf_c_message_free_unpacked. SV_ERR_INVALID on garbage. */
ProtobufCMessage *sv_message_unpack(const ProtobufCMessageDescriptor *type, const void *data,
    gsize len, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* (transfer full) */
ProtobufCMessage *sv_message_copy(const ProtobufCMessage *message) G_GNUC_WARN_UNUSED_RESULT;
#define sv_message_free(m) protobuf_c_message_free_unpacked((ProtobufCMessage *)(m), NULL)

/* A received request: strings borrowed from @storage, which the caller frees. */
typedef struct {
    guint32 stream;
    const char *service, *method;
    const guint8 *payload;
    gsize payload_len;
    gint64 timeout_ns;
    gpointer storage;
} SvRequest;
gboolean sv_request_parse(const SvFrame *frame, SvRequest *request, GError **error);
void sv_request_clear(SvRequest *request);
/* A received response: its payload as a message of @type (transfer full), or @error from Status
 * (domain SV_RPC_ERROR, code as sent when it is a known SvErr). @type NULL: returns NULL, no error on success. */
ProtobufCMessage *sv_response_parse(
    const SvFrame *frame, const ProtobufCMessageDescriptor *type, GError **error);
/* offset + bytes of a DATA or ACK frame. FALSE when shorter than 8 bytes. */
gboolean sv_frame_parse_offset(
    const SvFrame *frame, guint64 *offset, const guint8 **data, gsize *len);

/* Blocking call over a connected socket, for the command line, shim and launcher: sends, reads
 * until the answer to it (other frames are dropped). @type NULL: the answer has no message. Deadline
 * @timeout_ms (-1: none): SV_ERR_TIMEOUT, and that within seconds when the peer's process is stopped
 * (SIGSTOP). Peer gone: SV_ERR_CLOSED. Returns the message (transfer full; a static empty one must not be assumed: NULL with *error unset when @type is NULL). */
ProtobufCMessage *sv_rpc_call(int fd, guint32 stream, const char *service, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, int timeout_ms,
    GError **error);

G_END_DECLS
