/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rpc/message.h"
#include "rpc/sandvirt.pb-c.h"
#include <stdlib.h>
#include <string.h>

/* ---- packing */

static GBytes *pack_frame(guint32 stream, guint8 type, const ProtobufCMessage *envelope)
{
    gsize len = protobuf_c_message_get_packed_size(envelope);
    guint8 *buf = g_malloc(SV_FRAME_HEADER + len);

    sv_frame_put_header(buf, (guint32)len, stream, type, 0);
    protobuf_c_message_pack(envelope, buf + SV_FRAME_HEADER);
    return g_bytes_new_take(buf, SV_FRAME_HEADER + len);
}

static guint8 *pack_payload(const ProtobufCMessage *message, ProtobufCBinaryData *payload)
{
    guint8 *buf = NULL;

    payload->len = message ? protobuf_c_message_get_packed_size(message) : 0;
    if (payload->len > 0) {
        buf = g_malloc(payload->len);
        protobuf_c_message_pack(message, buf);
    }
    payload->data = buf;
    return buf;
}

ProtobufCMessage *sv_message_copy(const ProtobufCMessage *message)
{
    ProtobufCBinaryData bytes = {0};
    g_autofree guint8 *buf = pack_payload(message, &bytes);

    return protobuf_c_message_unpack(message->descriptor, NULL, bytes.len, buf);
}

GBytes *sv_message_request(guint32 stream, const char *service, const char *method,
    const ProtobufCMessage *message, gint64 timeout_ns)
{
    Sandvirt__V1__Request request = SANDVIRT__V1__REQUEST__INIT;
    g_autofree guint8 *payload = pack_payload(message, &request.payload);

    request.service = (char *)service;
    request.method = (char *)method;
    request.timeout_nano = timeout_ns;
    return pack_frame(stream, SV_FRAME_REQUEST, &request.base);
}

GBytes *sv_message_response(guint32 stream, const ProtobufCMessage *message)
{
    Sandvirt__V1__Response response = SANDVIRT__V1__RESPONSE__INIT;
    g_autofree guint8 *payload = pack_payload(message, &response.payload);

    return pack_frame(stream, SV_FRAME_RESPONSE, &response.base);
}

GBytes *sv_message_error(guint32 stream, const GError *error)
{
    Sandvirt__V1__Response response = SANDVIRT__V1__RESPONSE__INIT;
    Sandvirt__V1__Status status = SANDVIRT__V1__STATUS__INIT;
    g_autofree char *text = NULL;

    text = g_utf8_make_valid(error ? error->message : "unknown error", -1);
    status.code = error ? error->code : SV_ERR_FAILED;
    status.message = text;
    response.status = &status;
    return pack_frame(stream, SV_FRAME_RESPONSE, &response.base);
}

static GBytes *pack_offset(
    guint32 handle, guint8 type, guint8 flags, guint64 offset, const void *data, gsize len)
{
    guint64 be = GUINT64_TO_BE(offset);
    guint8 *buf = g_malloc(SV_FRAME_HEADER + 8 + len);

    sv_frame_put_header(buf, (guint32)(8 + len), handle, type, flags);
    memcpy(buf + SV_FRAME_HEADER, &be, 8);
    if (len > 0)
        memcpy(buf + SV_FRAME_HEADER + 8, data, len);
    return g_bytes_new_take(buf, SV_FRAME_HEADER + 8 + len);
}

GBytes *sv_message_data(guint32 handle, guint8 flags, guint64 offset, const void *data, gsize len)
{
    g_return_val_if_fail(len <= SV_DATA_CHUNK, NULL);
    return pack_offset(handle, SV_FRAME_DATA, flags, offset, data, len);
}

GBytes *sv_message_ack(guint32 handle, guint8 flags, guint64 offset)
{
    return pack_offset(handle, SV_FRAME_ACK, flags, offset, NULL, 0);
}

/* ---- unpacking */

