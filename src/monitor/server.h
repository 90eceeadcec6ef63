/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor's socket: who connects is the command line or a shim; requests become calls of core. */
#pragma once

#include "core/sandbox.h"

G_BEGIN_DECLS

typedef struct SvServer SvServer;

/* Listens on @socket_path (replaces a dead one). NULL + error. */
SvServer *sv_server_new(const char *socket_path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_server_free(SvServer *server);
/* Requests are held back until this is called: recovery first. */
void sv_server_serve(SvServer *server, SvSandbox *sandbox);
/* TRUE when no caller is connected; then the socket is closed and unlinked, and nobody can come any
 * more. FALSE: somebody is there or has just come; it goes on. */
gboolean sv_server_close_if_unused(SvServer *server);
/* Somebody has connected since it listens. */
gboolean sv_server_was_used(const SvServer *server);
/* Called whenever a caller has left. */
void sv_server_set_left(SvServer *server, void (*left)(gpointer user_data), gpointer user_data);
/* Tells those who watch (events --state). */
void sv_server_notify_oom(SvServer *server, const SvRecord *record);
void sv_server_notify(SvServer *server, const SvRecord *record, SvState old);
/* Tells @user_data, an SvClient that begins to watch, how the container is. */
void sv_server_tell_current(const SvRecord *record, gpointer user_data);

G_END_DECLS
