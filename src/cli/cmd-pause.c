/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/target.h"

static int cmd_pause(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    return sv_target_simple(cli, args[0], "pause", "Pause", error) ? 0 : -1;
}

static int cmd_resume(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    return sv_target_simple(cli, args[0], "resume", "ResumeContainer", error) ? 0 : -1;
}

const SvVerb sv_verb_pause = {
    "pause", "CONTAINER", "Freeze all processes of a container", NULL, 0, 1, 1, 0, cmd_pause};
const SvVerb sv_verb_resume = {
    "resume", "CONTAINER", "Let a paused container go on", NULL, 0, 1, 1, 0, cmd_resume};
