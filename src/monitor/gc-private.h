/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of `sandvirt gc` share. */
#pragma once

#include "core/paths.h"

G_BEGIN_DECLS

typedef struct {
    const SvConfig *config;
    const char *config_path, *root, *monitor;
    gboolean dry_run;
    GHashTable *sandboxes; /* ids with a state folder or containers, set */
    GHashTable *lost; /* ids that only something left over names, set */
    GPtrArray *cgroups; /* SvCgroupMark, of all roots */
    GError *error; /* the first */
} SvGc;

/* Takes @error (nullable), logs it and keeps the first. */
void sv_gc_note(SvGc *gc, GError *error);
/* A line of the output: "end domain" and its name. */
void sv_gc_found(const SvGc *gc, const char *what, const char *name);

/* gc-network.c: what is left in namespaces that nobody uses any more. @any: paths of any sandbox of the root. */
void sv_gc_networks(SvGc *gc, const SvPaths *any);

G_END_DECLS
