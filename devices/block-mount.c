/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/block-mount.h"

#include "base/fd.h"
#include "base/mount.h"
#include "devices/block-probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ext2 and ext3 are driven by ext4 */
static const char *const fstypes[] = {"ext4", "xfs", "ext3", "ext2", NULL};

void sv_block_mount_free(SvBlockMount *mount)
{
    if (mount == NULL)
        return;
    g_free(mount->device);
    g_free(mount->target);
    g_free(mount->fstype);
    g_free(mount->options);
    g_free(mount->super_options);
    g_free(mount);
}

gboolean sv_block_fstype_is_known(const char *fstype)
{
    return fstype != NULL && g_strv_contains(fstypes, fstype);
}

/* ---- finding */

/* Why the file system of @found cannot go into the guest; NULL: it can. */
static char *find_obstacle(const GPtrArray *mounts, const SvMountInfo *found)
{
    if (!sv_block_fstype_is_known(found->fstype)) {
        g_autofree char *fstype = sv_printable(found->fstype, 40);
        return g_strdup_printf("the guest cannot mount %s", fstype);
    }
    for (guint i = 0; i < mounts->len; i++) {
        const SvMountInfo *mount = mounts->pdata[i];
        g_autofree char *target = sv_printable(mount->target, 200);
        if (mount->parent == found->id)
            return g_strdup_printf("\"%s\" is mounted in it", target);
        if (mount->id != found->id && mount->major == found->major && mount->minor == found->minor)
            return g_strdup_printf("its device is mounted at \"%s\" too", target);
    }
    return NULL;
}

static const SvMountInfo *find_id(const GPtrArray *mounts, guint64 id)
{
    for (guint i = 0; i < mounts->len; i++) {
        const SvMountInfo *mount = mounts->pdata[i];
        if ((guint64)mount->id == id)
            return mount;
    }
    return NULL;
}

SvBlockMount *sv_block_mount_find(const char *path, char **why, GError **error)
{
    struct statx sx;
    if (why != NULL)
        *why = NULL;
    /* no descriptor: it would keep the mount busy */
    if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MNT_ID, &sx) < 0) {
        sv_error_set_errno(error, SV_DEVICES_ERROR, errno, "\"%s\"", path);
        return NULL;
    }
    if (!S_ISDIR(sx.stx_mode) || (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0 ||
        (sx.stx_mask & STATX_MNT_ID) == 0 || sx.stx_dev_major == 0)
        return NULL;
    g_autoptr(GPtrArray) mounts = sv_mount_list(0, error);
    if (mounts == NULL)
        return NULL;
    const SvMountInfo *found = find_id(mounts, sx.stx_mnt_id);
    /* the bind mount of a folder that lies on a disk has another root */
    if (found == NULL || found->major == 0 || strcmp(found->root, "/") != 0)
        return NULL;
    g_autofree char *obstacle = find_obstacle(mounts, found);
    if (obstacle != NULL) {
        if (why != NULL)
            *why = g_steal_pointer(&obstacle);
        return NULL;
    }
    SvBlockMount *mount = g_new0(SvBlockMount, 1);
    mount->major = found->major;
    mount->minor = found->minor;
    mount->seq = sv_block_seq(found->major, found->minor);
    mount->device = g_strdup(found->source);
    mount->target = g_strdup(found->target);
    mount->fstype = g_strdup(found->fstype);
    mount->options = g_strdup(found->options);
    mount->super_options = g_strdup(found->super_options);
    return mount;
}

