/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between command.c (what to run) and command-spawn.c (clone and what happens in the child). */
#pragma once

#include "base/command.h"

G_BEGIN_DECLS

#define SV_COMMAND_OOM_ADJ "/proc/self/oom_score_adj"

typedef struct {
    int fd; /* the caller's */
    int child_fd; /* its number in the child */
} SvCommandMap;

struct SvCommand {
    char *path;
    GPtrArray *argv; /* [0] is set from the start; no NULL at the end */
    GPtrArray *env; /* "NAME=value"; no NULL at the end */
    char *cwd; /* nullable */
    GArray *maps; /* SvCommandMap, one per child_fd */
    gboolean new_session;
    int clone_flags;
    char *oom_adj; /* to be written; NULL: as ours */
    int netns_fd; /* not owned */
    SvCommandPreExec pre_exec;
    gpointer pre_exec_data;
};

/* @maps: instead of those of @cmd. @orphan: through a middle child; @pid and @pidfd are not set then. */
gboolean sv_command_spawn_with(const SvCommand *cmd, const GArray *maps, gboolean orphan,
    pid_t *pid, int *pidfd, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Replaces the mapping of @child_fd in @maps. */
void sv_command_maps_set(GArray *maps, int fd, int child_fd);
/* NULL when there is none. */
const SvCommandMap *sv_command_maps_find(const GArray *maps, int child_fd);

G_END_DECLS
