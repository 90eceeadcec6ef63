/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `sandvirt gc`: finds and removes what a power cut or a fault left of one root. */
#pragma once

#include "conf/config.h"

G_BEGIN_DECLS

/* Prints a line for each thing found to stdout; @dry_run: touches nothing. What is alive (its lock is held),
 * foreign, or of another root is left alone. Everything is tried; FALSE + the first error when something
 * could not be removed. Blocking. @monitor: path of this program. */
gboolean sv_gc(const SvConfig *config, const char *config_path, const char *root,
    const char *monitor, gboolean dry_run, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
