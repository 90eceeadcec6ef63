/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A connection of the shim: to its monitor or to the launcher. Non-blocking; bytes out wait in a queue. */
#pragma once

#include "base/fd.h"
#include "rpc/message.h"
#include "shim/streams.h"

G_BEGIN_DECLS

typedef struct {
    int fd; /* -1: none */
    SvFrameReader *reader;
    SvByteQueue out;
    int fds[SV_FD_MAX_PASS]; /* came and were not taken yet, owned */
    guint n_fds;
    guint32 next_stream; /* of our requests: odd */
} SvPeer;

void sv_peer_init(SvPeer *peer);
/* Connects to the socket @name in the folder @dir_fd. Uses the current folder, which is "/" afterwards:
 * needs no /proc and trusts no path in the container's root. */
gboolean sv_peer_connect(SvPeer *peer, int dir_fd, const char *name, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_peer_close(SvPeer *peer);
/* Takes @bytes. Without a connection they are dropped. */
void sv_peer_send(SvPeer *peer, GBytes *bytes);
/* Returns the stream id that the answer will have. */
guint32 sv_peer_request(
    SvPeer *peer, const char *service, const char *method, const ProtobufCMessage *message);
/* What poll shall wait for. */
short sv_peer_events(const SvPeer *peer);
/* FALSE: the connection is over (not yet closed here). */
gboolean sv_peer_flush(SvPeer *peer);
gboolean sv_peer_fill(SvPeer *peer); /* one read */
/* As sv_frame_reader_next. */
int sv_peer_next(SvPeer *peer, SvFrame *frame, GError **error);
/* The oldest descriptor that came (caller closes), -1: none. */
int sv_peer_take_fd(SvPeer *peer);

G_END_DECLS
