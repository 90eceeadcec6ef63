/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The processes of a container as the guest sees them. All text in it comes from the guest. */
#include "cli/ps-table.h"
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
    if (!sv_target_load(&target, cli, args[0], "ps", error))
        return -1;
    request.container_id = args[0];
    response = (Sandvirt__V1__PsResponse *)sv_target_ask(
        &target, cli, "Ps", &request.base, &sandvirt__v1__ps_response__descriptor, error);
    if (!response)
        return -1;
    text = json ? as_json(response) : sv_ps_table(response, args + 1, error);
    sv_message_free(response);
    return text && sv_cli_print(text, error) ? 0 : -1;
}

const SvVerb sv_verb_ps = {"ps", "CONTAINER [PS-ARGUMENT...]", "List the processes of a container",
    options, sizeof(Options), 1, G_MAXUINT, SV_VERB_FIRST_ONLY, cmd_ps};
