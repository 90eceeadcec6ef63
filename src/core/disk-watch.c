/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One device in several machines: only one monitor can keep it from the host. When that one lets go, the
 * claims change, and the next takes it. */
#include <config.h>

#include "core/disks.h"

#include "base/fd.h"
#include <errno.h>
#include <glib-unix.h>
#include <sys/inotify.h>
#include <unistd.h>

static gboolean needs_hold(const SvSandbox *sandbox, const SvDiskRecord *disk)
{
    return !disk->image &&
        !g_hash_table_contains(sandbox->disk_holds, sv_disk_record_device(disk)) &&
        (disk->exclusive || sv_block_is_writable(disk->major, disk->minor));
}

static gboolean any_needs_hold(SvSandbox *sandbox)
{
    g_autoptr(GPtrArray) disks = sv_disks_in_machine(sandbox);
    gboolean any = FALSE;

    for (guint i = 0; i < disks->len; i++)
        any |= needs_hold(sandbox, disks->pdata[i]);
    return any;
}

/* @claim: the disk whose claims have changed, NULL: all. */
static void try_hold(SvSandbox *sandbox, const char *claim)
{
    g_autoptr(GPtrArray) disks = sv_disks_in_machine(sandbox);

    for (guint i = 0; i < disks->len; i++) {
        const SvDiskRecord *disk = disks->pdata[i];
        g_autoptr(GError) error = NULL;

        if ((!claim || g_strcmp0(disk->claim_disk, claim) == 0) && needs_hold(sandbox, disk) &&
            !sv_disk_hold(sandbox, disk, &error))
            g_debug("sandbox %s: %s", sandbox->paths->sandbox, error->message);
    }
}

static gboolean on_claims_changed(gint fd, GIOCondition condition, gpointer user_data)
{
    _Alignas(struct inotify_event) char data[4096];
    SvSandbox *sandbox = user_data;
    ssize_t n;

    while ((n = read(fd, data, sizeof data)) > 0)
        for (const char *p = data; p < data + n;) {
            const struct inotify_event *event = (const struct inotify_event *)p;

            /* without a name: events were lost */
            try_hold(sandbox, event->len ? event->name : NULL);
            p += sizeof *event + event->len;
        }
    if (any_needs_hold(sandbox))
        return G_SOURCE_CONTINUE;
    sandbox->claims_source = 0;
    sv_fd_clear(&sandbox->claims_fd);
    return G_SOURCE_REMOVE;
}

void sv_disks_watch_claims(SvSandbox *sandbox)
{
    g_autofree char *dir = g_build_filename(sandbox->config->run_dir, ".disk", NULL);

    if (sandbox->claims_source || !any_needs_hold(sandbox))
        return;
    sandbox->claims_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (sandbox->claims_fd < 0 ||
        inotify_add_watch(sandbox->claims_fd, dir, IN_CLOSE_WRITE | IN_DELETE) < 0) {
        g_warning("ignoring: claims of disks: %s", g_strerror(errno));
        sv_fd_clear(&sandbox->claims_fd);
        return;
    }
    sandbox->claims_source = g_unix_fd_add(sandbox->claims_fd, G_IO_IN, on_claims_changed, sandbox);
    /* it may have been let go just before */
    try_hold(sandbox, NULL);
}

void sv_disks_unwatch_claims(SvSandbox *sandbox)
{
    if (!sandbox->claims_source)
        return;
    g_source_remove(sandbox->claims_source);
    sandbox->claims_source = 0;
    sv_fd_clear(&sandbox->claims_fd);
}
