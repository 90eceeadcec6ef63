/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of the machine. */
#pragma once

#include "agent/agent.h"

G_BEGIN_DECLS

/* Listens to the power button on every input device, now and later. */
void sv_power_watch_button(SvAgent *agent);
/* Tells the host; TERM to every init, KILL after @grace_ms, sync, power off. */
void sv_power_shut_down(SvAgent *agent, const char *reason, guint grace_ms);
/* Something a shutdown waits for may have happened. */
void sv_power_check(SvAgent *agent);
/* At once. Returns only when it is not PID 1. */
void sv_power_off(void);

G_END_DECLS
