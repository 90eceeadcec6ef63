/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* config.json and process.json: what is read, and what each kind of broken one says. */
#include <config.h>

#include "base/file.h"
#include "oci/spec.h"
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* Single quotes for readability. */
static SvSpec *parse(const char *text, GError **error)
{
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');

    return sv_spec_parse(json, strlen(json), "/bundle", error);
}

static char *edited(const char *key, const char *value)
{
    static const char *const keys[] = {
        "root", "process", "mounts", "hooks", "linux", "annotations", "hostname", "ociVersion"};
    static const char *const values[] = {
        "{'path':'rootfs'}", "{'args':['sh'],'cwd':'/'}", "[]", "{}", "{}", "{}", "'h'", "'1.0.2'"};
    GString *text = g_string_new("{");

    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *use = strcmp(keys[i], key) == 0 ? value : values[i];

        if (use)
            g_string_append_printf(text, "%s'%s':%s", text->len > 1 ? "," : "", keys[i], use);
    }
    g_string_append_c(text, '}');
    return g_string_free(text, FALSE);
}

static void test_full(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvSpec) spec = parse(
        "{'ociVersion':'1.1.0-rc.1','root':{'path':'rootfs','readonly':true},"
        "'process':{'terminal':true,'consoleSize':{'height':40,'width':120},"
        "'args':['sh','-c','x'],'cwd':'/','env':['A=b'],"
        "'user':{'uid':1,'gid':2,'additionalGids':[3]},"
        "'rlimits':[{'type':'RLIMIT_CORE','soft':0,'hard':18446744073709551615}]},"
        "'hostname':'h','domainname':'d','annotations':{'a':'b'},"
        "'mounts':[{'destination':'proc','type':'proc','source':'proc'},"
        "{'destination':'/data','source':'/srv','options':['rbind','ro']}],"
        "'hooks':{'prestart':[{'path':'/bin/a'}],"
        "'poststop':[{'path':'/bin/b','args':['b','c'],'env':['X=y'],'timeout':3}]},"
        "'linux':{'cgroupsPath':'a:b:c','namespaces':[{'type':'pid'},"
        "{'type':'network','path':'/run/netns/x'}],"
        "'devices':[{'path':'/dev/x','type':'b','major':8,'minor':1,'fileMode':432,'uid':5}]},"
        "'later':{'unknown':1}}",
        &error);

    g_assert_no_error(error);
    g_assert_cmpstr(spec->root_path, ==, "/bundle/rootfs");
    g_assert_true(spec->root_readonly && spec->terminal && spec->has_process);
    g_assert_cmpuint(spec->console_rows, ==, 40);
    g_assert_cmpuint(spec->console_cols, ==, 120);
    g_assert_cmpstr(spec->args[2], ==, "x");
    g_assert_cmpstr(spec->domainname, ==, "d");
    g_assert_cmpstr(g_hash_table_lookup(spec->annotations, "a"), ==, "b");
    g_assert_cmpstr(spec->cgroups_path, ==, "a:b:c");

    const SvSpecMount *mount = spec->mounts->pdata[0];
    g_assert_cmpstr(mount->destination, ==, "/proc");
    g_assert_false(sv_spec_mount_is_bind(mount));
    mount = spec->mounts->pdata[1];
    g_assert_null(mount->type);
    g_assert_true(sv_spec_mount_is_bind(mount) && sv_spec_mount_is_recursive(mount) &&
        sv_spec_mount_is_read_only(mount));

    const SvSpecHook *hook = spec->hooks[SV_HOOK_PRESTART]->pdata[0];
    g_assert_cmpstr(hook->args[0], ==, "/bin/a");
    g_assert_null(hook->args[1]);
    g_assert_cmpint(hook->timeout_s, ==, 0);
    hook = spec->hooks[SV_HOOK_POSTSTOP]->pdata[0];
    g_assert_cmpstr(hook->args[1], ==, "c");
    g_assert_cmpstr(hook->env[0], ==, "X=y");
    g_assert_cmpint(hook->timeout_s, ==, 3);

    g_assert_cmpstr(sv_spec_namespace(spec, "network")->path, ==, "/run/netns/x");
    g_assert_null(sv_spec_namespace(spec, "pid")->path);
    g_assert_null(sv_spec_namespace(spec, "ipc"));
    const SvSpecDevice *device = spec->devices->pdata[0];
    g_assert_cmpint(device->major, ==, 8);
    g_assert_cmpint(device->mode, ==, 0660);
    g_assert_cmpint(device->uid, ==, 5);
    g_assert_cmpint(device->gid, ==, -1);
}

