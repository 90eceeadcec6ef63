/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/cli.h"
#include "cli/monitor-mode.h"

typedef struct {
    gboolean dry_run;
} Options;
static const SvOption options[] = {
    {"dry-run", 'n', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, dry_run), NULL,
        "only list what would be removed"},
    {NULL},
};

static int cmd_gc(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    const char *mode[] = {"--gc", opts->dry_run ? "--dry-run" : NULL, NULL};
    return sv_monitor_mode(cli, mode, error);
}

const SvVerb sv_verb_gc = {"gc", "", "Remove what a power cut or a fault has left", options,
    sizeof(Options), 0, 0, 0, cmd_gc};
