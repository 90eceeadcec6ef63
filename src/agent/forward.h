/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections that the host forwards to the guest's localhost, and descriptors that a process gets beside its three: the
 * socket's input and output are streams like those of a process. They live as long as the session with the host. */
#pragma once

#include "agent/process.h"
#include "agent/service.h"

G_BEGIN_DECLS

typedef struct SvForward SvForward;

/* Method Forward. */
void sv_forward_connect(SvCall *call);
/* @fd (consumed) is our end of the descriptor number 3 + @index of @process. */
void sv_forward_adopt(SvProcess *process, guint index, int fd);
/* What its descriptors hold now is the rest. */
void sv_forward_process_ended(SvProcess *process);
/* Nobody will read what comes from them. */
void sv_forward_process_discard(SvProcess *process);
/* All that came from them was sent. */
gboolean sv_forward_process_is_done(const SvProcess *process);
/* A DATA or ACK frame whose handle is no process's. */
void sv_forward_frame(SvAgent *agent, const SvFrame *frame);
/* A new session: all are closed. */
void sv_forward_reset(SvAgent *agent);

G_END_DECLS
