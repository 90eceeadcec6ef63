/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PID 1 reaps everything. A process that ends before crun has told its pid is remembered. */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

typedef struct SvReaper SvReaper;
/* @status: 0..255, or 128 + signal. @time_ns: CLOCK_REALTIME. */
typedef void (*SvReaperFunc)(pid_t pid, int status, gint64 time_ns, gpointer user_data);

SvReaper *sv_reaper_new(void) G_GNUC_WARN_UNUSED_RESULT;
void sv_reaper_free(SvReaper *reaper);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvReaper, sv_reaper_free)

/* Blocks SIGCHLD in the calling thread (call it before any thread is made) and reaps on the main
 * loop. */
gboolean sv_reaper_attach(SvReaper *reaper, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Reaps everything that has ended by now. */
void sv_reaper_collect(SvReaper *reaper);

/* Unknown processes that end between these two are remembered. They nest. */
void sv_reaper_hold(SvReaper *reaper);
void sv_reaper_release(SvReaper *reaper);

/* Calls @func once when @pid ends; at once (before returning) when it was remembered. */
void sv_reaper_watch(SvReaper *reaper, pid_t pid, SvReaperFunc func, gpointer user_data);
void sv_reaper_unwatch(SvReaper *reaper, pid_t pid);
/* What waitpid(2) reported; public for tests. */
void sv_reaper_report(SvReaper *reaper, pid_t pid, int wait_status, gint64 time_ns);

G_END_DECLS