/* What may be missing, or null. */
static void test_optional(void)
{
    static const char *const keys[] = {
        "process", "mounts", "hooks", "linux", "annotations", "hostname", "ociVersion"};

    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        for (guint null = 0; null < 2; null++) {
            g_autofree char *text = edited(keys[i], null ? "null" : NULL);
            g_autoptr(GError) error = NULL;
            g_autoptr(SvSpec) spec = parse(text, &error);

            g_test_message("%s", text);
            g_assert_no_error(error);
            g_assert_cmpint(spec->has_process, ==, strcmp(keys[i], "process") != 0);
        }
}

static const struct {
    const char *key, *value, *says;
} broken[] = {
    {"root", NULL, "root: is missing"},
    {"root", "[]", "root"},
    {"root", "{}", "root.path: is missing"},
    {"root", "{'path':''}", "root.path"},
    {"root", "{'path':1}", "root.path"},
    {"root", "{'path':'r','readonly':'yes'}", "root.readonly"},
    {"ociVersion", "1", "ociVersion"},
    {"ociVersion", "'2.0.0'", "ociVersion: \"2.0.0\" is not supported"},
    {"ociVersion", "'1'", "ociVersion"},
    {"hostname", "5", "hostname"},
    {"hostname", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "hostname"},
    {"annotations", "{'a':1}", "annotations.a"},
    {"annotations", "[]", "annotations"},
    {"process", "[]", "process"},
    {"process", "{'cwd':'/'}", "process.args: must not be empty"},
    {"process", "{'args':[],'cwd':'/'}", "process.args: must not be empty"},
    {"process", "{'args':[''],'cwd':'/'}",
        "process.args: exec: \"\": executable file not found in $PATH"},
    {"process", "{'args':'sh','cwd':'/'}", "process.args"},
    {"process", "{'args':[1],'cwd':'/'}", "process.args"},
    {"process", "{'args':['sh']}", "process.cwd: must not be empty"},
    {"process", "{'args':['sh'],'cwd':'x'}", "process.cwd: must be an absolute path"},
    {"process", "{'args':['sh'],'cwd':'/','env':{}}", "process.env"},
    {"process", "{'args':['sh'],'cwd':'/','terminal':1}", "process.terminal"},
    {"process", "{'args':['sh'],'cwd':'/','user':{'uid':-1}}", "process.user.uid"},
    {"process", "{'args':['sh'],'cwd':'/','user':{'gid':4294967296}}", "process.user.gid"},
    {"process", "{'args':['sh'],'cwd':'/','user':{'additionalGids':['a']}}",
        "process.user.additionalGids[0]"},
    {"process", "{'args':['sh'],'cwd':'/','capabilities':{'bounding':'x'}}",
        "process.capabilities.bounding"},
    {"process", "{'args':['sh'],'cwd':'/','consoleSize':{'height':70000}}",
        "process.consoleSize.height"},
    {"process", "{'args':['sh'],'cwd':'/','rlimits':[{'type':'X'}]}", "process.rlimits[0]"},
    {"process", "{'args':['sh'],'cwd':'/','rlimits':[{'type':'RLIMIT_CORE','soft':-1,'hard':0}]}",
        "process.rlimits[0].soft"},
    {"process",
        "{'args':['sh'],'cwd':'/','rlimits':[{'type':'RLIMIT_CORE'},{'type':'RLIMIT_CORE'}]}",
        "process.rlimits[1]: RLIMIT_CORE is given twice"},
    {"process", "{'args':['sh'],'cwd':'/','rlimits':[{'type':'RLIMIT_NOFILES'}]}",
        "process.rlimits[0]: unknown type \"RLIMIT_NOFILES\""},
    {"process", "{'args':['sh'],'cwd':'/','rlimits':[{'type':'RLIMIT_CPU','soft':2,'hard':1}]}",
        "process.rlimits[0]: soft is more than hard"},
    {"process", "{'args':['sh'],'cwd':'/','oomScoreAdj':1001}", "process.oomScoreAdj"},
    {"mounts", "{}", "mounts"},
    {"mounts", "[1]", "mounts[0]: must be an object"},
    {"mounts", "[{}]", "mounts[0]: destination is missing"},
    {"mounts", "[{'destination':''}]", "mounts[0]: destination is missing"},
    {"mounts", "[{'destination':'/a','type':'proc'},{'destination':7}]", "mounts[1].destination"},
    {"mounts", "[{'destination':'/a'}]", "mounts[0]: type is missing"},
    {"mounts", "[{'destination':'/a','type':'bind'}]", "mounts[0]: a bind mount without a source"},
    {"mounts", "[{'destination':'/a','type':'proc','options':'ro'}]", "mounts[0].options"},
    {"mounts", "[{'destination':'/a','type':'proc','options':[null]}]", "mounts[0].options"},
    {"hooks", "[]", "hooks"},
    {"hooks", "{'prestart':{}}", "hooks.prestart"},
    {"hooks", "{'poststop':[{}]}", "hooks.poststop[0]: path must be an absolute path"},
    {"hooks", "{'createRuntime':[{'path':'x'}]}", "hooks.createRuntime[0]"},
    {"hooks", "{'createContainer':[{'path':'/x','timeout':-1}]}",
        "hooks.createContainer[0].timeout"},
    {"hooks", "{'startContainer':[{'path':'/x','env':'a'}]}", "hooks.startContainer[0].env"},
    {"hooks", "{'poststart':[{'path':'/x','args':[2]}]}", "hooks.poststart[0].args"},
    {"linux", "[]", "linux"},
    {"linux", "{'namespaces':[{'type':'warp'}]}", "linux.namespaces[0]: unknown"},
    {"linux", "{'namespaces':[{}]}", "linux.namespaces[0]: unknown"},
    {"linux", "{'namespaces':[{'type':'pid'},{'type':'pid','path':'/x'}]}",
        "linux.namespaces[1]: a second \"pid\""},
    {"linux", "{'namespaces':[{'type':'pid','path':'x'}]}", "linux.namespaces[0]"},
    {"linux", "{'namespaces':[{'type':'user'}]}", "linux.uidMappings"},
    {"linux", "{'uidMappings':[{'containerID':0,'hostID':0,'size':1}]}", "linux.uidMappings"},
    {"linux", "{'uidMappings':[{'containerID':0}]}", "linux.uidMappings[0]"},
    {"linux", "{'devices':[{'type':'b'}]}", "linux.devices[0]"},
    {"linux", "{'devices':[{'path':'/dev/x','type':'blk'}]}", "linux.devices[0]: type"},
    {"linux", "{'devices':[{'path':'/dev/x','type':'b','major':-5}]}", "linux.devices[0].major"},
    {"linux", "{'sysctl':{'a.b':1}}", "linux.sysctl.a.b"},
    {"linux", "{'cgroupsPath':[]}", "linux.cgroupsPath"},
    {"linux", "{'resources':[]}", "linux.resources"},
    {"linux", "{'resources':{'memory':{'limit':'1'}}}", "linux.resources.memory.limit"},
    {"linux", "{'resources':{'cpu':{'cpus':1}}}", "linux.resources.cpu.cpus"},
    {"linux", "{'resources':{'devices':[{'allow':'y'}]}}", "linux.resources.devices[0].allow"},
    {"linux", "{'resources':{'unified':{'memory.high':1}}}", "linux.resources.unified.memory.high"},
    {"linux", "{'seccomp':7}", "linux.seccomp"},
    {"linux", "{'maskedPaths':'x'}", "linux.maskedPaths"},
};

