/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `console_shell`: a shell of the guest's own on the machine's console. The image has none: it is the host's
 * busybox, which the guest finds in the share, and starts when the kernel's command line says so. */
#pragma once

#include "core/paths.h"

G_BEGIN_DECLS

#define SV_CONSOLE_SHELL_ARG "sandvirt.shell"

/* Puts it into the share. Without one on this host: a warning, the console has the log alone. */
void sv_console_shell_offer(const SvPaths *paths);

G_END_DECLS
