/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/process-json.h"
#include "base/names.h"
#include "cli/cli.h"
#include "oci/spec.h"
#include <string.h>

#define PROCESS_MAX (16u * 1024 * 1024)

/* The member of @object, made when it is not there. (transfer none) */
static JsonObject *object_member(JsonObject *object, const char *name)
{
    if (!json_object_has_member(object, name) ||
        !JSON_NODE_HOLDS_OBJECT(json_object_get_member(object, name)))
        json_object_set_object_member(object, name, json_object_new());
    return json_object_get_object_member(object, name);
}

static JsonArray *array_member(JsonObject *object, const char *name)
{
    if (!json_object_has_member(object, name) ||
        !JSON_NODE_HOLDS_ARRAY(json_object_get_member(object, name)))
        json_object_set_array_member(object, name, json_array_new());
    return json_object_get_array_member(object, name);
}

static gboolean set_user(JsonObject *process, const char *text, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 2);
    JsonObject *user = object_member(process, "user");
    gint64 uid = 0, gid = 0;

    if (!sv_parse_int64(parts[0], 0, G_MAXUINT32, &uid, NULL) ||
        (parts[1] && !sv_parse_int64(parts[1], 0, G_MAXUINT32, &gid, NULL))) {
        g_set_error(
            error, SV_CLI_ERROR, SV_ERR_INVALID, "user \"%s\" is not UID[:GID] in numbers", text);
        return FALSE;
    }
    json_object_set_int_member(user, "uid", uid);
    if (parts[1])
        json_object_set_int_member(user, "gid", gid);
    return TRUE;
}

static gboolean set_groups(JsonObject *process, const GPtrArray *groups, GError **error)
{
    JsonArray *array =
        groups ? array_member(object_member(process, "user"), "additionalGids") : NULL;
    gint64 gid = 0;

    for (guint i = 0; groups && i < groups->len; i++) {
        if (!sv_parse_int64(groups->pdata[i], 0, G_MAXUINT32, &gid, error)) {
            g_prefix_error(error, "additional gid: ");
            return FALSE;
        }
        json_array_add_int_element(array, gid);
    }
    return TRUE;
}

static void add_caps(JsonObject *process, const GPtrArray *caps)
{
    static const char *const sets[] = {"bounding", "effective", "permitted", "ambient"};
    JsonObject *all = caps ? object_member(process, "capabilities") : NULL;

    for (guint i = 0; caps && i < G_N_ELEMENTS(sets); i++) {
        JsonArray *set = array_member(all, sets[i]);

        for (guint k = 0; k < caps->len; k++)
            json_array_add_string_element(set, caps->pdata[k]);
    }
}

static gboolean add_env(JsonObject *process, const GPtrArray *env, GError **error)
{
    for (guint i = 0; env && i < env->len; i++) {
        const char *equals = strchr(env->pdata[i], '=');

        if (!equals || equals == env->pdata[i]) {
            g_autofree char *shown = sv_printable(env->pdata[i], 128);

            g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
                "invalid environment variable: \"%s\": NAME=VALUE is wanted", shown);
            return FALSE;
        }
        json_array_add_string_element(array_member(process, "env"), env->pdata[i]);
    }
    return TRUE;
}

static gboolean apply(JsonObject *process, const SvExecProcess *wanted, char **args, GError **error)
{
    JsonArray *argv = json_array_new();

    for (char **arg = args; *arg; arg++)
        json_array_add_string_element(argv, *arg);
    json_object_set_array_member(process, "args", argv);
    json_object_remove_member(process, "commandLine");
    json_object_remove_member(process, "consoleSize");
    json_object_set_boolean_member(process, "terminal", wanted->tty);
    if (wanted->cwd)
        json_object_set_string_member(process, "cwd", wanted->cwd);
    if (wanted->apparmor)
        json_object_set_string_member(process, "apparmorProfile", wanted->apparmor);
    if (wanted->process_label)
        json_object_set_string_member(process, "selinuxLabel", wanted->process_label);
    if (wanted->no_new_privs)
        json_object_set_boolean_member(process, "noNewPrivileges", TRUE);
    add_caps(process, wanted->caps);
    return add_env(process, wanted->env, error) &&
        (!wanted->user || set_user(process, wanted->user, error)) &&
        set_groups(process, wanted->groups, error);
}

/* Checks like a file's, so that both ways give the same errors. */
static JsonNode *check(JsonNode *node, GError **error)
{
    g_autofree char *text = sv_json_text(node, FALSE);

    return sv_process_parse(text, strlen(text), error);
}

JsonNode *sv_process_from_container(
    const SvRecord *record, const SvExecProcess *wanted, char **args, GError **error)
{
    g_autoptr(SvSpec) spec = sv_spec_load(record->bundle, error);
    g_autoptr(JsonNode) copy = NULL;
    g_autofree char *text = NULL;
    JsonObject *root;

    if (!spec)
        return NULL;
    root = json_node_get_object(spec->json);
    if (!spec->has_process) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
            "the container's config.json has no process: use --process");
        return NULL;
    }
    text = sv_json_text(json_object_get_member(root, "process"), FALSE);
    copy = sv_json_parse(text, -1, FALSE, "process", error);
    if (!copy || !apply(json_node_get_object(copy), wanted, args, error))
        return NULL;
    return check(copy, error);
}

JsonNode *sv_process_from_file(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    JsonNode *node = NULL;
    gsize len = 0;

    if (sv_cli_read_file(path, PROCESS_MAX, &text, &len, error))
        node = sv_process_parse(text, len, error);
    if (!node)
        g_prefix_error(error, "process file %s: ", path);
    return node;
}

void sv_process_terminal(JsonNode *process, gboolean *terminal, guint *rows, guint *cols)
{
    JsonObject *object = json_node_get_object(process);
    JsonObject *size = NULL;
    gint64 height = 0, width = 0;

    *terminal = FALSE;
    sv_json_get_bool(object, "terminal", "", terminal, NULL);
    if (sv_json_get_object(object, "consoleSize", "", &size, NULL) && size) {
        sv_json_get_int(size, "height", "", &height, NULL);
        sv_json_get_int(size, "width", "", &width, NULL);
    }
    *rows = (guint)CLAMP(height, 0, G_MAXUINT16);
    *cols = (guint)CLAMP(width, 0, G_MAXUINT16);
}
