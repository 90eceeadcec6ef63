/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Disks: whatever fails or hangs at whatever step, the host's mount is back, nothing is plugged, claimed or
 * held. On a loop device. */
#include "flow-fixture.h"
#include "flow-monitor.h"

#include "base/fd.h"
#include "base/mount.h"
#include "core/disks.h"
#include "loop-device.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DISK_BYTES (16 << 20)

typedef struct {
    FlowFixture *flow;
    char *dir, *node, *rootfs;
    int fd;
    SvBlockInfo *info;
} Disk;

/* FALSE: no loop device; the test is skipped. */
static gboolean set_up(Disk *disk, const char *conf)
{
    g_autofree char *file = NULL;
    memset(disk, 0, sizeof *disk);
    disk->fd = -1;
    disk->dir = g_dir_make_tmp("sv-disk-XXXXXX", NULL);
    file = g_build_filename(disk->dir, "img", NULL);
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    g_assert_cmpint(truncate(file, DISK_BYTES), ==, 0);
    if (loop_device_format(file))
        disk->fd = loop_device_attach(file, &disk->node);
    g_assert_cmpint(unlink(file), ==, 0);
    g_assert_cmpint(rmdir(disk->dir), ==, 0);
    if (disk->fd < 0) {
        g_test_skip("no loop device");
        g_free(disk->dir);
        return FALSE;
    }
    disk->flow = flow_new(conf);
    disk->flow->agent->disk_bytes = DISK_BYTES;
    disk->info = sv_block_probe_path(disk->node, "test", NULL);
    g_assert_nonnull(disk->info);
    disk->rootfs = g_build_filename(disk->flow->top, "bundle-a", "rootfs", NULL);
    return TRUE;
}

static const char *fstype_at(const char *target)
{
    g_autoptr(GPtrArray) mounts = sv_mount_list(0, NULL);
    const char *found = NULL;
    for (guint i = 0; i < mounts->len; i++) {
        const SvMountInfo *mount = mounts->pdata[i];
        if (strcmp(mount->target, target) == 0)
            found = g_intern_string(mount->fstype);
    }
    return found;
}

static guint claims(const Disk *disk)
{
    g_autofree char *dir = g_build_filename(disk->flow->config->run_dir, ".disk", NULL);
    g_autoptr(GPtrArray) all = sv_block_claim_list(dir);
    return all->len;
}

static gboolean is_free(const Disk *disk)
{
    g_auto(SvFd) fd = sv_block_open_exclusive(disk->info, NULL);
    return fd >= 0;
}

/* Nothing of the disk is left; the host's mount, if it was there, is. */
static void assert_back(Disk *disk, gboolean mounted)
{
    FLOW_WAIT(claims(disk) == 0);
    g_assert_cmpstr(fstype_at(disk->rootfs), ==, mounted ? "ext4" : NULL);
    if (mounted)
        g_assert_cmpint(umount(disk->rootfs), ==, 0);
    g_assert_true(is_free(disk));
    if (disk->flow->hv && sv_fake_is_running(disk->flow->hv))
        g_assert_cmpuint(sv_fake_devices(disk->flow->hv)->len, ==, 0);
}

static void tear_down(Disk *disk)
{
    flow_assert_clean(disk->flow);
    flow_free(disk->flow);
    sv_block_info_free(disk->info);
    sv_fd_close(disk->fd);
    g_free(disk->dir);
    g_free(disk->node);
    g_free(disk->rootfs);
}

/* The device in linux.devices, (transfer full). */
static char *device_member_for(const Disk *disk, const char *access)
{
    return g_strdup_printf(
        "\"linux\":{\"devices\":[{\"path\":\"/dev/"
        "data\",\"type\":\"b\",\"major\":%u,\"minor\":%u}],"
        "\"resources\":{\"devices\":[{\"allow\":true,\"type\":\"b\",\"major\":%u,\"minor\":%u,"
        "\"access\":\"%s\"}]}}",
        disk->info->major, disk->info->minor, disk->info->major, disk->info->minor, access);
}

static char *device_member(const Disk *disk)
{
    return device_member_for(disk, "rwm");
}

