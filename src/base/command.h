/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The only place that forks or executes. argv only, clean environment, all descriptors closed but
 * those named. Safe when the caller has threads unless a pre-exec function is set (then the caller
 * must be single-threaded). */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

typedef struct SvCommand SvCommand;

/* @path: absolute path of the program (no PATH search); argv[0] is its basename. */
SvCommand *sv_command_new(const char *path) G_GNUC_WARN_UNUSED_RESULT;
void sv_command_free(SvCommand *cmd);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvCommand, sv_command_free)

void sv_command_add_arg(SvCommand *cmd, const char *arg);
void sv_command_add_args(SvCommand *cmd, ...) G_GNUC_NULL_TERMINATED;
void sv_command_set_argv0(SvCommand *cmd, const char *argv0);
/* Environment starts empty; these add one variable. */
void sv_command_set_env(SvCommand *cmd, const char *name, const char *value);
/* Replaces the whole environment by a copy of @envp. */
void sv_command_set_environ(SvCommand *cmd, const char *const *envp);
void sv_command_set_cwd(SvCommand *cmd, const char *path);
/* The child's descriptor @child_fd will be a duplicate of @fd (not consumed; -1: /dev/null).
 * 0, 1 and 2 default to /dev/null. Everything not mapped is closed. */
void sv_command_map_fd(SvCommand *cmd, int fd, int child_fd);
/* setsid() in the child. */
void sv_command_set_new_session(SvCommand *cmd, gboolean on);
/* The child's oom_score_adj. */
void sv_command_set_oom_score_adj(SvCommand *cmd, int score);
/* The child is no better protected against the kernel's lack of memory than @floor says (oom_score_adj): what we
 * have below that is not passed on. */
void sv_command_set_oom_floor(SvCommand *cmd, int floor);
/* CLONE_NEWPID, CLONE_NEWNS, CLONE_NEWNET or 0; passed to clone(2). */
void sv_command_set_clone_flags(SvCommand *cmd, int flags);
/* Network namespace the child enters with setns before anything else (not consumed; -1: none). */
void sv_command_set_netns(SvCommand *cmd, int netns_fd);
/* Runs in the child between clone and exec, must be async-signal-safe; returns 0 or an errno. It comes
 * after the namespaces and setsid, and before the descriptors are mapped (it sees the
 * caller's numbers), before the chdir and the exec. */
typedef int (*SvCommandPreExec)(gpointer user_data);
void sv_command_set_pre_exec(SvCommand *cmd, SvCommandPreExec func, gpointer user_data);

/* Starts the child with default signal dispositions and an empty signal mask. exec failures are
 * reported here (error pipe). Out: @pid, @pidfd (both nullable; caller closes; CLOEXEC). A path that
 * is not absolute is SV_ERR_INVALID.
 * The caller reaps (sv_command_wait or waitid on the pidfd). */
gboolean sv_command_spawn(SvCommand *cmd, pid_t *pid, int *pidfd, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* Spawns so that the program is NOT a descendant of the caller's children list: double fork with a
 * session of its own; the middle child is reaped here. No pid is returned. */
gboolean sv_command_spawn_orphan(SvCommand *cmd, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* Runs to the end: feeds @input (nullable, then /dev/null), captures stdout and stderr up to
 * @max_output bytes each. After @timeout_ms (<=0: none) the child is killed: SV_ERR_TIMEOUT.
 * Out (nullable; not captured then): @exit_status is 0..255 or 128+signal. Blocking. It ends with the
 * child, whatever descendants still hold its output. Of 0, 1, 2 those that sv_command_map_fd has set
 * are left as they are (and their text is ""). With sv_command_set_new_session the time-out kills the
 * whole process group. */
gboolean sv_command_run(SvCommand *cmd, const void *input, gsize input_len, int timeout_ms,
    gsize max_output, char **stdout_text, char **stderr_text, int *exit_status, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* Blocking wait for @pid; returns 0..255 or 128+signal, or -1 with errno. */
int sv_command_wait(pid_t pid);

G_END_DECLS
