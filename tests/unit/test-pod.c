/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which pod a container belongs to, as each engine says it. */
#include <config.h>

#include "oci/pod.h"
#include <string.h>

#define CRIO "io.kubernetes.cri-o."
#define CRI "io.kubernetes.cri."

static SvPod *pod_of(const char *annotations, const char *id, GError **error)
{
    g_autofree char *text =
        g_strdup_printf("{'root':{'path':'r'},'annotations':{%s}}", annotations);
    g_autoptr(GError) local = NULL;

    /* Quotes of annotations that hold JSON are written as backquotes. */
    g_autoptr(GString) json = g_string_new(text);
    g_string_replace(json, "`", "\\\"", 0);
    g_string_replace(json, "'", "\"", 0);
    g_autoptr(SvSpec) spec = sv_spec_parse(json->str, json->len, "/b", &local);
    g_assert_no_error(local);
    return sv_pod_from_spec(spec, id, error);
}

static const struct {
    const char *name, *annotations;
    SvFamily family;
    SvRole role;
    gboolean maybe;
    const char *sandbox;
} cases[] = {
    {"nothing", "", SV_FAMILY_NONE, SV_ROLE_SINGLE, FALSE, "me"},
    {"crio-sandbox", "'" CRIO "ContainerType':'sandbox','" CRIO "SandboxID':'box'", SV_FAMILY_CRIO,
        SV_ROLE_SANDBOX, FALSE, "me"},
    {"crio-container", "'" CRIO "ContainerType':'container','" CRIO "SandboxID':'box'",
        SV_FAMILY_CRIO, SV_ROLE_CONTAINER, FALSE, "box"},
    {"containerd-sandbox", "'" CRI "container-type':'sandbox','" CRI "sandbox-id':'me'",
        SV_FAMILY_CONTAINERD, SV_ROLE_SANDBOX, FALSE, "me"},
    {"containerd-container", "'" CRI "container-type':'container','" CRI "sandbox-id':'box'",
        SV_FAMILY_CONTAINERD, SV_ROLE_CONTAINER, FALSE, "box"},
    {"podman", "'" CRIO "SandboxID':'box'", SV_FAMILY_PODMAN, SV_ROLE_SINGLE, TRUE, "box"},
    {"podman-own", "'" CRIO "SandboxID':'me'", SV_FAMILY_PODMAN, SV_ROLE_SINGLE, FALSE, "me"},
    {"podman-empty", "'" CRIO "SandboxID':''", SV_FAMILY_NONE, SV_ROLE_SINGLE, FALSE, "me"},
    {"dockershim-sandbox", "'io.kubernetes.docker.type':'podsandbox'", SV_FAMILY_DOCKERSHIM,
        SV_ROLE_SANDBOX, FALSE, "me"},
    {"dockershim-container",
        "'io.kubernetes.docker.type':'container','io.kubernetes.sandbox.id':'box'",
        SV_FAMILY_DOCKERSHIM, SV_ROLE_CONTAINER, FALSE, "box"},
    /* A tenant adds keys of another family. */
    {"crio-first",
        "'" CRI "container-type':'container','" CRI "sandbox-id':'victim','" CRIO
        "ContainerType':'sandbox'",
        SV_FAMILY_CRIO, SV_ROLE_SANDBOX, FALSE, "me"},
    {"containerd-before-podman", "'" CRIO "SandboxID':'victim','" CRI "container-type':'sandbox'",
        SV_FAMILY_CONTAINERD, SV_ROLE_SANDBOX, FALSE, "me"},
    {"ids-alone", "'" CRI "sandbox-id':'victim','io.kubernetes.sandbox.id':'victim'",
        SV_FAMILY_NONE, SV_ROLE_SINGLE, FALSE, "me"},
};

static void test_families(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SvPod) pod = pod_of(cases[i].annotations, "me", &error);

        g_test_message("%s", cases[i].name);
        g_assert_no_error(error);
        g_assert_cmpint(pod->family, ==, cases[i].family);
        g_assert_cmpint(pod->role, ==, cases[i].role);
        g_assert_cmpint(pod->maybe, ==, cases[i].maybe);
        g_assert_cmpstr(pod->sandbox_id, ==, cases[i].sandbox);
    }
}

