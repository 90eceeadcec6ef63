/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "oci/pod.h"

#include "base/names.h"
#include <string.h>

#define QUOTA_MAX (G_MAXINT64 / 1024)
#define MEMORY_MAX (G_GINT64_CONSTANT(1) << 50) /* more than any machine: no overflow later */

/* The keys of a family that has a key for the type. Those of other families are never looked at. */
typedef struct {
    SvFamily family;
    const char *type_key, *sandbox, *container; /* key, and its values */
    const char *sandbox_id, *pod_namespace, *pod_name, *container_name; /* keys, nullable */
} FamilyKeys;

static const FamilyKeys families[] = {
    {SV_FAMILY_CRIO, "io.kubernetes.cri-o.ContainerType", "sandbox", "container",
        "io.kubernetes.cri-o.SandboxID", "io.kubernetes.cri-o.Namespace",
        "io.kubernetes.cri-o.KubeName", "io.kubernetes.cri-o.ContainerName"},
    {SV_FAMILY_CONTAINERD, "io.kubernetes.cri.container-type", "sandbox", "container",
        "io.kubernetes.cri.sandbox-id", "io.kubernetes.cri.sandbox-namespace",
        "io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.container-name"},
    {SV_FAMILY_DOCKERSHIM, "io.kubernetes.docker.type", "podsandbox", "container",
        "io.kubernetes.sandbox.id", NULL, NULL, NULL},
};
/* podman sets this one of CRI-O's, and no type. */
#define PODMAN_SANDBOX_ID "io.kubernetes.cri-o.SandboxID"

void sv_pod_free(SvPod *pod)
{
    if (!pod)
        return;
    g_free(pod->sandbox_id);
    g_free(pod->pod_namespace);
    g_free(pod->pod_name);
    g_free(pod->container_name);
    g_free(pod);
}

static const char *annotation(const SvSpec *spec, const char *key)
{
    return key ? g_hash_table_lookup(spec->annotations, key) : NULL;
}

static char *dup_annotation(const SvSpec *spec, const char *key)
{
    const char *value = annotation(spec, key);

    return value && *value ? g_strdup(value) : NULL;
}

static gboolean bad(GError **error, const char *key, const char *text)
{
    g_set_error(error, SV_OCI_ERROR, SV_ERR_INVALID, "annotations.%s: %s", key, text);
    return FALSE;
}

static gboolean check_sandbox_id(const char *key, const char *value, GError **error)
{
    if (!value || !*value)
        return bad(error, key, "is missing or empty");
    if (sv_id_check(value, "sandbox id", error))
        return TRUE;
    g_prefix_error(error, "annotations.%s: ", key);
    return FALSE;
}

/* ---- sizes */

/* A member of the sizing annotation; negative (unlimited) counts as none. */
static gboolean read_size(
    JsonObject *object, const char *key, const char *name, gint64 max, gint64 *out, GError **error)
{
    gint64 value = 0;

    if (!sv_json_get_int(object, name, key, &value, error)) {
        g_prefix_error(error, "annotations.");
        return FALSE;
    }
    if (value > max)
        return bad(error, key, "a size is out of range");
    *out = MAX(value, 0);
    return TRUE;
}

/* JSON of the CRI's LinuxContainerResources, "null" when absent: then *resources is NULL, else
 * (transfer full). */
static gboolean parse_resources(
    const SvSpec *spec, const char *key, JsonNode **resources, GError **error)
{
    const char *text = annotation(spec, key);
    g_autoptr(JsonNode) node = NULL;

    *resources = NULL;
    if (!text || !*text)
        return TRUE;
    node = sv_json_parse(text, -1, TRUE, key, error);
    if (!node) {
        g_prefix_error(error, "annotations.");
        return FALSE;
    }
    if (JSON_NODE_HOLDS_NULL(node))
        return TRUE;
    if (!JSON_NODE_HOLDS_OBJECT(node))
        return bad(error, key, "must be a JSON object");
    *resources = g_steal_pointer(&node);
    return TRUE;
}

/* The first of two spellings that is there. */
static const char *spelling(const SvSpec *spec, const char *newer, const char *older)
{
    return annotation(spec, newer) ? newer : older;
}

static gboolean read_crio_sizes(const SvSpec *spec, SvPod *pod, GError **error)
{
    const char *key =
        spelling(spec, "pod-linux-resources.crio.io", "io.kubernetes.cri-o.PodLinuxResources");
    const char *overhead_key =
        spelling(spec, "pod-linux-overhead.crio.io", "io.kubernetes.cri-o.PodLinuxOverhead");
    g_autoptr(JsonNode) resources = NULL;
    g_autoptr(JsonNode) overhead = NULL;

    if (!parse_resources(spec, key, &resources, error) ||
        !parse_resources(spec, overhead_key, &overhead, error))
        return FALSE;
    if (resources) {
        JsonObject *object = json_node_get_object(resources);

        if (!read_size(object, key, "cpu_period", G_MAXINT32, &pod->cpu_period, error) ||
            !read_size(object, key, "cpu_quota", QUOTA_MAX, &pod->cpu_quota, error) ||
            !read_size(object, key, "cpu_shares", G_MAXINT32, &pod->cpu_shares, error) ||
            !read_size(object, key, "memory_limit_in_bytes", MEMORY_MAX, &pod->memory_limit, error))
            return FALSE;
    }
    return !overhead ||
        read_size(json_node_get_object(overhead), overhead_key, "memory_limit_in_bytes", MEMORY_MAX,
            &pod->memory_overhead, error);
}

