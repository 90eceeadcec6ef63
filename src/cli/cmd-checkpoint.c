/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Verbs that engines know of and probe. Their options are taken as they come. */
#include "cli/cli.h"

static int not_supported(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    g_set_error(error, SV_CLI_ERROR, SV_ERR_UNSUPPORTED,
        "checkpoint and restore are not supported: the container's processes live in a machine");
    return -1;
}

const SvVerb sv_verb_checkpoint = {"checkpoint", "CONTAINER", "Not supported", NULL, 0, 0,
    G_MAXUINT, SV_VERB_ANYBODY | SV_VERB_RAW, not_supported};
const SvVerb sv_verb_restore = {"restore", "CONTAINER", "Not supported", NULL, 0, 0, G_MAXUINT,
    SV_VERB_ANYBODY | SV_VERB_RAW, not_supported};