/* A few bytes can ask for millions of empty messages: memory is limited by the size of the input. A rule or a route
 * may take 30 times its size. */
static gsize memory_for(gsize len)
{
    return MIN(32 * len, 8 * len + 16 * 1024 * 1024) + 64 * 1024;
}

typedef struct {
    ProtobufCAllocator base;
    gsize left;
} BoundedAllocator;

static void *bounded_alloc(void *data, size_t size)
{
    BoundedAllocator *allocator = data;
    gsize cost = size + 16;

    if (cost > allocator->left)
        return NULL;
    allocator->left -= cost;
    return malloc(size);
}

static void bounded_free(void *data, void *pointer)
{
    free(pointer);
}

ProtobufCMessage *sv_message_unpack(
    const ProtobufCMessageDescriptor *type, const void *data, gsize len, GError **error)
{
    static const guint8 nothing[1] = {0};
    BoundedAllocator allocator = {{bounded_alloc, bounded_free, &allocator}, memory_for(len)};
    ProtobufCMessage *message;

    message = protobuf_c_message_unpack(type, &allocator.base, len, len > 0 ? data : nothing);
    if (!message)
        g_set_error(error, SV_RPC_ERROR, SV_ERR_INVALID,
            "malformed %s message of %" G_GSIZE_FORMAT " bytes", type->short_name, len);
    return message;
}

gboolean sv_request_parse(const SvFrame *frame, SvRequest *request, GError **error)
{
    Sandvirt__V1__Request *message;

    memset(request, 0, sizeof(*request));
    if (frame->type != SV_FRAME_REQUEST) {
        g_set_error(
            error, SV_RPC_ERROR, SV_ERR_INVALID, "frame of type %u is no request", frame->type);
        return FALSE;
    }
    message = (Sandvirt__V1__Request *)sv_message_unpack(
        &sandvirt__v1__request__descriptor, frame->payload, frame->length, error);
    if (!message)
        return FALSE;
    request->stream = frame->stream;
    request->service = message->service;
    request->method = message->method;
    request->payload = message->payload.data;
    request->payload_len = message->payload.len;
    request->timeout_ns = message->timeout_nano;
    request->storage = message;
    return TRUE;
}

void sv_request_clear(SvRequest *request)
{
    if (request->storage)
        sv_message_free(request->storage);
    memset(request, 0, sizeof(*request));
}

ProtobufCMessage *sv_response_parse(
    const SvFrame *frame, const ProtobufCMessageDescriptor *type, GError **error)
{
    Sandvirt__V1__Response *response;
    ProtobufCMessage *message = NULL;

    if (frame->type != SV_FRAME_RESPONSE) {
        g_set_error(
            error, SV_RPC_ERROR, SV_ERR_INVALID, "frame of type %u is no response", frame->type);
        return NULL;
    }
    response = (Sandvirt__V1__Response *)sv_message_unpack(
        &sandvirt__v1__response__descriptor, frame->payload, frame->length, error);
    if (!response)
        return NULL;
    if (response->status) {
        int code = response->status->code;
        g_autofree char *text = g_utf8_make_valid(response->status->message, -1);

        if (code < 0 || code >= SV_ERR_LAST)
            code = SV_ERR_FAILED;
        g_set_error_literal(error, SV_RPC_ERROR, code, *text ? text : "unknown error");
    } else if (type) {
        message = sv_message_unpack(type, response->payload.data, response->payload.len, error);
    }
    sv_message_free(response);
    return message;
}

gboolean sv_frame_parse_offset(
    const SvFrame *frame, guint64 *offset, const guint8 **data, gsize *len)
{
    guint64 be;

    if (frame->length < 8)
        return FALSE;
    memcpy(&be, frame->payload, 8);
    *offset = GUINT64_FROM_BE(be);
    if (data)
        *data = frame->payload + 8;
    if (len)
        *len = frame->length - 8;
    return TRUE;
}
