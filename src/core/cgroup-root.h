/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A monitor that is started by an engine's call, without a launcher, must not stay in that call's cgroups:
 * engines kill what is left in them. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The cgroup.procs files of the roots of all hierarchies in which this process is below the root
 * (transfer full), NULL-terminated. */
char **sv_cgroup_roots(void) G_GNUC_WARN_UNUSED_RESULT;
/* Moves the calling process into them; what is refused is left. Async-signal-safe: an SvCommandPreExec with
 * the list as its data. Returns 0. */
int sv_cgroup_enter_roots(gpointer roots);

G_END_DECLS