static void mount_rootfs(Disk *disk)
{
    g_assert_cmpint(g_mkdir_with_parents(disk->rootfs, 0755), ==, 0);
    g_assert_cmpint(mount(disk->node, disk->rootfs, "ext4", 0, NULL), ==, 0);
}

/* Container "a" with the disk as its rootfs or as a device. */
static FlowContainer *begin(Disk *disk, gboolean rootfs)
{
    g_autofree char *more = rootfs ? NULL : device_member(disk);
    if (rootfs)
        mount_rootfs(disk);
    FlowContainer *container = flow_register(disk->flow, "a", more);
    flow_create_begin(container);
    flow_attach(container);
    return container;
}

static FlowContainer *run(Disk *disk, gboolean rootfs)
{
    FlowContainer *container = begin(disk, rootfs);
    flow_assert_ok(&container->created);
    g_assert_cmpuint(sv_fake_devices(disk->flow->hv)->len, ==, 1);
    g_assert_cmpuint(claims(disk), ==, 1);
    g_assert_false(is_free(disk));
    flow_start(container);
    return container;
}

/* ---- all well */

static void test_life(gconstpointer data)
{
    gboolean rootfs = GPOINTER_TO_INT(data);
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    FlowContainer *container = run(&disk, rootfs);
    const char *config = flow_guest(container)->config;
    const SvDevice *device = sv_fake_devices(disk.flow->hv)->pdata[0];
    g_assert_true(g_str_has_prefix(device->alias, "ua-sv-a-"));
    g_assert_cmpstr(device->u.block->source, ==, disk.node);
    g_assert_cmpstr(device->u.block->target, ==, "vda");
    g_assert_false(device->u.block->read_only);
    if (rootfs) {
        g_assert_nonnull(strstr(config, "/run/sandvirt/c/a/rootfs"));
        g_assert_cmpstr(fstype_at(disk.rootfs), ==, "tmpfs");
    } else {
        g_assert_nonnull(strstr(config, "\"path\":\"/dev/data\""));
        g_assert_nonnull(strstr(config, "\"major\":254"));
    }
    FLOW_WAIT(sv_fake_metadata(disk.flow->hv)->containers->len == 1 &&
        ((SvMetadataContainer *)sv_fake_metadata(disk.flow->hv)->containers->pdata[0])
                ->disks->len == 1);
    flow_agent_exit(disk.flow->agent, container->handle, 3);
    flow_wait_stopped(container, 3, SV_CAUSE_EXITED);
    g_assert_cmpuint(claims(&disk), ==, 0);
    g_assert_cmpuint(sv_fake_count(disk.flow->hv, "detach"), ==, 1);
    if (rootfs)
        g_assert_cmpstr(fstype_at(disk.rootfs), ==, "tmpfs");
    g_assert_true(is_free(&disk));
    flow_delete(container, FALSE);
    assert_back(&disk, rootfs);
    tear_down(&disk);
}

/* A volume that lies in the rootfs on the host would not be there any more. */
static void test_needed(void)
{
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    mount_rootfs(&disk);
    g_autofree char *folder = g_build_filename(disk.rootfs, "lost+found", NULL);
    g_autofree char *more = g_strdup_printf(
        "\"mounts\":[{\"destination\":\"/v\",\"type\":\"bind\",\"source\":\"%s\"}]", folder);
    FlowContainer *container = flow_register(disk.flow, "a", more);
    flow_create_begin(container);
    flow_attach(container);
    flow_assert_ok(&container->created);
    g_assert_cmpuint(sv_fake_devices(disk.flow->hv)->len, ==, 0);
    g_assert_cmpstr(fstype_at(disk.rootfs), ==, "ext4");
    flow_delete(container, TRUE);
    assert_back(&disk, TRUE);
    tear_down(&disk);
}

/* The engine takes the tmpfs away before it deletes. */
static void test_unmounted(void)
{
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    FlowContainer *container = run(&disk, TRUE);
    flow_agent_exit(disk.flow->agent, container->handle, 0);
    flow_wait_stopped(container, 0, SV_CAUSE_EXITED);
    g_assert_cmpint(umount(disk.rootfs), ==, 0);
    flow_delete(container, FALSE);
    assert_back(&disk, FALSE);
    tear_down(&disk);
}

