/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of `sandvirt top`. */
#pragma once

#include "hypervisor/stats.h"

G_BEGIN_DECLS

/* A machine and what it did since the last look, a second. */
typedef struct {
    const SvMachineStats *stats;
    double cpu_percent; /* of one CPU */
    double read, written, received, sent; /* bytes; files and disks together */
} SvTopRow;

/* The lines of the table (transfer full): a summary, the columns' names, the rows, the busiest first. @rows: of SvTopRow,
 * is sorted. @columns, @lines: the terminal's size, to which names and rows are cut; 0: nothing is cut. */
char *sv_top_table(GArray *rows, guint columns, guint lines) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
