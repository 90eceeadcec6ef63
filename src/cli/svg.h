/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/timeline.h"

G_BEGIN_DECLS

/* "NAME: ready after ..." (transfer full). */
char *sv_timeline_title(const SvTimeline *timeline, const char *name) G_GNUC_WARN_UNUSED_RESULT;
/* A drawing of one bar for each phase (transfer full). @pod: the pod's name, nullable. */
char *sv_svg_timeline(const SvTimeline *timeline, const char *pod) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
