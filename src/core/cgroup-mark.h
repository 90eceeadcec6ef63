/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose a cgroup is that was made here: an engine chose its name. */
#pragma once

#include "core/owner.h"

G_BEGIN_DECLS

/* @text: sv_owner_text. Where the file system keeps no such marks nothing happens. */
void sv_cgroup_mark(const char *folder, const char *text);
typedef struct {
    char *folder, *root, *sandbox;
    gboolean empty; /* no process, and no cgroup in it */
} SvCgroupMark;
/* All below @top that have a mark, a folder behind those in it: SvCgroupMark (transfer full). */
GPtrArray *sv_cgroup_marks(const char *top) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
