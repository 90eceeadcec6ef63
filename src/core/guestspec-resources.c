/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* linux.resources: the guest has cgroup v2 only, its own CPUs, one memory node and one size of huge pages. What
 * crun refuses under v2 is left out, so that an engine on a v1 host works too. */
#include <config.h>

#include "core/guestspec-private.h"
#include "core/lifecycle.h"
#include <string.h>

#define CPU_MAX 65535
#define HUGE_PAGE                                                                                  \
    "2MB" /* what every processor of a machine has; others need the kernel's command line */

/* "0-3,7" without the CPUs from @cpus on; *list (transfer full) NULL when none is left. */
static gboolean clamp_cpus(
    const char *text, guint cpus, const char *path, char **list, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    GString *out = g_string_new(NULL);

    for (char **p = parts; *p; p++) {
        char *end = NULL;
        const char *part = g_strstrip(*p);
        guint64 first = 0, last = 0;

        if (!*part)
            continue;
        first = last = g_ascii_strtoull(part, &end, 10);
        if (g_ascii_isdigit(*part) && *end == '-' && g_ascii_isdigit(end[1]))
            last = g_ascii_strtoull(end + 1, &end, 10);
        if (!g_ascii_isdigit(*part) || *end || first > last || last > CPU_MAX) {
            g_autofree char *shown = sv_printable(text, 64);

            g_string_free(out, TRUE);
            g_set_error(
                error, SV_CORE_ERROR, SV_ERR_INVALID, "%s: \"%s\" is no list of CPUs", path, shown);
            return FALSE;
        }
        if (cpus && first >= cpus)
            continue;
        if (cpus && last >= cpus)
            last = cpus - 1;
        g_string_append_printf(out, "%s%" G_GUINT64_FORMAT, out->len ? "," : "", first);
        if (last > first)
            g_string_append_printf(out, "-%" G_GUINT64_FORMAT, last);
    }
    *list = g_string_free(out, out->len == 0);
    return TRUE;
}

static gboolean set_cpus(JsonObject *from, const char *name, JsonObject *to, guint cpus,
    const char *path, GError **error)
{
    JsonNode *node = json_object_get_member(from, name);
    const char *text = node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;
    g_autofree char *list = NULL;

    if (!text || !*text)
        return TRUE;
    if (!clamp_cpus(text, cpus, path, &list, error))
        return FALSE;
    if (list)
        json_object_set_string_member(to, name, list);
    return TRUE;
}

/* Takes @part; empty ones are left out. */
static void set_part(JsonObject *target, const char *name, JsonObject *part)
{
    if (json_object_get_size(part))
        json_object_set_object_member(target, name, part);
    else
        json_object_unref(part);
}

static gboolean build_cpu(JsonObject *resources, JsonObject *target, guint cpus, GError **error)
{
    static const char *const names[] = {"shares", "quota", "period", "idle", NULL};
    JsonObject *from = sv_guest_object(resources, "cpu");
    g_autoptr(JsonObject) to = NULL;

    if (!from)
        return TRUE;
    to = sv_guest_copy_members(from, names);
    if (!set_cpus(from, "cpus", to, cpus, "linux.resources.cpu.cpus", error))
        return FALSE;
    set_part(target, "cpu", g_steal_pointer(&to));
    return TRUE;
}

static gint64 int_member(JsonObject *object, const char *name)
{
    JsonNode *node = json_object_get_member(object, name);

    return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_int(node) : -1;
}

static gboolean build_unified(JsonObject *resources, JsonObject *target, guint cpus, GError **error)
{
    JsonObject *from = sv_guest_object(resources, "unified");
    JsonObject *cpu = sv_guest_object(resources, "cpu");
    gint64 burst = cpu ? int_member(cpu, "burst") : -1;
    g_autoptr(JsonObject) to = json_object_new();
    JsonObjectIter iter;
    const char *key = NULL;
    JsonNode *node = NULL;

    /* crun does not know cpu.burst yet */
    if (burst >= 0) {
        g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, burst);

        json_object_set_string_member(to, "cpu.max.burst", text);
    }
    if (!from) {
        set_part(target, "unified", g_steal_pointer(&to));
        return TRUE;
    }
    json_object_iter_init_ordered(&iter, from);
    while (json_object_iter_next_ordered(&iter, &key, &node)) {
        if (strchr(key, '/')) {
            g_set_error(
                error, SV_CORE_ERROR, SV_ERR_INVALID, "linux.resources.unified: a key has a slash");
            return FALSE;
        }
        if (strcmp(key, "cpuset.cpus") == 0) {
            if (!set_cpus(from, key, to, cpus, "linux.resources.unified.cpuset.cpus", error))
                return FALSE;
        } else if (strcmp(key, "cpuset.mems") != 0 && !g_str_has_prefix(key, "rdma.") &&
            (!g_str_has_prefix(key, "hugetlb.") ||
                g_str_has_prefix(key, "hugetlb." HUGE_PAGE "."))) {
            json_object_set_member(to, key, json_node_copy(node));
        }
    }
    set_part(target, "unified", g_steal_pointer(&to));
    return TRUE;
}

