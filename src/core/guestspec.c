/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guest's config.json. Only what is named here gets through: crun's own annotations, labels of the
 * host's security modules and members that a later specification adds must not come from a tenant
 * into the guest's runtime unseen. */
#include <config.h>

#include "core/guestspec.h"

#include "base/json.h"
#include "core/guestspec-private.h"
#include "core/lifecycle.h"
#include "devices/block-mount.h"
#include <string.h>

#define GUEST_OCI_VERSION "1.0.2" /* crun refuses what does not contain "1.0" */

static void bind_plan_free(SvBindPlan *plan)
{
    g_free(plan->name);
    g_free(plan->source);
    g_free(plan);
}

void sv_guest_spec_free(SvGuestSpec *guest)
{
    if (!guest)
        return;
    g_clear_pointer(&guest->config, json_node_unref);
    g_ptr_array_unref(guest->binds);
    g_ptr_array_unref(guest->net_sysctls);
    g_ptr_array_unref(guest->warnings);
    g_free(guest);
}

gboolean sv_guest_unsupported(GError **error, const char *path, const char *text)
{
    g_set_error(error, SV_CORE_ERROR, SV_ERR_UNSUPPORTED, "config.json: %s: %s", path, text);
    return FALSE;
}

void sv_guest_warn(GPtrArray *warnings, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    if (!warnings)
        return;
    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(warnings, sv_printable(text, 512));
}

JsonObject *sv_guest_copy_members(JsonObject *from, const char *const *names)
{
    JsonObject *to = json_object_new();

    for (; *names; names++) {
        JsonNode *node = json_object_get_member(from, *names);

        if (node && !JSON_NODE_HOLDS_NULL(node))
            json_object_set_member(to, *names, json_node_copy(node));
    }
    return to;
}

JsonObject *sv_guest_object(JsonObject *from, const char *name)
{
    JsonNode *node = from ? json_object_get_member(from, name) : NULL;

    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

JsonArray *sv_guest_array(JsonObject *from, const char *name)
{
    JsonNode *node = from ? json_object_get_member(from, name) : NULL;

    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static gboolean has_text(JsonObject *from, const char *name)
{
    JsonNode *node = json_object_get_member(from, name);

    return node && JSON_NODE_HOLDS_VALUE(node) && g_strcmp0(json_node_get_string(node), "") != 0;
}

void sv_guest_warn_of_text(
    JsonObject *from, const char *name, const char *text, SvGuestBuild *build)
{
    if (has_text(from, name))
        sv_guest_warn(build->guest->warnings, "%s", text);
}

JsonObject *sv_guest_build_process(JsonObject *process, GPtrArray *warnings)
{
    static const char *const names[] = {"terminal", "consoleSize", "user", "args", "env", "cwd",
        "capabilities", "rlimits", "noNewPrivileges", "oomScoreAdj", NULL};
    JsonObject *capabilities = sv_guest_object(process, "capabilities");
    JsonObject *to = sv_guest_copy_members(process, names);

    if (has_text(process, "apparmorProfile"))
        sv_guest_warn(warnings, "process.apparmorProfile: the machine has no AppArmor, ignored");
    if (has_text(process, "selinuxLabel"))
        sv_guest_warn(warnings, "process.selinuxLabel: the machine has no SELinux, ignored");
    if (sv_guest_object(process, "scheduler"))
        sv_guest_warn(warnings, "process.scheduler: is ignored");
    if (sv_guest_object(process, "ioPriority"))
        sv_guest_warn(warnings, "process.ioPriority: is ignored");
    if (capabilities)
        json_object_set_object_member(
            to, "capabilities", sv_guest_build_capabilities(capabilities, warnings));
    return to;
}

char *sv_guest_process(JsonNode *process, GError **error)
{
    g_autoptr(JsonNode) node = NULL;

    if (!JSON_NODE_HOLDS_OBJECT(process)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "process.json: must be an object");
        return NULL;
    }
    node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, sv_guest_build_process(json_node_get_object(process), NULL));
    return sv_json_text(node, FALSE);
}

char *sv_guest_resources(
    JsonNode *resources, guint cpus, GHashTable *guest_devices, GPtrArray *warnings, GError **error)
{
    g_autoptr(JsonNode) node = NULL;
    JsonObject *object = NULL;

    if (!JSON_NODE_HOLDS_OBJECT(resources)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "resources: must be an object");
        return NULL;
    }
    object = sv_guest_build_resources(
        json_node_get_object(resources), cpus, guest_devices, warnings, error);
    if (!object)
        return NULL;
    node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    return sv_json_text(node, FALSE);
}

static void set_root(SvGuestBuild *build, JsonObject *config)
{
    JsonObject *root = json_object_new();

    json_object_set_string_member(root, "path", build->params->root_path);
    json_object_set_boolean_member(root, "readonly", build->spec->root_readonly);
    json_object_set_object_member(config, "root", root);
}