/* Somebody has just copied the host's mounts into a namespace of his own. */
static void test_copied(void)
{
    Disk disk;
    int ready[2];
    char byte;
    if (!set_up(&disk, NULL))
        return;
    mount_rootfs(&disk);
    g_assert_cmpint(pipe2(ready, O_CLOEXEC), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        gboolean ok = unshare(CLONE_NEWNS) == 0 &&
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && write(ready[1], "", 1) == 1;
        usleep(300 * 1000);
        _exit(ok ? 0 : 1);
    }
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    FlowContainer *container = flow_register(disk.flow, "a", NULL);
    flow_create_begin(container);
    flow_attach(container);
    flow_assert_ok(&container->created);
    g_assert_cmpuint(sv_fake_devices(disk.flow->hv)->len, ==, 1);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    sv_fd_close(ready[0]);
    sv_fd_close(ready[1]);
    flow_delete(container, TRUE);
    assert_back(&disk, TRUE);
    tear_down(&disk);
}

/* ---- a step fails */

static const struct {
    const char *name;
    const char *hv, *method; /* which call fails */
    SvErr code;
} failures[] = {
    {"start", "start", NULL, SV_ERR_FAILED},
    {"attach", "attach", NULL, SV_ERR_FAILED},
    {"wait", NULL, "WaitBlock", SV_ERR_TIMEOUT},
    {"guest", NULL, "Create", SV_ERR_IO},
};

static void test_failing(gconstpointer data)
{
    guint at = GPOINTER_TO_UINT(data) / 2;
    gboolean rootfs = GPOINTER_TO_UINT(data) % 2;
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    if (failures[at].method) {
        flow_agent_fail(disk.flow->agent, failures[at].method, failures[at].code);
    } else {
        disk.flow->fail_hv = failures[at].hv;
    }
    FlowContainer *container = begin(&disk, rootfs);
    FLOW_WAIT(container->created.done);
    g_assert_nonnull(container->created.error);
    if (failures[at].hv == NULL || strcmp(failures[at].hv, "start") != 0)
        g_assert_cmpuint(sv_fake_count(disk.flow->hv, "attach"), ==, 1);
    g_assert_cmpint(flow_state(disk.flow, "a"), ==, SV_STATE_GONE);
    assert_back(&disk, rootfs);
    tear_down(&disk);
}

/* The guest names another size: it is not that disk. */
static void test_other_size(void)
{
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    disk.flow->agent->disk_bytes = DISK_BYTES + 512;
    FlowContainer *container = begin(&disk, TRUE);
    flow_assert_failed(&container->created, SV_ERR_INVALID, disk.node);
    assert_back(&disk, TRUE);
    tear_down(&disk);
}

/* ---- somebody goes away while a step is out */

static void test_cut(gconstpointer data)
{
    static const struct {
        const char *hv, *method;
    } points[] = {{"attach", NULL}, {NULL, "WaitBlock"}, {NULL, "Create"}};
    guint point = GPOINTER_TO_UINT(data) / 3, deed = GPOINTER_TO_UINT(data) % 3;
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    if (points[point].hv)
        disk.flow->hold_hv = points[point].hv;
    else
        flow_agent_hold(disk.flow->agent, points[point].method);
    FlowContainer *container = begin(&disk, TRUE);
    if (points[point].hv)
        FLOW_WAIT(disk.flow->hv && sv_fake_count(disk.flow->hv, points[point].hv) == 1);
    else
        FLOW_WAIT(flow_agent_count(disk.flow->agent, points[point].method) == 1);
    if (deed == 0) {
        sv_container_abandon(disk.flow->sandbox, "a");
    } else if (deed == 1) {
        flow_proc_kill(container->shim->proc);
        FLOW_WAIT(container->shim->proc->ended);
    } else {
        sv_fake_emit(disk.flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_FAILED, NULL);
    }
    if (points[point].hv)
        sv_fake_release(disk.flow->hv, points[point].hv);
    flow_settle();
    if (points[point].method && deed != 2)
        flow_agent_release(disk.flow->agent, points[point].method);
    FLOW_WAIT(flow_state(disk.flow, "a") == SV_STATE_GONE);
    assert_back(&disk, TRUE);
    tear_down(&disk);
}

