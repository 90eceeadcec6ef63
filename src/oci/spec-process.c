/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process: of config.json, and process.json of exec. What only the guest needs is checked for its
 * types, so that the guest's runtime finds nothing to choke on. */
#include <config.h>

#include "oci/spec-private.h"
#include <string.h>

#define ROWS_MAX 65535 /* struct winsize */

static gboolean check_user(JsonObject *process, const char *path, GError **error)
{
    g_autofree char *where = sv_spec_path(path, "user");
    static const char *const strings[] = {"username", NULL};
    static const char *const numbers[] = {"uid", "gid", "umask", NULL};
    JsonObject *user = NULL;
    JsonArray *groups = NULL;

    if (!sv_json_get_object(process, "user", path, &user, error))
        return FALSE;
    if (!user)
        return TRUE;
    for (const char *const *n = numbers; *n; n++) {
        gint64 value = 0;

        if (!sv_spec_range(user, *n, where, 0, G_MAXUINT32, &value, error))
            return FALSE;
    }
    if (!sv_json_get_array(user, "additionalGids", where, &groups, error))
        return FALSE;
    for (guint i = 0; groups && i < json_array_get_length(groups); i++) {
        JsonNode *node = json_array_get_element(groups, i);
        gint64 gid = 0;

        if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64 ||
            (gid = json_node_get_int(node)) < 0 || gid > G_MAXUINT32) {
            g_autofree char *at = g_strdup_printf("%s.additionalGids[%u]", where, i);

            return sv_spec_error(error, at, "must be a group id");
        }
    }
    return sv_spec_check_strings(user, where, strings, error);
}

static gboolean check_capabilities(JsonObject *process, const char *path, GError **error)
{
    static const char *const sets[] = {
        "bounding", "effective", "inheritable", "permitted", "ambient", NULL};
    g_autofree char *where = sv_spec_path(path, "capabilities");
    JsonObject *capabilities = NULL;

    if (!sv_json_get_object(process, "capabilities", path, &capabilities, error))
        return FALSE;
    return !capabilities || sv_spec_check_strvs(capabilities, where, sets, error);
}

static gboolean check_rlimit(
    JsonObject *rlimit, const char *path, gpointer user_data, GError **error)
{
    static const char *const names[] = {"AS", "CORE", "CPU", "DATA", "FSIZE", "LOCKS", "MEMLOCK",
        "MSGQUEUE", "NICE", "NOFILE", "NPROC", "RSS", "RTPRIO", "RTTIME", "SIGPENDING", "STACK",
        NULL};
    GHashTable *seen = user_data;
    const char *type = NULL;
    guint64 soft = 0, hard = 0;

    if (!sv_json_get_string(rlimit, "type", path, &type, error) ||
        !sv_json_get_uint(rlimit, "soft", path, &soft, error) ||
        !sv_json_get_uint(rlimit, "hard", path, &hard, error))
        return FALSE;
    if (!type || !g_str_has_prefix(type, "RLIMIT_"))
        return sv_spec_error(error, path, "type must be RLIMIT_...");
    if (!g_strv_contains(names, type + strlen("RLIMIT_")))
        return sv_spec_error(error, path, "unknown type \"%s\"", type);
    if (soft > hard)
        return sv_spec_error(error, path, "soft is more than hard");
    if (!g_hash_table_add(seen, (gpointer)type))
        return sv_spec_error(error, path, "%s is given twice", type);
    return TRUE;
}

static gboolean check_console(
    JsonObject *process, const char *path, gint64 *rows, gint64 *cols, GError **error)
{
    g_autofree char *where = sv_spec_path(path, "consoleSize");
    JsonObject *size = NULL;

    if (!sv_json_get_object(process, "consoleSize", path, &size, error))
        return FALSE;
    return !size ||
        (sv_spec_range(size, "height", where, 0, ROWS_MAX, rows, error) &&
            sv_spec_range(size, "width", where, 0, ROWS_MAX, cols, error));
}

static gboolean check_args(JsonObject *process, const char *path, char ***out, GError **error)
{
    g_auto(GStrv) args = NULL;
    g_autofree char *where = sv_spec_path(path, "args");

    if (!sv_json_get_strv(process, "args", path, &args, error))
        return FALSE;
    if (!args || !args[0])
        return sv_spec_error(error, where, "must not be empty");
    if (!*args[0])
        return sv_spec_error(error, where, "exec: \"\": executable file not found in $PATH");
    if (out)
        *out = g_steal_pointer(&args);
    return TRUE;
}

static gboolean check_cwd(JsonObject *process, const char *path, GError **error)
{
    g_autofree char *where = sv_spec_path(path, "cwd");
    const char *cwd = NULL;

    if (!sv_json_get_string(process, "cwd", path, &cwd, error))
        return FALSE;
    if (!cwd || !*cwd)
        return sv_spec_error(error, where, "must not be empty");
    if (!g_path_is_absolute(cwd))
        return sv_spec_error(error, where, "must be an absolute path");
    return TRUE;
}

gboolean sv_spec_process(JsonObject *process, const char *path, GError **error)
{
    static const char *const strvs[] = {"env", NULL};
    static const char *const bools[] = {"terminal", "noNewPrivileges", NULL};
    static const char *const strings[] = {"apparmorProfile", "selinuxLabel", NULL};
    g_autoptr(GHashTable) limits = g_hash_table_new(g_str_hash, g_str_equal);
    gint64 rows = 0, cols = 0, score = 0;

    return check_args(process, path, NULL, error) && check_cwd(process, path, error) &&
        check_user(process, path, error) && check_capabilities(process, path, error) &&
        check_console(process, path, &rows, &cols, error) &&
        sv_spec_each(process, "rlimits", path, check_rlimit, limits, error) &&
        sv_spec_check_strvs(process, path, strvs, error) &&
        sv_spec_check_bools(process, path, bools, error) &&
        sv_spec_check_strings(process, path, strings, error) &&
        sv_spec_range(process, "oomScoreAdj", path, -1000, 1000, &score, error);
}

gboolean sv_spec_read_process(SvSpec *spec, JsonObject *root, GError **error)
{
    JsonObject *process = NULL;
    gint64 rows = 0, cols = 0;

    if (!sv_json_get_object(root, "process", "", &process, error))
        return FALSE;
    if (!process)
        return TRUE;
    if (!sv_spec_process(process, "process", error) ||
        !check_args(process, "process", &spec->args, error) ||
        !sv_json_get_bool(process, "terminal", "process", &spec->terminal, error) ||
        !check_console(process, "process", &rows, &cols, error))
        return FALSE;
    spec->has_process = TRUE;
    spec->console_rows = rows;
    spec->console_cols = cols;
    return TRUE;
}

JsonNode *sv_process_parse(const char *text, gsize len, GError **error)
{
    g_autoptr(JsonNode) node = sv_json_parse(text, len, FALSE, "process.json", error);

    if (!node)
        return NULL;
    if (!sv_spec_process(json_node_get_object(node), "", error)) {
        g_prefix_error(error, "process.json: ");
        return NULL;
    }
    return g_steal_pointer(&node);
}
