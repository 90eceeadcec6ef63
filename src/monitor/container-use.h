/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What containers use inside of their machines, asked of their monitors. */
#pragma once

#include "conf/config.h"
#include "monitor/root-stats.h"

G_BEGIN_DECLS

typedef struct {
    const SvRoot *root;
    const SvRecord *record; /* of that root */
    guint64 cpu_us, memory, processes;
} SvContainerUse;

/* Of the running ones of @roots (SvRoot). @machines: SvMachineStats; those that are suspended cannot answer. A monitor
 * that does not run or is silent is not waited for long: its containers are left out. GArray of SvContainerUse
 * (transfer full). */
GArray *sv_root_containers(
    const SvConfig *config, const GPtrArray *roots, const GPtrArray *machines);

G_END_DECLS
