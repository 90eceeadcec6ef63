/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/monitor-mode.h"
#include "base/command.h"
#include "cli/siblings.h"

int sv_monitor_mode(SvCli *cli, const char *const *args, GError **error)
{
    g_autofree char *path = sv_sibling("monitor", error);
    pid_t pid;
    if (!path || !sv_cli_config(cli, error))
        return -1;
    g_autoptr(SvCommand) cmd = sv_command_new(path);
    sv_command_add_args(cmd, "--root", cli->root, NULL);
    if (cli->config_file)
        sv_command_add_args(cmd, "--config", cli->config_file, NULL);
    for (; *args; args++)
        sv_command_add_arg(cmd, *args);
    for (int fd = 0; fd <= 2; fd++)
        sv_command_map_fd(cmd, fd, fd);
    if (!sv_command_spawn(cmd, &pid, NULL, error))
        return -1;
    return sv_command_wait(pid);
}
