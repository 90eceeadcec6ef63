/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables for a terminal. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* @rows: of char** (NULL-terminated, all of one length), the titles first. Columns are as wide as their longest cell,
 * at least @least characters, with three between them. (transfer full) */
char *sv_table_text(const GPtrArray *rows, gsize least) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
