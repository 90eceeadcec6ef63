/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers from the record and a look at the recorded process: never asks the monitor, never hangs. */
#include "cli/target.h"

static int cmd_state(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    g_autoptr(SvRecord) record = sv_target_record(cli, args[0], error);
    g_autofree char *text = NULL;
    g_autofree char *line = NULL;

    if (!record)
        return -1;
    text = sv_record_oci_state(record, NULL, 0);
    line = g_str_has_suffix(text, "\n") ? g_strdup(text) : g_strconcat(text, "\n", NULL);
    return sv_cli_print(line, error) ? 0 : -1;
}

const SvVerb sv_verb_state = {
    "state", "CONTAINER", "Print the state of a container", NULL, 0, 1, 1, 0, cmd_state};
