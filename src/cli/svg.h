/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/timeline.h"

G_BEGIN_DECLS

/* A drawing of one bar for each phase (transfer full). */
char *sv_svg_timeline(const SvTimeline *timeline) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
