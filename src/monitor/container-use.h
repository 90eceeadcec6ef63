/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What containers use inside of their machines, asked of their monitors. */
#pragma once

#include "conf/config.h"
#include "core/record.h"

G_BEGIN_DECLS

typedef struct {
    const SvRecord *record; /* of the list that was given */
    guint64 cpu_us, memory, processes;
} SvContainerUse;

/* Of the running ones among @records (SvRecord). @suspended: ids of sandboxes (as a set) that cannot answer. A monitor
 * that does not run or is silent is not waited for long: its containers are left out. GArray of SvContainerUse
 * (transfer full). */
GArray *sv_root_containers(
    const SvConfig *config, const char *root, const GPtrArray *records, GHashTable *suspended);

G_END_DECLS
