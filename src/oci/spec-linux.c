/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux: namespaces, devices, and the types of what is passed on to the guest */
#include <config.h>

#include "oci/spec-private.h"
#include <string.h>

#define MAJOR_MAX 4095 /* of the kernel's dev_t: 12 and 20 bits */
#define MINOR_MAX 1048575

static const char *const namespace_types[] = {
    "pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time", NULL};

void sv_spec_namespace_free(SvSpecNamespace *ns)
{
    if (!ns)
        return;
    g_free(ns->type);
    g_free(ns->path);
    g_free(ns);
}

void sv_spec_device_free(SvSpecDevice *device)
{
    if (!device)
        return;
    g_free(device->path);
    g_free(device->type);
    g_free(device);
}

const SvSpecNamespace *sv_spec_namespace(const SvSpec *spec, const char *type)
{
    for (guint i = 0; i < spec->namespaces->len; i++) {
        const SvSpecNamespace *ns = spec->namespaces->pdata[i];

        if (strcmp(ns->type, type) == 0)
            return ns;
    }
    return NULL;
}

static gboolean read_namespace(
    JsonObject *object, const char *path, gpointer user_data, GError **error)
{
    SvSpec *spec = user_data;
    g_autoptr(SvSpecNamespace) ns = g_new0(SvSpecNamespace, 1);
    const char *type = NULL, *file = NULL;

    if (!sv_json_get_string(object, "type", path, &type, error) ||
        !sv_json_get_string(object, "path", path, &file, error))
        return FALSE;
    if (!type || !g_strv_contains(namespace_types, type)) {
        g_autofree char *text = sv_printable(type, 64);

        return sv_spec_error(error, path, "unknown namespace type \"%s\"", text);
    }
    if (sv_spec_namespace(spec, type))
        return sv_spec_error(error, path, "a second \"%s\" namespace", type);
    if (file && *file && *file != '/')
        return sv_spec_error(error, path, "the namespace's path is not absolute");
    ns->type = g_strdup(type);
    ns->path = file && *file ? g_strdup(file) : NULL;
    g_ptr_array_add(spec->namespaces, g_steal_pointer(&ns));
    return TRUE;
}

static gboolean read_device(
    JsonObject *object, const char *path, gpointer user_data, GError **error)
{
    SvSpec *spec = user_data;
    g_autoptr(SvSpecDevice) device = g_new0(SvSpecDevice, 1);
    const char *file = NULL, *type = NULL;

    device->mode = device->uid = device->gid = -1;
    if (!sv_json_get_string(object, "path", path, &file, error) ||
        !sv_json_get_string(object, "type", path, &type, error) ||
        !sv_spec_range(object, "major", path, 0, MAJOR_MAX, &device->major, error) ||
        !sv_spec_range(object, "minor", path, 0, MINOR_MAX, &device->minor, error) ||
        !sv_spec_range(object, "fileMode", path, 0, 0177777, &device->mode, error) ||
        !sv_spec_range(object, "uid", path, 0, G_MAXUINT32, &device->uid, error) ||
        !sv_spec_range(object, "gid", path, 0, G_MAXUINT32, &device->gid, error))
        return FALSE;
    if (!file || !g_path_is_absolute(file))
        return sv_spec_error(error, path, "path must be an absolute path");
    if (!type || strlen(type) != 1 || !strchr("bcup", *type))
        return sv_spec_error(error, path, "type must be one of b, c, u, p");
    device->path = g_strdup(file);
    device->type = g_strdup(type);
    g_ptr_array_add(spec->devices, g_steal_pointer(&device));
    return TRUE;
}

static gboolean check_device_rule(
    JsonObject *object, const char *path, gpointer user_data, GError **error)
{
    static const char *const strings[] = {"type", "access", NULL};
    static const char *const bools[] = {"allow", NULL};
    gint64 major = -1, minor = -1;

    return sv_spec_check_strings(object, path, strings, error) &&
        sv_spec_check_bools(object, path, bools, error) &&
        sv_spec_range(object, "major", path, -1, MAJOR_MAX, &major, error) &&
        sv_spec_range(object, "minor", path, -1, MINOR_MAX, &minor, error);
}

static gboolean check_numbers(JsonObject *parent, const char *name, const char *path,
    const char *const *names, GError **error)
{
    g_autofree char *where = sv_spec_path(path, name);
    JsonObject *object = NULL;

    if (!sv_json_get_object(parent, name, path, &object, error))
        return FALSE;
    for (; object && *names; names++) {
        g_autofree char *full = sv_spec_path(where, *names);
        JsonNode *node = json_object_get_member(object, *names);

        if (node && !JSON_NODE_HOLDS_NULL(node) &&
            (!JSON_NODE_HOLDS_VALUE(node) ||
                (json_node_get_value_type(node) != G_TYPE_INT64 &&
                    json_node_get_value_type(node) != G_TYPE_DOUBLE)))
            return sv_spec_error(error, full, "must be a number");
    }
    return TRUE;
}

