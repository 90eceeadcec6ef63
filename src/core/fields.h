/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Members of a record as a table: one row drives reading (type and range checked) and writing. Private
 * to the records. */
#pragma once

#include "base/error.h"
#include "base/json.h"

G_BEGIN_DECLS

typedef enum {
    SV_FIELD_STRING, /* char *; NULL is not written */
    SV_FIELD_BOOL, /* gboolean */
    SV_FIELD_INT, /* int, within min..max */
    SV_FIELD_UINT32, /* guint32 */
    SV_FIELD_INT64, /* gint64, >= 0 */
    SV_FIELD_UINT64, /* guint64, up to G_MAXINT64 */
    SV_FIELD_PID, /* pid_t; what cannot be a process of ours (<= 1, too big) is read as 0 */
} SvFieldKind;

typedef struct {
    const char *name;
    SvFieldKind kind;
    gsize offset;
    int min, max; /* of an INT */
} SvField;

/* Missing members leave what is in @record (strings are replaced). @path as in base/json.h. */
gboolean sv_fields_read(JsonObject *object, const char *path, const SvField *fields, gsize n,
    gpointer record, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_fields_write(JsonObject *object, const SvField *fields, gsize n, gconstpointer record);

/* Arrays of strings (GPtrArray of char*). */
gboolean sv_fields_read_strings(JsonObject *object, const char *name, GPtrArray *strings,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_fields_write_strings(JsonObject *object, const char *name, const GPtrArray *strings);

/* Version of the layout; readers refuse another one. */
#define SV_RECORD_VERSION 1
gboolean sv_fields_check_version(JsonObject *object, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
