/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/record.h"

G_BEGIN_DECLS

/* Opens a network namespace; what is none is refused. -1 + @error. */
int sv_netns_open(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* The network namespace of a container that lives: its shim's, which must still be that process. -1. */
int sv_netns_of_container(const SvRecord *record);
/* The network namespace of a sandbox, by any of its containers that lives. -1: none does. */
int sv_netns_of_sandbox(const char *root, const char *sandbox);

G_END_DECLS