/* ---- no free port */

static void on_attach_full(FlowFixture *flow)
{
    sv_fake_fail_nth(flow->hv, 1, SV_ERR_LIMIT);
}

static void test_no_port(void)
{
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    FlowContainer *first = flow_run(disk.flow, "first");
    FlowContainer *container = begin(&disk, FALSE);
    FLOW_WAIT(claims(&disk) == 1);
    on_attach_full(disk.flow);
    flow_assert_ok(&container->created);
    const SvDevice *device = sv_fake_devices(disk.flow->hv)->pdata[0];
    g_assert_cmpstr(device->u.block->target, ==, "sda");
    g_assert_cmpint(device->u.block->bus, ==, SV_BUS_SCSI);
    g_assert_cmpuint(sv_fake_count(disk.flow->hv, "attach"), ==, 2);
    flow_delete(container, TRUE);
    assert_back(&disk, FALSE);
    flow_delete(first, TRUE);
    tear_down(&disk);
}

/* ---- two that only read it: one disk of the machine */

static FlowContainer *begin_reader(Disk *disk, const char *id, const char *access)
{
    g_autofree char *more = device_member_for(disk, access);
    FlowContainer *container = flow_register(disk->flow, id, more);
    flow_create_begin(container);
    flow_attach(container);
    return container;
}

static void test_shared(void)
{
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    FlowContainer *readers[2];
    for (guint i = 0; i < 2; i++) {
        readers[i] = begin_reader(&disk, i == 0 ? "one" : "two", "rm");
        flow_assert_ok(&readers[i]->created);
        flow_start(readers[i]);
    }
    g_assert_cmpuint(sv_fake_devices(disk.flow->hv)->len, ==, 1);
    g_assert_cmpuint(sv_fake_count(disk.flow->hv, "attach"), ==, 1);
    g_assert_cmpuint(claims(&disk), ==, 2);
    FlowContainer *writer = begin_reader(&disk, "writer", "rwm");
    flow_assert_failed(&writer->created, SV_ERR_BUSY, disk.node);
    g_assert_cmpuint(claims(&disk), ==, 2);

    flow_agent_exit(disk.flow->agent, readers[0]->handle, 0);
    flow_wait_stopped(readers[0], 0, SV_CAUSE_EXITED);
    flow_delete(readers[0], FALSE);
    g_assert_cmpuint(claims(&disk), ==, 1);
    g_assert_cmpuint(sv_fake_devices(disk.flow->hv)->len, ==, 1);
    g_assert_false(is_free(&disk));
    /* a third one, when the first has gone */
    FlowContainer *third = begin_reader(&disk, "three", "rm");
    flow_assert_ok(&third->created);
    g_assert_cmpuint(sv_fake_count(disk.flow->hv, "attach"), ==, 1);
    flow_delete(third, TRUE);
    g_assert_cmpuint(sv_fake_count(disk.flow->hv, "detach"), ==, 0);

    flow_agent_exit(disk.flow->agent, readers[1]->handle, 0);
    flow_wait_stopped(readers[1], 0, SV_CAUSE_EXITED);
    g_assert_cmpuint(sv_fake_count(disk.flow->hv, "detach"), ==, 1);
    g_assert_true(is_free(&disk));
    flow_delete(readers[1], FALSE);
    assert_back(&disk, FALSE);
    tear_down(&disk);
}

/* ---- the guest does not let go */

static void test_event_lost(void)
{
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    FlowContainer *container = run(&disk, TRUE);
    disk.flow->hv_drop = 1; /* the removed event */
    flow_agent_exit(disk.flow->agent, container->handle, 0);
    flow_wait_stopped(container, 0, SV_CAUSE_EXITED);
    g_assert_cmpuint(sv_fake_count(disk.flow->hv, "detach"), ==, 2);
    flow_delete(container, FALSE);
    assert_back(&disk, TRUE);
    tear_down(&disk);
}