static gboolean check_resources(JsonObject *resources, GError **error)
{
    static const char *const memory[] = {
        "limit", "reservation", "swap", "kernel", "kernelTCP", "swappiness", NULL};
    static const char *const cpu[] = {
        "shares", "quota", "burst", "period", "realtimeRuntime", "realtimePeriod", "idle", NULL};
    static const char *const pids[] = {"limit", NULL};
    static const char *const sets[] = {"cpus", "mems", NULL};
    static const char *const none[] = {NULL};
    const char *path = "linux.resources";
    JsonObject *processor = NULL;

    return sv_spec_each(resources, "devices", path, check_device_rule, NULL, error) &&
        check_numbers(resources, "memory", path, memory, error) &&
        check_numbers(resources, "cpu", path, cpu, error) &&
        check_numbers(resources, "pids", path, pids, error) &&
        check_numbers(resources, "blockIO", path, none, error) &&
        check_numbers(resources, "network", path, none, error) &&
        sv_json_get_object(resources, "cpu", path, &processor, error) &&
        (!processor || sv_spec_check_strings(processor, "linux.resources.cpu", sets, error)) &&
        sv_spec_string_map(resources, "unified", path, NULL, error);
}

JsonNode *sv_resources_parse(const char *text, gsize len, GError **error)
{
    g_autoptr(JsonNode) node = sv_json_parse(text, (gssize)len, FALSE, "resources", error);

    return node && check_resources(json_node_get_object(node), error) ? g_steal_pointer(&node)
                                                                      : NULL;
}

static gboolean check_mapping(
    JsonObject *object, const char *path, gpointer user_data, GError **error)
{
    gint64 container = -1, host = -1, size = -1;

    if (!sv_spec_range(object, "containerID", path, 0, G_MAXUINT32, &container, error) ||
        !sv_spec_range(object, "hostID", path, 0, G_MAXUINT32, &host, error) ||
        !sv_spec_range(object, "size", path, 1, G_MAXUINT32, &size, error))
        return FALSE;
    if (container < 0 || host < 0 || size < 0)
        return sv_spec_error(error, path, "containerID, hostID and size are all needed");
    return TRUE;
}

/* A user namespace of the container's own without mappings is of no use, mappings without one are
 * never applied. */
static gboolean check_mappings(SvSpec *spec, JsonObject *object, GError **error)
{
    const SvSpecNamespace *user = sv_spec_namespace(spec, "user");
    JsonArray *uids = NULL, *gids = NULL;

    if (!sv_spec_each(object, "uidMappings", "linux", check_mapping, NULL, error) ||
        !sv_spec_each(object, "gidMappings", "linux", check_mapping, NULL, error) ||
        !sv_json_get_array(object, "uidMappings", "linux", &uids, error) ||
        !sv_json_get_array(object, "gidMappings", "linux", &gids, error))
        return FALSE;
    if (user && !user->path && (!uids || !json_array_get_length(uids)))
        return sv_spec_error(error, "linux.uidMappings", "are needed with a user namespace");
    if (user && !user->path && (!gids || !json_array_get_length(gids)))
        return sv_spec_error(error, "linux.gidMappings", "are needed with a user namespace");
    if (!user && ((uids && json_array_get_length(uids)) || (gids && json_array_get_length(gids))))
        return sv_spec_error(error, "linux.uidMappings", "need a user namespace");
    return TRUE;
}

static gboolean check_propagation(JsonObject *object, GError **error)
{
    static const char *const known[] = {"shared", "rshared", "slave", "rslave", "private",
        "rprivate", "unbindable", "runbindable", "", NULL};
    const char *text = NULL;

    if (!sv_json_get_string(object, "rootfsPropagation", "linux", &text, error))
        return FALSE;
    if (!text || g_strv_contains(known, text))
        return TRUE;
    g_autofree char *shown = sv_printable(text, 64);
    return sv_spec_error(error, "linux.rootfsPropagation", "unknown propagation \"%s\"", shown);
}

gboolean sv_spec_read_linux(SvSpec *spec, JsonObject *root, GError **error)
{
    static const char *const strings[] = {"cgroupsPath", "mountLabel", "rootfsPropagation", NULL};
    static const char *const strvs[] = {"maskedPaths", "readonlyPaths", NULL};
    static const char *const objects[] = {"seccomp", "personality", "timeOffsets", "intelRdt"};
    JsonObject *object = NULL, *resources = NULL, *ignored = NULL;
    const char *cgroups = NULL;

    if (!sv_json_get_object(root, "linux", "", &object, error))
        return FALSE;
    if (!object)
        return TRUE;
    for (gsize i = 0; i < G_N_ELEMENTS(objects); i++)
        if (!sv_json_get_object(object, objects[i], "linux", &ignored, error))
            return FALSE;
    if (!sv_spec_check_strings(object, "linux", strings, error) ||
        !sv_spec_check_strvs(object, "linux", strvs, error) ||
        !sv_spec_string_map(object, "sysctl", "linux", NULL, error) ||
        !sv_spec_each(object, "namespaces", "linux", read_namespace, spec, error) ||
        !sv_spec_each(object, "devices", "linux", read_device, spec, error) ||
        !check_mappings(spec, object, error) || !check_propagation(object, error) ||
        !sv_json_get_object(object, "resources", "linux", &resources, error) ||
        (resources && !check_resources(resources, error)) ||
        !sv_json_get_string(object, "cgroupsPath", "linux", &cgroups, error))
        return FALSE;
    spec->cgroups_path = cgroups && *cgroups ? g_strdup(cgroups) : NULL;
    return TRUE;
}
