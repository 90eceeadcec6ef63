/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the runtime can do, in the OCI runtime specification's form. Containers run in the guest with
 * crun, so most of it is what crun and the guest's kernel can do. */
#include <config.h>

#include "base/json.h"
#include "cli/cli.h"
#include "core/guestspec.h"
#include <string.h>

static const char *const hooks[] = {"prestart", "createRuntime", "createContainer",
    "startContainer", "poststart", "poststop", NULL};
static const char *const namespaces[] = {
    "cgroup", "ipc", "mount", "network", "pid", "user", "uts", NULL};
static const char *const seccomp_actions[] = {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL",
    "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_LOG", "SCMP_ACT_TRACE",
    "SCMP_ACT_TRAP", NULL};
static const char *const seccomp_operators[] = {"SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT",
    "SCMP_CMP_LE", "SCMP_CMP_LT", "SCMP_CMP_MASKED_EQ", "SCMP_CMP_NE", NULL};
static const char *const seccomp_archs[] = {
    "SCMP_ARCH_X32", "SCMP_ARCH_X86", "SCMP_ARCH_X86_64", NULL};

static void add_list(JsonObject *object, const char *name, const char *const *list)
{
    JsonArray *array = json_array_new();

    for (; *list; list++)
        json_array_add_string_element(array, *list);
    json_object_set_array_member(object, name, array);
}

static gint compare(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What the translation of mounts knows. */
static void add_mount_options(JsonObject *root)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();

    for (const char *const *o = sv_guest_bind_options; *o; o++)
        g_ptr_array_add(all, (gpointer)*o);
    for (const char *const *o = sv_guest_recursive_options; *o; o++)
        g_ptr_array_add(all, (gpointer)*o);
    g_ptr_array_add(all, (gpointer) "tmpcopyup");
    g_ptr_array_sort(all, compare);
    g_ptr_array_add(all, NULL);
    add_list(root, "mountOptions", (const char *const *)all->pdata);
}

static JsonObject *add_object(JsonObject *object, const char *name)
{
    JsonObject *member = json_object_new();

    json_object_set_object_member(object, name, member);
    return member;
}

static void add_linux(JsonObject *root)
{
    JsonObject *linux_part = add_object(root, "linux");
    JsonObject *cgroup, *seccomp;

    add_list(linux_part, "namespaces", namespaces);
    add_list(linux_part, "capabilities", sv_guest_capabilities);
    cgroup = add_object(linux_part, "cgroup");
    json_object_set_boolean_member(cgroup, "v1", FALSE);
    json_object_set_boolean_member(cgroup, "v2", TRUE);
    json_object_set_boolean_member(cgroup, "systemd", FALSE);
    json_object_set_boolean_member(cgroup, "systemdUser", FALSE);
    json_object_set_boolean_member(cgroup, "rdma", FALSE);
    seccomp = add_object(linux_part, "seccomp");
    json_object_set_boolean_member(seccomp, "enabled", TRUE);
    add_list(seccomp, "actions", seccomp_actions);
    add_list(seccomp, "operators", seccomp_operators);
    add_list(seccomp, "archs", seccomp_archs);
    json_object_set_boolean_member(add_object(linux_part, "apparmor"), "enabled", FALSE);
    json_object_set_boolean_member(add_object(linux_part, "selinux"), "enabled", FALSE);
    json_object_set_boolean_member(add_object(linux_part, "intelRdt"), "enabled", FALSE);
    json_object_set_boolean_member(
        add_object(add_object(linux_part, "mountExtensions"), "idmap"), "enabled", FALSE);
}

static int cmd_features(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    g_autofree char *json = NULL;
    g_autofree char *text = NULL;
    JsonObject *root = json_object_new();

    json_object_set_string_member(root, "ociVersionMin", "1.0.0");
    json_object_set_string_member(root, "ociVersionMax", "1.1.0");
    add_list(root, "hooks", hooks);
    add_mount_options(root);
    add_linux(root);
    json_object_set_string_member(
        add_object(root, "annotations"), "io.sandvirt.version", PACKAGE_VERSION);
    json_node_take_object(node, root);
    json = sv_json_text(node, TRUE);
    text = g_strconcat(json, "\n", NULL);
    return sv_cli_print(text, error) ? 0 : -1;
}

const SvVerb sv_verb_features = {"features", "", "Print what this runtime can do, in JSON", NULL, 0,
    0, 0, SV_VERB_ANYBODY, cmd_features};
