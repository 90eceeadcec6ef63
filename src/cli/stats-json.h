/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "base/json.h"
#include "sandvirt.pb-c.h"

G_BEGIN_DECLS

/* The line that `events --stats` prints, as runc's: {"type":"stats","id":ID,"data":{...}}, from the files of
 * the container's cgroup (v2) in the guest. What is missing or malformed is left out. (transfer full) */
char *sv_stats_json(const char *id, const Sandvirt__V1__StatsResponse *stats)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
