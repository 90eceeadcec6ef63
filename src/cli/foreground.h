/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waiting for a process in the foreground: its signals are passed on, the caller's terminal is raw
 * meanwhile and restored whatever happens. */
#pragma once

#include "base/error.h"
#include <signal.h>
#include <sys/types.h>
#include <termios.h>

G_BEGIN_DECLS

typedef struct {
    gboolean active, raw;
    sigset_t old_mask;
    struct termios old_settings;
} SvForeground;

/* From here on signals wait for sv_foreground_wait. @terminal: the process has a terminal, which is the
 * caller's own when stdin is one. */
void sv_foreground_begin(SvForeground *fg, gboolean terminal);
void sv_foreground_end(SvForeground *fg);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SvForeground, sv_foreground_end)
/* Waits for the end of the child @pid; returns its status (128 + signal), -1 + @error. */
int sv_foreground_wait(SvForeground *fg, pid_t pid, int pidfd, GError **error);

G_END_DECLS
