/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux.resources.devices, as the kernel reads them: in order, each adds to or takes from what the ones
 * before allow; without any nothing is allowed. */
#pragma once

#include "base/json.h"

G_BEGIN_DECLS

enum { SV_ACCESS_READ = 1, SV_ACCESS_WRITE = 2, SV_ACCESS_MKNOD = 4 };

/* What a container may do with the block device. @rules: nullable, checked before. */
guint sv_device_rules_access(JsonArray *rules, gint64 major, gint64 minor);
/* TRUE when the rules say something, and that is that nothing at all may be done with it. */
gboolean sv_device_rules_deny(JsonArray *rules, gint64 major, gint64 minor);
/* TRUE when every block device may be written: what engines state for a privileged container. */
gboolean sv_device_rules_allow_all(JsonArray *rules);

G_END_DECLS
