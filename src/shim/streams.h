/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the shim knows of its three streams, apart from all input and output: how far output was
 * written, which bytes of it wait, which input is not yet acknowledged. Offsets count bytes from the
 * start of the stream. Both survive a change of the monitor. */
#pragma once

#include "base/error.h"
#include "rpc/frame.h"

G_BEGIN_DECLS

#define SV_SHIM_ERROR (sv_shim_error_quark())
GQuark sv_shim_error_quark(void);

/* A queue of bytes. Memory is held only while there are some. */
typedef struct {
    guint8 *data; /* owned */
    gsize head, len, size;
} SvByteQueue;
void sv_byte_queue_clear(SvByteQueue *queue);
void sv_byte_queue_push(SvByteQueue *queue, const void *data, gsize len);
/* @len <= queue->len */
void sv_byte_queue_drop(SvByteQueue *queue, gsize len);
static inline const guint8 *sv_byte_queue_peek(const SvByteQueue *queue)
{
    return queue->data + queue->head;
}

/* ---- output: monitor -> caller */
typedef struct {
    guint64 written; /* all before it was taken by the caller's descriptor (or is not wanted) */
    SvByteQueue waiting; /* the bytes from there on */
    gboolean eof; /* the stream ends behind the waiting bytes */
    gboolean broken; /* the caller does not read any more */
    gboolean ack; /* an ACK is due */
} SvOutput;
void sv_output_clear(SvOutput *output);
/* A DATA frame: what is known already is dropped; a gap, or more than the window, is an error. */
gboolean sv_output_data(SvOutput *output, guint64 offset, const guint8 *data, gsize len,
    gboolean eof, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* @len of the waiting bytes were written. */
void sv_output_wrote(SvOutput *output, gsize len);
/* The reader is gone: nothing waits any more. */
void sv_output_break(SvOutput *output);
/* Everything was written or is not wanted. */
gboolean sv_output_drained(const SvOutput *output);

/* ---- input: caller -> monitor */
typedef struct {
    guint64 acked; /* all before it reached the workload */
    SvByteQueue unacked; /* the bytes from there on, kept for sending them again */
    gsize sent; /* how many of them were sent on this connection */
    gboolean eof; /* the caller's input ended behind them */
    gboolean eof_sent; /* and that was said on this connection */
    gboolean broken; /* the workload does not read any more */
} SvInput;
void sv_input_clear(SvInput *input);
/* How many bytes may be read from the caller now: 0 at the end, when broken, or for want of window. */
gsize sv_input_room(const SvInput *input);
void sv_input_read(SvInput *input, const guint8 *data, gsize len);
void sv_input_end(SvInput *input);
/* The next DATA frame to send: FALSE when there is none. Data is borrowed until the next call. */
gboolean sv_input_next(
    SvInput *input, guint64 *offset, const guint8 **data, gsize *len, gboolean *eof);
/* An ACK frame; beyond what was read is an error, before what is known is ignored. */
gboolean sv_input_ack(SvInput *input, guint64 offset, gboolean broken, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* A new connection: everything unacknowledged is sent again. */
void sv_input_rewind(SvInput *input);

G_END_DECLS
