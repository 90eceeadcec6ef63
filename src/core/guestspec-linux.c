/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux: namespaces first (others depend on which the container has of its own), then the rest. */
#include <config.h>

#include "core/guestspec-private.h"
#include "core/lifecycle.h"
#include <string.h>

static void add_namespace(
    SvGuestBuild *build, JsonArray *namespaces, const char *type, const char *path)
{
    JsonObject *out = json_object_new();

    json_object_set_string_member(out, "type", type);
    if (path)
        json_object_set_string_member(out, "path", path);
    json_array_add_object_element(namespaces, out);
    g_hash_table_add(build->own, (gpointer)type);
}

/* One with a path: of another container of the pod, or the machine's. */
static gboolean join_namespace(
    SvGuestBuild *build, JsonArray *namespaces, const SvSpecNamespace *ns, GError **error)
{
    const SvGuestSpecParams *params = build->params;
    const char *path = NULL;
    GError *local = NULL;

    if (params->join_namespace)
        path = params->join_namespace(ns->type, ns->path, params->user_data, &local);
    if (local) {
        g_propagate_error(error, local);
        return FALSE;
    }
    if (path)
        add_namespace(build, namespaces, ns->type, path);
    else if (strcmp(ns->type, "user") == 0)
        return sv_guest_unsupported(
            error, "linux.namespaces", "a user namespace that is made elsewhere cannot be joined");
    return TRUE;
}

static gboolean set_namespaces(SvGuestBuild *build, JsonObject *target, GError **error)
{
    JsonArray *namespaces = json_array_new();

    json_object_set_array_member(target, "namespaces", namespaces);
    for (guint i = 0; i < build->spec->namespaces->len; i++) {
        const SvSpecNamespace *ns = build->spec->namespaces->pdata[i];

        /* The machine has the pod's network itself. */
        if (strcmp(ns->type, "network") == 0)
            continue;
        if (strcmp(ns->type, "time") == 0)
            return sv_guest_unsupported(
                error, "linux.namespaces", "a time namespace is not supported");
        if (!ns->path)
            add_namespace(build, namespaces, ns->type, NULL);
        else if (!join_namespace(build, namespaces, ns, error))
            return FALSE;
    }
    /* Without one crun would mount over the agent's own root. */
    if (!g_hash_table_contains(build->own, "mount"))
        add_namespace(build, namespaces, "mount", NULL);
    return TRUE;
}

static gboolean check_seccomp(JsonObject *linux_object, GError **error)
{
    JsonObject *seccomp = sv_guest_object(linux_object, "seccomp");
    JsonNode *listener = seccomp ? json_object_get_member(seccomp, "listenerPath") : NULL;

    if (listener && JSON_NODE_HOLDS_VALUE(listener) &&
        g_strcmp0(json_node_get_string(listener), "") != 0)
        return sv_guest_unsupported(
            error, "linux.seccomp.listenerPath", "a seccomp agent is not supported");
    return TRUE;
}

static gboolean set_resources(
    SvGuestBuild *build, JsonObject *source, JsonObject *target, GError **error)
{
    const SvGuestSpecParams *params = build->params;
    JsonObject *resources = sv_guest_object(source, "resources");
    JsonArray *rules = sv_guest_array(resources, "devices");
    JsonObject *out = NULL;

    if (!resources)
        return TRUE;
    out = sv_guest_build_resources(
        resources, params->cpus, params->guest_devices, build->guest->warnings, error);
    if (!out)
        return FALSE;
    if (rules)
        json_object_set_array_member(
            out, "devices", sv_guest_device_rules(rules, params->guest_devices));
    json_object_set_object_member(target, "resources", out);
    return TRUE;
}

gboolean sv_guest_build_linux(SvGuestBuild *build, JsonObject *config, GError **error)
{
    /* Not mountLabel (the guest has no SELinux). */
    static const char *const names[] = {
        "seccomp", "rootfsPropagation", "maskedPaths", "readonlyPaths", "personality", NULL};
    static const char *const user_names[] = {"uidMappings", "gidMappings", NULL};
    JsonObject *source = sv_guest_object(json_node_get_object(build->spec->json), "linux");
    g_autoptr(JsonObject) empty = json_object_new();
    g_autofree char *cgroup = g_strconcat("/sandvirt/", build->params->container_id, NULL);

    if (!source)
        source = empty;
    JsonObject *target = sv_guest_copy_members(source, names);
    json_object_set_object_member(config, "linux", target);
    json_object_set_string_member(target, "cgroupsPath", cgroup);
    if (!set_namespaces(build, target, error) || !check_seccomp(source, error))
        return FALSE;
    if (sv_guest_object(source, "intelRdt"))
        return sv_guest_unsupported(error, "linux.intelRdt", "the machine has no resctrl");
    for (const char *const *n = user_names; *n && g_hash_table_contains(build->own, "user"); n++)
        if (sv_guest_array(source, *n))
            json_object_set_member(target, *n, json_node_copy(json_object_get_member(source, *n)));
    sv_guest_warn_of_text(
        source, "mountLabel", "linux.mountLabel: the machine has no SELinux, ignored", build);
    sv_guest_build_devices(build, source, target);
    return set_resources(build, source, target, error) &&
        sv_guest_build_sysctls(build, source, target, error);
}
