/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/streams.h"
#include <string.h>

SV_DEFINE_ERROR_QUARK(shim)

/* ---- bytes */

void sv_byte_queue_clear(SvByteQueue *queue)
{
    g_free(queue->data);
    memset(queue, 0, sizeof(*queue));
}

void sv_byte_queue_push(SvByteQueue *queue, const void *data, gsize len)
{
    if (len == 0)
        return;
    if (queue->head + queue->len + len > queue->size) {
        gsize size = MAX(queue->size, 4096);

        while (size < queue->len + len)
            size *= 2;
        if (size > queue->size) {
            guint8 *grown = g_malloc(size);

            if (queue->len > 0)
                memcpy(grown, queue->data + queue->head, queue->len);
            g_free(queue->data);
            queue->data = grown;
            queue->size = size;
        } else {
            memmove(queue->data, queue->data + queue->head, queue->len);
        }
        queue->head = 0;
    }
    memcpy(queue->data + queue->head + queue->len, data, len);
    queue->len += len;
}

void sv_byte_queue_drop(SvByteQueue *queue, gsize len)
{
    g_return_if_fail(len <= queue->len);
    queue->head += len;
    queue->len -= len;
    if (queue->len == 0)
        sv_byte_queue_clear(queue);
}

/* ---- output */

void sv_output_clear(SvOutput *output)
{
    sv_byte_queue_clear(&output->waiting);
}

gboolean sv_output_data(
    SvOutput *output, guint64 offset, const guint8 *data, gsize len, gboolean eof, GError **error)
{
    guint64 known = output->written + output->waiting.len;
    gsize old;

    if (offset > known) {
        g_set_error(error, SV_SHIM_ERROR, SV_ERR_INVALID,
            "output at %" G_GUINT64_FORMAT " where %" G_GUINT64_FORMAT " comes next", offset,
            known);
        return FALSE;
    }
    old = (gsize)MIN(known - offset, (guint64)len);
    data += old;
    len -= old;
    if (output->eof && len > 0) {
        g_set_error(error, SV_SHIM_ERROR, SV_ERR_INVALID, "output after its end");
        return FALSE;
    }
    if (output->broken) {
        output->written += len;
        output->ack = TRUE;
        output->eof |= eof;
        return TRUE;
    }
    if (output->waiting.len + len > SV_STREAM_WINDOW) {
        g_set_error(error, SV_SHIM_ERROR, SV_ERR_LIMIT, "more output than the window allows");
        return FALSE;
    }
    sv_byte_queue_push(&output->waiting, data, len);
    /* The sender may not know what was acknowledged on an earlier connection. */
    output->ack |= old > 0;
    output->eof |= eof;
    return TRUE;
}

void sv_output_wrote(SvOutput *output, gsize len)
{
    sv_byte_queue_drop(&output->waiting, len);
    output->written += len;
    output->ack |= len > 0;
}

void sv_output_break(SvOutput *output)
{
    sv_output_wrote(output, output->waiting.len);
    output->broken = TRUE;
    output->ack = TRUE;
}

gboolean sv_output_drained(const SvOutput *output)
{
    return output->waiting.len == 0;
}

/* ---- input */

void sv_input_clear(SvInput *input)
{
    sv_byte_queue_clear(&input->unacked);
}

gsize sv_input_room(const SvInput *input)
{
    if (input->eof || input->broken || input->unacked.len >= SV_STREAM_WINDOW)
        return 0;
    return SV_STREAM_WINDOW - input->unacked.len;
}

void sv_input_read(SvInput *input, const guint8 *data, gsize len)
{
    g_return_if_fail(len <= sv_input_room(input));
    sv_byte_queue_push(&input->unacked, data, len);
}

void sv_input_end(SvInput *input)
{
    input->eof = TRUE;
}

gboolean sv_input_next(
    SvInput *input, guint64 *offset, const guint8 **data, gsize *len, gboolean *eof)
{
    gsize left = input->unacked.len - input->sent;

    if (input->broken || (left == 0 && (!input->eof || input->eof_sent)))
        return FALSE;
    *offset = input->acked + input->sent;
    *data = left > 0 ? sv_byte_queue_peek(&input->unacked) + input->sent : NULL;
    *len = MIN(left, SV_DATA_CHUNK);
    *eof = input->eof && *len == left;
    input->sent += *len;
    input->eof_sent |= *eof;
    return TRUE;
}

gboolean sv_input_ack(SvInput *input, guint64 offset, gboolean broken, GError **error)
{
    gsize taken;

    if (broken) {
        input->broken = TRUE;
        input->acked = MAX(offset, input->acked);
        sv_byte_queue_clear(&input->unacked);
        input->sent = 0;
        return TRUE;
    }
    if (input->broken || offset <= input->acked)
        return TRUE;
    if (offset - input->acked > input->unacked.len) {
        g_set_error(error, SV_SHIM_ERROR, SV_ERR_INVALID,
            "input acknowledged up to %" G_GUINT64_FORMAT ", read up to %" G_GUINT64_FORMAT, offset,
            input->acked + input->unacked.len);
        return FALSE;
    }
    taken = (gsize)(offset - input->acked);
    sv_byte_queue_drop(&input->unacked, taken);
    input->acked = offset;
    /* What was acknowledged on an earlier connection need not be sent again. */
    input->sent = input->sent > taken ? input->sent - taken : 0;
    return TRUE;
}

void sv_input_rewind(SvInput *input)
{
    input->sent = 0;
    input->eof_sent = FALSE;
}