static void test_held(gconstpointer data)
{
    gboolean ends = GPOINTER_TO_INT(data);
    Disk disk;
    if (!set_up(&disk, ends ? NULL : "unplug_ms = 200\n[storage]\nend_machine_on_busy = false"))
        return;
    FlowContainer *other = flow_run(disk.flow, "other");
    FlowContainer *container = run(&disk, TRUE);
    sv_fake_set_auto_events(disk.flow->hv, FALSE);
    flow_agent_exit(disk.flow->agent, container->handle, 0);
    FLOW_WAIT(sv_fake_count(disk.flow->hv, "detach") >= 2); /* asked again */
    if (ends) {
        FLOW_WAIT(sv_fake_count(disk.flow->hv, "destroy") == 1);
        sv_fake_emit(disk.flow->hv, SV_HV_EVENT_STOPPED, SV_HV_END_DESTROYED, NULL);
        flow_wait_stopped(container, 0, SV_CAUSE_EXITED);
        flow_wait_stopped(other, 137, SV_CAUSE_DISK_HELD);
        g_assert_cmpuint(claims(&disk), ==, 0);
        flow_delete(container, FALSE);
        assert_back(&disk, TRUE);
        flow_delete(other, FALSE);
        tear_down(&disk);
        return;
    }
    flow_wait_stopped(container, 0, SV_CAUSE_EXITED);
    g_assert_cmpuint(disk.flow->sandbox->record->held_disks->len, ==, 1);
    flow_delete(container, FALSE);
    /* neither mounted again nor given to another */
    g_assert_cmpstr(fstype_at(disk.rootfs), ==, "tmpfs");
    g_assert_cmpuint(claims(&disk), ==, 1);
    g_autofree char *more = device_member(&disk);
    FlowContainer *next = flow_register(disk.flow, "next", more);
    flow_create_begin(next);
    flow_assert_failed(&next->created, SV_ERR_BUSY, "container \"a\"");
    sv_fake_set_auto_events(disk.flow->hv, TRUE);
    flow_delete(other, TRUE);
    FLOW_WAIT(g_strcmp0(fstype_at(disk.rootfs), "ext4") == 0);
    assert_back(&disk, TRUE);
    tear_down(&disk);
}

/* ---- another monitor */

static void test_recovered(gconstpointer data)
{
    gboolean there = GPOINTER_TO_INT(data);
    Disk disk;
    g_auto(FlowAnswer) answer = {0};
    if (!set_up(&disk, NULL))
        return;
    mount_rootfs(&disk);
    flow_agent_listen(disk.flow->agent, disk.flow->paths->agent_socket);
    FlowMonitor *monitor = flow_monitor_new(disk.flow, FALSE, NULL);
    FlowContainer *other = flow_monitor_run(monitor, "other");
    flow_agent_hold(disk.flow->agent, "WaitBlock");
    FlowContainer *container = flow_monitor_register(monitor, "a");
    flow_monitor_create_begin(monitor, container, FALSE);
    flow_attach(container);
    FLOW_WAIT(flow_agent_count(disk.flow->agent, "WaitBlock") == 1);
    g_assert_cmpstr(fstype_at(disk.rootfs), ==, "tmpfs");
    flow_monitor_kill(monitor);
    flow_agent_release(disk.flow->agent, "WaitBlock");
    g_autoptr(SvRecord) record = flow_record(disk.flow, "a");
    g_assert_cmpuint(record->disks->len, ==, 1);
    const char *alias = ((SvDiskRecord *)record->disks->pdata[0])->alias;
    flow_recover_begin(disk.flow, TRUE, &answer);
    if (there)
        g_ptr_array_add(
            sv_fake_devices(disk.flow->hv), sv_device_new_block(alias, g_new0(SvBlock, 1)));
    flow_assert_ok(&answer);
    flow_attach(other);
    FLOW_WAIT(flow_state(disk.flow, "a") == SV_STATE_GONE);
    g_assert_cmpuint(sv_fake_count(disk.flow->hv, "detach"), ==, 1);
    assert_back(&disk, TRUE);
    flow_delete(other, TRUE);
    tear_down(&disk);
}

