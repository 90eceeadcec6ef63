/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* process.capabilities: names that nobody knows are left out and told of. */
#include <config.h>

#include "base/names.h"
#include "core/guestspec-private.h"
#include "core/lifecycle.h"
#include <string.h>

const char *const sv_guest_capabilities[] = {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN",
    "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT",
    "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD",
    "CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ",
    "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE", NULL};

static const char *const sets[] = {
    "bounding", "effective", "inheritable", "permitted", "ambient", NULL};

gboolean sv_guest_knows_capability(const char *name)
{
    for (const char *const *known = sv_guest_capabilities; *known; known++)
        if (g_ascii_strcasecmp(name, *known) == 0)
            return TRUE;
    return FALSE;
}

/* The name at @index of the set @name; NULL when it is known. */
static const char *unknown_at(JsonObject *from, const char *name, guint index)
{
    JsonNode *node = json_array_get_element(sv_guest_array(from, name), index);
    const char *text = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;

    return text && !sv_guest_knows_capability(text) ? text : NULL;
}

static JsonArray *known_of(JsonObject *from, const char *name)
{
    JsonArray *array = sv_guest_array(from, name);
    JsonArray *to = json_array_new();

    for (guint i = 0; i < json_array_get_length(array); i++)
        if (!unknown_at(from, name, i))
            json_array_add_element(to, json_node_copy(json_array_get_element(array, i)));
    return to;
}

JsonObject *sv_guest_build_capabilities(JsonObject *from, GPtrArray *warnings)
{
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    JsonObject *to = json_object_new();

    for (const char *const *set = sets; *set; set++) {
        JsonArray *array = sv_guest_array(from, *set);

        if (!array)
            continue;
        for (guint i = 0; i < json_array_get_length(array); i++) {
            const char *name = unknown_at(from, *set, i);

            if (name && g_hash_table_add(told, (gpointer)name))
                sv_guest_warn(
                    warnings, "process.capabilities: unknown capability \"%s\", ignored", name);
        }
        json_object_set_array_member(to, *set, known_of(from, *set));
    }
    return to;
}

/* A rule of the specification up to 1.0.2; what came behind it makes a warning of it. */
static gboolean is_strict(const SvSpec *spec)
{
    static const char *const versions[] = {"1.0.0", "1.0.1", "1.0.2", NULL};

    return g_strv_contains(versions, spec->oci_version);
}

gboolean sv_guest_check_capabilities(const SvSpec *spec, JsonObject *process, GError **error)
{
    JsonObject *from = sv_guest_object(process, "capabilities");

    for (const char *const *set = sets; from && is_strict(spec) && *set; set++) {
        JsonArray *array = sv_guest_array(from, *set);

        for (guint i = 0; array && i < json_array_get_length(array); i++) {
            const char *name = unknown_at(from, *set, i);
            g_autofree char *shown = name ? sv_printable(name, 64) : NULL;

            if (!name)
                continue;
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
                "config.json: process.capabilities.%s[%u]: unknown capability \"%s\"", *set, i,
                shown);
            return FALSE;
        }
    }
    return TRUE;
}
