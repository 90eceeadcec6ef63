/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bytes of a stream that the host has not acknowledged, by offset. Grows up to a limit. */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

typedef struct {
    guint8 *buf;
    gsize cap;
    gsize head; /* index of the first byte */
    gsize len;
    gsize max;
    guint64 base; /* offset of the first byte in its stream */
} SvRing;

void sv_ring_init(SvRing *ring, gsize max);
void sv_ring_clear(SvRing *ring); /* frees the memory, keeps the offset of the end */
/* Offset after the last byte. */
static inline guint64 sv_ring_end(const SvRing *ring)
{
    return ring->base + ring->len;
}
/* Bytes that may still be added. */
static inline gsize sv_ring_room(const SvRing *ring)
{
    return ring->max - ring->len;
}
/* Adds at most sv_ring_room() bytes; returns how many. */
gsize sv_ring_append(SvRing *ring, const void *data, gsize len);
/* One writev(2) of at most @max bytes from the start, which are not dropped: its result. */
ssize_t sv_ring_write_fd(SvRing *ring, int fd, gsize max);
/* Copies out from @offset, which must lie in the ring; returns how many bytes. */
gsize sv_ring_peek(const SvRing *ring, guint64 offset, void *data, gsize len);
/* Drops everything before @offset; out of range is clipped. */
void sv_ring_drop(SvRing *ring, guint64 offset);

G_END_DECLS