/* A running container keeps its disk through the change. */
static void test_kept(void)
{
    Disk disk;
    g_auto(FlowAnswer) answer = {0};
    if (!set_up(&disk, NULL))
        return;
    mount_rootfs(&disk);
    flow_agent_listen(disk.flow->agent, disk.flow->paths->agent_socket);
    FlowMonitor *monitor = flow_monitor_new(disk.flow, FALSE, NULL);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    flow_monitor_kill(monitor);
    g_autoptr(SvRecord) record = flow_record(disk.flow, "a");
    const char *alias = ((SvDiskRecord *)record->disks->pdata[0])->alias;
    flow_recover_begin(disk.flow, TRUE, &answer);
    g_ptr_array_add(sv_fake_devices(disk.flow->hv), sv_device_new_block(alias, g_new0(SvBlock, 1)));
    flow_assert_ok(&answer);
    flow_attach(container);
    g_assert_false(is_free(&disk));
    g_assert_cmpuint(claims(&disk), ==, 1);
    flow_agent_exit(disk.flow->agent, container->handle, 0);
    flow_wait_stopped(container, 0, SV_CAUSE_EXITED);
    flow_delete(container, FALSE);
    assert_back(&disk, TRUE);
    tear_down(&disk);
}

/* ---- devices of a running container */

/* Lists end with NULL. Without a @monitor: in this process. */
static void update_by(FlowMonitor *monitor, Disk *disk, const char *const *add,
    const char *const *remove, const char *resources, FlowAnswer *answer)
{
    Sandvirt__V1__UpdateContainerRequest request = SANDVIRT__V1__UPDATE_CONTAINER_REQUEST__INIT;
    request.container_id = (char *)"a";
    request.resources.data = (guint8 *)resources;
    request.resources.len = strlen(resources);
    request.device_add = (char **)add;
    request.n_device_add = g_strv_length((char **)add);
    request.device_remove = (char **)remove;
    request.n_device_remove = g_strv_length((char **)remove);
    if (monitor)
        flow_monitor_call(monitor, "Update", &request.base, answer);
    else
        sv_container_update(disk->flow->sandbox, &request, flow_answered, answer);
}

static void update(Disk *disk, const char *add, const char *remove, FlowAnswer *answer)
{
    const char *const adds[] = {add, NULL}, *const removes[] = {remove, NULL};
    update_by(NULL, disk, adds, removes, "{}", answer);
}

static void test_update(gconstpointer data)
{
    static const char *const fails[] = {NULL, "WaitBlock", "Update", "AddNode"};
    const char *method = fails[GPOINTER_TO_UINT(data)];
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    FlowContainer *container = flow_run(disk.flow, "a");
    g_auto(FlowAnswer) answer = {0};
    if (method) {
        flow_agent_fail(disk.flow->agent, method, SV_ERR_IO);
        update(&disk, disk.node, NULL, &answer);
        FLOW_WAIT(answer.done);
        g_assert_nonnull(answer.error);
        g_autoptr(SvRecord) record = flow_record(disk.flow, "a");
        g_assert_cmpuint(record->disks->len, ==, 0);
        flow_agent_fail(disk.flow->agent, method, SV_ERR_LAST);
        assert_back(&disk, FALSE);
        flow_answer_clear(&answer);
    }
    update(&disk, disk.node, NULL, &answer);
    flow_assert_ok(&answer);
    flow_answer_clear(&answer);
    g_assert_cmpuint(sv_fake_devices(disk.flow->hv)->len, ==, 1);
    update(&disk, disk.node, NULL, &answer);
    flow_assert_failed(&answer, SV_ERR_EXISTS, disk.node);
    flow_answer_clear(&answer);
    update(&disk, NULL, disk.node, &answer);
    flow_assert_ok(&answer);
    flow_answer_clear(&answer);
    assert_back(&disk, FALSE);
    update(&disk, NULL, disk.node, &answer);
    flow_assert_failed(&answer, SV_ERR_NOT_FOUND, disk.node);
    flow_answer_clear(&answer);
    /* the stop takes it too */
    update(&disk, disk.node, NULL, &answer);
    flow_assert_ok(&answer);
    flow_delete(container, TRUE);
    assert_back(&disk, FALSE);
    tear_down(&disk);
}

