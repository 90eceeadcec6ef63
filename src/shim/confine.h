/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim handles what a workload writes and what its caller sends, as root on the host: it keeps
 * only what it still needs. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Once it is set up: it starts nothing, loads nothing, joins nothing. */
gboolean sv_shim_confine(GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Once its root is the container's: it mounts nothing more. Again: nothing happens. */
gboolean sv_shim_confine_mounts(GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
