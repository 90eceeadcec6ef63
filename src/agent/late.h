/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the first answer to the host does not need: the rest of the start, and the late modules. */
#pragma once

#include "agent/agent.h"

G_BEGIN_DECLS

/* Does it bit by bit when the main loop has nothing else to do. */
void sv_late_begin(SvAgent *agent);
/* Finishes the start now; @modules: the late modules too. */
void sv_late_finish(SvAgent *agent, gboolean modules);

G_END_DECLS