static gboolean read_number(
    const SvSpec *spec, const char *key, gint64 max, gint64 *out, GError **error)
{
    const char *text = annotation(spec, key);
    gint64 value = 0;

    if (!text || !*text)
        return TRUE;
    if (!sv_parse_int64(text, G_MININT64, max, &value, error)) {
        g_prefix_error(error, "annotations.%s: ", key);
        return FALSE;
    }
    *out = MAX(value, 0);
    return TRUE;
}

static gboolean read_containerd_sizes(const SvSpec *spec, SvPod *pod, GError **error)
{
    return read_number(
               spec, "io.kubernetes.cri.sandbox-cpu-period", G_MAXINT32, &pod->cpu_period, error) &&
        read_number(
            spec, "io.kubernetes.cri.sandbox-cpu-quota", QUOTA_MAX, &pod->cpu_quota, error) &&
        read_number(
            spec, "io.kubernetes.cri.sandbox-cpu-shares", G_MAXINT32, &pod->cpu_shares, error) &&
        read_number(
            spec, "io.kubernetes.cri.sandbox-memory", MEMORY_MAX, &pod->memory_limit, error);
}

/* ---- names */

#define CRIO_NAME "io.kubernetes.cri-o.Name" /* k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT */
#define CRIO_SANDBOX_NAME "io.kubernetes.cri-o.SandboxName" /* k8s_POD_NAMESPACE_UID_ATTEMPT */

/* The parts of a name that CRI-O has made; the cluster's own names have no underscore. NULL: another form. */
static char **crio_name_parts(const SvSpec *spec, const char *key)
{
    const char *name = annotation(spec, key);
    g_auto(GStrv) parts = g_strsplit(name ? name : "", "_", 4);

    if (g_strv_length(parts) < 3 || strcmp(parts[0], "k8s") != 0 || !*parts[1] || !*parts[2])
        return NULL;
    return g_steal_pointer(&parts);
}

/* Only the pause container's config has the pod's names by themselves, and it is not always made. */
static void read_crio_names(const SvSpec *spec, SvPod *pod)
{
    g_auto(GStrv) sandbox = crio_name_parts(spec, CRIO_SANDBOX_NAME);
    g_auto(GStrv) container = crio_name_parts(spec, CRIO_NAME);

    if (!pod->pod_name && sandbox) {
        g_free(pod->pod_namespace);
        pod->pod_name = g_strdup(sandbox[1]);
        pod->pod_namespace = g_strdup(sandbox[2]);
    }
    if (!pod->container_name && container)
        pod->container_name = g_strdup(container[1]);
}

/* ---- the family */

static gboolean read_member(
    SvPod *pod, const SvSpec *spec, const FamilyKeys *keys, const char *id, GError **error)
{
    const char *type = annotation(spec, keys->type_key);

    pod->family = keys->family;
    pod->pod_namespace = dup_annotation(spec, keys->pod_namespace);
    pod->pod_name = dup_annotation(spec, keys->pod_name);
    pod->container_name = dup_annotation(spec, keys->container_name);
    if (strcmp(type, keys->sandbox) == 0) {
        pod->role = SV_ROLE_SANDBOX;
        pod->sandbox_id = g_strdup(id);
    } else if (strcmp(type, keys->container) == 0) {
        const char *sandbox = annotation(spec, keys->sandbox_id);

        if (!check_sandbox_id(keys->sandbox_id, sandbox, error))
            return FALSE;
        pod->role = SV_ROLE_CONTAINER;
        pod->sandbox_id = g_strdup(sandbox);
    } else {
        return bad(error, keys->type_key, "is neither of a sandbox nor of a container");
    }
    if (keys->family == SV_FAMILY_CRIO && pod->role == SV_ROLE_CONTAINER)
        read_crio_names(spec, pod);
    if (keys->family == SV_FAMILY_CRIO)
        return read_crio_sizes(spec, pod, error);
    if (keys->family == SV_FAMILY_CONTAINERD)
        return read_containerd_sizes(spec, pod, error);
    return TRUE;
}

static gboolean read_single(SvPod *pod, const SvSpec *spec, const char *id, GError **error)
{
    const char *sandbox = annotation(spec, PODMAN_SANDBOX_ID);

    pod->role = SV_ROLE_SINGLE;
    if (sandbox && *sandbox) {
        if (!check_sandbox_id(PODMAN_SANDBOX_ID, sandbox, error))
            return FALSE;
        pod->family = SV_FAMILY_PODMAN;
        pod->maybe = strcmp(sandbox, id) != 0;
    }
    pod->sandbox_id = g_strdup(pod->maybe ? sandbox : id);
    return TRUE;
}

SvPod *sv_pod_from_spec(const SvSpec *spec, const char *id, GError **error)
{
    g_autoptr(SvPod) pod = g_new0(SvPod, 1);

    if (!sv_id_check(id, "container id", error))
        return NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(families); i++) {
        if (!annotation(spec, families[i].type_key))
            continue;
        return read_member(pod, spec, &families[i], id, error) ? g_steal_pointer(&pod) : NULL;
    }
    return read_single(pod, spec, id, error) ? g_steal_pointer(&pod) : NULL;
}
