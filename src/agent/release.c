/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/release.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/thread.h"
#include "rpc/sandvirt.pb-c.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 10000

typedef struct {
    SvReleaseDone done;
    gpointer user_data;
} Waiter;

struct SvRelease {
    SvContainer *container;
    GArray *waiters; /* of Waiter */
    gint64 deadline_us;
    gboolean waiting; /* for cgroup.events */
    gboolean busy;
};

/* What the thread gets: copies. */
typedef struct {
    SvRelease *release;
    char *id;
    char *dir;
    char *cgroup;
    GPtrArray *mounts;
    gboolean shared;
    gboolean busy;
} Cleanup;

static void warn_and_clear(GError **error)
{
    if (*error)
        g_warning("ignoring: %s", (*error)->message);
    g_clear_error(error);
}

static void unmount(Cleanup *cleanup, const char *target)
{
    int fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (umount2(target, UMOUNT_NOFOLLOW) == 0 || errno == EINVAL || errno == ENOENT) {
        sv_fd_close(fd);
        return;
    }
    /* Our own descriptor keeps it busy: only now, for the data's sake. */
    if (fd >= 0)
        syncfs(fd);
    sv_fd_close(fd);
    if (umount2(target, UMOUNT_NOFOLLOW) == 0)
        return;
    g_warning("%s is busy: %s", target, g_strerror(errno));
    umount2(target, UMOUNT_NOFOLLOW | MNT_DETACH);
    cleanup->busy = TRUE;
}

/* The host can unmount a folder of the share once the guest remembers nothing of it. */
static void let_share_go(void)
{
    g_autoptr(GError) error = NULL;
    struct statfs info;
    int fd = open(SV_AGENT_SHARE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        syncfs(fd);
    sv_fd_close(fd);
    sv_cgroup_write("/proc/sys/vm", "drop_caches", "2", &error);
    warn_and_clear(&error);
    if (statfs(SV_AGENT_SHARE, &info) < 0)
        g_debug("share: %s", g_strerror(errno));
}

static void cleanup_work(gpointer data)
{
    Cleanup *cleanup = data;
    g_autofree char *crun_dir = g_build_filename(SV_AGENT_CRUN_ROOT, cleanup->id, NULL);
    GError *error = NULL;

    for (guint i = cleanup->mounts->len; i > 0; i--)
        unmount(cleanup, g_ptr_array_index(cleanup->mounts, i - 1));
    /* While the cgroup is there: what the kernel remembers is kept for each cgroup, and what it moves from a
     * removed one to its parent passes by a drop of the caches that comes at that moment. */
    if (cleanup->shared)
        let_share_go();
    if (!sv_cgroup_remove(cleanup->cgroup, &error)) {
        cleanup->busy = TRUE;
        warn_and_clear(&error);
    }
    if (!sv_file_remove_tree(crun_dir, &error))
        warn_and_clear(&error);
    if (!sv_file_remove_tree(cleanup->dir, &error))
        warn_and_clear(&error);
}

/* Exits the host has acknowledged are over; the others stay until it does. */
static void forget_processes(SvAgent *agent, const char *id)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, agent->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        SvProcess *process = value;

        if (process->exit_acked && g_str_equal(process->container_id, id))
            g_hash_table_iter_remove(&iter);
    }
}

static void cleanup_done(gpointer data)
{
    Cleanup *cleanup = data;
    SvRelease *release = cleanup->release;
    SvAgent *agent = release->container->agent;
    g_autoptr(GArray) waiters = release->waiters;
    gboolean busy = release->busy || cleanup->busy;

    forget_processes(agent, cleanup->id);
    sv_container_drop(release->container);
    g_debug("container %s is gone%s", cleanup->id, busy ? ", busy" : "");
    g_free(release);
    g_free(cleanup->id);
    g_free(cleanup->dir);
    g_free(cleanup->cgroup);
    g_ptr_array_unref(cleanup->mounts);
    g_free(cleanup);
    for (guint i = 0; i < waiters->len; i++) {
        Waiter *waiter = &g_array_index(waiters, Waiter, i);

        waiter->done(busy, waiter->user_data);
    }
}

