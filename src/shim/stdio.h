/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One of the caller's descriptors, read or written without ever blocking and without changing what
 * the caller shares: O_NONBLOCK belongs to the open file description, which the caller has too. So
 * pipes, fifos and terminals are opened anew through /proc, sockets get MSG_DONTWAIT, and what is
 * always ready (files, /dev/null) is used as it is. */
#pragma once

#include "base/error.h"
#include <sys/types.h>

G_BEGIN_DECLS

typedef enum {
    SV_STDIO_CLOSED,
    SV_STDIO_READY, /* a file or the like: always ready, never blocks for long */
    SV_STDIO_OWN, /* an open file description of our own, non-blocking */
    SV_STDIO_SOCKET, /* MSG_DONTWAIT */
    SV_STDIO_SHARED, /* could not be opened anew: poll, then at most PIPE_BUF bytes */
} SvStdioKind;

typedef struct {
    SvStdioKind kind;
    int fd; /* owned, -1 when closed */
    gboolean tty;
} SvStdio;

/* Takes over what @fd names, at another number; @fd itself becomes /dev/null. Needs /proc. */
gboolean sv_stdio_take(SvStdio *io, int fd, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* @fd (consumed) is non-blocking and ours already: the pty. */
void sv_stdio_own(SvStdio *io, int fd);
void sv_stdio_close(SvStdio *io);
/* As read(2) and write(2); EAGAIN when it would block, never a SIGPIPE that anybody sees. A terminal
 * that was hung up reads as its end and writes as EPIPE. */
ssize_t sv_stdio_read(SvStdio *io, void *data, gsize len);
ssize_t sv_stdio_write(SvStdio *io, const void *data, gsize len);

G_END_DECLS