gboolean sv_block_mount_is_here(const char *path, GError **error)
{
    g_autofree char *there = g_strdup(path);
    struct statx sx;
    struct statfs fs;
    while (statx(AT_FDCWD, there, AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MNT_ID, &sx) < 0) {
        char *slash = errno == ENOENT ? strrchr(there, '/') : NULL;
        if (slash == NULL || slash == there)
            return TRUE;
        *slash = '\0';
    }
    /* ours has one page: others are not looked for among the mounts */
    if ((sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0 || sx.stx_dev_major != 0 ||
        statfs(there, &fs) < 0 || fs.f_type != TMPFS_MAGIC || fs.f_blocks != 1)
        return TRUE;
    g_autoptr(GPtrArray) mounts = sv_mount_list(0, NULL);
    const SvMountInfo *found = mounts != NULL ? find_id(mounts, sx.stx_mnt_id) : NULL;
    if (found == NULL || !g_str_has_prefix(found->source, SV_BLOCK_MARK))
        return TRUE;
    g_set_error(error, SV_DEVICES_ERROR, SV_ERR_BUSY,
        "the file system of \"%s\" is in a machine as disk \"%s\": its container has not been "
        "deleted",
        path, found->source + strlen(SV_BLOCK_MARK));
    return FALSE;
}

/* ---- what stands at its place */

typedef enum {
    PLACE_OTHER, /* something else, or the place itself is gone */
    PLACE_NOTHING, /* no mount */
    PLACE_MOUNT, /* the file system */
    PLACE_MARK, /* our tmpfs */
} Place;

static Place look_at(const SvBlockMount *found, const char *mark)
{
    struct statx sx;
    if (statx(AT_FDCWD, found->target, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
            STATX_TYPE | STATX_MNT_ID, &sx) < 0)
        return PLACE_OTHER;
    if ((sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
        return S_ISDIR(sx.stx_mode) ? PLACE_NOTHING : PLACE_OTHER;
    if (sx.stx_dev_major == found->major && sx.stx_dev_minor == found->minor)
        return PLACE_MOUNT;
    g_autoptr(GPtrArray) mounts = sv_mount_list(0, NULL);
    const SvMountInfo *top = mounts != NULL ? find_id(mounts, sx.stx_mnt_id) : NULL;
    if (top != NULL && strcmp(top->fstype, "tmpfs") == 0 && strcmp(top->source, mark) == 0)
        return PLACE_MARK;
    return PLACE_OTHER;
}

/* ---- taking away */

static gboolean flush(const SvBlockMount *found, GError **error)
{
    g_auto(SvFd) fd = open(found->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && syncfs(fd) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_DEVICES_ERROR, errno, "write back \"%s\"", found->target);
    return FALSE;
}

static gboolean put_mark(const SvBlockMount *found, const char *mark, GError **error)
{
    gulong flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount(mark, found->target, "tmpfs", flags, "size=4k,nr_inodes=2,mode=0555") == 0)
        return TRUE;
    sv_error_set_errno(
        error, SV_DEVICES_ERROR, errno, "put an empty folder over \"%s\"", found->target);
    return FALSE;
}

gboolean sv_block_mount_take(const SvBlockMount *found, const char *mark, GError **error)
{
    if (look_at(found, mark) != PLACE_MOUNT) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_INVALID,
            "\"%s\" is another mount than a moment ago", found->target);
        return FALSE;
    }
    /* unmounting writes back too, but with nobody to tell of an error */
    if (!flush(found, error))
        return FALSE;
    if (umount2(found->target, UMOUNT_NOFOLLOW) < 0) {
        sv_error_set_errno(error, SV_DEVICES_ERROR, errno, "unmount \"%s\"", found->target);
        return FALSE;
    }
    return put_mark(found, mark, error);
}

/* ---- putting back */

static gboolean mount_device(const SvBlockMount *found, const char *node, GError **error)
{
    g_autofree char *data = NULL;
    gulong flags = sv_block_mount_flags(found, &data);
    if (mount(node, found->target, found->fstype, flags, data) == 0)
        return TRUE;
    int errsv = errno;
    if (errsv == EINVAL && *data != '\0') {
        g_warning("ignoring: \"%s\" cannot be mounted with \"%s\" again", found->target, data);
        if (mount(node, found->target, found->fstype, flags, "") == 0)
            return TRUE;
        errsv = errno;
    }
    sv_error_set_errno(error, SV_DEVICES_ERROR, errsv, "mount block device \"%s\" at \"%s\" again",
        node, found->target);
    return FALSE;
}

gboolean sv_block_mount_restore(const SvBlockMount *found, const char *node, const char *mark,
    gboolean if_missing, GError **error)
{
    Place place = look_at(found, mark);
    if (place != PLACE_MARK && !(place == PLACE_NOTHING && if_missing))
        return TRUE;
    /* by the name it was mounted with, where that still means it */
    const char *source = found->device;
    if (!sv_block_is_node(source, found->major, found->minor))
        source = node;
    if (!sv_block_is_node(source, found->major, found->minor) ||
        sv_block_seq(found->major, found->minor) != found->seq) {
        g_set_error(error, SV_DEVICES_ERROR, SV_ERR_NOT_FOUND,
            "\"%s\" cannot be mounted again: block device %u:%u is gone", found->target,
            found->major, found->minor);
        return FALSE;
    }
    if (place == PLACE_MARK && umount2(found->target, UMOUNT_NOFOLLOW) < 0) {
        sv_error_set_errno(error, SV_DEVICES_ERROR, errno, "unmount \"%s\"", found->target);
        return FALSE;
    }
    if (mount_device(found, source, error))
        return TRUE;
    /* the engine still finds something to unmount */
    if (place == PLACE_MARK && !put_mark(found, mark, NULL))
        g_debug("ignoring: nothing stands at \"%s\" now", found->target);
    return FALSE;
}
