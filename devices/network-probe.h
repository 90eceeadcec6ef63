/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel must be able to do, tried in a network namespace of its own. Blocking. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Taking links over. */
gboolean sv_network_probe_take(GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Forwarding connections to localhost. */
gboolean sv_network_probe_localhost(GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
