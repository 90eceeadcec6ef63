/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Verbs that need libvirt: the monitor's program does them, with the caller's streams. */
#pragma once

#include "cli/cli.h"

G_BEGIN_DECLS

/* @args: NULL-terminated; the first names the mode ("--gc"). Its exit status, or -1 + @error. */
int sv_monitor_mode(SvCli *cli, const char *const *args, GError **error);

G_END_DECLS
