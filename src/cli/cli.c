/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/cli.h"
#include "base/fd.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const SvConfig *sv_cli_config(SvCli *cli, GError **error)
{
    if (!cli->config)
        cli->config = sv_config_load(cli->config_path, error);
    return cli->config;
}

gboolean sv_cli_print(const char *text, GError **error)
{
    if (sv_fd_write_all(STDOUT_FILENO, text, strlen(text), error))
        return TRUE;
    g_prefix_error(error, "stdout: ");
    return FALSE;
}

gboolean sv_cli_write_pid(const char *path, int pid, GError **error)
{
    g_autofree char *text = g_strdup_printf("%d", pid);

    return !path || sv_file_write_atomic(path, text, strlen(text), 0644, FALSE, error);
}

gboolean sv_cli_read_file(const char *path, gsize max, char **text, gsize *len, GError **error)
{
    g_auto(SvFd) fd = -1;

    if (g_str_equal(path, "-"))
        return sv_fd_read_all(STDIN_FILENO, max, text, len, error);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "open %s", path);
        return FALSE;
    }
    if (sv_fd_read_all(fd, max, text, len, error))
        return TRUE;
    g_prefix_error(error, "%s: ", path);
    return FALSE;
}

gboolean sv_cli_check_pid_file(const char *path, GError **error)
{
    g_autofree char *folder = path ? g_path_get_dirname(path) : NULL;
    struct stat st;

    if (!path)
        return TRUE;
    if (stat(folder, &st) < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "pid file %s", path);
        return FALSE;
    }
    if (S_ISDIR(st.st_mode) && (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)))
        return TRUE;
    g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "pid file %s: not a place for a file", path);
    return FALSE;
}
