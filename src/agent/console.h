/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The socket on which crun hands over the master of a terminal that it made. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct SvConsole SvConsole;

/* Listens at @path. The terminal gets its size as soon as it comes. */
SvConsole *sv_console_new(const char *path, guint rows, guint cols, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Removes the socket. */
void sv_console_free(SvConsole *console);
/* The master (caller closes) once crun has ended well, else -1 with @error. */
int sv_console_take(SvConsole *console, GError **error);

G_END_DECLS
