/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sandvirt top and metrics: all machines of a root, a real path; NULL: of all roots. */
#pragma once

#include "conf/config.h"

G_BEGIN_DECLS

/* @once: prints the table (or @json) and ends; else every two seconds until Ctrl-C. */
gboolean sv_top(
    const SvConfig *config, const char *root, gboolean once, gboolean json, GError **error);
/* Prometheus' text format. */
gboolean sv_metrics(const SvConfig *config, const char *root, GError **error);

G_END_DECLS
