/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/fields.h"

#include "core/lifecycle.h"
#include <string.h>
#include <sys/types.h>

#define FIELD(record, offset, type) (*(type *)(gpointer)((char *)(record) + (offset)))
#define FIELD_CONST(record, offset, type)                                                          \
    (*(const type *)(gconstpointer)((const char *)(record) + (offset)))

static gboolean out_of_range(const SvField *field, const char *path, gint64 value, GError **error)
{
    g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
        "%s%s%s: %" G_GINT64_FORMAT " is out of range", path, *path ? "." : "", field->name, value);
    return FALSE;
}

static gboolean read_number(
    const SvField *field, const char *path, gint64 value, gpointer record, GError **error)
{
    switch (field->kind) {
    case SV_FIELD_INT:
        if (value < field->min || value > field->max)
            return out_of_range(field, path, value, error);
        FIELD(record, field->offset, int) = value;
        return TRUE;
    case SV_FIELD_UINT32:
        if (value < 0 || value > G_MAXUINT32)
            return out_of_range(field, path, value, error);
        FIELD(record, field->offset, guint32) = value;
        return TRUE;
    case SV_FIELD_INT64:
    case SV_FIELD_UINT64:
        if (value < 0)
            return out_of_range(field, path, value, error);
        FIELD(record, field->offset, gint64) = value;
        return TRUE;
    case SV_FIELD_PID:
        FIELD(record, field->offset, pid_t) = value > 1 && value <= G_MAXINT32 ? value : 0;
        return TRUE;
    case SV_FIELD_STRING:
    case SV_FIELD_BOOL:
        break;
    }
    g_return_val_if_reached(FALSE);
}

gboolean sv_fields_read(JsonObject *object, const char *path, const SvField *fields, gsize n,
    gpointer record, GError **error)
{
    for (gsize i = 0; i < n; i++) {
        const SvField *field = &fields[i];
        const char *text = NULL;
        gint64 value = 0;

        if (!json_object_has_member(object, field->name))
            continue;
        if (field->kind == SV_FIELD_STRING) {
            if (!sv_json_get_string(object, field->name, path, &text, error))
                return FALSE;
            g_free(FIELD(record, field->offset, char *));
            FIELD(record, field->offset, char *) = g_strdup(text);
        } else if (field->kind == SV_FIELD_BOOL) {
            if (!sv_json_get_bool(
                    object, field->name, path, &FIELD(record, field->offset, gboolean), error))
                return FALSE;
        } else if (!sv_json_get_int(object, field->name, path, &value, error) ||
            !read_number(field, path, value, record, error)) {
            return FALSE;
        }
    }
    return TRUE;
}

void sv_fields_write(JsonObject *object, const SvField *fields, gsize n, gconstpointer record)
{
    for (gsize i = 0; i < n; i++) {
        const SvField *field = &fields[i];
        const char *text = NULL;

        switch (field->kind) {
        case SV_FIELD_STRING:
            text = FIELD_CONST(record, field->offset, char *);
            if (text)
                json_object_set_string_member(object, field->name, text);
            break;
        case SV_FIELD_BOOL:
            json_object_set_boolean_member(
                object, field->name, FIELD_CONST(record, field->offset, gboolean) != FALSE);
            break;
        case SV_FIELD_INT:
            json_object_set_int_member(
                object, field->name, FIELD_CONST(record, field->offset, int));
            break;
        case SV_FIELD_UINT32:
            json_object_set_int_member(
                object, field->name, FIELD_CONST(record, field->offset, guint32));
            break;
        case SV_FIELD_INT64:
        case SV_FIELD_UINT64:
            json_object_set_int_member(
                object, field->name, FIELD_CONST(record, field->offset, gint64));
            break;
        case SV_FIELD_PID:
            json_object_set_int_member(
                object, field->name, FIELD_CONST(record, field->offset, pid_t));
            break;
        }
    }
}

gboolean sv_fields_read_strings(
    JsonObject *object, const char *name, GPtrArray *strings, GError **error)
{
    g_auto(GStrv) list = NULL;

    if (!sv_json_get_strv(object, name, "", &list, error))
        return FALSE;
    g_ptr_array_set_size(strings, 0);
    for (char **s = list; s && *s; s++)
        g_ptr_array_add(strings, g_strdup(*s));
    return TRUE;
}

void sv_fields_write_strings(JsonObject *object, const char *name, const GPtrArray *strings)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < strings->len; i++)
        json_array_add_string_element(array, strings->pdata[i]);
    json_object_set_array_member(object, name, array);
}

gboolean sv_fields_check_version(JsonObject *object, GError **error)
{
    gint64 version = -1;

    if (!sv_json_get_int(object, "version", "", &version, error))
        return FALSE;
    if (version == SV_RECORD_VERSION)
        return TRUE;
    if (version < 0)
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "version: missing");
    else
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "version %" G_GINT64_FORMAT " is not known (only %d)", version, SV_RECORD_VERSION);
    return FALSE;
}
