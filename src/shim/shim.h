/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim: the process that an engine takes for the container. One poll loop. */
#pragma once

#include "shim/options.h"
#include "shim/peer.h"
#include "shim/stdio.h"
#include "shim/streams.h"

G_BEGIN_DECLS

/* Where the shim stands with its monitor. */
typedef enum {
    SV_LINK_DOWN, /* none and none wanted: before READY a lost monitor means that the create fails,
                          and the starter will say so. Left by GO */
    SV_LINK_WAITING, /* nobody to ask: until a socket appears in RUN/.sock */
    SV_LINK_ENSURING, /* the launcher was asked; left by its answer or its end */
    SV_LINK_ATTACHING, /* connected, Attach sent; requests and output are served, input is not sent */
    SV_LINK_UP, /* attached */
} SvLinkState;

/* A descriptor beside the three: one for both directions. */
typedef struct {
    SvStdio io;
    int mode; /* O_RDONLY, O_WRONLY, O_RDWR: what the caller may do with it, and so the process */
    SvInput input;
    SvOutput output;
} SvDescriptor;

typedef struct {
    SvShimOptions options;
    SvDescriptor *descriptors; /* as many as the options say; owned */
    SvStdio stdio[3]; /* stdin, stdout, stderr */
    SvInput input;
    SvOutput output[2]; /* stdout, stderr */
    int signal_fd, caller_fd, watch_fd, sock_fd; /* -1: none */

    SvLinkState link;
    SvPeer monitor, launcher;
    guint32 attach_stream; /* of the Attach that is not answered */
    guint failures; /* connections in a row that ended before Attach was answered */
    guint faults; /* breaches of the protocol, ever */

    gboolean attached; /* Attach was sent, on this connection or another */
    gboolean released; /* GO came */
    gboolean has_rootfs; /* the container's root is ours */
    gboolean confined; /* no mounts any more */
    guint rows, cols; /* of the terminal, as told last */
    guint64 signals; /* waiting for a link: bit n-1 for signal n */

    gboolean exiting; /* Exit came: only the rest of the output is left */
    guint32 exit_stream; /* of that request; 0: its connection has gone */
    gboolean answered; /* the answer is queued */
    int status; /* to exit with */
    gboolean done;
} SvShim;

/* ---- setup.c */
void sv_shim_init(SvShim *shim);
void sv_shim_clear(SvShim *shim);
/* Streams, terminal, signals, root: everything before the loop. */
gboolean sv_shim_set_up(SvShim *shim, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* A message to the starter, when there is one. */
void sv_shim_tell(SvShim *shim, char kind, const char *text);

/* ---- link.c */
/* Connects to the monitor, or asks for one, or waits for one. */
void sv_link_start(SvShim *shim);
void sv_link_lost(SvShim *shim, const char *why);
void sv_link_on_monitor(SvShim *shim, short revents);
void sv_link_on_launcher(SvShim *shim);
void sv_link_on_watch(SvShim *shim);

/* ---- serve.c */
/* A frame from the monitor; FALSE + @error when it breaks the protocol. */
gboolean sv_serve_frame(SvShim *shim, const SvFrame *frame, GError **error);
/* Sends what is waiting and may be sent: acknowledgements, input, signals, the answer to Exit. */
void sv_serve_push(SvShim *shim);

/* ---- descriptors.c: what --preserve-fds gives beside the three */
gboolean sv_descriptors_take(SvShim *shim, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_descriptors_clear(SvShim *shim);
/* They belong to one connection with the monitor: both directions end. */
void sv_descriptors_break(SvShim *shim);
/* A DATA or ACK frame of one of them; FALSE + @error when it breaks the protocol. */
gboolean sv_descriptors_frame(SvShim *shim, const SvFrame *frame, GError **error);
void sv_descriptors_settle(SvShim *shim); /* closes what is over */
struct pollfd;
void sv_descriptors_fill_poll(const SvShim *shim, struct pollfd *fds);
void sv_descriptors_dispatch(SvShim *shim, const struct pollfd *fds);
gboolean sv_descriptors_drained(const SvShim *shim);

/* ---- loop.c */
/* One read or write without waiting. FALSE: that was the last. */
gboolean sv_shim_read(SvStdio *io, SvInput *input) G_GNUC_WARN_UNUSED_RESULT;
gboolean sv_shim_write(SvStdio *io, SvOutput *output) G_GNUC_WARN_UNUSED_RESULT;
/* Returns the status to exit with. */
int sv_shim_run(SvShim *shim);
void sv_shim_end(SvShim *shim, int status);

/* ---- signals.c */
void sv_shim_on_signals(SvShim *shim);
void sv_shim_resize(SvShim *shim);

G_END_DECLS
