/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/list-disks.h"
#include "base/json.h"
#include "cli/table.h"
#include <string.h>

#define N_COLUMNS 7
#define TEXT_MAX 4096

typedef void (*Each)(const SvRecord *record, const SvDiskRecord *disk, gpointer user_data);

static gint compare_targets(gconstpointer a, gconstpointer b)
{
    const SvDiskRecord *const *left = a, *const *right = b;
    gsize l = strlen((*left)->target), r = strlen((*right)->target);

    return l != r ? (l < r ? -1 : 1) : strcmp((*left)->target, (*right)->target);
}

static void each_disk(const GPtrArray *records, Each each, gpointer user_data)
{
    for (guint i = 0; i < records->len; i++) {
        const SvRecord *record = records->pdata[i];
        g_autoptr(GPtrArray) disks = g_ptr_array_new();

        for (guint k = 0; k < record->disks->len; k++) {
            SvDiskRecord *disk = record->disks->pdata[k];

            if (disk->plugged && disk->target)
                g_ptr_array_add(disks, disk);
        }
        g_ptr_array_sort(disks, compare_targets);
        for (guint k = 0; k < disks->len; k++)
            each(record, disks->pdata[k], user_data);
    }
}

static void add_json(const SvRecord *record, const SvDiskRecord *disk, gpointer user_data)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "id", record->id);
    json_object_set_string_member(object, "sandbox", record->sandbox);
    json_object_set_string_member(object, "target", disk->target);
    json_object_set_string_member(object, "use", sv_disk_use_name(disk->use));
    json_object_set_boolean_member(object, "readOnly", disk->read_only);
    json_object_set_string_member(object, "source", disk->source);
    json_object_set_string_member(object, "path", disk->path ? disk->path : "");
    json_object_set_int_member(object, "size", (gint64)disk->size);
    json_object_set_string_member(object, "serial", disk->serial ? disk->serial : "");
    json_object_set_string_member(object, "alias", sv_disk_record_device(disk));
    json_array_add_object_element(user_data, object);
}

char *sv_disks_json(const GPtrArray *records)
{
    g_autoptr(JsonNode) root = json_node_new(JSON_NODE_ARRAY);
    JsonArray *array = json_array_new();

    each_disk(records, add_json, array);
    json_node_take_array(root, array);
    g_autofree char *text = sv_json_text(root, FALSE);
    return g_strconcat(text, "\n", NULL);
}

static void add_row(const SvRecord *record, const SvDiskRecord *disk, gpointer user_data)
{
    char **row = g_new0(char *, N_COLUMNS + 1);

    row[0] = g_strdup(record->id);
    row[1] = sv_printable(disk->target, TEXT_MAX);
    row[2] = g_strdup(sv_disk_use_name(disk->use));
    row[3] = g_strdup(disk->read_only ? "ro" : "rw");
    row[4] = sv_printable(disk->source, TEXT_MAX);
    row[5] = sv_printable(disk->path, TEXT_MAX);
    row[6] = sv_printable(sv_disk_record_device(disk), TEXT_MAX);
    g_ptr_array_add(user_data, row);
}

char *sv_disks_table(const GPtrArray *records)
{
    static const char *const titles[N_COLUMNS + 1] = {
        "ID", "TARGET", "USE", "ACCESS", "SOURCE", "PATH", "ALIAS", NULL};
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);

    g_ptr_array_add(rows, g_strdupv((char **)titles));
    each_disk(records, add_row, rows);
    return sv_table_text(rows, 6);
}
