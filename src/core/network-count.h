/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What has gone through a pod's links: libvirt has no numbers of taps that are in another namespace than its own. */
#pragma once

#include "core/record.h"

G_BEGIN_DECLS

/* Adds the bytes that the machine of @sandbox has got and sent. @containers: SvRecord of the whole root, nullable; the
 * shims of its own are in the namespace. Nothing is added when that is gone. */
void sv_network_count(
    const SvSandboxRecord *sandbox, const GPtrArray *containers, guint64 *received, guint64 *sent);

G_END_DECLS
