/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* devices/block-*: on loop devices where there are some (as root), else only what needs none. */
#include <config.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"
#include "devices/block-claim.h"
#include "devices/block-image.h"
#include "devices/block-mount.h"
#include "devices/block-probe.h"
#include "loop-device.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options */

static void test_flags(void)
{
    SvBlockMount found = {.options = (char *)"rw,nosuid,noatime",
        .super_options = (char *)"rw,lazytime,seclabel,errors=remount-ro,data=ordered"};
    g_autofree char *data = NULL;
    g_assert_cmpuint(sv_block_mount_flags(&found, &data), ==, MS_NOSUID | MS_NOATIME | MS_LAZYTIME);
    g_assert_cmpstr(data, ==, "errors=remount-ro,data=ordered");
    g_assert_false(sv_block_mount_is_read_only(&found));

    SvBlockMount strict = {.options = (char *)"ro", .super_options = (char *)"ro"};
    g_autofree char *none = NULL;
    g_assert_cmpuint(sv_block_mount_flags(&strict, &none), ==, MS_RDONLY | MS_STRICTATIME);
    g_assert_cmpstr(none, ==, "");
    g_assert_true(sv_block_mount_is_read_only(&strict));
    SvBlockMount super = {.options = (char *)"rw", .super_options = (char *)"ro"};
    g_assert_true(sv_block_mount_is_read_only(&super));
}

