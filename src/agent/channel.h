/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The channel to the host: sessions (rpc/frame.h), frames in, a write queue out. The port is watched
 * edge-triggered: while the host's end is closed poll(2) reports a hang-up all the time. */
#pragma once

#include "rpc/frame.h"

G_BEGIN_DECLS

typedef struct SvChannel SvChannel;

typedef struct {
    /* The host began a new session; whatever was under way on the former is void. @random: the ids
     * of the handshake, which the host chose at random and no workload knows. */
    void (*synced)(const guint8 *random, gsize len, gpointer user_data);
    void (*frame)(const SvFrame *frame, gpointer user_data);
} SvChannelFuncs;

/* Someone who has bytes to send, served in turn while the queue is short. Embedded by the owner. */
typedef struct SvChannelWaiter SvChannelWaiter;
struct SvChannelWaiter {
    /* Sends one frame; TRUE when there is more. */
    gboolean (*func)(SvChannelWaiter *waiter);
    gboolean queued;
};

/* Takes @fd, which is made non-blocking. NULL with @error. */
SvChannel *sv_channel_new(int fd, const SvChannelFuncs *funcs, gpointer user_data, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_channel_free(SvChannel *channel);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvChannel, sv_channel_free)

/* Counts sessions; 0 when there is none. */
guint64 sv_channel_session(const SvChannel *channel);
/* Queues a frame (transfer full) at the end; without a session it is dropped. */
void sv_channel_send(SvChannel *channel, GBytes *frame);
/* Serves @waiter now or as soon as the queue is short, until it has no more. */
void sv_channel_wait(SvChannel *channel, SvChannelWaiter *waiter);
void sv_channel_forget_waiter(SvChannel *channel, SvChannelWaiter *waiter);

G_END_DECLS
