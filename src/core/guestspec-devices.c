/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Devices have other numbers in the guest. A block device that was not plugged has none: a node or an
 * allow rule with the host's numbers would hit another container's disk. The fixed numbers of
 * character devices are the same everywhere. */
#include <config.h>

#include "core/device-rules.h"
#include "core/guestspec-private.h"
#include <string.h>

gboolean sv_guest_device_lookup(GHashTable *devices, const char *type, gint64 major, gint64 minor,
    gint64 *guest_major, gint64 *guest_minor)
{
    g_autofree char *key =
        g_strdup_printf("%s:%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT, type, major, minor);
    const char *value = devices ? g_hash_table_lookup(devices, key) : NULL;
    g_auto(GStrv) parts = value ? g_strsplit(value, ":", 3) : NULL;

    if (!parts || g_strv_length(parts) != 3)
        return FALSE;
    *guest_major = g_ascii_strtoll(parts[1], NULL, 10);
    *guest_minor = g_ascii_strtoll(parts[2], NULL, 10);
    return TRUE;
}

static gboolean has_numbers(const SvSpecDevice *device)
{
    return strcmp(device->type, "p") != 0;
}

static JsonObject *device_object(const SvSpecDevice *device, gint64 major, gint64 minor)
{
    JsonObject *out = json_object_new();

    json_object_set_string_member(out, "path", device->path);
    json_object_set_string_member(out, "type", device->type);
    if (has_numbers(device)) {
        json_object_set_int_member(out, "major", major);
        json_object_set_int_member(out, "minor", minor);
    }
    if (device->mode >= 0)
        json_object_set_int_member(out, "fileMode", device->mode);
    if (device->uid >= 0)
        json_object_set_int_member(out, "uid", device->uid);
    if (device->gid >= 0)
        json_object_set_int_member(out, "gid", device->gid);
    return out;
}

/* A node that nobody may open, with the numbers as they are: the guest's rules say so too. */
static gboolean is_mere_name(JsonArray *guest_rules, const SvSpecDevice *device)
{
    return sv_device_rules_deny(guest_rules, device->major, device->minor);
}

void sv_guest_build_devices(SvGuestBuild *build, JsonObject *source, JsonObject *target)
{
    JsonArray *rules = sv_guest_array(sv_guest_object(source, "resources"), "devices");
    g_autoptr(JsonArray) guest_rules =
        rules ? sv_guest_device_rules(rules, build->params->guest_devices) : NULL;
    JsonArray *devices = NULL;
    guint ignored = 0;

    if (!sv_guest_array(source, "devices"))
        return;
    devices = json_array_new();
    for (guint i = 0; i < build->spec->devices->len; i++) {
        const SvSpecDevice *device = build->spec->devices->pdata[i];
        gint64 major = device->major, minor = device->minor;

        if (has_numbers(device) &&
            !sv_guest_device_lookup(build->params->guest_devices, device->type, device->major,
                device->minor, &major, &minor) &&
            strcmp(device->type, "b") == 0 && !is_mere_name(guest_rules, device)) {
            /* A privileged container lists all of the host's: one line for all. */
            if (ignored++ == 0 && !build->params->check)
                sv_guest_warn(build->guest->warnings,
                    "linux.devices: \"%s\" is not in the machine, ignored", device->path);
            continue;
        }
        json_array_add_object_element(devices, device_object(device, major, minor));
    }
    if (ignored > 1 && !build->params->check)
        sv_guest_warn(build->guest->warnings,
            "linux.devices: %u more block devices are not in the machine, ignored", ignored - 1);
    json_object_set_array_member(target, "devices", devices);
}

/* An integer member checked before; -1 when there is none (any). */
static gint64 number_of(JsonObject *rule, const char *name)
{
    JsonNode *node = json_object_get_member(rule, name);

    return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_int(node) : -1;
}

static const char *text_of(JsonObject *rule, const char *name)
{
    JsonNode *node = json_object_get_member(rule, name);

    return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;
}

/* (transfer full) NULL: a rule for devices that the guest does not have. */
static JsonObject *device_rule(JsonObject *rule, GHashTable *devices)
{
    static const char *const names[] = {"allow", "type", "major", "minor", "access", NULL};
    const char *type = text_of(rule, "type");
    gint64 major = number_of(rule, "major"), minor = number_of(rule, "minor");
    gboolean character = g_strcmp0(type, "c") == 0 || g_strcmp0(type, "u") == 0;
    gboolean found = FALSE;
    JsonObject *out = NULL;

    if (major >= 0 && minor >= 0)
        found =
            sv_guest_device_lookup(devices, character ? "c" : "b", major, minor, &major, &minor);
    if (!found && !character && (major >= 0 || minor >= 0))
        return NULL;
    out = sv_guest_copy_members(rule, names);
    if (found) {
        json_object_set_int_member(out, "major", major);
        json_object_set_int_member(out, "minor", minor);
    }
    return out;
}

JsonArray *sv_guest_device_rules(JsonArray *rules, GHashTable *devices)
{
    JsonArray *out = json_array_new();

    for (guint i = 0; i < json_array_get_length(rules); i++) {
        JsonObject *rule = device_rule(json_array_get_object_element(rules, i), devices);

        if (rule)
            json_array_add_object_element(out, rule);
    }
    return out;
}
