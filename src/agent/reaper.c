/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/reaper.h"
#include "agent/agent-error.h"
#include "base/error.h"
#include "base/fd.h"
#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    SvReaperFunc func;
    gpointer user_data;
} Watch;

typedef struct {
    int status;
    gint64 time_ns;
} Ended;

struct SvReaper {
    GHashTable *watches; /* pid -> Watch */
    GHashTable *ended; /* pid -> Ended, of unknown ones while held */
    guint holds;
    int fd;
    guint source;
};

SvReaper *sv_reaper_new(void)
{
    SvReaper *reaper = g_new0(SvReaper, 1);

    reaper->watches = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    reaper->ended = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    reaper->fd = -1;
    return reaper;
}

void sv_reaper_free(SvReaper *reaper)
{
    if (!reaper)
        return;
    if (reaper->source)
        g_source_remove(reaper->source);
    sv_fd_clear(&reaper->fd);
    g_hash_table_unref(reaper->watches);
    g_hash_table_unref(reaper->ended);
    g_free(reaper);
}

void sv_reaper_report(SvReaper *reaper, pid_t pid, int wait_status, gint64 time_ns)
{
    int status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    g_autofree Watch *watch = NULL;

    if (g_hash_table_steal_extended(
            reaper->watches, GINT_TO_POINTER(pid), NULL, (gpointer *)&watch)) {
        watch->func(pid, status, time_ns, watch->user_data);
    } else if (reaper->holds > 0) {
        Ended *ended = g_new(Ended, 1);

        ended->status = status;
        ended->time_ns = time_ns;
        g_hash_table_replace(reaper->ended, GINT_TO_POINTER(pid), ended);
    }
}

void sv_reaper_collect(SvReaper *reaper)
{
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid <= 0)
            return;
        sv_reaper_report(reaper, pid, status, g_get_real_time() * 1000);
    }
}

static gboolean on_signal(gint fd, GIOCondition condition, gpointer user_data)
{
    struct signalfd_siginfo info[16];

    while (read(fd, info, sizeof(info)) == sizeof(info))
        ;
    sv_reaper_collect(user_data);
    return G_SOURCE_CONTINUE;
}

gboolean sv_reaper_attach(SvReaper *reaper, GError **error)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
        reaper->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (reaper->fd < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "signalfd");
        return FALSE;
    }
    reaper->source = g_unix_fd_add(reaper->fd, G_IO_IN, on_signal, reaper);
    return TRUE;
}

void sv_reaper_hold(SvReaper *reaper)
{
    reaper->holds++;
}

void sv_reaper_release(SvReaper *reaper)
{
    g_return_if_fail(reaper->holds > 0);
    if (--reaper->holds == 0)
        g_hash_table_remove_all(reaper->ended);
}

void sv_reaper_watch(SvReaper *reaper, pid_t pid, SvReaperFunc func, gpointer user_data)
{
    g_autofree Ended *ended = NULL;
    Watch *watch;

    if (g_hash_table_steal_extended(
            reaper->ended, GINT_TO_POINTER(pid), NULL, (gpointer *)&ended)) {
        func(pid, ended->status, ended->time_ns, user_data);
        return;
    }
    watch = g_new(Watch, 1);
    watch->func = func;
    watch->user_data = user_data;
    g_hash_table_replace(reaper->watches, GINT_TO_POINTER(pid), watch);
}

void sv_reaper_unwatch(SvReaper *reaper, pid_t pid)
{
    g_hash_table_remove(reaper->watches, GINT_TO_POINTER(pid));
}
