/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/disk-record.h"

#include "base/names.h"
#include "core/fields.h"
#include "core/lifecycle.h"

#define SOURCE_SHOWN 200 /* characters of it in a message */

static const char *const use_names[SV_N_DISK_USES] = {
    [SV_DISK_ROOTFS] = "rootfs",
    [SV_DISK_DEVICE] = "device",
    [SV_DISK_VOLUME] = "volume",
};

#define FIELD(name) G_STRUCT_OFFSET(SvDiskRecord, name)
static const SvField fields[] = {
    {"alias", SV_FIELD_STRING, FIELD(alias)},
    {"shares", SV_FIELD_STRING, FIELD(shares)},
    {"serial", SV_FIELD_STRING, FIELD(serial)},
    {"source", SV_FIELD_STRING, FIELD(source)},
    {"format", SV_FIELD_STRING, FIELD(format)},
    {"target", SV_FIELD_STRING, FIELD(target)},
    {"major", SV_FIELD_UINT32, FIELD(major)},
    {"minor", SV_FIELD_UINT32, FIELD(minor)},
    {"seq", SV_FIELD_UINT64, FIELD(seq)},
    {"size", SV_FIELD_UINT64, FIELD(size)},
    {"image", SV_FIELD_BOOL, FIELD(image)},
    {"readOnly", SV_FIELD_BOOL, FIELD(read_only)},
    {"plugged", SV_FIELD_BOOL, FIELD(plugged)},
    {"path", SV_FIELD_STRING, FIELD(path)},
    {"mountIndex", SV_FIELD_INT, FIELD(mount_index), -1, G_MAXINT},
    {"fstype", SV_FIELD_STRING, FIELD(fstype)},
    {"options", SV_FIELD_STRING, FIELD(options)},
    {"access", SV_FIELD_STRING, FIELD(access)},
    {"adding", SV_FIELD_BOOL, FIELD(adding)},
    {"guestTarget", SV_FIELD_STRING, FIELD(guest_target)},
    {"guestNode", SV_FIELD_STRING, FIELD(guest_node)},
    {"guestMajor", SV_FIELD_UINT32, FIELD(guest_major)},
    {"guestMinor", SV_FIELD_UINT32, FIELD(guest_minor)},
    {"claimDevice", SV_FIELD_STRING, FIELD(claim_device)},
    {"claimDisk", SV_FIELD_STRING, FIELD(claim_disk)},
    {"exclusive", SV_FIELD_BOOL, FIELD(exclusive)},
    {"hostTarget", SV_FIELD_STRING, FIELD(host_target)},
    {"hostDevice", SV_FIELD_STRING, FIELD(host_device)},
    {"hostOptions", SV_FIELD_STRING, FIELD(host_options)},
    {"hostSuper", SV_FIELD_STRING, FIELD(host_super)},
    {"hostTaken", SV_FIELD_BOOL, FIELD(host_taken)},
};

const char *sv_disk_use_name(SvDiskUse use)
{
    return sv_enum_name(use_names, SV_N_DISK_USES, use);
}

SvDiskRecord *sv_disk_record_new(void)
{
    SvDiskRecord *disk = g_new0(SvDiskRecord, 1);

    disk->mount_index = -1;
    return disk;
}

void sv_disk_record_free(SvDiskRecord *disk)
{
    if (!disk)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        if (fields[i].kind == SV_FIELD_STRING)
            g_free(*(char **)G_STRUCT_MEMBER_P(disk, fields[i].offset));
    g_free(disk);
}

SvDiskRecord *sv_disk_record_copy(const SvDiskRecord *disk)
{
    SvDiskRecord *copy = g_memdup2(disk, sizeof *disk);

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        if (fields[i].kind == SV_FIELD_STRING) {
            char **slot = (char **)G_STRUCT_MEMBER_P(copy, fields[i].offset);

            *slot = g_strdup(*slot);
        }
    return copy;
}

const char *sv_disk_record_device(const SvDiskRecord *disk)
{
    return disk->shares ? disk->shares : disk->alias;
}

char *sv_disk_record_title(const SvDiskRecord *disk)
{
    g_autofree char *source = sv_printable(disk->source, SOURCE_SHOWN);

    return g_strdup_printf("%s \"%s\"", disk->image ? "image file" : "block device", source);
}

static gboolean read_one(JsonObject *object, SvDiskRecord *disk, GError **error)
{
    const char *use = NULL;
    guint value = 0;

    if (!sv_fields_read(object, "disks[]", fields, G_N_ELEMENTS(fields), disk, error) ||
        !sv_json_get_string(object, "use", "disks[]", &use, error))
        return FALSE;
    if (!use || !sv_enum_parse(use_names, SV_N_DISK_USES, use, &value) || !disk->alias ||
        !disk->source) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "disks[]: use, alias or source is missing or not known");
        return FALSE;
    }
    disk->use = (SvDiskUse)value;
    return TRUE;
}

gboolean sv_disk_records_read(
    JsonObject *object, const char *name, GPtrArray *disks, GError **error)
{
    JsonArray *array = NULL;

    if (!sv_json_get_array(object, name, "", &array, error))
        return FALSE;
    for (guint i = 0; array && i < json_array_get_length(array); i++) {
        JsonNode *node = json_array_get_element(array, i);
        g_autoptr(SvDiskRecord) disk = sv_disk_record_new();

        if (!JSON_NODE_HOLDS_OBJECT(node)) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "%s[%u]: not an object", name, i);
            return FALSE;
        }
        if (!read_one(json_node_get_object(node), disk, error))
            return FALSE;
        g_ptr_array_add(disks, g_steal_pointer(&disk));
    }
    return TRUE;
}

void sv_disk_records_write(JsonObject *object, const char *name, const GPtrArray *disks)
{
    JsonArray *array = json_array_new();

    for (guint i = 0; i < disks->len; i++) {
        const SvDiskRecord *disk = disks->pdata[i];
        JsonObject *item = json_object_new();

        json_object_set_string_member(item, "use", sv_disk_use_name(disk->use));
        sv_fields_write(item, fields, G_N_ELEMENTS(fields), disk);
        json_array_add_object_element(array, item);
    }
    json_object_set_array_member(object, name, array);
}

SvDiskRecord *sv_disk_records_find(const GPtrArray *disks, const char *alias)
{
    for (guint i = 0; i < disks->len; i++) {
        SvDiskRecord *disk = disks->pdata[i];

        if (g_str_equal(disk->alias, alias))
            return disk;
    }
    return NULL;
}
