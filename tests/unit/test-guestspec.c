/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the golden files of tests/golden/guestspec cannot show: callbacks, exec's process, updates. */
#include <config.h>

#include "base/json.h"
#include "core/guestspec.h"
#include "core/lifecycle.h"
#include "replace.h"
#include <string.h>

static SvSpec *parse(const char *text)
{
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(GError) error = NULL;
    SvSpec *spec = sv_spec_parse(json, strlen(json), "/bundle", &error);

    g_assert_no_error(error);
    return spec;
}

static JsonNode *parse_node(const char *text)
{
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(GError) error = NULL;
    JsonNode *node = sv_json_parse(json, -1, TRUE, "test", &error);

    g_assert_no_error(error);
    return node;
}

typedef struct {
    guint calls;
    gboolean fail;
    char *path; /* overwritten after each answer */
} Join;

static const char *join(const char *type, const char *path, gpointer user_data, GError **error)
{
    Join *j = user_data;

    j->calls++;
    g_assert_cmpstr(type, !=, "network");
    g_assert_true(g_str_has_prefix(path, "/proc/"));
    if (j->fail) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "no such namespace");
        return NULL;
    }
    g_free(j->path);
    j->path = g_strdup_printf("/proc/%u/ns/%s", j->calls, type);
    return j->path;
}

#define JOINING                                                                                    \
    "{'root':{'path':'r'},'process':{'args':['a'],'cwd':'/'},"                                     \
    "'linux':{'namespaces':[{'type':'pid','path':'/proc/7/ns/pid'},"                               \
    "{'type':'network','path':'/proc/7/ns/net'},{'type':'ipc','path':'/proc/7/ns/ipc'}]}}"

