/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changes of cgroup files; the kernel reports them as modifications. */
#include "agent/cgroup.h"
#include "base/fd.h"
#include <errno.h>
#include <glib-unix.h>
#include <sys/inotify.h>
#include <unistd.h>

struct SvCgroupWatch {
    int fd;
    guint source;
    SvCgroupFunc func;
    gpointer user_data;
};

static gboolean on_change(gint fd, GIOCondition condition, gpointer user_data)
{
    SvCgroupWatch *watch = user_data;
    char waste[4096];

    while (read(fd, waste, sizeof(waste)) > 0)
        ;
    watch->func(watch->user_data); /* may free the watch */
    return G_SOURCE_CONTINUE;
}

SvCgroupWatch *sv_cgroup_watch(
    const char *dir, const char *file, SvCgroupFunc func, gpointer user_data, GError **error)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    SvCgroupWatch *watch;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY | IN_DELETE_SELF) < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "watch %s", path);
        sv_fd_close(fd);
        return NULL;
    }
    watch = g_new0(SvCgroupWatch, 1);
    watch->fd = fd;
    watch->func = func;
    watch->user_data = user_data;
    watch->source = g_unix_fd_add(fd, G_IO_IN, on_change, watch);
    return watch;
}

void sv_cgroup_watch_free(SvCgroupWatch *watch)
{
    if (!watch)
        return;
    g_source_remove(watch->source);
    sv_fd_close(watch->fd);
    g_free(watch);
}

typedef struct {
    char *dir;
    char *key;
    guint64 value;
    SvCgroupWatch *watch;
    guint timer;
    SvCgroupDone done;
    gpointer user_data;
} Wait;

static void wait_finish(Wait *wait, gboolean reached)
{
    SvCgroupDone done = wait->done;
    gpointer user_data = wait->user_data;

    sv_cgroup_watch_free(wait->watch);
    if (wait->timer)
        g_source_remove(wait->timer);
    g_free(wait->dir);
    g_free(wait->key);
    g_free(wait);
    done(reached, user_data);
}

static gboolean wait_reached(const Wait *wait)
{
    g_autofree char *text = sv_cgroup_read(wait->dir, "cgroup.events");

    return !text || sv_cgroup_value(text, wait->key) == wait->value;
}

static void on_events(gpointer user_data)
{
    Wait *wait = user_data;

    if (wait_reached(wait))
        wait_finish(wait, TRUE);
}

static gboolean on_timeout(gpointer user_data)
{
    Wait *wait = user_data;

    wait->timer = 0;
    wait_finish(wait, wait_reached(wait));
    return G_SOURCE_REMOVE;
}

void sv_cgroup_wait(const char *dir, const char *key, guint64 value, guint timeout_ms,
    SvCgroupDone done, gpointer user_data)
{
    Wait *wait = g_new0(Wait, 1);
    g_autoptr(GError) error = NULL;

    wait->dir = g_strdup(dir);
    wait->key = g_strdup(key);
    wait->value = value;
    wait->done = done;
    wait->user_data = user_data;
    wait->watch = sv_cgroup_watch(dir, "cgroup.events", on_events, wait, &error);
    if (!wait->watch || wait_reached(wait))
        wait_finish(wait, wait_reached(wait));
    else
        wait->timer = g_timeout_add(timeout_ms, on_timeout, wait);
}
