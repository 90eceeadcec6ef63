/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/command-private.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SvCommand *sv_command_new(const char *path)
{
    SvCommand *cmd = g_new0(SvCommand, 1);

    cmd->path = g_strdup(path);
    cmd->argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(cmd->argv, g_path_get_basename(path));
    cmd->env = g_ptr_array_new_with_free_func(g_free);
    cmd->maps = g_array_new(FALSE, FALSE, sizeof(SvCommandMap));
    cmd->netns_fd = -1;
    return cmd;
}

void sv_command_free(SvCommand *cmd)
{
    if (cmd == NULL)
        return;
    g_free(cmd->path);
    g_ptr_array_unref(cmd->argv);
    g_ptr_array_unref(cmd->env);
    g_free(cmd->cwd);
    g_free(cmd->oom_adj);
    g_array_unref(cmd->maps);
    g_free(cmd);
}

void sv_command_add_arg(SvCommand *cmd, const char *arg)
{
    g_return_if_fail(arg != NULL);
    g_ptr_array_add(cmd->argv, g_strdup(arg));
}

void sv_command_add_args(SvCommand *cmd, ...)
{
    const char *arg;
    va_list args;

    va_start(args, cmd);
    while ((arg = va_arg(args, const char *)) != NULL)
        sv_command_add_arg(cmd, arg);
    va_end(args);
}

void sv_command_set_argv0(SvCommand *cmd, const char *argv0)
{
    g_free(cmd->argv->pdata[0]);
    cmd->argv->pdata[0] = g_strdup(argv0);
}

void sv_command_set_env(SvCommand *cmd, const char *name, const char *value)
{
    char *text = g_strdup_printf("%s=%s", name, value);
    gsize len = strlen(name) + 1;

    for (guint i = 0; i < cmd->env->len; i++) {
        if (strncmp(cmd->env->pdata[i], text, len) == 0) {
            g_free(cmd->env->pdata[i]);
            cmd->env->pdata[i] = text;
            return;
        }
    }
    g_ptr_array_add(cmd->env, text);
}

void sv_command_set_environ(SvCommand *cmd, const char *const *envp)
{
    g_ptr_array_set_size(cmd->env, 0);
    for (; envp != NULL && *envp != NULL; envp++)
        g_ptr_array_add(cmd->env, g_strdup(*envp));
}

void sv_command_set_cwd(SvCommand *cmd, const char *path)
{
    g_free(cmd->cwd);
    cmd->cwd = g_strdup(path);
}

const SvCommandMap *sv_command_maps_find(const GArray *maps, int child_fd)
{
    for (guint i = 0; i < maps->len; i++) {
        const SvCommandMap *map = &g_array_index(maps, SvCommandMap, i);

        if (map->child_fd == child_fd)
            return map;
    }
    return NULL;
}

void sv_command_maps_set(GArray *maps, int fd, int child_fd)
{
    SvCommandMap map = {.fd = fd, .child_fd = child_fd};

    for (guint i = 0; i < maps->len; i++) {
        if (g_array_index(maps, SvCommandMap, i).child_fd == child_fd) {
            g_array_index(maps, SvCommandMap, i) = map;
            return;
        }
    }
    g_array_append_val(maps, map);
}

void sv_command_map_fd(SvCommand *cmd, int fd, int child_fd)
{
    g_return_if_fail(child_fd >= 0);
    sv_command_maps_set(cmd->maps, fd, child_fd);
}

void sv_command_set_new_session(SvCommand *cmd, gboolean on)
{
    cmd->new_session = on;
}

void sv_command_set_oom_score_adj(SvCommand *cmd, int score)
{
    g_free(cmd->oom_adj);
    cmd->oom_adj = g_strdup_printf("%d", score);
}

void sv_command_set_oom_floor(SvCommand *cmd, int floor)
{
    g_autofree char *ours = NULL;

    g_clear_pointer(&cmd->oom_adj, g_free);
    if (g_file_get_contents(SV_COMMAND_OOM_ADJ, &ours, NULL, NULL) &&
        g_ascii_strtoll(ours, NULL, 10) < floor)
        sv_command_set_oom_score_adj(cmd, floor);
}

void sv_command_set_clone_flags(SvCommand *cmd, int flags)
{
    cmd->clone_flags = flags;
}

void sv_command_set_netns(SvCommand *cmd, int netns_fd)
{
    cmd->netns_fd = netns_fd;
}

void sv_command_set_pre_exec(SvCommand *cmd, SvCommandPreExec func, gpointer user_data)
{
    cmd->pre_exec = func;
    cmd->pre_exec_data = user_data;
}

gboolean sv_command_spawn(SvCommand *cmd, pid_t *pid, int *pidfd, GError **error)
{
    return sv_command_spawn_with(cmd, cmd->maps, FALSE, pid, pidfd, error);
}

gboolean sv_command_spawn_orphan(SvCommand *cmd, GError **error)
{
    return sv_command_spawn_with(cmd, cmd->maps, TRUE, NULL, NULL, error);
}

int sv_command_wait(pid_t pid)
{
    int status = 0;

    if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0)
        return -1;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return 128 + WTERMSIG(status);
}
