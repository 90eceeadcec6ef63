/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections that the host forwards to the guest's localhost: the socket's input and output are streams like those of a
 * process. They live as long as the session with the host. */
#pragma once

#include "agent/service.h"

G_BEGIN_DECLS

typedef struct SvForward SvForward;

/* Method Forward. */
void sv_forward_connect(SvCall *call);
/* A DATA or ACK frame whose handle is no process's. */
void sv_forward_frame(SvAgent *agent, const SvFrame *frame);
/* A new session: all are closed. */
void sv_forward_reset(SvAgent *agent);

G_END_DECLS
