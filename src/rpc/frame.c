/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rpc/frame.h"
#include "base/error.h"
#include <string.h>

SV_DEFINE_ERROR_QUARK(rpc)

/* Room offered to one read(2): a whole DATA chunk with its header. */
#define READ_ROOM (SV_DATA_CHUNK + SV_FRAME_HEADER)

struct SvFrameReader {
    guint32 max_payload;
    guint8 *buf;
    gsize cap;
    gsize start; /* first byte not yet handed out */
    gsize end; /* end of the valid bytes */
    gboolean broken;
};

void sv_frame_put_header(
    guint8 out[SV_FRAME_HEADER], guint32 length, guint32 stream, guint8 type, guint8 flags)
{
    guint32 be = GUINT32_TO_BE(length);

    memcpy(out, &be, 4);
    be = GUINT32_TO_BE(stream);
    memcpy(out + 4, &be, 4);
    out[8] = type;
    out[9] = flags;
}

SvFrameReader *sv_frame_reader_new(guint32 max_payload)
{
    SvFrameReader *reader = g_new0(SvFrameReader, 1);

    reader->max_payload = max_payload;
    return reader;
}

void sv_frame_reader_free(SvFrameReader *reader)
{
    if (!reader)
        return;
    g_free(reader->buf);
    g_free(reader);
}

static guint32 get_be32(const guint8 *p)
{
    guint32 be;

    memcpy(&be, p, 4);
    return GUINT32_FROM_BE(be);
}

/* Bytes the frame at the start needs in all, or the header's size while that is not complete. */
static gsize frame_need(const SvFrameReader *reader)
{
    if (reader->end - reader->start < SV_FRAME_HEADER)
        return SV_FRAME_HEADER;
    return (gsize)SV_FRAME_HEADER + get_be32(reader->buf + reader->start);
}

static void reader_reserve(SvFrameReader *reader, gsize room)
{
    gsize used = reader->end - reader->start;

    if (reader->cap - reader->end >= room)
        return;
    if (reader->start > 0) {
        memmove(reader->buf, reader->buf + reader->start, used);
        reader->start = 0;
        reader->end = used;
    }
    if (reader->cap - reader->end < room) {
        reader->cap = reader->end + room;
        reader->buf = g_realloc(reader->buf, reader->cap);
    }
}

guint8 *sv_frame_reader_space(SvFrameReader *reader, gsize *room)
{
    gsize want = READ_ROOM;

    if (reader->start == reader->end)
        reader->start = reader->end = 0;
    if (!reader->broken) {
        /* Never more than one frame of the biggest size lies in the buffer: read what it lacks. */
        gsize used = reader->end - reader->start;
        gsize limit = (gsize)reader->max_payload + SV_FRAME_HEADER;
        gsize need = frame_need(reader);

        if (used < need && need <= limit && used + want > MAX(limit, (gsize)READ_ROOM))
            want = need - used;
    }
    reader_reserve(reader, want);
    *room = MIN(reader->cap - reader->end, (gsize)READ_ROOM);
    return reader->buf + reader->end;
}

void sv_frame_reader_added(SvFrameReader *reader, gsize len)
{
    g_return_if_fail(len <= reader->cap - reader->end);
    reader->end += len;
}

void sv_frame_reader_push(SvFrameReader *reader, const void *data, gsize len)
{
    if (len == 0)
        return;
    if (reader->start == reader->end)
        reader->start = reader->end = 0;
    reader_reserve(reader, len);
    memcpy(reader->buf + reader->end, data, len);
    reader->end += len;
}

int sv_frame_reader_next(SvFrameReader *reader, SvFrame *frame, GError **error)
{
    const guint8 *p;
    gsize used = reader->end - reader->start;
    guint32 length;
    guint8 type;

    if (reader->broken) {
        g_set_error(error, SV_RPC_ERROR, SV_ERR_INVALID, "frame stream is broken");
        return -1;
    }
    if (used < SV_FRAME_HEADER)
        return 0;

    p = reader->buf + reader->start;
    length = get_be32(p);
    type = p[8];
    if (type < SV_FRAME_REQUEST || type > SV_FRAME_ACK) {
        reader->broken = TRUE;
        g_set_error(error, SV_RPC_ERROR, SV_ERR_INVALID, "frame of unknown type %u", type);
        return -1;
    }
    if (length > reader->max_payload) {
        reader->broken = TRUE;
        g_set_error(error, SV_RPC_ERROR, SV_ERR_LIMIT, "frame of %u bytes exceeds the limit of %u",
            length, reader->max_payload);
        return -1;
    }
    if (used - SV_FRAME_HEADER < length)
        return 0;

    frame->length = length;
    frame->stream = get_be32(p + 4);
    frame->type = type;
    frame->flags = p[9];
    frame->payload = p + SV_FRAME_HEADER;
    reader->start += SV_FRAME_HEADER + (gsize)length;
    return 1;
}

gboolean sv_frame_reader_is_amid(const SvFrameReader *reader)
{
    return reader->end > reader->start;
}

void sv_frame_reader_reset(SvFrameReader *reader)
{
    reader->start = reader->end = 0;
    reader->broken = FALSE;
}
