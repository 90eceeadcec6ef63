/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checked names and numbers: ids, signals, enum tables, integers. Locale-independent. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Container id: [A-Za-z0-9_+.-]+, not starting with a dot, at most 250 bytes (file name limit with
 * room for temporary suffixes). @what names it in the message ("container id"). */
#define SV_ID_MAX 250
gboolean sv_id_check(const char *id, const char *what, GError **error);

/* "9", "KILL", "SIGKILL", any case, "RTMIN+3", "SIGRTMAX-1", 0..64. -1 + SV_ERR_INVALID. */
int sv_signal_parse(const char *text, GError **error);
/* TRUE when the signal's default action ends a process (signal(7)). */
gboolean sv_signal_terminates(int signo);

/* String tables: names[value]. */
const char *sv_enum_name(const char *const *names, guint n, guint value); /* "?" out of range */
gboolean sv_enum_parse(const char *const *names, guint n, const char *text, guint *value);

/* Whole-string decimal, digits after an optional minus. Not one: SV_ERR_INVALID; outside of @min and
 * @max: SV_ERR_LIMIT. */
gboolean sv_parse_int64(const char *text, gint64 min, gint64 max, gint64 *value, GError **error);
/* Bytes as runc takes them: "-1", "64m", "1.5g", "2 GiB". Of a fraction nine digits count. */
gboolean sv_parse_size(const char *text, gint64 *value);

G_END_DECLS
