/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor's part: what its sequences and the agent have measured. */
#pragma once

#include "core/sandbox-priv.h"

G_BEGIN_DECLS

/* Of the row of steps that has started the machine. */
void sv_timeline_note_machine(SvSandbox *sandbox, const SvSequence *seq);
/* The agent has spoken for the first time. */
void sv_timeline_note_agent(SvSandbox *sandbox, const Sandvirt__V1__HelloResponse *hello);
/* At the end of a create that went well. */
void sv_timeline_write(SvContainer *container, const SvSequence *seq);

G_END_DECLS
