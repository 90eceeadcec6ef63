/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/device-rules.h"

#include <string.h>

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

static gboolean is_allow(JsonObject *rule)
{
    JsonNode *node = json_object_get_member(rule, "allow");

    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_boolean(node);
}

/* No access stated means all of it. */
static guint access_of(JsonObject *rule)
{
    const char *text = text_of(rule, "access");
    guint access = 0;

    if (!text || !*text)
        return SV_ACCESS_READ | SV_ACCESS_WRITE | SV_ACCESS_MKNOD;
    if (strchr(text, 'r'))
        access |= SV_ACCESS_READ;
    if (strchr(text, 'w'))
        access |= SV_ACCESS_WRITE;
    if (strchr(text, 'm'))
        access |= SV_ACCESS_MKNOD;
    return access;
}

/* @major, @minor -1: a device that only rules for all devices name. */
static guint walk(JsonArray *rules, gint64 major, gint64 minor)
{
    guint access = 0;

    for (guint i = 0; rules && i < json_array_get_length(rules); i++) {
        JsonObject *rule = json_array_get_object_element(rules, i);
        const char *type = text_of(rule, "type");
        gint64 a = number_of(rule, "major"), b = number_of(rule, "minor");

        if (type && *type && *type != 'a' && *type != 'b')
            continue;
        if ((a >= 0 && a != major) || (b >= 0 && b != minor))
            continue;
        access = is_allow(rule) ? access | access_of(rule) : access & ~access_of(rule);
    }
    return access;
}

guint sv_device_rules_access(JsonArray *rules, gint64 major, gint64 minor)
{
    return walk(rules, major, minor);
}

gboolean sv_device_rules_deny(JsonArray *rules, gint64 major, gint64 minor)
{
    return rules && json_array_get_length(rules) > 0 && walk(rules, major, minor) == 0;
}

gboolean sv_device_rules_allow_all(JsonArray *rules)
{
    return (walk(rules, -1, -1) & SV_ACCESS_WRITE) != 0;
}
