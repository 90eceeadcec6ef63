/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `list --disks`: which disk of which machine belongs to which container. */
#pragma once

#include "core/record.h"

G_BEGIN_DECLS

/* Of SvRecord; what is in a machine only. (transfer full), with a newline at the end. */
char *sv_disks_table(const GPtrArray *records) G_GNUC_WARN_UNUSED_RESULT;
char *sv_disks_json(const GPtrArray *records) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
