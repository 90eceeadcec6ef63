/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers out of the files of a container's cgroup (v2) in the guest, as the agent sends them. */
#pragma once

#include "sandvirt.pb-c.h"
#include <glib.h>

G_BEGIN_DECLS

#define SV_STATS_UNLIMITED G_MAXINT64

/* The content of a file; "" when it is not there. */
const char *sv_stats_file(const Sandvirt__V1__StatsResponse *stats, const char *name);
/* The number of a file with one number; "max" is SV_STATS_UNLIMITED; @missing when there is none. */
gint64 sv_stats_number(const Sandvirt__V1__StatsResponse *stats, const char *name, gint64 missing);
/* The number behind @key in a text of "KEY NUMBER" lines; 0 when there is none. */
gint64 sv_stats_keyed(const char *text, const char *key);

G_END_DECLS
