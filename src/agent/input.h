/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Standard input of a process: DATA from the host, written to its pipe or terminal, acknowledged
 * when written. */
#pragma once

#include "agent/channel.h"
#include "agent/ring.h"

G_BEGIN_DECLS

typedef struct {
    SvChannel *channel; /* not owned */
    guint32 handle;
    int fd; /* -1: closed */
    guint source;
    gboolean watch_out;
    gboolean terminal; /* end of file is not passed on, a terminal has none */
    gboolean socket; /* whose other direction goes on after the end of file */
    void (*closed)(gpointer user_data); /* nothing is written any more; nullable */
    gpointer user_data;
    SvRing ring; /* received and not yet written */
    gboolean eof;
    gboolean broken; /* the workload does not read any more */
    gboolean reset; /* by the other end of the socket, which its reader may not learn any more */
} SvInput;

/* Takes @fd (-1: there is no input, everything is refused) and makes it non-blocking. */
SvInput *sv_input_new(SvChannel *channel, guint32 handle, int fd, gboolean terminal)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_input_free(SvInput *input);
/* Starts watching for the reader's end. */
void sv_input_start(SvInput *input);
/* One DATA frame: bytes already received are dropped, a gap is ignored. */
void sv_input_data(SvInput *input, guint64 offset, const guint8 *data, gsize len, gboolean eof);
/* The process is gone: nothing is written any more. */
void sv_input_end(SvInput *input);
/* Offset up to which bytes were received. */
guint64 sv_input_received(const SvInput *input);

G_END_DECLS
