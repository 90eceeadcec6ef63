/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/cli.h"
#include "cli/monitor-mode.h"

typedef struct {
    gboolean once, json;
} Options;
static const SvOption options[] = {
    {"once", '1', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, once), NULL, "print once and end"},
    {"json", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, json), NULL, "print JSON, a line each time"},
    {NULL},
};

static int cmd_top(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    const char *mode[4] = {"--top"};
    guint n = 1;
    if (opts->once)
        mode[n++] = "--once";
    if (opts->json)
        mode[n++] = "--json";
    return sv_monitor_mode(cli, mode, error);
}

const SvVerb sv_verb_top = {
    "top", "", "Show what the machines take, live", options, sizeof(Options), 0, 0, 0, cmd_top};

static int cmd_metrics(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const char *const mode[] = {"--metrics", NULL};
    return sv_monitor_mode(cli, mode, error);
}

const SvVerb sv_verb_metrics = {
    "metrics", "", "Print what Prometheus reads, of all machines", NULL, 0, 0, 0, 0, cmd_metrics};
