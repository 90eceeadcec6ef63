/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests of the agent to the host. An answer acknowledges; what was not answered is sent again
 * after the next Hello. */
#pragma once

#include "agent/container.h"

G_BEGIN_DECLS

void sv_event_exit(SvProcess *process);
/* How many processes of it the kernel's OOM killer took. FALSE: nobody listens now. */
gboolean sv_event_oom(const SvContainer *container);
void sv_event_shutting_down(SvAgent *agent, const char *reason);
/* A RESPONSE frame. */
void sv_event_answered(SvAgent *agent, const SvFrame *frame);
/* A new session: forget what was under way. */
void sv_event_reset(SvAgent *agent);
void sv_event_forget_process(SvAgent *agent, guint32 handle);

G_END_DECLS