static SvContainer *container_of(const Disk *disk)
{
    return sv_sandbox_find(disk->flow->sandbox, "a", NULL);
}

#define LIMITS "{\"pids\":{\"limit\":5}}"

/* Of an update that is refused nothing stays, whichever part of it was refused. */
static void test_update_refused(void)
{
    Disk disk;
    if (!set_up(&disk, NULL))
        return;
    FlowContainer *container = flow_run(disk.flow, "a");
    FlowAgent *agent = disk.flow->agent;
    g_auto(FlowAnswer) answer = {0};
    const char *const node[] = {disk.node, NULL}, *const none[] = {NULL};
    const char *const second_bad[] = {disk.node, "/dev/null", NULL};
    /* the second of two devices */
    update_by(NULL, &disk, second_bad, none, LIMITS, &answer);
    flow_assert_failed(&answer, SV_ERR_INVALID, "/dev/null");
    flow_answer_clear(&answer);
    g_assert_cmpuint(container_of(&disk)->record->disks->len, ==, 0);
    assert_back(&disk, FALSE);
    /* the limits, after the rules of the device */
    flow_agent_fail(agent, "Update", SV_ERR_IO);
    flow_agent_spare(agent, "Update", 1);
    update_by(NULL, &disk, node, none, LIMITS, &answer);
    flow_assert_failed(&answer, SV_ERR_IO, "Update");
    flow_answer_clear(&answer);
    g_assert_cmpuint(container_of(&disk)->record->disks->len, ==, 0);
    assert_back(&disk, FALSE);
    flow_agent_fail(agent, "Update", SV_ERR_LAST);
    update_by(NULL, &disk, node, none, LIMITS, &answer);
    flow_assert_ok(&answer);
    flow_answer_clear(&answer);
    g_autoptr(SvRecord) record = flow_record(disk.flow, "a");
    g_assert_false(((SvDiskRecord *)record->disks->pdata[0])->adding);
    /* a device that was to go */
    guint nodes = flow_agent_count(agent, "AddNode");
    flow_agent_fail(agent, "Update", SV_ERR_IO);
    update_by(NULL, &disk, none, node, LIMITS, &answer);
    flow_assert_failed(&answer, SV_ERR_IO, "Update");
    flow_answer_clear(&answer);
    flow_agent_fail(agent, "Update", SV_ERR_LAST);
    g_assert_cmpuint(flow_agent_count(agent, "AddNode"), ==, nodes + 1);
    g_assert_cmpuint(sv_fake_devices(disk.flow->hv)->len, ==, 1);
    g_assert_false(is_free(&disk));
    /* one that the container has mounted, and limits that would do */
    guint updates = flow_agent_count(agent, "Update");
    flow_agent_fail(agent, "RemoveNode", SV_ERR_BUSY);
    update_by(NULL, &disk, none, node, LIMITS, &answer);
    flow_assert_failed(&answer, SV_ERR_BUSY, "RemoveNode");
    flow_answer_clear(&answer);
    flow_agent_fail(agent, "RemoveNode", SV_ERR_LAST);
    g_assert_cmpuint(flow_agent_count(agent, "Update"), ==, updates);
    update_by(NULL, &disk, none, node, LIMITS, &answer);
    flow_assert_ok(&answer);
    assert_back(&disk, FALSE);
    flow_delete(container, TRUE);
    tear_down(&disk);
}

/* The monitor dies while it adds one, or before the limits of the same update are taken: the next one takes
 * it away again, and a second try does not meet it. */
