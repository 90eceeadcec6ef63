/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JSON on json-glib, a library apart (sv-json): the agent does not link it. All readers check
 * types; a wrong type is SV_ERR_INVALID with the JSON path ("linux.resources.memory.limit"). */
#pragma once

#include <glib.h>
#include <json-glib/json-glib.h>

G_BEGIN_DECLS

#define SV_JSON_MAX_DEPTH 128

/* Parses @text (@len bytes); the root must be an object unless @any_root. Trailing garbage, a nesting
 * deeper than SV_JSON_MAX_DEPTH, invalid UTF-8, \u0000, and whatever else RFC 8259 does not allow are
 * errors. Integers outside of gint64 become doubles (see sv_json_get_uint). @what names it in messages. (transfer full) */
JsonNode *sv_json_parse(const char *text, gssize len, gboolean any_root, const char *what,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
JsonNode *sv_json_load(const char *path, gsize max, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Compact or indented (2 spaces) text, (transfer full). Members keep their order. An integral double
 * from 2^63 to 2^64 is written as an integer, so that 18446744073709551615 survives a round trip. */
char *sv_json_text(JsonNode *node, gboolean pretty) G_GNUC_WARN_UNUSED_RESULT;

/* Optional members: FALSE + @error only on a wrong type; missing or null leaves *out untouched and
 * returns TRUE. @path is the JSON path of @object for messages ("" for the root). */
gboolean sv_json_get_string(JsonObject *object, const char *name, const char *path,
    const char **out, GError **error); /* (transfer none) */
gboolean sv_json_get_int(JsonObject *object, const char *name, const char *path, gint64 *out,
    GError **error); /* a double with a fraction, or beyond gint64, is an error */
/* For RLIM_INFINITY and the like: 0..18446744073709551615 (exact up to 2^63 and at the maximum). */
gboolean sv_json_get_uint(
    JsonObject *object, const char *name, const char *path, guint64 *out, GError **error);
gboolean sv_json_get_bool(
    JsonObject *object, const char *name, const char *path, gboolean *out, GError **error);
gboolean sv_json_get_object(JsonObject *object, const char *name, const char *path,
    JsonObject **out, GError **error); /* (transfer none) */
gboolean sv_json_get_array(JsonObject *object, const char *name, const char *path, JsonArray **out,
    GError **error); /* (transfer none) */
gboolean sv_json_get_strv(JsonObject *object, const char *name, const char *path, char ***out,
    GError **error); /* (transfer full) */

G_END_DECLS
