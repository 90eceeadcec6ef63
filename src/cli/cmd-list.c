/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/json.h"
#include "cli/list-disks.h"
#include "cli/table.h"
#include "cli/target.h"
#include <pwd.h>
#include <string.h>

typedef struct {
    const char *format;
    gboolean quiet, disks;
} Options;
static const SvOption options[] = {
    {"format", 'f', SV_OPT_STRING, G_STRUCT_OFFSET(Options, format), "FORMAT", "table or json"},
    {"quiet", 'q', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, quiet), NULL, "only ids"},
    {"disks", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, disks), NULL,
        "disks in the machines and whose they are"},
    {NULL},
};

/* The same facts as `state` gives, and how it ended. (transfer full) */
static JsonNode *facts(const SvRecord *record)
{
    JsonNode *node = sv_record_oci_state_node(record, NULL, 0);

    if (record->state == SV_STATE_STOPPED) {
        g_autofree char *time = sv_time_rfc3339(record->finished_us);
        JsonObject *object = json_node_get_object(node);

        json_object_set_int_member(object, "exitStatus", record->exit_status);
        json_object_set_string_member(object, "cause", sv_cause_name(record->cause));
        json_object_set_string_member(object, "finished", time);
    }
    return node;
}

static char *as_json(const GPtrArray *records)
{
    g_autoptr(JsonNode) root = json_node_new(JSON_NODE_ARRAY);
    g_autofree char *text = NULL;
    JsonArray *array = json_array_new();

    for (guint i = 0; i < records->len; i++)
        json_array_add_element(array, facts(records->pdata[i]));
    json_node_take_array(root, array);
    text = sv_json_text(root, FALSE);
    return g_strconcat(text, "\n", NULL);
}

static char *as_ids(const GPtrArray *records)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < records->len; i++)
        g_string_append_printf(text, "%s\n", ((const SvRecord *)records->pdata[i])->id);
    return g_string_free(text, FALSE);
}

/* ---- the table, as runc prints it: columns at least 12 wide, 3 between them */

#define N_COLUMNS 7

static char *owner_name(uid_t uid)
{
    struct passwd entry, *found = NULL;
    char buffer[4096];

    if (uid == 0)
        return g_strdup("root");
    if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) == 0 && found)
        return g_strdup(found->pw_name);
    return g_strdup_printf("#%u", (guint)uid);
}

static char **make_row(const SvRecord *record)
{
    char **row = g_new0(char *, N_COLUMNS + 1);
    SvState state = sv_record_effective_state(record);

    row[0] = g_strdup(record->id);
    row[1] = g_strdup_printf("%d", state == SV_STATE_STOPPED ? 0 : (int)record->shim_pid);
    row[2] = g_strdup(sv_state_oci_name(state));
    row[3] = sv_printable(record->bundle, 4096);
    row[4] = sv_time_rfc3339(record->created_us);
    row[5] = owner_name(record->owner);
    row[6] = record->state == SV_STATE_STOPPED
        ? g_strdup_printf("%d (%s)", record->exit_status, sv_cause_name(record->cause))
        : g_strdup("");
    return row;
}

static char *as_table(const GPtrArray *records)
{
    static const char *const titles[N_COLUMNS + 1] = {
        "ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER", "END", NULL};
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);

    g_ptr_array_add(rows, g_strdupv((char **)titles));
    for (guint i = 0; i < records->len; i++)
        g_ptr_array_add(rows, make_row(records->pdata[i]));
    return sv_table_text(rows, 9);
}

static int cmd_list(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) records = NULL;
    g_autofree char *text = NULL;

    if (opts->format && !g_str_equal(opts->format, "table") && !g_str_equal(opts->format, "json")) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "unknown format \"%s\"", opts->format);
        return -1;
    }
    records = sv_record_list(cli->root, warnings, error);
    if (!records)
        return -1;
    for (guint i = 0; i < warnings->len; i++)
        g_warning("%s", (const char *)warnings->pdata[i]);
    if (opts->disks)
        text =
            g_strcmp0(opts->format, "json") == 0 ? sv_disks_json(records) : sv_disks_table(records);
    else if (opts->quiet)
        text = as_ids(records);
    else if (g_strcmp0(opts->format, "json") == 0)
        text = as_json(records);
    else
        text = as_table(records);
    return sv_cli_print(text, error) ? 0 : -1;
}

const SvVerb sv_verb_list = {
    "list", "", "List the containers of this root", options, sizeof(Options), 0, 0, 0, cmd_list};
