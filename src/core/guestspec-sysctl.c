/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux.sysctl: those of a namespace of the container's own are crun's, the rest is the machine's. */
#include <config.h>

#include "core/guestspec-private.h"
#include "core/lifecycle.h"
#include <string.h>

static const char *const ipc_names[] = {"kernel/msgmax", "kernel/msgmnb", "kernel/msgmni",
    "kernel/sem", "kernel/shmall", "kernel/shmmax", "kernel/shmmni", "kernel/shm_rmid_forced",
    NULL};

/* Programs that the guest's kernel would start outside of every container. */
static const char *const refused[] = {
    "kernel/core_pattern", "kernel/modprobe", "kernel/hotplug", "kernel/poweroff_cmd", NULL};

/* The first separator decides: a slash: as it is; a dot: dots and slashes are swapped. (transfer full) */
static char *path_of(const char *key)
{
    char *path = g_strdup(key);
    gsize first = strcspn(key, "./");

    if (key[first] != '.')
        return path;
    for (char *c = path; *c; c++) {
        if (*c == '.')
            *c = '/';
        else if (*c == '/')
            *c = '.';
    }
    return path;
}

/* Stays below /proc/sys. */
static gboolean is_plain_path(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    for (char **p = parts; *p; p++)
        if (!**p || strcmp(*p, ".") == 0 || strcmp(*p, "..") == 0)
            return FALSE;
    return parts[0] && parts[1] && !strpbrk(path, "=\n");
}

/* The namespace that a key belongs to; NULL: the whole kernel's. */
static const char *namespace_of(const char *path)
{
    if (g_str_has_prefix(path, "net/"))
        return "network";
    if (g_str_has_prefix(path, "fs/mqueue/") || g_strv_contains(ipc_names, path))
        return "ipc";
    if (strcmp(path, "kernel/domainname") == 0 || strcmp(path, "kernel/hostname") == 0)
        return "uts";
    return NULL;
}

static gboolean set_one(
    SvGuestBuild *build, const char *key, const char *value, JsonObject *sysctls, GError **error)
{
    g_autofree char *path = path_of(key);
    const char *ns = NULL;

    if (!is_plain_path(path) || g_strv_contains(refused, path) ||
        g_str_has_prefix(path, "kernel/usermodehelper/")) {
        g_autofree char *name = sv_printable(key, 128);

        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "config.json: linux.sysctl: \"%s\" is not allowed", name);
        return FALSE;
    }
    ns = namespace_of(path);
    if (strcmp(path, "kernel/hostname") == 0) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "config.json: linux.sysctl: \"%s\" conflicts with hostname", key);
        return FALSE;
    }
    if (ns && g_hash_table_contains(build->own, ns)) {
        /* crun takes dots only, and none of these has one in a part. */
        g_strdelimit(path, "/", '.');
        json_object_set_string_member(sysctls, path, value);
    } else {
        g_ptr_array_add(build->guest->net_sysctls, g_strconcat(path, "=", value, NULL));
    }
    return TRUE;
}

gboolean sv_guest_build_sysctls(
    SvGuestBuild *build, JsonObject *source, JsonObject *target, GError **error)
{
    JsonObject *from = sv_guest_object(source, "sysctl");
    g_autoptr(JsonObject) sysctls = json_object_new();
    JsonObjectIter iter;
    const char *key = NULL;
    JsonNode *node = NULL;

    if (!from)
        return TRUE;
    json_object_iter_init_ordered(&iter, from);
    while (json_object_iter_next_ordered(&iter, &key, &node)) {
        const char *value = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;

        if (value && !set_one(build, key, value, sysctls, error))
            return FALSE;
    }
    if (json_object_get_size(sysctls))
        json_object_set_object_member(target, "sysctl", g_steal_pointer(&sysctls));
    return TRUE;
}
