/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What of the host a container sees: classifies the sources of its mounts, binds them into the share,
 * and builds the guest's config.json. */
#include "core/disks.h"
#include "core/guestspec.h"
#include "core/mountpoints.h"
#include "core/sandbox-priv.h"

#include "base/fd.h"
#include "base/names.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The guest's tmpfs for an engine's /dev/shm, the same for all containers that name that source. */
static const char *shm_for(
    SvSandbox *sandbox, const char *source, const struct statvfs *fs, mode_t mode)
{
    GPtrArray *shms = sandbox->record->shms;
    g_autofree char *real = realpath(source, NULL);
    const char *name = real ? real : source;
    for (guint i = 0; i < shms->len; i++) {
        const SvShmRecord *shm = shms->pdata[i];
        if (g_str_equal(shm->source, name))
            return shm->name;
    }
    SvShmRecord *shm = g_new0(SvShmRecord, 1);
    shm->name = g_strdup_printf("shm-%u", shms->len);
    shm->source = g_strdup(name);
    shm->size = (guint64)fs->f_blocks * fs->f_frsize;
    shm->mode = mode & 07777;
    g_ptr_array_add(shms, shm);
    return shm->name;
}

/* Looks at the source without opening it (a fifo would block, a device would act). */
static gboolean classify(SvContainer *container, guint i, SvSourceInfo *info, GError **error)
{
    const SvSpecMount *mount = container->spec->mounts->pdata[i];
    struct stat st;
    struct statfs fs;
    struct statvfs vfs;
    g_auto(SvFd) fd = open(mount->source ? mount->source : "", O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "mounts[%u]: source \"%s\" of \"%s\"", i,
            mount->source ? mount->source : "", mount->destination);
        return FALSE;
    }
    info->is_dir = S_ISDIR(st.st_mode);
    if (info->is_dir && fs.f_type == TMPFS_MAGIC && g_str_equal(mount->destination, "/dev/shm") &&
        fstatvfs(fd, &vfs) == 0) {
        info->kind = SV_SOURCE_SHM;
        info->shm_name = g_strdup(shm_for(container->sandbox, mount->source, &vfs, st.st_mode));
    } else if (S_ISCHR(st.st_mode) || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
        fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC) {
        info->kind = SV_SOURCE_GUEST;
        info->guest_path = g_strdup(mount->source);
    } else {
        info->kind = SV_SOURCE_BIND;
    }
    return TRUE;
}

static void sources_free(SvSourceInfo *sources, guint n)
{
    for (guint i = 0; sources && i < n; i++) {
        g_free(sources[i].shm_name);
        g_free(sources[i].guest_path);
    }
    g_free(sources);
}

static SvSourceInfo *classify_all(SvContainer *container, GError **error)
{
    guint n = container->spec->mounts->len;
    SvSourceInfo *sources = g_new0(SvSourceInfo, n + 1);
    for (guint i = 0; i < n; i++) {
        const SvDiskRecord *disk = sv_disks_of_mount(container, i);
        if (disk) {
            sources[i].kind = SV_SOURCE_BLOCK;
            sources[i].is_dir = disk->use == SV_DISK_VOLUME;
            sources[i].guest_path = sources[i].is_dir ? sv_disk_guest_path(container, disk)
                                                      : g_strdup(disk->guest_node);
        } else if (sv_spec_mount_is_bind(container->spec->mounts->pdata[i]) &&
            !classify(container, i, &sources[i], error)) {
            sources_free(sources, n);
            return NULL;
        }
    }
    return sources;
}

/* ---- name spaces named by a path: /proc/SHIM/ns/pid means that container's in the guest */

static gboolean names_shim(const char *path, const char *type, const SvContainer *other)
{
    struct stat wanted, st;
    g_autofree char *own = g_strdup_printf("/proc/%d/ns/%s", (int)other->init->shim_pid, type);
    if (other->init->shim_pid <= 1)
        return FALSE;
    /* a shim has a pid namespace of its own; the others are told by the path alone */
    if (!g_str_equal(type, "pid"))
        return g_str_equal(path, own);
    return stat(path, &wanted) == 0 && stat(own, &st) == 0 && st.st_ino == wanted.st_ino;
}

/* That it is one of that type; else a container would go on in another than it was told. */
static gboolean check_namespace(const char *type, const char *path, GError **error)
{
    static const struct {
        const char *name;
        int flag;
    } types[] = {{"pid", CLONE_NEWPID}, {"mount", CLONE_NEWNS}, {"ipc", CLONE_NEWIPC},
        {"uts", CLONE_NEWUTS}, {"user", CLONE_NEWUSER}, {"cgroup", CLONE_NEWCGROUP}};
    g_auto(SvFd) fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        sv_error_set_errno(
            error, SV_CORE_ERROR, errno, "linux.namespaces: %s namespace \"%s\"", type, path);
        return FALSE;
    }
    int found = ioctl(fd, NS_GET_NSTYPE);
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        if (!g_str_equal(types[i].name, type) || found == types[i].flag)
            continue;
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
            "linux.namespaces: \"%s\" is no %s namespace", path, type);
        return FALSE;
    }
    return TRUE;
}

