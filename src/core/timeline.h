/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a create spent its time: ROOT/ID/timeline.json, written by the monitor when the container is READY,
 * gone with the record. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

typedef struct {
    char *name; /* "request", "libvirt: domain", "guest: kernel", "crun", ... */
    gint64 start_us, length_us; /* from the register of the container on */
} SvPhase;

typedef struct {
    char *id;
    gint64 total_us;
    gboolean machine; /* this create started the machine */
    GPtrArray *phases; /* of SvPhase, by start */
} SvTimeline;
SvTimeline *sv_timeline_new(const char *id);
void sv_timeline_free(SvTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvTimeline, sv_timeline_free)
/* An end before the start counts as the start. */
void sv_timeline_add(SvTimeline *timeline, const char *name, gint64 start_us, gint64 end_us);
gboolean sv_timeline_save(const SvTimeline *timeline, const char *root, GError **error);
/* No such file: SV_ERR_NOT_FOUND. */
SvTimeline *sv_timeline_load(const char *root, const char *id, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
