/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The terminal of a container, seen from the host: a pty whose line discipline does nothing (the
 * guest's own pty has it), whose master goes to the engine's console socket. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

#define SV_TERMINAL_ROWS 24
#define SV_TERMINAL_COLS 80

/* Makes a pty of that size (0: the default), raw, sends its master over the unix socket @console_socket
 * and makes the slave the controlling terminal of the caller, a session leader. Needs the host's
 * /dev/ptmx. Returns the slave, non-blocking; -1 + @error. */
int sv_terminal_open(const char *console_socket, guint rows, guint cols, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* No processing of output: engines change the settings through the master. */
void sv_terminal_keep_raw(int fd);
/* FALSE when @fd is no terminal or has no size. */
gboolean sv_terminal_size(int fd, guint *rows, guint *cols);

G_END_DECLS
