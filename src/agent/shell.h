/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A shell on the machine's console, for debugging: only when the kernel's command line says so. */
#pragma once

#include "agent/agent.h"

G_BEGIN_DECLS

/* Once the share is there, which has the program. Another one comes when it ends, unless that was at once. */
void sv_shell_begin(SvAgent *agent);

G_END_DECLS
