/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/target.h"

static int cmd_start(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    return sv_target_simple(cli, args[0], "start", "Start", error) ? 0 : -1;
}

const SvVerb sv_verb_start = {
    "start", "CONTAINER", "Run the command of a created container", NULL, 0, 1, 1, 0, cmd_start};
