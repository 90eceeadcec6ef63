/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/backlog.h"
#include "rpc/frame.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD (SV_FRAME_HEADER + 8) /* the frame's header and the offset */
#define BLOCK (HEAD + SV_DATA_CHUNK)
/* A read of less is not worth the rest of a block. */
#define READ_MIN (32u * 1024)
/* What keeps a piece beside its bytes: single bytes that nobody takes must not fill the memory. */
#define PIECE_COST 128u

/* Mapped, not from the heap: that would give it back to the kernel and fault it in again for every frame. */
struct SvBacklogBlock {
    gint refs;
    gsize used;
    guint8 *data;
};

typedef struct {
    SvBacklogBlock *block;
    guint8 *data; /* after room for HEAD */
    gsize len;
    gboolean taken; /* it may still wait to be written: its length does not change any more */
} Piece;

static SvBacklogBlock *block_new(void)
{
    SvBacklogBlock *block = g_new0(SvBacklogBlock, 1);

    block->refs = 1;
    block->data = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block->data == MAP_FAILED)
        g_error("no memory for the output of a process");
    return block;
}

static void block_unref(gpointer data)
{
    SvBacklogBlock *block = data;

    if (--block->refs > 0)
        return;
    munmap(block->data, BLOCK);
    g_free(block);
}

void sv_backlog_init(SvBacklog *backlog, guint32 handle, guint8 stream, gsize max)
{
    memset(backlog, 0, sizeof(*backlog));
    backlog->handle = handle;
    backlog->stream = stream;
    backlog->max = max;
    g_queue_init(&backlog->pieces);
    g_queue_init(&backlog->spare);
}

static void piece_free(SvBacklog *backlog, Piece *piece)
{
    SvBacklogBlock *block = piece->block;

    g_free(piece);
    if (block == backlog->filling) {
        block->refs--;
        if (block->refs == 1)
            block->used = 0;
    } else if (block->refs == 1 && g_queue_get_length(&backlog->spare) * BLOCK < backlog->max) {
        block->used = 0;
        g_queue_push_tail(&backlog->spare, block);
    } else {
        block_unref(block);
    }
}

void sv_backlog_clear(SvBacklog *backlog)
{
    backlog->base = sv_backlog_end(backlog);
    backlog->len = 0;
    backlog->unsent = NULL;
    for (Piece *piece; (piece = g_queue_pop_head(&backlog->pieces));)
        piece_free(backlog, piece);
    g_clear_pointer(&backlog->filling, block_unref);
    g_queue_clear_full(&backlog->spare, block_unref);
}

/* A block with a place for a frame; *at is where its bytes go. */
static SvBacklogBlock *place(SvBacklog *backlog, gsize *at)
{
    SvBacklogBlock *block = backlog->filling;

    if (block && block->used + HEAD + READ_MIN > BLOCK) {
        g_clear_pointer(&backlog->filling, block_unref);
        block = NULL;
    }
    if (!block) {
        block = g_queue_pop_tail(&backlog->spare);
        if (!block)
            block = block_new();
        backlog->filling = block;
    }
    *at = block->used + HEAD;
    return block;
}

/* The last piece, when it was not taken and the next bytes can go behind it. */
static Piece *open_piece(SvBacklog *backlog)
{
    Piece *last = backlog->unsent ? g_queue_peek_tail(&backlog->pieces) : NULL;

    if (!last || last->taken || last->block != backlog->filling ||
        last->len + READ_MIN > SV_DATA_CHUNK || last->block->used + READ_MIN > BLOCK)
        return NULL;
    return last;
}

gsize sv_backlog_room(const SvBacklog *backlog)
{
    gsize cost = backlog->len + PIECE_COST * backlog->pieces.length;

    return cost < backlog->max ? backlog->max - cost : 0;
}

ssize_t sv_backlog_read(SvBacklog *backlog, int fd)
{
    gsize room = MIN(sv_backlog_room(backlog), (gsize)SV_DATA_CHUNK), at;
    Piece *piece = open_piece(backlog);
    SvBacklogBlock *block;
    ssize_t n;

    if (piece) {
        block = piece->block;
        at = block->used;
        room = MIN(room, SV_DATA_CHUNK - piece->len);
    } else {
        block = place(backlog, &at);
    }
    n = read(fd, block->data + at, MIN(room, BLOCK - at));
    if (n <= 0)
        return n;
    if (!piece) {
        piece = g_new0(Piece, 1);
        piece->block = block;
        piece->data = block->data + at;
        block->refs++;
        g_queue_push_tail(&backlog->pieces, piece);
        if (!backlog->unsent)
            backlog->unsent = backlog->pieces.tail;
    }
    piece->len += (gsize)n;
    block->used = at + (gsize)n;
    backlog->len += (gsize)n;
    return n;
}

static void put_head(const SvBacklog *backlog, guint8 *head, gsize len, guint8 flags)
{
    guint64 be = GUINT64_TO_BE(backlog->sent);

    sv_frame_put_header(
        head, (guint32)(8 + len), backlog->handle, SV_FRAME_DATA, backlog->stream | flags);
    memcpy(head + SV_FRAME_HEADER, &be, sizeof(be));
}

GBytes *sv_backlog_take(SvBacklog *backlog, guint8 end)
{
    Piece *piece = backlog->unsent ? backlog->unsent->data : NULL;
    guint8 flags = !piece || !backlog->unsent->next ? end : 0;
    guint8 empty[HEAD];

    if (!piece) {
        put_head(backlog, empty, 0, flags);
        return g_bytes_new(empty, HEAD);
    }
    put_head(backlog, piece->data - HEAD, piece->len, flags);
    piece->taken = TRUE;
    backlog->unsent = backlog->unsent->next;
    backlog->sent += piece->len;
    piece->block->refs++;
    return g_bytes_new_with_free_func(
        piece->data - HEAD, HEAD + piece->len, block_unref, piece->block);
}

void sv_backlog_rewind(SvBacklog *backlog)
{
    backlog->unsent = backlog->pieces.head;
    backlog->sent = backlog->base;
}

void sv_backlog_drop(SvBacklog *backlog, guint64 offset)
{
    while (offset > backlog->base && backlog->pieces.head) {
        Piece *piece = backlog->pieces.head->data;
        gsize n = (gsize)MIN(offset - backlog->base, (guint64)piece->len);

        backlog->base += n;
        backlog->len -= n;
        piece->data += n;
        piece->len -= n;
        if (piece->len > 0)
            break;
        if (backlog->unsent == backlog->pieces.head)
            backlog->unsent = backlog->unsent->next;
        piece_free(backlog, g_queue_pop_head(&backlog->pieces));
    }
    backlog->sent = MAX(backlog->sent, backlog->base);
}