static void test_names(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvPod) crio =
        pod_of("'" CRIO "ContainerType':'sandbox','" CRIO "Namespace':'ns','" CRIO
               "KubeName':'web','" CRI "sandbox-name':'other'",
            "me", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(crio->pod_namespace, ==, "ns");
    g_assert_cmpstr(crio->pod_name, ==, "web");
    g_assert_null(crio->container_name);
    g_autoptr(SvPod) containerd =
        pod_of("'" CRI "container-type':'container','" CRI "sandbox-id':'b','" CRI
               "sandbox-namespace':'ns','" CRI "sandbox-name':'web','" CRI "container-name':'c'",
            "me", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(containerd->pod_name, ==, "web");
    g_assert_cmpstr(containerd->container_name, ==, "c");
}

/* CRI-O's containers carry their pod's name as the name of its sandbox, which is all that a pod without a
 * pause container has. */
static void test_crio_container_names(void)
{
    static const struct {
        const char *sandbox_name, *pod_namespace, *pod_name;
    } names[] = {
        {"k8s_web-0.x_team-a_7c1f_0", "team-a", "web-0.x"},
        {"k8s_web_team_uid_with_more_1", "team", "web"},
        {"k8s_web_team", "team", "web"},
        {"k8s_web", NULL, NULL},
        {"k8s__team_uid_0", NULL, NULL},
        {"k8s_web__uid_0", NULL, NULL},
        {"web_team_uid_0", NULL, NULL},
        {"", NULL, NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *annotations =
            g_strdup_printf("'" CRIO "ContainerType':'container','" CRIO "SandboxID':'b','" CRIO
                            "SandboxName':'%s','" CRIO "Name':'k8s_front_web_team_uid_0'",
                names[i].sandbox_name);
        g_autoptr(SvPod) pod = pod_of(annotations, "me", &error);

        g_test_message("%s", names[i].sandbox_name);
        g_assert_no_error(error);
        g_assert_cmpstr(pod->pod_namespace, ==, names[i].pod_namespace);
        g_assert_cmpstr(pod->pod_name, ==, names[i].pod_name);
        g_assert_cmpstr(pod->container_name, ==, "front");
    }
}

static void test_sizes(void)
{
    static const struct {
        const char *annotations;
        gint64 period, quota, shares, memory, overhead;
    } sizes[] = {
        {"'" CRIO "ContainerType':'sandbox'", 0, 0, 0, 0, 0},
        {"'" CRIO "ContainerType':'sandbox','" CRIO "PodLinuxResources':'null'", 0, 0, 0, 0, 0},
        {"'" CRIO "ContainerType':'sandbox','" CRIO
         "PodLinuxResources':'{`cpu_period`:100000,`cpu_quota`:170000,`cpu_shares`:512,"
         "`memory_limit_in_bytes`:1073741824,`unified`:{}}','" CRIO
         "PodLinuxOverhead':'{`memory_limit_in_bytes`:67108864}'",
            100000, 170000, 512, 1073741824, 67108864},
        {"'" CRIO "ContainerType':'sandbox',"
         "'pod-linux-resources.crio.io':'{`memory_limit_in_bytes`:5}','" CRIO
         "PodLinuxResources':'{`memory_limit_in_bytes`:4}',"
         "'pod-linux-overhead.crio.io':'{`memory_limit_in_bytes`:7}'",
            0, 0, 0, 5, 7},
        {"'" CRIO "ContainerType':'sandbox','pod-linux-resources.crio.io':'{`cpu_quota`:-1}'", 0, 0,
            0, 0, 0},
        {"'" CRI "container-type':'sandbox','" CRI "sandbox-cpu-period':'100000','" CRI
         "sandbox-cpu-quota':'-1','" CRI "sandbox-cpu-shares':'2','" CRI "sandbox-memory':'99'",
            100000, 0, 2, 99, 0},
        /* Not of this family. */
        {"'" CRI "container-type':'sandbox','pod-linux-resources.crio.io':'{`cpu_quota`:7}'", 0, 0,
            0, 0, 0},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SvPod) pod = pod_of(sizes[i].annotations, "me", &error);

        g_test_message("%s", sizes[i].annotations);
        g_assert_no_error(error);
        g_assert_cmpint(pod->cpu_period, ==, sizes[i].period);
        g_assert_cmpint(pod->cpu_quota, ==, sizes[i].quota);
        g_assert_cmpint(pod->cpu_shares, ==, sizes[i].shares);
        g_assert_cmpint(pod->memory_limit, ==, sizes[i].memory);
        g_assert_cmpint(pod->memory_overhead, ==, sizes[i].overhead);
    }
}

static void test_errors(void)
{
    static const char *const bad[] = {
        "'" CRIO "ContainerType':'container'",
        "'" CRIO "ContainerType':'container','" CRIO "SandboxID':''",
        "'" CRIO "ContainerType':'container','" CRIO "SandboxID':'../x'",
        "'" CRIO "ContainerType':'container','" CRIO "SandboxID':'a/b'",
        "'" CRIO "ContainerType':'other'",
        "'" CRIO "ContainerType':''",
        "'" CRIO "SandboxID':'.hidden'",
        "'" CRI "container-type':'container'",
        "'io.kubernetes.docker.type':'container','io.kubernetes.sandbox.id':'a b'",
        "'" CRIO "ContainerType':'sandbox','pod-linux-resources.crio.io':'{'",
        "'" CRIO "ContainerType':'sandbox','pod-linux-resources.crio.io':'[]'",
        "'" CRIO "ContainerType':'sandbox','pod-linux-resources.crio.io':'{`cpu_quota`:`x`}'",
        "'" CRIO "ContainerType':'sandbox','pod-linux-resources.crio.io':"
        "'{`memory_limit_in_bytes`:9223372036854775807}'",
        "'" CRI "container-type':'sandbox','" CRI "sandbox-memory':'12x'",
        "'" CRI "container-type':'sandbox','" CRI "sandbox-memory':'99999999999999999999'",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", bad[i]);
        g_assert_null(pod_of(bad[i], "me", &error));
        g_assert_true(sv_error_is(error, SV_ERR_INVALID) || sv_error_is(error, SV_ERR_LIMIT));
        g_assert_nonnull(strstr(error->message, "annotations."));
    }
    g_autoptr(GError) error = NULL;
    g_assert_null(pod_of("", "a/b", &error));
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pod/families", test_families);
    g_test_add_func("/pod/names", test_names);
    g_test_add_func("/pod/crio-container-names", test_crio_container_names);
    g_test_add_func("/pod/sizes", test_sizes);
    g_test_add_func("/pod/errors", test_errors);
    return g_test_run();
}
