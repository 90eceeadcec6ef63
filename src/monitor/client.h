/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One connection to the monitor: a call of the command line, or a shim until it has said so. */
#pragma once

#include "monitor/server.h"

G_BEGIN_DECLS

typedef struct SvClient SvClient;

SvClient *sv_client_new(SvServer *server, int fd); /* takes fd */
void sv_client_free(SvClient *client);
/* Requests are answered from now on; those that came before first. */
void sv_client_serve(SvClient *client, SvSandbox *sandbox);
/* It only watches: no reason for a monitor to live on. */
gboolean sv_client_is_watching(const SvClient *client);
/* A state change, if it watches; @current: none, the container is so. */
void sv_client_tell(SvClient *client, const char *json, gboolean current);

/* server.c: @client has left and is about to be freed. */
void sv_server_client_gone(SvServer *server, SvClient *client);
/* server.c: @client only watches from now on. */
void sv_server_client_watches(SvServer *server);

G_END_DECLS
