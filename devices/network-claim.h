/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may take the links of a pod's network namespace. Blocking, any thread. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* A descriptor: as long as it is open nobody else gets one of that namespace. -1 + SV_ERR_BUSY: somebody has it. */
int sv_network_claim(int netns_fd, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
