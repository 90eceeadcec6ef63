/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The processes of a container as the guest sees them. All text in it comes from the guest. */
#include "base/json.h"
#include "cli/target.h"

typedef struct {
    const char *format;
} Options;
static const SvOption options[] = {
    {"format", 'f', SV_OPT_STRING, G_STRUCT_OFFSET(Options, format), "FORMAT", "table or json"},
    {NULL},
};

static char *as_json(const Sandvirt__V1__PsResponse *response)
{
    GString *text = g_string_new("[");

    for (size_t i = 0; i < response->n_rows; i++)
        g_string_append_printf(text, "%s%u", i > 0 ? "," : "", response->rows[i]->pid);
    g_string_append(text, "]\n");
    return g_string_free(text, FALSE);
}

static char *start_time(gint64 unix_seconds)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(unix_seconds);
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    gboolean recent = time && g_date_time_difference(now, time) < G_TIME_SPAN_DAY;
    char *text = time ? g_date_time_format(time, recent ? "%H:%M" : "%b%d") : NULL;

    return text ? text : g_strdup("?");
}

static void append_row(GString *text, const Sandvirt__V1__PsRow *row)
{
    g_autofree char *user = sv_printable(row->user, 32);
    g_autofree char *tty = sv_printable(row->tty, 16);
    g_autofree char *args = sv_printable(*row->args ? row->args : row->comm, 4096);
    g_autofree char *since = start_time(row->start_time);
    guint64 seconds = row->cpu_ms / 1000;

    if (!*user) {
        g_free(user);
        user = g_strdup_printf("%u", row->uid);
    }
    g_string_append_printf(text, "%-8s %7u %7u  0 %5s %-8s %02u:%02u:%02u %s%s%s\n", user, row->pid,
        row->ppid, since, *tty ? tty : "?", (guint)(seconds / 3600), (guint)(seconds / 60 % 60),
        (guint)(seconds % 60), *row->args ? "" : "[", args, *row->args ? "" : "]");
}

static char *as_table(const Sandvirt__V1__PsResponse *response)
{
    GString *text = g_string_new("UID          PID    PPID  C STIME TTY          TIME CMD\n");

    for (size_t i = 0; i < response->n_rows; i++)
        append_row(text, response->rows[i]);
    return g_string_free(text, FALSE);
}

static int cmd_ps(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_auto(SvTarget) target = SV_TARGET_INIT;
    Sandvirt__V1__PsRequest request = SANDVIRT__V1__PS_REQUEST__INIT;
    Sandvirt__V1__PsResponse *response;
    g_autofree char *text = NULL;
    gboolean json = g_strcmp0(opts->format, "json") == 0;

    if (opts->format && !json && !g_str_equal(opts->format, "table")) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "unknown format \"%s\"", opts->format);
        return -1;
    }
    if (!sv_target_load(&target, cli, args[0], "ps", error) ||
        !sv_target_connect(&target, cli, error))
        return -1;
    request.container_id = args[0];
    response = (Sandvirt__V1__PsResponse *)sv_client_call(target.fd, &target.stream, "Ps",
        &request.base, &sandvirt__v1__ps_response__descriptor, sv_target_short_ms(&target), error);
    if (!response)
        return -1;
    text = json ? as_json(response) : as_table(response);
    sv_message_free(response);
    return sv_cli_print(text, error) ? 0 : -1;
}

const SvVerb sv_verb_ps = {"ps", "CONTAINER", "List the processes of a container", options,
    sizeof(Options), 1, G_MAXUINT, SV_VERB_FIRST_ONLY, cmd_ps};
