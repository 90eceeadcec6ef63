/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One output stream of a process: read from its pipe or terminal, kept until the host acknowledges
 * it, sent in DATA frames. It flows when the host is attached to it (on this connection). */
#pragma once

#include "agent/backlog.h"
#include "agent/channel.h"

G_BEGIN_DECLS

typedef struct SvOutput SvOutput;
/* The stream is over (sv_output_done) or a later state of it was sent. */
typedef void (*SvOutputFunc)(SvOutput *output, gpointer user_data);

struct SvOutput {
    SvChannelWaiter waiter; /* first */
    SvChannel *channel; /* not owned */
    guint32 handle;
    SvOutputFunc func;
    gpointer user_data;

    int fd; /* -1: no more to be read */
    guint source;
    SvBacklog backlog;
    gboolean greeted; /* the connection's Hello was answered */
    gboolean attached; /* the host wants it on this connection */
    gboolean ended; /* the process is gone: what its pipe holds now is the rest */
    gboolean eof; /* nothing is added to the backlog any more */
    gboolean eof_sent; /* on this connection */
    gboolean broken; /* the host wants nothing more of it */
    gboolean connection; /* one can be reset, which is no end of file */
    gboolean reset; /* it was: told with the end */
};

/* Takes @fd and makes it non-blocking; nothing is read before sv_output_start(). */
SvOutput *sv_output_new(SvChannel *channel, guint32 handle, guint8 stream, int fd,
    SvOutputFunc func, gpointer user_data) G_GNUC_WARN_UNUSED_RESULT;
void sv_output_free(SvOutput *output);
/* Starts reading; @attached: the host follows it from its first byte. */
void sv_output_start(SvOutput *output, gboolean attached);
/* A new connection began: nothing flows before sv_output_greet() and sv_output_attach(). */
void sv_output_reset(SvOutput *output);
void sv_output_greet(SvOutput *output);
/* (Re)starts the flow at @offset, which acknowledges what is before it. */
void sv_output_attach(SvOutput *output, guint64 offset);
void sv_output_ack(SvOutput *output, guint64 offset);
/* The reader on the host is gone: close, so that the workload gets EPIPE. */
void sv_output_break(SvOutput *output);
/* The process has ended: the rest is read, then end of file; later bytes are discarded. */
void sv_output_end(SvOutput *output);
/* TRUE when everything and the end of file was sent, or is not wanted. */
gboolean sv_output_done(const SvOutput *output);

G_END_DECLS
