/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "hypervisor/stats.h"

G_BEGIN_DECLS

/* Of the machines of this root (a real path), by sandbox. (transfer full) */
GPtrArray *sv_root_stats(const SvConfig *config, const char *root, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* The records (SvSandboxRecord) of its sandboxes, by id; those that cannot be read are left out. (transfer
 * full) */
GPtrArray *sv_root_sandboxes(const SvConfig *config, const char *root);

G_END_DECLS
