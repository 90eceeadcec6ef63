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

/* What has stopped has none: no error for runc. */
static Sandvirt__V1__PsResponse *ask(SvTarget *target, SvCli *cli, const char *id, GError **error)
{
    Sandvirt__V1__PsRequest request = SANDVIRT__V1__PS_REQUEST__INIT;

    if (sv_record_effective_state(target->record) == SV_STATE_STOPPED)
        return (Sandvirt__V1__PsResponse *)sv_message_unpack(
            &sandvirt__v1__ps_response__descriptor, NULL, 0, error);
    if (!sv_lifecycle_allows(sv_record_effective_state(target->record), "ps", error))
        return NULL;
    request.container_id = (char *)id;
    return (Sandvirt__V1__PsResponse *)sv_target_ask(
        target, cli, "Ps", &request.base, &sandvirt__v1__ps_response__descriptor, error);
}

static int cmd_ps(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_auto(SvTarget) target = SV_TARGET_INIT;
    Sandvirt__V1__PsResponse *response;
    g_autofree char *text = NULL;
    gboolean json = g_strcmp0(opts->format, "json") == 0;

    if (opts->format && !json && !g_str_equal(opts->format, "table")) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "unknown format \"%s\"", opts->format);
        return -1;
    }
    if (!sv_target_load(&target, cli, args[0], NULL, error))
        return -1;
    response = ask(&target, cli, args[0], error);
    if (!response)
        return -1;
    text = json ? as_json(response) : sv_ps_table(response, args + 1, error);
    sv_message_free(response);
    return text && sv_cli_print(text, error) ? 0 : -1;
}

const SvVerb sv_verb_ps = {"ps", "CONTAINER [PS-ARGUMENT...]", "List the processes of a container",
    options, sizeof(Options), 1, G_MAXUINT, SV_VERB_FIRST_ONLY, cmd_ps};
