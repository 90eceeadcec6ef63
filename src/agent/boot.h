/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guest's start, as PID 1: from the bare initramfs to a system in which crun works. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Makes the root a mount that pivot_root(2) accepts; mounts /proc, /sys, /dev, /run. */
gboolean sv_boot_mount_first(GError **error);
/* Console as descriptors 0, 1 and 2. */
void sv_boot_console(void);
/* TRUE when the kernel's command line has that word. */
gboolean sv_boot_has_word(const char *word);
/* TRUE when it has "sandvirt.log=debug". */
gboolean sv_boot_wants_debug(void);
/* What the channel does not need: cgroups, /dev/pts and so on, loopback. Failures are logged. */
void sv_boot_rest(void);

G_END_DECLS