static void test_broken(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_autofree char *text = edited(broken[i].key, broken[i].value);
        g_autoptr(GError) error = NULL;

        g_test_message("%s", text);
        g_assert_null(parse(text, &error));
        g_assert_true(sv_error_is(error, SV_ERR_INVALID));
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, broken[i].says));
        g_assert_null(strchr(error->message, '\n'));
    }
}

static void test_cuts(void)
{
    g_autoptr(JsonNode) node = sv_spec_default();
    g_autofree char *text = sv_json_text(node, TRUE);
    gsize len = strlen(text);

    for (gsize cut = 0; cut < len; cut++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(sv_spec_parse(text, cut, "/b", &error));
        g_assert_true(sv_error_is(error, SV_ERR_INVALID));
    }
    g_autofree char *more = g_strconcat(text, "}", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_null(sv_spec_parse(more, strlen(more), "/b", &error));
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
}

static void test_many_annotations(void)
{
    GString *text = g_string_new("{'a':'");
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < 8 * 1024 * 1024; i++)
        g_string_append_c(text, 'x');
    g_string_append(text, "'}");
    g_autofree char *json = edited("annotations", text->str);
    g_autoptr(SvSpec) spec = parse(json, &error);
    g_string_free(text, TRUE);
    g_assert_no_error(error);
    g_assert_cmpuint(strlen(g_hash_table_lookup(spec->annotations, "a")), ==, 8 * 1024 * 1024);
}