static void test_join(void)
{
    g_autoptr(SvSpec) spec = parse(JOINING);
    g_autoptr(GError) error = NULL;
    Join j = {0};
    SvGuestSpecParams params = {
        .container_id = "c", .root_path = "/r", .join_namespace = join, .user_data = &j};
    g_autoptr(SvGuestSpec) guest = sv_guest_spec_build(spec, &params, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(j.calls, ==, 2);
    g_autofree char *text = sv_json_text(guest->config, FALSE);
    g_assert_nonnull(strstr(text, "/proc/1/ns/pid"));
    g_assert_nonnull(strstr(text, "/proc/2/ns/ipc"));

    j.fail = TRUE;
    g_assert_null(sv_guest_spec_build(spec, &params, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
    g_clear_error(&error);
    g_free(j.path);

    params.join_namespace = NULL;
    g_autoptr(SvGuestSpec) alone = sv_guest_spec_build(spec, &params, &error);
    g_assert_no_error(error);
    g_autofree char *without = sv_json_text(alone->config, FALSE);
    g_assert_null(strstr(without, "/proc/"));
}

/* The source stays as it was: it is translated again after the devices are known. */
static void test_twice(void)
{
    g_autoptr(SvSpec) spec =
        parse("{'root':{'path':'r'},'process':{'args':['a'],'cwd':'/'},"
              "'mounts':[{'destination':'/a','source':'/b','options':['bind','ro']}],"
              "'linux':{'namespaces':[{'type':'ipc'}],'sysctl':{'kernel.sem':'1','net.a':'2'},"
              "'resources':{'cpu':{'cpus':'0-9'}},"
              "'devices':[{'path':'/dev/a','type':'b','major':1,'minor':2}]}}");
    SvSourceInfo sources[] = {{SV_SOURCE_BIND}};
    SvGuestSpecParams params = {
        .container_id = "c", .root_path = "/r", .cpus = 2, .sources = sources};
    g_autofree char *before = sv_json_text(spec->json, FALSE);
    g_autofree char *first = NULL;

    for (guint i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SvGuestSpec) guest = sv_guest_spec_build(spec, &params, &error);

        g_assert_no_error(error);
        g_assert_cmpuint(guest->binds->len, ==, 1);
        g_autofree char *text = sv_json_text(guest->config, FALSE);
        if (first)
            g_assert_cmpstr(first, ==, text);
        g_free(first);
        first = g_steal_pointer(&text);
    }
    g_autofree char *after = sv_json_text(spec->json, FALSE);
    g_assert_cmpstr(before, ==, after);
}

static void test_process(void)
{
    g_autoptr(JsonNode) node = parse_node(
        "{'terminal':true,'args':['a'],'cwd':'/','apparmorProfile':'x','selinuxLabel':'y',"
        "'later':1,'oomScoreAdj':null,'noNewPrivileges':true}");
    g_autoptr(JsonNode) array = parse_node("[]");
    g_autoptr(GError) error = NULL;
    g_autofree char *text = sv_guest_process(node, &error);
    g_autoptr(JsonNode) out = sv_json_parse(text, -1, FALSE, "out", &error);

    g_assert_no_error(error);
    JsonObject *object = json_node_get_object(out);
    g_assert_cmpuint(json_object_get_size(object), ==, 4);
    g_assert_true(json_object_get_boolean_member(object, "terminal"));
    g_assert_null(sv_guest_process(array, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_INVALID);
}

static void test_resources(void)
{
    g_autoptr(JsonNode) node = parse_node(
        "{'devices':[{'allow':true,'access':'rwm'}],'memory':{'limit':-1,'kernel':5},"
        "'cpu':{'cpus':'1,3-5','mems':'0','quota':7},'hugepageLimits':[{'pageSize':'2MB'"
        ",'limit':18446744073709551615},{'pageSize':'1GB','limit':0},{'pageSize':'64KB','limit':5},"
        "{'pageSize':'32MB','limit':-1},7]}");
    g_autoptr(JsonNode) bad = parse_node("{'cpu':{'cpus':'5-1'}}");
    g_autoptr(JsonNode) array = parse_node("[]");
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    g_autofree char *text = sv_guest_resources(node, 4, NULL, warnings, &error);

    g_assert_no_error(error);
    g_autoptr(JsonNode) expected =
        parse_node("{'memory':{'limit':-1},'cpu':{'quota':7,'cpus':'1,3'},"
                   "'hugepageLimits':[{'pageSize':'2MB','limit':18446744073709551615}]}");
    g_autofree char *expected_text = sv_json_text(expected, FALSE);
    g_assert_cmpstr(text, ==, expected_text);
    g_assert_cmpuint(warnings->len, ==, 1);
    g_assert_null(sv_guest_resources(bad, 4, NULL, NULL, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    g_assert_null(sv_guest_resources(array, 4, NULL, NULL, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_INVALID);
}

/* ---- every node of real configs, replaced */

static void try_config(const char *text, gsize len)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvSpec) spec = sv_spec_parse(text, len, "/bundle", &error);

    g_assert_true((spec == NULL) == (error != NULL));
    if (!spec)
        return;
    g_autofree SvSourceInfo *sources = g_new0(SvSourceInfo, spec->mounts->len + 1);
    SvGuestSpecParams params = {
        .container_id = "c", .root_path = "/r", .cpus = 2, .sources = sources};
    g_autoptr(SvPod) pod = sv_pod_from_spec(spec, "c", &error);
    g_assert_true((pod == NULL) == (error != NULL));
    g_clear_error(&error);
    g_autoptr(SvGuestSpec) guest = sv_guest_spec_build(spec, &params, &error);
    g_assert_true((guest == NULL) == (error != NULL));
    if (guest) {
        g_autofree char *out = sv_json_text(guest->config, FALSE);

        g_assert_nonnull(out);
    }
}

static void try_resources(const char *text, gsize len)
{
    g_autoptr(JsonNode) node = sv_json_parse(text, len, TRUE, "resources", NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *out = sv_guest_resources(node, 2, NULL, NULL, &error);

    g_assert_true((out == NULL) == (error != NULL));
}

#define CAPABILITIES                                                                               \
    "{'ociVersion':'%s','root':{'path':'r'},'process':{'args':['a'],'cwd':'/','capabilities':{"    \
    "'bounding':['CAP_CHOWN','CAP_NEW'],'effective':['cap_kill','CAP_NEW','FOO']}}}"

static void test_capabilities(void)
{
    static const char *const strict[] = {"1.0.0", "1.0.1", "1.0.2"};
    static const char *const lenient[] = {"1.0.2-dev", "1.1.0", "1.2.0"};
    SvGuestSpecParams params = {.container_id = "c", .root_path = "/r"};
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(strict); i++) {
        g_autofree char *text = g_strdup_printf(CAPABILITIES, strict[i]);
        g_autoptr(SvSpec) spec = parse(text);

        g_assert_null(sv_guest_spec_build(spec, &params, &error));
        g_assert_error(error, SV_CORE_ERROR, SV_ERR_INVALID);
        g_assert_nonnull(strstr(
            error->message, "process.capabilities.bounding[1]: unknown capability \"CAP_NEW\""));
        g_clear_error(&error);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(lenient); i++) {
        g_autofree char *text = g_strdup_printf(CAPABILITIES, lenient[i]);
        g_autoptr(SvSpec) spec = parse(text);
        g_autoptr(SvGuestSpec) guest = sv_guest_spec_build(spec, &params, &error);

        g_assert_no_error(error);
        g_autofree char *out = sv_json_text(guest->config, FALSE);
        g_assert_nonnull(strstr(
            out, "\"capabilities\":{\"bounding\":[\"CAP_CHOWN\"],\"effective\":[\"cap_kill\"]}"));
        g_assert_cmpuint(guest->warnings->len, ==, 2);
        g_assert_nonnull(strstr(guest->warnings->pdata[0], "CAP_NEW"));
        g_assert_nonnull(strstr(guest->warnings->pdata[1], "FOO"));
        /* what was read is as it was */
        g_autofree char *in = sv_json_text(spec->json, FALSE);
        g_assert_nonnull(strstr(in, "[\"CAP_CHOWN\",\"CAP_NEW\"]"));
    }
}

static void test_every_node(void)
{
    static const char *const names[] = {"podman", "crio-container", "privileged", "sysctls-own",
        "user-namespace", "seccomp-listener", "idmap-mappings"};

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_strconcat(names[i], ".in.json", NULL);
        g_autofree char *path =
            g_test_build_filename(G_TEST_DIST, "golden", "guestspec", file, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) node = sv_json_load(path, 1 << 20, &error);

        g_assert_no_error(error);
        JsonNode *config = json_object_get_member(json_node_get_object(node), "config");
        g_test_message("%s: %u variants", names[i], replace_every_node(config, try_config));
        JsonObject *linux_object = json_node_get_object(config);
        linux_object = json_object_has_member(linux_object, "linux")
            ? json_object_get_object_member(linux_object, "linux")
            : NULL;
        if (linux_object && json_object_has_member(linux_object, "resources"))
            replace_every_node(json_object_get_member(linux_object, "resources"), try_resources);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guestspec/join", test_join);
    g_test_add_func("/guestspec/twice", test_twice);
    g_test_add_func("/guestspec/process", test_process);
    g_test_add_func("/guestspec/resources", test_resources);
    g_test_add_func("/guestspec/capabilities", test_capabilities);
    g_test_add_func("/guestspec/every-node", test_every_node);
    return g_test_run();
}