static void clean_up(SvRelease *release)
{
    SvContainer *container = release->container;
    Cleanup *cleanup = g_new0(Cleanup, 1);
    GHashTableIter iter;
    gpointer value;

    sv_reaper_collect(container->agent->reaper);
    g_hash_table_iter_init(&iter, container->agent->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (g_str_equal(((SvProcess *)value)->container_id, container->id))
            sv_process_discard(value);
    sv_cgroup_watch_free(container->oom_watch);
    container->oom_watch = NULL;
    cleanup->release = release;
    cleanup->id = g_strdup(container->id);
    cleanup->dir = g_strdup(container->dir);
    cleanup->cgroup = g_strdup(container->cgroup);
    cleanup->mounts = g_ptr_array_ref(container->mounts);
    cleanup->shared = container->share_dir != NULL;
    sv_thread_run(cleanup_work, cleanup_done, cleanup);
}

static void kill_all(SvRelease *release);

static void on_empty(gboolean reached, gpointer user_data)
{
    SvRelease *release = user_data;
    SvContainer *container = release->container;

    release->waiting = FALSE;
    if (!reached) {
        g_warning("processes of container %s do not end", container->id);
        release->busy = TRUE;
    } else if (container->creating || container->execs > 0) {
        return; /* sv_container_release_check() goes on */
    }
    clean_up(release);
}

static void kill_all(SvRelease *release)
{
    gint64 left_ms = (release->deadline_us - g_get_monotonic_time()) / 1000;

    sv_cgroup_kill(release->container->cgroup);
    release->waiting = TRUE;
    sv_cgroup_wait(release->container->cgroup, "populated", 0, (guint)CLAMP(left_ms, 10, 600000),
        on_empty, release);
}

void sv_container_release_check(SvContainer *container)
{
    SvRelease *release = container->release;

    if (release && !release->waiting && !container->creating && container->execs == 0)
        kill_all(release);
}

void sv_container_release(
    SvContainer *container, guint timeout_ms, SvReleaseDone done, gpointer user_data)
{
    SvRelease *release = container->release;
    Waiter waiter = {done, user_data};

    if (release) {
        g_array_append_val(release->waiters, waiter);
        return;
    }
    release = g_new0(SvRelease, 1);
    release->container = container;
    release->waiters = g_array_new(FALSE, FALSE, sizeof(Waiter));
    g_array_append_val(release->waiters, waiter);
    release->deadline_us =
        g_get_monotonic_time() + (timeout_ms ? timeout_ms : DEFAULT_TIMEOUT_MS) * (gint64)1000;
    container->release = release;
    container->removing = TRUE;
    kill_all(release);
}

/* ---- method Remove */

static void on_removed(gboolean busy, gpointer user_data)
{
    Sandvirt__V1__RemoveResponse response = SANDVIRT__V1__REMOVE_RESPONSE__INIT;

    response.share_busy = busy;
    sv_call_reply(user_data, &response.base);
}

void sv_container_remove(SvCall *call)
{
    const Sandvirt__V1__RemoveRequest *request = (Sandvirt__V1__RemoveRequest *)call->message;
    SvContainer *container = sv_container_lookup(call->agent, request->container_id);

    if (!container) {
        on_removed(FALSE, call);
        return;
    }
    if (container->created || container->release) {
        sv_container_release(container, request->timeout_ms, on_removed, call);
        return;
    }
    /* It is being created: that fails now, and its undoing answers. */
    container->removing = TRUE;
    g_ptr_array_add(container->removers, call);
    if (container->creating)
        sv_crun_kill(container->creating);
}

void sv_container_adopt_removers(SvContainer *container)
{
    for (guint i = 0; i < container->removers->len; i++)
        sv_container_release(container, 0, on_removed, g_ptr_array_index(container->removers, i));
    g_ptr_array_set_size(container->removers, 0);
}