/* The machine has one already: the agent sets it for a container that shares it. */
static void set_names(SvGuestBuild *build, JsonObject *config)
{
    if (!g_hash_table_contains(build->own, "uts"))
        return;
    if (build->spec->hostname)
        json_object_set_string_member(config, "hostname", build->spec->hostname);
    if (build->spec->domainname)
        json_object_set_string_member(config, "domainname", build->spec->domainname);
}

/* startContainer hooks are run by crun in the container, whose file they are. Only then are the annotations
 * needed, for the state on their standard input; those for crun itself would steer it. */
static void set_hooks(SvGuestBuild *build, JsonObject *config)
{
    static const char *const names[] = {"startContainer", NULL};
    JsonObject *hooks = sv_guest_object(json_node_get_object(build->spec->json), "hooks");
    JsonArray *start = hooks ? sv_guest_array(hooks, names[0]) : NULL;
    JsonObject *annotations = NULL;
    GHashTableIter iter;
    gpointer key, value;

    if (!start || json_array_get_length(start) == 0)
        return;
    json_object_set_object_member(config, "hooks", sv_guest_copy_members(hooks, names));
    annotations = json_object_new();
    g_hash_table_iter_init(&iter, build->spec->annotations);
    while (g_hash_table_iter_next(&iter, &key, &value))
        if (!g_str_has_prefix(key, "run.oci.") && !g_str_has_prefix(key, "org.criu."))
            json_object_set_string_member(annotations, key, value);
    json_object_set_object_member(config, "annotations", annotations);
}

SvGuestSpec *sv_guest_spec_build(
    const SvSpec *spec, const SvGuestSpecParams *params, GError **error)
{
    g_autoptr(SvGuestSpec) guest = g_new0(SvGuestSpec, 1);
    g_autoptr(GHashTable) own = g_hash_table_new(g_str_hash, g_str_equal);
    SvGuestBuild build = {spec, params, guest, own};
    JsonObject *config = json_object_new();
    JsonObject *process = sv_guest_object(json_node_get_object(spec->json), "process");

    guest->config = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(guest->config, config);
    guest->binds = g_ptr_array_new_with_free_func((GDestroyNotify)bind_plan_free);
    guest->net_sysctls = g_ptr_array_new_with_free_func(g_free);
    guest->warnings = g_ptr_array_new_with_free_func(g_free);

    /* crun makes no container without one. */
    if (!process) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "config.json: process: is missing");
        return NULL;
    }
    if (!sv_guest_check_capabilities(spec, process, error))
        return NULL;
    json_object_set_string_member(config, "ociVersion", GUEST_OCI_VERSION);
    json_object_set_object_member(
        config, "process", sv_guest_build_process(process, guest->warnings));
    set_root(&build, config);
    if (!sv_guest_build_mounts(&build, config, error) ||
        !sv_guest_build_linux(&build, config, error))
        return NULL;
    set_names(&build, config);
    set_hooks(&build, config);
    return g_steal_pointer(&guest);
}

/* Any name does: nothing is made of it. */
static const char *join_any(const char *type, const char *path, gpointer user_data, GError **error)
{
    return strcmp(type, "user") == 0 ? NULL : "/";
}

/* As if the block devices that are asked for were in the machine, with the same numbers. */
static GHashTable *asked_devices(const SvSpec *spec)
{
    GHashTable *devices = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < spec->devices->len; i++) {
        const SvSpecDevice *device = spec->devices->pdata[i];

        if (strcmp(device->type, "b") == 0) {
            char *key = g_strdup_printf(
                "b:%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT, device->major, device->minor);

            g_hash_table_replace(devices, key, key);
        }
    }
    return devices;
}

gboolean sv_guest_spec_check(const SvSpec *spec, GPtrArray *warnings, GError **error)
{
    g_autofree SvSourceInfo *sources = g_new0(SvSourceInfo, spec->mounts->len + 1);
    g_autoptr(GHashTable) devices = asked_devices(spec);
    SvGuestSpecParams params = {
        .container_id = "check",
        .root_path = "/",
        .sources = sources,
        .join_namespace = join_any,
        .check = TRUE,
        .guest_devices = devices,
    };
    for (guint i = 0; i < spec->mounts->len; i++) {
        const SvSpecMount *mount = spec->mounts->pdata[i];

        /* a disk by its type: looked at when it is planned */
        if (!sv_spec_mount_is_bind(mount) && sv_block_fstype_is_known(mount->type)) {
            sources[i].kind = SV_SOURCE_BLOCK;
            sources[i].guest_path = (char *)"/";
        }
    }
    g_autoptr(SvGuestSpec) guest = sv_guest_spec_build(spec, &params, error);

    for (guint i = 0; guest && i < guest->warnings->len; i++)
        g_ptr_array_add(warnings, g_strdup(guest->warnings->pdata[i]));
    return guest != NULL;
}
