/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/ring.h"
#include <string.h>
#include <sys/uio.h>

#define FIRST_CAP (64u * 1024)

void sv_ring_init(SvRing *ring, gsize max)
{
    memset(ring, 0, sizeof(*ring));
    ring->max = max;
}

void sv_ring_clear(SvRing *ring)
{
    g_free(ring->buf);
    ring->buf = NULL;
    ring->base += ring->len;
    ring->cap = ring->head = ring->len = 0;
}

static void ring_grow(SvRing *ring, gsize want)
{
    gsize cap = MAX(ring->cap, MIN((gsize)FIRST_CAP, ring->max));
    guint8 *buf;

    while (cap < want && cap < ring->max)
        cap = MIN(cap * 2, ring->max);
    if (cap == ring->cap)
        return;
    buf = g_malloc(cap);
    sv_ring_peek(ring, ring->base, buf, ring->len);
    g_free(ring->buf);
    ring->buf = buf;
    ring->cap = cap;
    ring->head = 0;
}

/* The (one or two) pieces of @len bytes that start @skip bytes after the head. */
static int ring_pieces(const SvRing *ring, gsize skip, gsize len, struct iovec iov[2])
{
    gsize start, first;

    if (len == 0)
        return 0;
    start = (ring->head + skip) % ring->cap;
    first = MIN(len, ring->cap - start);
    iov[0].iov_base = ring->buf + start;
    iov[0].iov_len = first;
    if (first == len)
        return 1;
    iov[1].iov_base = ring->buf;
    iov[1].iov_len = len - first;
    return 2;
}

gsize sv_ring_append(SvRing *ring, const void *data, gsize len)
{
    struct iovec iov[2];
    const guint8 *p = data;
    gsize n = MIN(len, sv_ring_room(ring));
    int pieces;

    ring_grow(ring, ring->len + n);
    pieces = ring_pieces(ring, ring->len, n, iov);
    for (int i = 0; i < pieces; i++) {
        memcpy(iov[i].iov_base, p, iov[i].iov_len);
        p += iov[i].iov_len;
    }
    ring->len += n;
    return n;
}

ssize_t sv_ring_write_fd(SvRing *ring, int fd, gsize max)
{
    struct iovec iov[2];

    return writev(fd, iov, ring_pieces(ring, 0, MIN(ring->len, max), iov));
}

gsize sv_ring_peek(const SvRing *ring, guint64 offset, void *data, gsize len)
{
    struct iovec iov[2];
    guint8 *p = data;
    gsize n;
    int pieces;

    g_return_val_if_fail(offset >= ring->base && offset <= sv_ring_end(ring), 0);
    n = MIN(len, (gsize)(sv_ring_end(ring) - offset));
    pieces = ring_pieces(ring, (gsize)(offset - ring->base), n, iov);
    for (int i = 0; i < pieces; i++) {
        memcpy(p, iov[i].iov_base, iov[i].iov_len);
        p += iov[i].iov_len;
    }
    return n;
}

void sv_ring_drop(SvRing *ring, guint64 offset)
{
    gsize n;

    if (offset <= ring->base)
        return;
    n = (gsize)MIN(offset - ring->base, (guint64)ring->len);
    if (n == 0)
        return;
    ring->head = (ring->head + n) % ring->cap;
    ring->len -= n;
    ring->base += n;
    if (ring->len == 0)
        ring->head = 0;
}