static void test_update_cut(gconstpointer data)
{
    gboolean limits = g_str_equal(data, "limits");
    const char *method = limits ? "Update" : data;
    const char *const none[] = {NULL};
    Disk disk;
    g_auto(FlowAnswer) answer = {0};
    if (!set_up(&disk, NULL))
        return;
    flow_agent_listen(disk.flow->agent, disk.flow->paths->agent_socket);
    FlowMonitor *monitor = flow_monitor_new(disk.flow, FALSE, NULL);
    FlowContainer *container = flow_monitor_run(monitor, "a");
    const char *const node[] = {disk.node, NULL};
    flow_agent_hold(disk.flow->agent, method);
    flow_agent_spare(disk.flow->agent, method, limits ? 1 : 0);
    update_by(monitor, &disk, node, none, limits ? LIMITS : "{}", NULL);
    FLOW_WAIT(flow_agent_count(disk.flow->agent, method) == (limits ? 2 : 1));
    flow_monitor_kill(monitor);
    flow_agent_release(disk.flow->agent, method);
    g_autoptr(SvRecord) record = flow_record(disk.flow, "a");
    g_assert_cmpuint(record->disks->len, ==, 1);
    const char *alias = ((SvDiskRecord *)record->disks->pdata[0])->alias;
    flow_recover_begin(disk.flow, TRUE, &answer);
    g_ptr_array_add(sv_fake_devices(disk.flow->hv), sv_device_new_block(alias, g_new0(SvBlock, 1)));
    flow_assert_ok(&answer);
    flow_answer_clear(&answer);
    flow_attach(container);
    assert_back(&disk, FALSE);
    FLOW_WAIT(!container_of(&disk)->changing_devices);
    g_assert_cmpuint(container_of(&disk)->record->disks->len, ==, 0);
    update(&disk, disk.node, NULL, &answer);
    flow_assert_ok(&answer);
    flow_delete(container, TRUE);
    assert_back(&disk, FALSE);
    tear_down(&disk);
}

int main(int argc, char **argv)
{
    if (flow_monitor_main(argc, argv))
        return 0;
    if (!flow_init(&argc, &argv)) {
        g_print("1..0 # SKIP needs root and a mount namespace of its own\n");
        return 0;
    }
    g_test_add_data_func("/flow/disk/life/rootfs", GINT_TO_POINTER(TRUE), test_life);
    g_test_add_data_func("/flow/disk/life/device", GINT_TO_POINTER(FALSE), test_life);
    g_test_add_func("/flow/disk/needed", test_needed);
    g_test_add_func("/flow/disk/unmounted", test_unmounted);
    g_test_add_func("/flow/disk/copied", test_copied);
    for (guint i = 0; i < 2 * G_N_ELEMENTS(failures); i++) {
        g_autofree char *path = g_strdup_printf(
            "/flow/disk/failing/%s/%s", failures[i / 2].name, i % 2 ? "rootfs" : "device");
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_failing);
    }
    g_test_add_func("/flow/disk/other-size", test_other_size);
    for (guint i = 0; i < 9; i++) {
        static const char *const points[] = {"attach", "wait", "guest"};
        static const char *const deeds[] = {"caller", "shim", "machine"};
        g_autofree char *path =
            g_strdup_printf("/flow/disk/cut/%s/%s", points[i / 3], deeds[i % 3]);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_cut);
    }
    g_test_add_func("/flow/disk/no-port", test_no_port);
    g_test_add_func("/flow/disk/shared", test_shared);
    g_test_add_func("/flow/disk/event-lost", test_event_lost);
    g_test_add_data_func("/flow/disk/held/ends", GINT_TO_POINTER(TRUE), test_held);
    g_test_add_data_func("/flow/disk/held/stays", GINT_TO_POINTER(FALSE), test_held);
    g_test_add_data_func("/flow/disk/recovered/there", GINT_TO_POINTER(TRUE), test_recovered);
    g_test_add_data_func("/flow/disk/recovered/never", GINT_TO_POINTER(FALSE), test_recovered);
    g_test_add_func("/flow/disk/kept", test_kept);
    for (guint i = 0; i < 4; i++) {
        static const char *const names[] = {"well", "wait", "access", "node"};
        g_autofree char *path = g_strdup_printf("/flow/disk/update/%s", names[i]);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_update);
    }
    g_test_add_func("/flow/disk/update/refused", test_update_refused);
    g_test_add_data_func("/flow/disk/update/cut/limits", "limits", test_update_cut);
    g_test_add_data_func("/flow/disk/update/cut/wait", "WaitBlock", test_update_cut);
    g_test_add_data_func("/flow/disk/update/cut/access", "Update", test_update_cut);
    g_test_add_data_func("/flow/disk/update/cut/node", "AddNode", test_update_cut);
    return g_test_run();
}
