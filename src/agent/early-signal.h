/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals to a program that has only just been started. The kernel drops those that the first process of a
 * pid namespace does not catch, and a shell in an emulated machine needs a moment until it does: a stop
 * right behind a start would have no effect. */
#pragma once

#include "agent/process.h"

G_BEGIN_DECLS

/* FALSE: nothing speaks against sending it now. TRUE: it is sent as soon as the program catches it, or when
 * the program is no longer new. */
gboolean sv_early_signal(SvProcess *process, int signo);
/* Whether the kernel would drop @signo for a process with this /proc/PID/status. */
gboolean sv_early_signal_is_lost(const char *status, int signo);

G_END_DECLS
