/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Network namespaces that somebody has mounted, as engines and `ip netns` do. */
#include "monitor/gc-private.h"

#include "base/fd.h"
#include "base/mount.h"
#include "base/process.h"
#include "devices/network-sweep.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* -1: not what the mount says, or the host's own. */
static int open_namespace(const SvMountInfo *mount)
{
    g_auto(SvFd) fd = -1;
    guint64 number = 0;
    struct stat st;
    if (g_strcmp0(mount->fstype, "nsfs") != 0 ||
        sscanf(mount->root, "net:[%" G_GUINT64_FORMAT "]", &number) != 1 ||
        number == sv_process_ns_inode(0, "net"))
        return -1;
    fd = open(mount->target, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == number ? sv_fd_steal(&fd) : -1;
}

static void sweep(SvGc *gc, const SvMountInfo *mount, guint32 mark)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    g_auto(SvFd) fd = open_namespace(mount);
    GError *error = NULL;
    if (fd < 0)
        return;
    if (!sv_network_sweep(fd, mark, gc->dry_run, found, &error))
        g_prefix_error(&error, "%s: ", mount->target);
    for (guint i = 0; i < found->len; i++) {
        g_autofree char *text =
            g_strdup_printf("link %s of %s", (char *)found->pdata[i], mount->target);
        sv_gc_found(gc, "give back", text);
    }
    sv_gc_note(gc, error);
}

void sv_gc_networks(SvGc *gc, const SvPaths *any)
{
    guint32 mark = sv_paths_mark(any);
    GError *error = NULL;
    g_autoptr(GPtrArray) mounts = sv_mount_list(0, &error);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    sv_gc_note(gc, error);
    for (guint i = 0; mounts && i < mounts->len; i++) {
        const SvMountInfo *mount = mounts->pdata[i];
        if (g_hash_table_add(seen, mount->root))
            sweep(gc, mount, mark);
    }
}
