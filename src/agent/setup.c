/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/setup.h"
#include "agent/shell.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"
#include "base/names.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_TOLERANCE_NS (10 * 1000 * 1000)
#define SHARE_TIMEOUT_MS 10000

void sv_setup_clock(gint64 time_ns)
{
    struct timespec now;
    gint64 diff;

    if (time_ns <= 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    diff = now.tv_sec * G_GINT64_CONSTANT(1000000000) + now.tv_nsec - time_ns;
    if (diff > -CLOCK_TOLERANCE_NS && diff < CLOCK_TOLERANCE_NS)
        return;
    now.tv_sec = time_ns / 1000000000;
    now.tv_nsec = time_ns % 1000000000;
    if (clock_settime(CLOCK_REALTIME, &now) < 0)
        g_warning("ignoring: set the clock: %s", g_strerror(errno));
}

char *sv_setup_sysctl_path(const char *key)
{
    g_autofree char *path = g_strdup(key);

    if (!*key || *key == '.' || *key == '/' || strstr(key, ".."))
        return NULL;
    /* A name with a slash in it has its dots as they are (interface names). */
    if (!strchr(path, '/'))
        g_strdelimit(path, ".", '/');
    return g_build_filename("/proc/sys", path, NULL);
}

gboolean sv_setup_sysctls(Sandvirt__V1__Sysctl *const *sysctls, gsize n, GError **error)
{
    for (gsize i = 0; i < n; i++) {
        g_autofree char *path = sv_setup_sysctl_path(sysctls[i]->key);
        g_auto(SvFd) fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;

        if (!path) {
            g_set_error(error, SV_AGENT_ERROR, SV_ERR_INVALID, "bad sysctl %s", sysctls[i]->key);
            return FALSE;
        }
        if (fd < 0 || write(fd, sysctls[i]->value, strlen(sysctls[i]->value)) < 0) {
            int errsv = errno;
            g_autofree char *key = g_strdup(sysctls[i]->key);

            if (!strchr(key, '.'))
                g_strdelimit(key, "/", '.'); /* as it is mostly written */
            sv_error_set_errno(error, SV_AGENT_ERROR, errsv, "set sysctl %s", key);
            return FALSE;
        }
    }
    return TRUE;
}

void sv_setup_random(const guint8 *seed, gsize len)
{
    g_auto(SvFd) fd = open("/dev/random", O_WRONLY | O_CLOEXEC);
    g_autofree struct rand_pool_info *info = g_malloc0(sizeof(*info) + len);

    info->entropy_count = (int)len * 8;
    info->buf_size = (int)len;
    memcpy(info->buf, seed, len);
    if (fd < 0 || ioctl(fd, RNDADDENTROPY, info) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0)
        g_info("random numbers: %s", g_strerror(errno));
}

/* ---- shared memory */

static gboolean add_shared_memory(const Sandvirt__V1__SharedMemory *shm, GError **error)
{
    g_autofree char *path = NULL;
    g_autofree char *options = NULL;

    if (!sv_id_check(shm->name, "name of shared memory", error))
        return FALSE;
    path = g_build_filename(SV_AGENT_SHM, shm->name, NULL);
    if (sv_mount_is_mountpoint(path))
        return TRUE;
    if (!sv_file_mkdirs(path, 0755, error))
        return FALSE;
    options = g_strdup_printf(
        "mode=%o%s%s", shm->mode ? shm->mode : 01777, *shm->options ? "," : "", shm->options);
    if (shm->size_bytes) {
        char *sized = g_strdup_printf("size=%" G_GUINT64_FORMAT ",%s", shm->size_bytes, options);

        g_free(options);
        options = sized;
    }
    if (mount("shm", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "mount shared memory %s", shm->name);
        return FALSE;
    }
    return TRUE;
}

void sv_setup_shared_memory(SvCall *call)
{
    g_autoptr(GError) error = NULL;

    if (add_shared_memory((Sandvirt__V1__SharedMemory *)call->message, &error))
        sv_call_reply(call, NULL);
    else
        sv_call_fail(call, error);
}

/* ---- the share; its device may come after the request (hotplug) */

typedef struct {
    SvCall *call;
    char *tag;
    guint listener;
    guint timer;
} Share;

static void share_finish(Share *share, int errsv)
{
    g_autoptr(GError) error = NULL;

    if (share->listener)
        sv_uevents_unlisten(share->call->agent->uevents, share->listener);
    if (share->timer)
        g_source_remove(share->timer);
    if (errsv) {
        sv_error_set_errno(&error, SV_AGENT_ERROR, errsv, "mount the share %s", share->tag);
        sv_call_fail(share->call, error);
    } else {
        share->call->agent->set_up = TRUE;
        sv_shell_begin(share->call->agent);
        sv_call_reply(share->call, NULL);
    }
    g_free(share->tag);
    g_free(share);
}

/* TRUE when it is decided. */
static gboolean share_try(Share *share)
{
    if (mount(share->tag, SV_AGENT_SHARE, "virtiofs", MS_NOSUID | MS_NODEV, NULL) == 0)
        errno = 0;
    else if (errno == EINVAL || errno == ENODEV || errno == ENOENT)
        return FALSE; /* no such tag yet */
    share_finish(share, errno);
    return TRUE;
}

static void on_virtio(const SvUevent *event, gpointer user_data)
{
    share_try(user_data);
}

static gboolean on_share_timeout(gpointer user_data)
{
    Share *share = user_data;

    share->timer = 0;
    if (!share_try(share))
        share_finish(share, ENODEV);
    return G_SOURCE_REMOVE;
}

static void mount_share(SvCall *call, const char *tag)
{
    Share *share = g_new0(Share, 1);

    share->call = call;
    share->tag = g_strdup(tag);
    if (share_try(share))
        return;
    share->listener = sv_uevents_listen(call->agent->uevents, "virtio", on_virtio, share);
    share->timer = g_timeout_add(SHARE_TIMEOUT_MS, on_share_timeout, share);
}

static gboolean set_up(const Sandvirt__V1__SetupRequest *request, GError **error)
{
    if (*request->hostname && sethostname(request->hostname, strlen(request->hostname)) < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "set the host name");
        return FALSE;
    }
    if (*request->domainname &&
        setdomainname(request->domainname, strlen(request->domainname)) < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "set the domain name");
        return FALSE;
    }
    if (!sv_setup_sysctls(request->sysctls, request->n_sysctls, error))
        return FALSE;
    for (gsize i = 0; i < request->n_shared_memory; i++)
        if (!add_shared_memory(request->shared_memory[i], error))
            return FALSE;
    return sv_file_mkdirs(SV_AGENT_SHARE, 0755, error);
}

void sv_setup_sandbox(SvCall *call)
{
    const Sandvirt__V1__SetupRequest *request = (Sandvirt__V1__SetupRequest *)call->message;
    g_autoptr(GError) error = NULL;

    if (!set_up(request, &error)) {
        sv_call_fail(call, error);
        return;
    }
    if (request->shutdown_grace_ms)
        call->agent->grace_ms = request->shutdown_grace_ms;
    if (*request->share_tag && !sv_mount_is_mountpoint(SV_AGENT_SHARE)) {
        mount_share(call, request->share_tag);
        return;
    }
    call->agent->set_up = TRUE;
    sv_call_reply(call, NULL);
}
