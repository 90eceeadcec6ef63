/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cgroup v2 of a container. @dir is an absolute path below /sys/fs/cgroup. */
#pragma once

#include "agent/agent.h"

G_BEGIN_DECLS

gboolean sv_cgroup_write(const char *dir, const char *file, const char *text, GError **error);
/* (transfer full), NULL when unreadable; capped. */
char *sv_cgroup_read(const char *dir, const char *file);
/* Value of "KEY N" lines; 0 when missing. */
guint64 sv_cgroup_value(const char *text, const char *key);

/* Lets children of @dir use every controller there is. */
void sv_cgroup_delegate(const char *dir);
/* (transfer full) GArray of pid_t, recursive. */
GArray *sv_cgroup_pids(const char *dir) G_GNUC_WARN_UNUSED_RESULT;
/* KILL to everything in it, atomically (cgroup.kill), also when it is frozen. */
void sv_cgroup_kill(const char *dir);
/* Any other signal to everything in it. */
void sv_cgroup_signal(const char *dir, int signo);
/* Removes it and what is below; an error when something still lives there. */
gboolean sv_cgroup_remove(const char *dir, GError **error);

/* Watches a file of the cgroup by inotify: @func is called at every change until freed. */
typedef struct SvCgroupWatch SvCgroupWatch;
typedef void (*SvCgroupFunc)(gpointer user_data);
SvCgroupWatch *sv_cgroup_watch(const char *dir, const char *file, SvCgroupFunc func,
    gpointer user_data, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_cgroup_watch_free(SvCgroupWatch *watch);

/* Waits until cgroup.events says "@key @value" (or the cgroup is gone), then calls @done once with
 * TRUE; at once when it already does; FALSE after @timeout_ms. */
typedef void (*SvCgroupDone)(gboolean reached, gpointer user_data);
void sv_cgroup_wait(const char *dir, const char *key, guint64 value, guint timeout_ms,
    SvCgroupDone done, gpointer user_data);

G_END_DECLS
