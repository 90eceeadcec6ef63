/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Opens a network namespace; what is none is refused. -1 + @error. */
int sv_netns_open(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
