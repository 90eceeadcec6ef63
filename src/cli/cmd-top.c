/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/cli.h"
#include "cli/monitor-mode.h"

#define ALL_HELP "of every root: containerd and Docker have their own"

typedef struct {
    gboolean once, json, all;
} Options;
static const SvOption options[] = {
    {"all", 'a', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, all), NULL, ALL_HELP},
    {"once", '1', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, once), NULL, "print once and end"},
    {"json", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, json), NULL, "print JSON, a line each time"},
    {NULL},
};
static const SvOption metrics_options[] = {
    {"all", 'a', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, all), NULL, ALL_HELP},
    {NULL},
};

static int cmd_top(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    const char *mode[5] = {"--top"};
    guint n = 1;
    if (opts->all)
        mode[n++] = "--all";
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
    const Options *opts = values;
    const char *const mode[] = {"--metrics", opts->all ? "--all" : NULL, NULL};
    return sv_monitor_mode(cli, mode, error);
}

const SvVerb sv_verb_metrics = {"metrics", "", "Print what Prometheus reads, of all machines",
    metrics_options, sizeof(Options), 0, 0, 0, cmd_metrics};