/* Limits of disks, with the numbers that they have in the guest. */
static JsonArray *throttle_list(JsonArray *from, GHashTable *devices, guint *ignored)
{
    static const char *const names[] = {"rate", NULL};
    JsonArray *to = json_array_new();

    for (guint i = 0; i < json_array_get_length(from); i++) {
        JsonNode *node = json_array_get_element(from, i);
        JsonObject *item = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
        gint64 major = item ? int_member(item, "major") : -1;
        gint64 minor = item ? int_member(item, "minor") : -1;
        JsonObject *out = NULL;

        if (!item || !sv_guest_device_lookup(devices, "b", major, minor, &major, &minor)) {
            (*ignored)++;
            continue;
        }
        out = sv_guest_copy_members(item, names);
        json_object_set_int_member(out, "major", major);
        json_object_set_int_member(out, "minor", minor);
        json_array_add_object_element(to, out);
    }
    return to;
}

static void build_block_io(
    JsonObject *resources, JsonObject *target, GHashTable *devices, GPtrArray *warnings)
{
    static const char *const lists[] = {"throttleReadBpsDevice", "throttleWriteBpsDevice",
        "throttleReadIOPSDevice", "throttleWriteIOPSDevice"};
    JsonObject *from = sv_guest_object(resources, "blockIO");
    JsonArray *weights = sv_guest_array(from, "weightDevice");
    JsonObject *to = NULL;
    guint ignored = 0;

    if (!from)
        return;
    to = json_object_new();
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        JsonArray *list = sv_guest_array(from, lists[i]);
        JsonArray *kept = list ? throttle_list(list, devices, &ignored) : NULL;

        if (kept && json_array_get_length(kept))
            json_object_set_array_member(to, lists[i], kept);
        else if (kept)
            json_array_unref(kept);
    }
    set_part(target, "blockIO", to);
    if (ignored)
        sv_guest_warn(warnings,
            "linux.resources.blockIO: limits of %u disks hold only if these are in the machine",
            ignored);
    /* Weights need a scheduler that the guest's disks do not have. */
    if (int_member(from, "weight") > 0 || (weights && json_array_get_length(weights)))
        sv_guest_warn(warnings, "linux.resources.blockIO: weights are ignored");
}

/* A limit of pages that the machine has not got holds by itself: kubelet sets one for every size of the
 * host's, mostly of 0. Who is promised some is told that there are none. */
static void build_huge_pages(JsonObject *resources, JsonObject *target, GPtrArray *warnings)
{
    static const char *const names[] = {"pageSize", "limit", NULL};
    JsonArray *from = sv_guest_array(resources, "hugepageLimits");
    g_autoptr(JsonArray) to = json_array_new();
    gboolean told = FALSE;

    for (guint i = 0; from && i < json_array_get_length(from); i++) {
        JsonNode *node = json_array_get_element(from, i);
        JsonObject *limit = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
        JsonNode *size = limit ? json_object_get_member(limit, "pageSize") : NULL;

        if (size && JSON_NODE_HOLDS_VALUE(size) &&
            g_strcmp0(json_node_get_string(size), HUGE_PAGE) == 0) {
            json_array_add_object_element(to, sv_guest_copy_members(limit, names));
        } else if (limit && int_member(limit, "limit") != 0 && !told) {
            sv_guest_warn(warnings,
                "linux.resources.hugepageLimits: the machine has huge pages of " HUGE_PAGE
                " only, others are ignored");
            told = TRUE;
        }
    }
    if (json_array_get_length(to))
        json_object_set_array_member(target, "hugepageLimits", g_steal_pointer(&to));
}

static void warn_of_ignored(JsonObject *resources, GPtrArray *warnings)
{
    JsonObject *network = sv_guest_object(resources, "network");

    if (network && json_object_get_size(network))
        sv_guest_warn(warnings, "linux.resources.network: is ignored");
}

/* A zero is no limit of zero bytes, which ended the container, but none that was given: as runc takes it. */
static JsonObject *build_memory(JsonObject *from)
{
    static const char *const names[] = {"limit", "reservation", "swap", "checkBeforeUpdate", NULL};
    JsonObject *to = sv_guest_copy_members(from, names);

    for (guint i = 0; i < 3; i++)
        if (int_member(to, names[i]) == 0)
            json_object_remove_member(to, names[i]);
    return to;
}

JsonObject *sv_guest_build_resources(
    JsonObject *resources, guint cpus, GHashTable *devices, GPtrArray *warnings, GError **error)
{
    static const char *const pids[] = {"limit", NULL};
    g_autoptr(JsonObject) target = json_object_new();
    JsonObject *part = NULL;

    if ((part = sv_guest_object(resources, "rdma")) && json_object_get_size(part)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_UNSUPPORTED,
            "linux.resources.rdma: the machine has no such devices");
        return NULL;
    }
    if ((part = sv_guest_object(resources, "memory")))
        set_part(target, "memory", build_memory(part));
    if ((part = sv_guest_object(resources, "pids")))
        set_part(target, "pids", sv_guest_copy_members(part, pids));
    if (!build_cpu(resources, target, cpus, error) ||
        !build_unified(resources, target, cpus, error))
        return NULL;
    build_block_io(resources, target, devices, warnings);
    build_huge_pages(resources, target, warnings);
    warn_of_ignored(resources, warnings);
    return g_steal_pointer(&target);
}
