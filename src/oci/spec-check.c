/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of the parser share: paths, arrays, typed members. */
#include <config.h>

#include "oci/spec-private.h"

SV_DEFINE_ERROR_QUARK(oci)

gboolean sv_spec_error(GError **error, const char *path, const char *format, ...)
{
    g_autofree char *text = NULL;
    g_autofree char *where = sv_printable(path, 256);
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, SV_OCI_ERROR, SV_ERR_INVALID, "%s: %s", where, text);
    return FALSE;
}

char *sv_spec_path(const char *parent, const char *name)
{
    return *parent ? g_strconcat(parent, ".", name, NULL) : g_strdup(name);
}

gboolean sv_spec_each(JsonObject *parent, const char *name, const char *path, SvSpecEach func,
    gpointer user_data, GError **error)
{
    JsonArray *array = NULL;

    if (!sv_json_get_array(parent, name, path, &array, error))
        return FALSE;
    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        JsonNode *node = json_array_get_element(array, i);
        g_autofree char *full = sv_spec_path(path, name);
        g_autofree char *where = g_strdup_printf("%s[%u]", full, i);

        if (!JSON_NODE_HOLDS_OBJECT(node))
            return sv_spec_error(error, where, "must be an object");
        if (!func(json_node_get_object(node), where, user_data, error))
            return FALSE;
    }
    return TRUE;
}

gboolean sv_spec_check_strings(
    JsonObject *object, const char *path, const char *const *names, GError **error)
{
    const char *text = NULL;

    for (; *names; names++)
        if (!sv_json_get_string(object, *names, path, &text, error))
            return FALSE;
    return TRUE;
}

gboolean sv_spec_check_bools(
    JsonObject *object, const char *path, const char *const *names, GError **error)
{
    gboolean value = FALSE;

    for (; *names; names++)
        if (!sv_json_get_bool(object, *names, path, &value, error))
            return FALSE;
    return TRUE;
}

gboolean sv_spec_check_strvs(
    JsonObject *object, const char *path, const char *const *names, GError **error)
{
    for (; *names; names++) {
        g_auto(GStrv) list = NULL;

        if (!sv_json_get_strv(object, *names, path, &list, error))
            return FALSE;
    }
    return TRUE;
}

gboolean sv_spec_string_map(
    JsonObject *parent, const char *name, const char *path, GHashTable *into, GError **error)
{
    g_autofree char *where = sv_spec_path(path, name);
    JsonObject *object = NULL;
    JsonObjectIter iter;
    const char *key = NULL;
    JsonNode *node = NULL;

    if (!sv_json_get_object(parent, name, path, &object, error))
        return FALSE;
    if (!object)
        return TRUE;
    json_object_iter_init(&iter, object);
    while (json_object_iter_next(&iter, &key, &node)) {
        const char *value = NULL;

        if (!sv_json_get_string(object, key, where, &value, error))
            return FALSE;
        if (into)
            g_hash_table_insert(into, g_strdup(key), g_strdup(value ? value : ""));
    }
    return TRUE;
}

gboolean sv_spec_range(JsonObject *object, const char *name, const char *path, gint64 min,
    gint64 max, gint64 *out, GError **error)
{
    gint64 value = *out;

    if (!sv_json_get_int(object, name, path, &value, error))
        return FALSE;
    if (value != *out && (value < min || value > max)) {
        g_autofree char *where = sv_spec_path(path, name);

        return sv_spec_error(error, where, "%" G_GINT64_FORMAT " is out of range", value);
    }
    *out = value;
    return TRUE;
}