static void test_guest_options(void)
{
    static const struct {
        const char *fstype, *options, *super, *wanted;
        gboolean read_only;
    } cases[] = {
        {"ext4", "rw,nosuid,relatime", "rw,errors=remount-ro,unheard=of,usrquota",
            "nosuid,relatime,errors=remount-ro", FALSE},
        {"ext4", "rw", "rw", "strictatime", FALSE},
        {"ext4", "ro,relatime", "ro", "relatime,noload", TRUE},
        {"ext4", "ro,noatime", "ro,norecovery", "noatime,norecovery", TRUE},
        {"ext2", "ro,noatime", "ro", "noatime", TRUE},
        {"xfs", "rw,relatime", "rw,attr2,inode64,logbufs=8,logbsize=32k,noquota,nouuid",
            "relatime,inode64,logbufs=8,logbsize=32k,nouuid", FALSE},
        {"xfs", "ro,relatime", "ro", "relatime,nouuid,norecovery", TRUE},
        /* of a spec's mount: what is not there is not asked for */
        {"ext4", NULL, "noexec,ro,x-sandvirt.format=raw", "noexec,noload", TRUE},
        {"xfs", NULL, "", "nouuid", FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = sv_block_guest_options(
            cases[i].fstype, cases[i].options, cases[i].super, cases[i].read_only);
        g_assert_cmpstr(text, ==, cases[i].wanted);
    }
    g_assert_true(sv_block_fstype_is_known("xfs"));
    g_assert_false(sv_block_fstype_is_known("btrfs"));
    g_assert_false(sv_block_fstype_is_known(NULL));
}

/* ---- claims */

static gboolean is_alive(const SvBlockClaim *claim, gpointer user_data)
{
    return strcmp(claim->container, "dead") != 0;
}

static gboolean take(const char *dir, const char *device, const char *disk, const char *container,
    gboolean exclusive, GError **error)
{
    SvBlockClaim claim = {.device = (char *)device,
        .disk = (char *)disk,
        .exclusive = exclusive,
        .boot_id = (char *)"boot",
        .root = (char *)"/a b\t\\c",
        .sandbox = (char *)"pod",
        .container = (char *)container,
        .alias = (char *)container};
    return sv_block_claim_take(dir, &claim, is_alive, NULL, NULL, error);
}

static void drop(const char *dir, const char *disk, const char *container)
{
    SvBlockClaim claim = {
        .disk = (char *)disk, .root = (char *)"/a b\t\\c", .alias = (char *)container};
    sv_block_claim_drop(dir, &claim);
}

static void test_claims(void)
{
    g_autofree char *top = g_dir_make_tmp("sv-claim-XXXXXX", NULL);
    g_autofree char *dir = g_build_filename(top, ".disk", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(take(dir, "8:1", "8:0", "one", TRUE, &error));
    g_assert_no_error(error);
    /* again: the same one */
    g_assert_true(take(dir, "8:1", "8:0", "one", TRUE, &error));
    g_assert_false(take(dir, "8:1", "8:0", "two", TRUE, &error));
    g_assert_true(sv_error_is(error, SV_ERR_BUSY));
    g_assert_nonnull(strstr(error->message, "\"one\""));
    g_clear_error(&error);
    /* the disk that it is a part of; another part; another disk */
    g_assert_false(take(dir, "8:0", "8:0", "two", FALSE, &error));
    g_clear_error(&error);
    g_assert_true(take(dir, "8:2", "8:0", "two", TRUE, &error));
    g_assert_true(take(dir, "8:16", "8:16", "three", TRUE, &error));
    g_autoptr(GPtrArray) all = sv_block_claim_list(dir);
    g_assert_cmpuint(all->len, ==, 3);
    for (guint i = 0; i < all->len; i++)
        g_assert_cmpstr(((SvBlockClaim *)all->pdata[i])->root, ==, "/a b\t\\c");

    drop(dir, "8:0", "one");
    drop(dir, "8:0", "one");
    drop(dir, "9:0", "one");
    g_assert_true(take(dir, "8:1", "8:0", "dead", TRUE, &error));
    g_assert_true(take(dir, "8:1", "8:0", "four", FALSE, &error));
    g_assert_true(take(dir, "8:1", "8:0", "five", FALSE, &error));
    g_assert_no_error(error);
    g_assert_false(take(dir, "8:1", "8:0", "six", TRUE, &error));
    g_clear_error(&error);
    g_autoptr(GPtrArray) living = sv_block_claim_list(dir);
    g_assert_cmpuint(living->len, ==, 4); /* two, three, four, five */

    drop(dir, "8:0", "two");
    drop(dir, "8:0", "four");
    drop(dir, "8:0", "five");
    drop(dir, "8:16", "three");
    g_autoptr(GPtrArray) none = sv_block_claim_list(dir);
    g_assert_cmpuint(none->len, ==, 0);
    g_assert_cmpint(rmdir(dir), ==, 0); /* the files have gone too */
    g_assert_cmpint(rmdir(top), ==, 0);
}

static void test_claim_garbage(void)
{
    g_autofree char *dir = g_dir_make_tmp("sv-claim-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "8:0", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_set_contents(file, "\n\t\nown\tx\n1\t2\t3\t4\t5\t6\t7\t8\n", -1, NULL));
    g_assert_true(take(dir, "8:0", "8:0", "one", TRUE, &error));
    g_assert_no_error(error);
    drop(dir, "8:0", "one");
    g_assert_cmpint(rmdir(dir), ==, 0);
}

/* ---- images */

static void put(guint8 *at, guint64 value, guint n)
{
    for (guint i = n; i > 0; i--, value >>= 8)
        at[i - 1] = value & 0xff;
}

static void make_header(guint8 *header)
{
    memset(header, 0, SV_BLOCK_QCOW2_HEADER);
    memcpy(header, "QFI\xfb", 4);
    put(header + 4, 3, 4);
    put(header + 24, 1 << 20, 8);
}

static void test_qcow2(void)
{
    guint8 header[SV_BLOCK_QCOW2_HEADER];
    guint64 size = 0;
    g_autoptr(GError) error = NULL;
    static const struct {
        guint at, n;
        guint64 value;
        const char *word;
    } bad[] = {{0, 4, 1, "no qcow2"}, {4, 4, 1, "no qcow2"}, {4, 4, 4, "no qcow2"},
        {8, 8, 104, "backing file"}, {16, 4, 1, "backing file"}, {72, 8, 4, "data file"},
        {32, 4, 1, "encrypted"}};

    make_header(header);
    g_assert_true(sv_block_image_check_qcow2(header, sizeof header, &size, &error));
    g_assert_cmpuint(size, ==, 1 << 20);
    g_assert_false(sv_block_image_check_qcow2(header, 80, &size, NULL));
    g_assert_false(sv_block_image_check_qcow2(header, 0, &size, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        make_header(header);
        put(header + bad[i].at, bad[i].value, bad[i].n);
        g_assert_false(sv_block_image_check_qcow2(header, sizeof header, &size, &error));
        g_assert_nonnull(strstr(error->message, bad[i].word));
        g_clear_error(&error);
    }
    make_header(header);
    put(header + 4, 2, 4);
    g_assert_true(sv_block_image_check_qcow2(header, 72, &size, &error));
}

static void assert_image(
    const char *path, char *const *folders, const char *format, const char *word)
{
    g_autoptr(GError) error = NULL;
    SvBlockImage image = {0};
    g_auto(SvFd) fd = sv_block_image_open(path, folders, format, &image, &error);
    if (word == NULL) {
        g_assert_no_error(error);
        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpuint(image.size_bytes, ==, 4096);
        return;
    }
    g_assert_cmpint(fd, <, 0);
    g_assert_nonnull(strstr(error->message, word));
    g_assert_nonnull(strstr(error->message, path));
}

static void test_images(void)
{
    g_autofree char *dir = g_dir_make_tmp("sv-image-XXXXXX", NULL);
    g_autofree char *inner = g_build_filename(dir, "in", NULL);
    g_autofree char *file = g_build_filename(inner, "a.img", NULL);
    g_autofree char *link = g_build_filename(inner, "link", NULL);
    g_autofree char *folder_link = g_build_filename(inner, "up", NULL);
    g_autofree char *through = g_build_filename(inner, "up", "in", "a.img", NULL);
    g_autofree char *dots = g_build_filename(inner, "..", "in", "a.img", NULL);
    g_autofree char *fifo = g_build_filename(inner, "fifo", NULL);
    g_autofree char *missing = g_build_filename(inner, "missing", NULL);
    g_autofree char *with_slash = g_strconcat(inner, "/", NULL);
    char *folders[] = {(char *)"/nowhere", with_slash, NULL};

    g_assert_cmpint(mkdir(inner, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    g_assert_cmpint(truncate(file, 4096), ==, 0);
    g_assert_cmpint(symlink("a.img", link), ==, 0);
    g_assert_cmpint(symlink("..", folder_link), ==, 0);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);

    assert_image(file, folders, "raw", NULL);
    assert_image(file, folders, "qcow2", "no qcow2");
    assert_image(file, folders, "vmdk", "has to be stated");
    assert_image(file, folders, NULL, "has to be stated");
    assert_image(file, NULL, "raw", "image_folders");
    assert_image(inner, folders, "raw", "image_folders");
    assert_image(link, folders, "raw", "symbolic link");
    assert_image(through, folders, "raw", "symbolic link");
    assert_image(dots, folders, "raw", "cannot be opened");
    assert_image(fifo, folders, "raw", "regular file");
    assert_image(missing, folders, "raw", "No such file");
    g_assert_cmpint(truncate(file, 0), ==, 0);
    assert_image(file, folders, "raw", "empty");
    g_assert_true(sv_file_remove_tree(dir, NULL));
}

/* ---- with a loop device */

typedef struct {
    char *dir, *file, *node, *mnt;
    int fd; /* keeps the loop device (LO_FLAGS_AUTOCLEAR) */
    SvBlockInfo *info;
} Loop;

static gboolean loop_set_up(Loop *loop)
{
    g_autoptr(GError) error = NULL;
    memset(loop, 0, sizeof *loop);
    loop->fd = -1;
    loop->dir = g_dir_make_tmp("sv-block-XXXXXX", NULL);
    loop->file = g_build_filename(loop->dir, "img", NULL);
    loop->mnt = g_build_filename(loop->dir, "a b", NULL);
    g_assert_cmpint(mkdir(loop->mnt, 0700), ==, 0);
    g_assert_true(g_file_set_contents(loop->file, "", 0, NULL));
    g_assert_cmpint(truncate(loop->file, 16 << 20), ==, 0);
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || !loop_device_format(loop->file))
        return FALSE;
    loop->fd = loop_device_attach(loop->file, &loop->node);
    if (loop->fd < 0)
        return FALSE;
    loop->info = sv_block_probe_path(loop->node, "test", &error);
    g_assert_no_error(error);
    return TRUE;
}

static void loop_clear(Loop *loop)
{
    umount2(loop->mnt, MNT_DETACH);
    sv_block_info_free(loop->info);
    sv_fd_close(loop->fd);
    g_assert_true(sv_file_remove_tree(loop->dir, NULL));
    g_free(loop->dir);
    g_free(loop->file);
    g_free(loop->node);
    g_free(loop->mnt);
}

static void assert_exclusive(const SvBlockInfo *info, const char *user)
{
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) fd = sv_block_open_exclusive(info, &error);
    if (user == NULL) {
        g_assert_no_error(error);
        g_assert_cmpint(fd, >=, 0);
        return;
    }
    g_assert_cmpint(fd, <, 0);
    g_assert_true(sv_error_is(error, SV_ERR_BUSY));
    g_assert_nonnull(strstr(error->message, user));
    g_assert_nonnull(strstr(error->message, info->node));
}

static void assert_place(const Loop *loop, const char *fstype)
{
    g_autoptr(GPtrArray) mounts = sv_mount_list(0, NULL);
    const char *found = NULL;
    for (guint i = 0; i < mounts->len; i++) {
        const SvMountInfo *mount = mounts->pdata[i];
        if (strcmp(mount->target, loop->mnt) == 0)
            found = mount->fstype;
    }
    g_assert_cmpstr(found, ==, fstype);
}

static void test_probe(void)
{
    Loop loop;
    g_autoptr(GError) error = NULL;
    if (!loop_set_up(&loop)) {
        g_test_skip("no loop device");
        loop_clear(&loop);
        return;
    }
    const SvBlockInfo *info = loop.info;
    g_assert_cmpstr(info->node, ==, loop.node);
    g_assert_cmpuint(info->major, ==, 7);
    g_assert_cmpuint(info->whole_major, ==, info->major);
    g_assert_cmpuint(info->whole_minor, ==, info->minor);
    g_assert_cmpuint(info->size_bytes, ==, 16 << 20);
    g_assert_false(info->read_only);
    g_assert_true(sv_block_is_node(loop.node, info->major, info->minor));
    g_assert_false(sv_block_is_node(loop.node, info->major, info->minor + 1));
    g_assert_false(sv_block_is_node(NULL, 0, 0));

    assert_exclusive(info, NULL);
    g_assert_cmpint(mount(loop.node, loop.mnt, "ext4", 0, NULL), ==, 0);
    assert_exclusive(info, "mounted at");
    g_assert_cmpint(umount(loop.mnt), ==, 0);
    assert_exclusive(info, NULL);

    static const struct {
        const char *path, *word;
    } bad[] = {{"/dev/null", "character device"}, {"/etc/passwd", "not a device"},
        {"/dev/missing", "No such file"}};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_null(sv_block_probe_path(bad[i].path, "what", &error));
        g_assert_nonnull(strstr(error->message, bad[i].word));
        g_assert_nonnull(strstr(error->message, bad[i].path));
        g_clear_error(&error);
    }
    g_autofree char *outside = g_build_filename(loop.dir, "node", NULL);
    struct stat st;
    g_assert_cmpint(stat(loop.node, &st), ==, 0);
    if (mknod(outside, S_IFBLK | 0600, st.st_rdev) == 0) {
        g_assert_null(sv_block_probe_path(outside, "what", &error));
        g_assert_nonnull(strstr(error->message, "not below /dev"));
        g_clear_error(&error);
    }
    /* a loop device on it, which the kernel lets be made in spite of an exclusive open */
    struct stat file;
    g_autofree char *second = NULL;
    g_assert_cmpint(stat(loop.file, &file), ==, 0);
    g_autofree char *on_file = sv_block_find_loop(&file, NULL);
    g_assert_cmpstr(on_file, ==, loop.node);
    g_auto(SvFd) second_fd = loop_device_attach(loop.node, &second);
    g_assert_cmpint(second_fd, >=, 0);
    assert_exclusive(info, second);
    sv_fd_clear(&second_fd);
    assert_exclusive(info, NULL);

    g_assert_null(sv_block_probe(4095, 77, "/x", "what", &error));
    g_assert_true(sv_error_is(error, SV_ERR_NOT_FOUND));
    loop_clear(&loop);
}

static void test_move(void)
{
    Loop loop;
    g_autoptr(GError) error = NULL;
    g_autofree char *why = NULL;
    if (!loop_set_up(&loop)) {
        g_test_skip("no loop device");
        loop_clear(&loop);
        return;
    }
    g_autofree char *file = g_build_filename(loop.mnt, "file", NULL);
    g_autofree char *below = g_build_filename(loop.mnt, "lost+found", NULL);
    g_assert_null(sv_block_mount_find(loop.mnt, &why, &error)); /* a folder */
    g_assert_no_error(error);
    g_assert_null(why);
    g_assert_cmpint(
        mount(loop.node, loop.mnt, "ext4", MS_NOSUID | MS_NOATIME, "errors=remount-ro"), ==, 0);
    g_assert_null(sv_block_mount_find(below, &why, &error));
    g_assert_null(why);
    g_assert_cmpint(mount("none", below, "tmpfs", 0, NULL), ==, 0);
    g_assert_null(sv_block_mount_find(loop.mnt, &why, &error));
    g_assert_nonnull(strstr(why, "is mounted in it"));
    g_clear_pointer(&why, g_free);
    g_assert_cmpint(umount(below), ==, 0);
    g_autoptr(SvBlockMount) found = sv_block_mount_find(loop.mnt, &why, &error);
    g_assert_no_error(error);
    g_assert_nonnull(found);
    g_assert_cmpstr(found->fstype, ==, "ext4");
    g_assert_cmpstr(found->target, ==, loop.mnt);

    /* in use: nothing changes */
    g_assert_true(g_file_set_contents(file, "x", 1, NULL));
    g_auto(SvFd) busy = open(file, O_RDONLY | O_CLOEXEC);
    g_assert_false(sv_block_mount_take(found, "mark", &error));
    g_assert_true(sv_error_is(error, SV_ERR_BUSY));
    g_clear_error(&error);
    assert_place(&loop, "ext4");
    sv_fd_clear(&busy);

    g_assert_true(sv_block_mount_take(found, "mark", &error));
    g_assert_no_error(error);
    assert_place(&loop, "tmpfs");
    g_assert_cmpint(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), ==, -1);
    assert_exclusive(loop.info, NULL);
    g_assert_true(sv_block_mount_is_here(loop.mnt, &error)); /* not named as ours are */
    g_assert_true(sv_block_mount_restore(found, loop.node, "mark", FALSE, &error));
    g_assert_true(sv_block_mount_is_here(loop.mnt, &error));
    g_assert_true(sv_block_mount_take(found, SV_BLOCK_MARK "x", &error));
    g_assert_false(sv_block_mount_is_here(loop.mnt, &error));
    g_assert_true(sv_error_is(error, SV_ERR_BUSY));
    g_clear_error(&error);
    /* what lies in it is away with it */
    g_assert_false(sv_block_mount_is_here(file, &error));
    g_assert_true(sv_error_is(error, SV_ERR_BUSY));
    g_clear_error(&error);
    g_autofree char *deep = g_build_filename(loop.mnt, "a", "b", NULL);
    g_assert_false(sv_block_mount_is_here(deep, NULL));
    g_assert_true(sv_block_mount_is_here("/nowhere/at/all", NULL));
    g_assert_true(sv_block_mount_restore(found, loop.node, SV_BLOCK_MARK "x", FALSE, &error));
    g_assert_true(sv_block_mount_take(found, "mark", &error));
    /* another mark is not ours */
    g_assert_true(sv_block_mount_restore(found, loop.node, "other", TRUE, &error));
    assert_place(&loop, "tmpfs");
    g_assert_true(sv_block_mount_restore(found, loop.node, "mark", FALSE, &error));
    g_assert_no_error(error);
    assert_place(&loop, "ext4");
    g_assert_true(g_file_test(file, G_FILE_TEST_EXISTS));
    g_autoptr(SvBlockMount) again = sv_block_mount_find(loop.mnt, NULL, &error);
    g_assert_cmpstr(again->options, ==, found->options);
    g_assert_cmpstr(again->super_options, ==, found->super_options);
    /* there already */
    g_assert_true(sv_block_mount_restore(found, loop.node, "mark", TRUE, &error));

    /* the engine has unmounted it */
    g_assert_cmpint(umount(loop.mnt), ==, 0);
    g_assert_true(sv_block_mount_restore(found, loop.node, "mark", FALSE, &error));
    assert_place(&loop, NULL);
    g_assert_true(sv_block_mount_restore(found, loop.node, "mark", TRUE, &error));
    assert_place(&loop, "ext4");

    /* the numbers mean another disk by now */
    g_assert_true(sv_block_mount_take(found, "mark", &error));
    found->seq++;
    g_assert_false(sv_block_mount_restore(found, loop.node, "mark", FALSE, &error));
    g_assert_true(sv_error_is(error, SV_ERR_NOT_FOUND));
    assert_place(&loop, "tmpfs");
    loop_clear(&loop);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/block/flags", test_flags);
    g_test_add_func("/block/guest-options", test_guest_options);
    g_test_add_func("/block/claims", test_claims);
    g_test_add_func("/block/claim-garbage", test_claim_garbage);
    g_test_add_func("/block/qcow2", test_qcow2);
    g_test_add_func("/block/images", test_images);
    g_test_add_func("/block/probe", test_probe);
    g_test_add_func("/block/move", test_move);
    return g_test_run();
}
