/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a machine whose record was lost may have left in a pod's network namespace. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Whoever works with a pod's namespace holds this lock of it, as long as the descriptor (or a copy of it) is open: then
 * nobody sweeps it. Any number of processes may have it. May wait for a sweep. */
gboolean sv_network_hold(int netns_fd, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Takes away filters with that @mark that lead to no link any more, their qdiscs, and where there was one the table of
 * localhost; with @dry_run only looks. Adds the names of their links to @found (char *). A namespace that somebody holds,
 * or that has the tap of a machine, is left alone. Blocking, any thread. */
gboolean sv_network_sweep(int netns_fd, guint32 mark, gboolean dry_run, GPtrArray *found,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