static void test_load(void)
{
    g_autofree char *tmp = g_dir_make_tmp("sv-spec-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(tmp, "config.json", NULL);
    g_autofree char *missing = g_build_filename(tmp, "nosuch", NULL);
    g_autofree char *text = edited("root", "{'path':'/abs/../root'}");
    g_autoptr(GError) error = NULL;

    g_assert_null(sv_spec_load(missing, &error));
    g_assert_true(sv_error_is(error, SV_ERR_NOT_FOUND));
    g_clear_error(&error);
    g_assert_null(sv_spec_load(tmp, &error));
    g_assert_true(sv_error_is(error, SV_ERR_NOT_FOUND));
    g_clear_error(&error);
    g_assert_null(sv_spec_load("relative", &error));
    g_assert_error(error, SV_OCI_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    g_strdelimit(text, "'", '"');
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_autoptr(SvSpec) spec = sv_spec_load(tmp, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(spec->root_path, ==, "/root");
    g_assert_cmpint(truncate(path, SV_SPEC_MAX + 1), ==, 0);
    g_assert_null(sv_spec_load(tmp, &error));
    g_assert_true(sv_error_is(error, SV_ERR_LIMIT));
    g_assert_true(sv_file_remove_tree(tmp, NULL));
}

static void test_mount_options(void)
{
    static const struct {
        const char *options;
        gboolean read_only, recursive;
    } cases[] = {
        {"['bind']", FALSE, FALSE},
        {"['bind','ro']", TRUE, FALSE},
        {"['rbind','rro']", TRUE, TRUE},
        {"['rbind','ro','rw']", FALSE, TRUE},
        {"['rw','bind','ro']", TRUE, FALSE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *value =
            g_strdup_printf("[{'destination':'/a','source':'/b','options':%s}]", cases[i].options);
        g_autofree char *text = edited("mounts", value);
        g_autoptr(GError) error = NULL;
        g_autoptr(SvSpec) spec = parse(text, &error);

        g_assert_no_error(error);
        const SvSpecMount *mount = spec->mounts->pdata[0];
        g_assert_true(sv_spec_mount_is_bind(mount));
        g_assert_cmpint(sv_spec_mount_is_read_only(mount), ==, cases[i].read_only);
        g_assert_cmpint(sv_spec_mount_is_recursive(mount), ==, cases[i].recursive);
    }
}

static void test_process(void)
{
    g_autoptr(GError) error = NULL;
    const char *good = "{\"args\":[\"sh\"],\"cwd\":\"/\",\"later\":1}";
    const char *bad = "{\"args\":[\"sh\"]}";
    g_autoptr(JsonNode) node = sv_process_parse(good, strlen(good), &error);

    g_assert_no_error(error);
    g_assert_null(sv_process_parse(bad, strlen(bad), &error));
    g_assert_error(error, SV_OCI_ERROR, SV_ERR_INVALID);
    g_assert_nonnull(strstr(error->message, "process.json: cwd: must not be empty"));
    g_clear_error(&error);
    g_assert_null(sv_process_parse("[]", 2, &error));
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
}

static void test_default(void)
{
    g_autoptr(JsonNode) node = sv_spec_default();
    g_autofree char *text = sv_json_text(node, TRUE);
    g_autoptr(GError) error = NULL;
    g_autoptr(SvSpec) spec = sv_spec_parse(text, strlen(text), "/b", &error);

    g_assert_no_error(error);
    g_assert_cmpstr(spec->args[0], ==, "sh");
    g_assert_cmpuint(spec->mounts->len, ==, 7);
    g_assert_true(spec->root_readonly && spec->terminal);
    g_assert_nonnull(sv_spec_namespace(spec, "network"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/full", test_full);
    g_test_add_func("/spec/optional", test_optional);
    g_test_add_func("/spec/broken", test_broken);
    g_test_add_func("/spec/cuts", test_cuts);
    g_test_add_func("/spec/many-annotations", test_many_annotations);
    g_test_add_func("/spec/load", test_load);
    g_test_add_func("/spec/mount-options", test_mount_options);
    g_test_add_func("/spec/process", test_process);
    g_test_add_func("/spec/default", test_default);
    return g_test_run();
}
