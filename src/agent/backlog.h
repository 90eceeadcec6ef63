/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was read of an output stream and the host has not acknowledged, by offset. It lies in memory as the DATA
 * frames that carry it, so that nothing is copied between the read and the write, nor for a repetition. */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

typedef struct SvBacklogBlock SvBacklogBlock;

typedef struct {
    guint32 handle;
    guint8 stream;
    gsize max;
    guint64 base; /* offset in the stream of the first byte that is kept */
    guint64 sent; /* offset up to which frames were taken since the last rewind */
    gsize len; /* bytes that are kept */
    GQueue pieces; /* oldest first, each is one frame or the rest of one */
    GList *unsent; /* of pieces, the first that was not taken */
    SvBacklogBlock *filling; /* where the next read goes */
    GQueue spare; /* of SvBacklogBlock: memory that comes into use again */
} SvBacklog;

/* @handle, @stream: what the frames say. At most @max bytes are kept. */
void sv_backlog_init(SvBacklog *backlog, guint32 handle, guint8 stream, gsize max);
void sv_backlog_clear(SvBacklog *backlog); /* frees the memory, keeps the offset of the end */
/* Offset after the last byte. */
static inline guint64 sv_backlog_end(const SvBacklog *backlog)
{
    return backlog->base + backlog->len;
}
/* Bytes that may still be added: @max, less what is kept and what keeping it in pieces costs. */
gsize sv_backlog_room(const SvBacklog *backlog);
/* TRUE: there are bytes that were not taken since the last rewind. */
static inline gboolean sv_backlog_unsent(const SvBacklog *backlog)
{
    return backlog->unsent != NULL;
}
/* One read(2) from @fd while there is room: its result. */
ssize_t sv_backlog_read(SvBacklog *backlog, int fd);
/* The next frame (transfer full), without bytes when all were taken; @end: what the frame with the last byte that is
 * here says besides, SV_FLAG_EOF for one. */
GBytes *sv_backlog_take(SvBacklog *backlog, guint8 end);
/* The next frame begins with the first byte that is kept. Nothing that was taken before is used any more. */
void sv_backlog_rewind(SvBacklog *backlog);
/* Drops everything before @offset; out of range is clipped. */
void sv_backlog_drop(SvBacklog *backlog, guint64 offset);

G_END_DECLS
