/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The columns that ps knows by name. */
#pragma once

#include "sandvirt.pb-c.h"
#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    const char *names; /* "pcpu,%cpu": any of them */
    const char *title;
    /* (transfer full), printable */
    char *(*cell)(const Sandvirt__V1__PsRow *row, const Sandvirt__V1__PsResponse *all);
    gboolean right; /* aligned so: numbers */
} SvPsColumn;

/* (transfer none), NULL: there is none. */
const SvPsColumn *sv_ps_column(const char *name);

G_END_DECLS
