/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gc needs libvirt: the monitor's program does it. */
#include "base/command.h"
#include "cli/cli.h"
#include "cli/siblings.h"

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
    g_autofree char *path = sv_sibling("monitor", error);
    pid_t pid;
    if (!path || !sv_cli_config(cli, error))
        return -1;
    g_autoptr(SvCommand) cmd = sv_command_new(path);
    sv_command_add_args(cmd, "--gc", "--root", cli->root, NULL);
    if (cli->config_file)
        sv_command_add_args(cmd, "--config", cli->config_file, NULL);
    if (opts->dry_run)
        sv_command_add_arg(cmd, "--dry-run");
    for (int fd = 0; fd <= 2; fd++)
        sv_command_map_fd(cmd, fd, fd);
    if (!sv_command_spawn(cmd, &pid, NULL, error))
        return -1;
    return sv_command_wait(pid);
}

const SvVerb sv_verb_gc = {"gc", "", "Remove what a power cut or a fault has left", options,
    sizeof(Options), 0, 0, 0, cmd_gc};
