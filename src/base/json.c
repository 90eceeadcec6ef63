/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* json-glib gives the data model. Its parser takes more than JSON (comments, single quotes, NULs), has
 * no limit of depth and no unsigned 64-bit numbers, so parsing and printing are in json-parse.c and
 * json-print.c; the typed readers are here. */
#include <config.h>

#include "base/json.h"

#include "base/error.h"
#include "base/file.h"

#include <math.h>
#include <string.h>

JsonNode *sv_json_load(const char *path, gsize max, GError **error)
{
    g_autofree char *text = NULL;
    gsize len = 0;

    if (!sv_file_read(path, max, &text, &len, error))
        return NULL;
    return sv_json_parse(text, (gssize)len, FALSE, path, error);
}

static void wrong_type(GError **error, const char *name, const char *path, const char *wanted)
{
    g_autofree char *full =
        path == NULL || *path == '\0' ? g_strdup(name) : g_strdup_printf("%s.%s", path, name);

    g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "%s: must be %s", full, wanted);
}

/* NULL when the member is missing or null. */
static JsonNode *member(JsonObject *object, const char *name)
{
    JsonNode *node = json_object_get_member(object, name);

    return node == NULL || JSON_NODE_HOLDS_NULL(node) ? NULL : node;
}

static gboolean is_value_of(JsonNode *node, GType type)
{
    return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == type;
}

gboolean sv_json_get_string(
    JsonObject *object, const char *name, const char *path, const char **out, GError **error)
{
    JsonNode *node = member(object, name);

    if (node == NULL)
        return TRUE;
    if (!is_value_of(node, G_TYPE_STRING)) {
        wrong_type(error, name, path, "a string");
        return FALSE;
    }
    *out = json_node_get_string(node);
    return TRUE;
}

gboolean sv_json_get_int(
    JsonObject *object, const char *name, const char *path, gint64 *out, GError **error)
{
    JsonNode *node = member(object, name);

    if (node == NULL)
        return TRUE;
    if (is_value_of(node, G_TYPE_INT64)) {
        *out = json_node_get_int(node);
        return TRUE;
    }
    if (is_value_of(node, G_TYPE_DOUBLE)) {
        double d = json_node_get_double(node);

        if (d == trunc(d) && d >= -0x1p63 && d < 0x1p63) {
            *out = (gint64)d;
            return TRUE;
        }
    }
    wrong_type(error, name, path, "an integer of 64 bits");
    return FALSE;
}

gboolean sv_json_get_uint(
    JsonObject *object, const char *name, const char *path, guint64 *out, GError **error)
{
    JsonNode *node = member(object, name);

    if (node == NULL)
        return TRUE;
    if (is_value_of(node, G_TYPE_INT64) && json_node_get_int(node) >= 0) {
        *out = (guint64)json_node_get_int(node);
        return TRUE;
    }
    if (is_value_of(node, G_TYPE_DOUBLE)) {
        double d = json_node_get_double(node);

        if (d == trunc(d) && d >= 0 && d <= 0x1p64) {
            *out = d < 0x1p64 ? (guint64)d : G_MAXUINT64;
            return TRUE;
        }
    }
    wrong_type(error, name, path, "an unsigned integer of 64 bits");
    return FALSE;
}

gboolean sv_json_get_bool(
    JsonObject *object, const char *name, const char *path, gboolean *out, GError **error)
{
    JsonNode *node = member(object, name);

    if (node == NULL)
        return TRUE;
    if (!is_value_of(node, G_TYPE_BOOLEAN)) {
        wrong_type(error, name, path, "true or false");
        return FALSE;
    }
    *out = json_node_get_boolean(node);
    return TRUE;
}

gboolean sv_json_get_object(
    JsonObject *object, const char *name, const char *path, JsonObject **out, GError **error)
{
    JsonNode *node = member(object, name);

    if (node == NULL)
        return TRUE;
    if (!JSON_NODE_HOLDS_OBJECT(node)) {
        wrong_type(error, name, path, "an object");
        return FALSE;
    }
    *out = json_node_get_object(node);
    return TRUE;
}

gboolean sv_json_get_array(
    JsonObject *object, const char *name, const char *path, JsonArray **out, GError **error)
{
    JsonNode *node = member(object, name);

    if (node == NULL)
        return TRUE;
    if (!JSON_NODE_HOLDS_ARRAY(node)) {
        wrong_type(error, name, path, "an array");
        return FALSE;
    }
    *out = json_node_get_array(node);
    return TRUE;
}

gboolean sv_json_get_strv(
    JsonObject *object, const char *name, const char *path, char ***out, GError **error)
{
    g_autoptr(GPtrArray) list = NULL;
    JsonArray *array = NULL;

    if (!sv_json_get_array(object, name, path, &array, error))
        return FALSE;
    if (array == NULL)
        return TRUE;
    list = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < json_array_get_length(array); i++) {
        JsonNode *node = json_array_get_element(array, i);

        if (!is_value_of(node, G_TYPE_STRING)) {
            g_autofree char *item = g_strdup_printf("%s[%u]", name, i);

            wrong_type(error, item, path, "a string");
            return FALSE;
        }
        g_ptr_array_add(list, g_strdup(json_node_get_string(node)));
    }
    g_ptr_array_add(list, NULL);
    *out = (char **)g_ptr_array_free(g_steal_pointer(&list), FALSE);
    return TRUE;
}
