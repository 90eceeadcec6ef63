/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ttRPC framing: a 10-byte header (u32 BE payload length, u32 BE stream id, u8 type, u8 flags) and
 * the payload. The same frames travel agent <-> monitor (virtio-serial), shim <-> monitor and command
 * line <-> monitor (unix sockets). Loop-agnostic: bytes in, frames out.
 *
 * Types REQUEST, RESPONSE carry protobuf Request/Response (sandvirt.proto). The side that connects
 * uses odd stream ids, the other side even ones. DATA and ACK are ours: stream id = handle of a
 * process (unique in its sandbox), flags = stream | bits below, payload = u64 BE offset of the first byte,
 * then the bytes (DATA), or u64 BE offset up to which everything was consumed (ACK). */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define SV_RPC_ERROR (sv_rpc_error_quark())
GQuark sv_rpc_error_quark(void);

#define SV_FRAME_HEADER 10
#define SV_FRAME_MAX (4u * 1024 * 1024) /* ttRPC's limit for one payload */
#define SV_DATA_CHUNK (256u * 1024) /* most bytes of a stream in one DATA frame */
#define SV_STREAM_WINDOW (1024u * 1024) /* most unacknowledged bytes of one stream */

typedef enum {
    SV_FRAME_REQUEST = 1,
    SV_FRAME_RESPONSE = 2,
    SV_FRAME_DATA = 3,
    SV_FRAME_ACK = 4,
} SvFrameType;

/* Handles with this bit are connections forwarded to the guest's localhost, chosen by the host. */
#define SV_FORWARD_HANDLE 0x80000000u

/* Handles with this bit are descriptors that a process gets beside its three (--preserve-fds): the streams 0
 * and 1 are what goes to the guest and what comes from it. */
#define SV_DESCRIPTOR_HANDLE 0x40000000u
#define SV_DESCRIPTORS_MAX 32
#define SV_DESCRIPTOR_OWNERS 0x1000000u /* handles of processes that can have some are below */
static inline guint32 sv_descriptor_handle(guint32 process, guint index)
{
    return SV_DESCRIPTOR_HANDLE | index << 24 | process;
}
static inline guint32 sv_descriptor_owner(guint32 handle)
{
    return handle & (SV_DESCRIPTOR_OWNERS - 1);
}
static inline guint sv_descriptor_index(guint32 handle)
{
    return handle >> 24 & 0x3f;
}

/* flags of DATA and ACK */
#define SV_STREAM_STDIN 0
#define SV_STREAM_STDOUT 1
#define SV_STREAM_STDERR 2
#define SV_STREAM_MASK 0x03
#define SV_FLAG_EOF 0x04 /* DATA: the stream ends after these bytes (which may be none) */
#define SV_FLAG_BROKEN                                                                             \
    0x08 /* ACK: the reader is gone, writer gets EPIPE; nothing more is wanted. Of a forwarded \
                              connection: it was reset; of DATA with EOF, after these bytes */

typedef struct {
    guint32 length; /* of payload */
    guint32 stream;
    guint8 type;
    guint8 flags;
    const guint8 *payload; /* borrowed from the reader until the next call on it */
} SvFrame;

void sv_frame_put_header(
    guint8 out[SV_FRAME_HEADER], guint32 length, guint32 stream, guint8 type, guint8 flags);

/* ---- incremental reader: never trusts the peer */
typedef struct SvFrameReader SvFrameReader;
/* Payloads above @max_payload are an error (SV_ERR_LIMIT); memory never grows beyond it. */
SvFrameReader *sv_frame_reader_new(guint32 max_payload) G_GNUC_WARN_UNUSED_RESULT;
void sv_frame_reader_free(SvFrameReader *reader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvFrameReader, sv_frame_reader_free)
/* Space to read(2) into: at least 1 byte, at most 256 KiB + header; then tell how much came. */
guint8 *sv_frame_reader_space(SvFrameReader *reader, gsize *room);
void sv_frame_reader_added(SvFrameReader *reader, gsize len);
void sv_frame_reader_push(SvFrameReader *reader, const void *data, gsize len); /* copies */
/* 1: @frame is set; 0: more bytes needed; -1: broken peer (unknown type, too long), @error. */
int sv_frame_reader_next(SvFrameReader *reader, SvFrame *frame, GError **error);
/* TRUE: the first bytes of a frame are there, not yet all. */
gboolean sv_frame_reader_is_amid(const SvFrameReader *reader);
/* Drops everything buffered, also half a frame. */
void sv_frame_reader_reset(SvFrameReader *reader);

/* ---- session synchronisation on the virtio-serial channel
 *
 * The byte stream survives a change of the host's end in the middle of a frame, both ways. So every
 * host connection starts with MAGIC(16) TOKEN(16) SESSION(16) and the agent answers MAGIC(16)
 * SESSION(16); each side drops everything before the pattern. TOKEN is chosen at random by the
 * monitor when the sandbox is made (kept in the sandbox record): once the agent has one, only
 * MAGIC+TOKEN counts, so no workload data can forge it. SESSION is random per connection.
 * Both feed the guest's random numbers, so take them from getrandom(2). */
#define SV_SYNC_MAGIC_LEN 16
#define SV_SYNC_ID_LEN 16
extern const guint8 sv_sync_magic[SV_SYNC_MAGIC_LEN];

typedef struct SvSyncScanner SvSyncScanner;
/* Looks for @pattern (copied, 1..64 bytes) followed by @tail_len more bytes, across calls. */
SvSyncScanner *sv_sync_scanner_new(const guint8 *pattern, gsize len, gsize tail_len);
void sv_sync_scanner_free(SvSyncScanner *scanner);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvSyncScanner, sv_sync_scanner_free)
/* Feeds bytes. Returns the number of bytes consumed up to and including pattern and tail when they
 * were completed by this data (@tail gets the tail_len bytes), or 0 when not (all consumed). After
 * a find go on with the rest: a pattern that begins inside the found tail is found too. */
gsize sv_sync_scanner_feed(SvSyncScanner *scanner, const void *data, gsize len, guint8 *tail);

G_END_DECLS
