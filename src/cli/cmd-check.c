/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/cli.h"
#include "cli/monitor-mode.h"

typedef struct {
    gboolean json, quick;
} Options;
static const SvOption options[] = {
    {"json", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, json), NULL, "print JSON"},
    {"quick", 'q', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, quick), NULL,
        "start no machine to see whether it comes up"},
    {NULL},
};

static int cmd_check(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    const char *mode[4] = {"--check"};
    guint n = 1;
    if (opts->json)
        mode[n++] = "--json";
    if (opts->quick)
        mode[n++] = "--quick";
    return sv_monitor_mode(cli, mode, error);
}

const SvVerb sv_verb_check = {"check", "", "Tell whether this host is fit, and what to do if not",
    options, sizeof(Options), 0, 0, 0, cmd_check};