static const char *join_namespace(
    const char *type, const char *path, gpointer user_data, GError **error)
{
    SvContainer *container = user_data;
    GHashTableIter iter;
    gpointer value;
    if (!check_namespace(type, path, error))
        return NULL;
    g_hash_table_iter_init(&iter, container->sandbox->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (names_shim(path, type, value) && sv_container_guest_ns(value, type))
            return sv_container_guest_ns(value, type);
    if (!g_str_equal(type, "pid"))
        return NULL; /* the machine's own is the pod's */
    g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
        "linux.namespaces: pid namespace \"%s\" belongs to no container of this sandbox", path);
    return NULL;
}

static SvGuestSpec *build(SvContainer *container, GError **error)
{
    SvSourceInfo *sources = classify_all(container, error);
    if (!sources)
        return NULL;
    const SvDiskRecord *disk = sv_disks_rootfs(container);
    g_autofree char *root = disk
        ? sv_disk_guest_path(container, disk)
        : g_strdup_printf("/run/sandvirt/share/c/%u/rootfs", container->record->index);
    g_autoptr(GHashTable) numbers = sv_disks_numbers(container);
    SvGuestSpecParams params = {
        .container_id = container->record->id,
        .index = container->record->index,
        .root_path = root,
        .sources = sources,
        .cpus = container->sandbox->record->vcpus,
        .join_namespace = join_namespace,
        .user_data = container,
        .guest_devices = numbers,
    };
    SvGuestSpec *guest = sv_guest_spec_build(container->spec, &params, error);
    sources_free(sources, container->spec->mounts->len);
    return guest;
}

/* What the guest's runtime could not make in a root that is read-only for it. */
gboolean sv_container_make_mount_points(SvContainer *container, GError **error)
{
    if (!container->spec->root_readonly)
        return TRUE;
    SvSourceInfo *sources = classify_all(container, error);
    gboolean made = sources && sv_mountpoints_make(container->spec, sources, error);
    sources_free(sources, container->spec->mounts->len);
    return made;
}

/* In the machine the folders would be empty. */
static gboolean check_seen(SvContainer *container, const GPtrArray *binds, GError **error)
{
    SvSandbox *sandbox = container->sandbox;
    guint index = container->record->index;
    pid_t pid = sv_process_pid(sandbox->share_pidfd);
    if (!sv_disks_rootfs(container) &&
        !sv_share_check_seen(sandbox->paths, pid, index, "rootfs", error))
        return FALSE;
    for (guint i = 0; i < binds->len; i++) {
        const SvBindPlan *plan = binds->pdata[i];
        if (!sv_share_check_seen(sandbox->paths, pid, index, plan->name, error))
            return FALSE;
    }
    return TRUE;
}

gboolean sv_container_bind_mounts(SvContainer *container, GError **error)
{
    SvSandbox *sandbox = container->sandbox;
    guint index = container->record->index;
    g_autoptr(SvGuestSpec) guest = build(container, error);
    if (!guest)
        return FALSE;
    for (guint i = 0; i < guest->warnings->len; i++)
        g_warning("container %s: %s", container->record->id, (char *)guest->warnings->pdata[i]);
    if (!sv_disks_rootfs(container) &&
        (!sv_container_make_mount_points(container, error) ||
            !sv_share_bind(sandbox->paths, index, "rootfs", container->spec->root_path, TRUE,
                container->spec->root_readonly, error)))
        return FALSE;
    for (guint i = 0; i < guest->binds->len; i++) {
        const SvBindPlan *plan = guest->binds->pdata[i];
        if (!sv_share_bind_volume(sandbox->paths, index, plan->name, plan->source, plan->recursive,
                plan->read_only, error))
            return FALSE;
    }
    /* shared memory may have been added */
    return check_seen(container, guest->binds, error) && sv_sandbox_save(sandbox, error);
}

void sv_container_step_unshare(SvSequence *seq, gpointer user_data)
{
    SvContainer *container = user_data;
    GError *error = NULL;
    if (sv_share_release(container->sandbox->paths, container->record->index, TRUE, NULL, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

JsonNode *sv_container_guest_config(SvContainer *container, GPtrArray **net_sysctls, GError **error)
{
    g_autoptr(SvGuestSpec) guest = build(container, error);
    if (!guest)
        return NULL;
    *net_sysctls = g_ptr_array_ref(guest->net_sysctls);
    return json_node_ref(guest->config);
}
