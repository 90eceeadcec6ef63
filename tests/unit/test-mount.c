/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static GPtrArray *parse(const char *text, GError **error)
{
    return sv_mount_parse(text, strlen(text), error);
}

static void test_parse(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) list =
        parse("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
              "37 36 0:52 / /a\\040b\\011c\\012d\\134e rw shared:7 master:2 - tmpfs t\\040s rw\n"
              "\n"
              "38 1 8:1 /x\\999 / ro - none none \n"
              "39 1 8:1 / /y\\000z\\04 ro propagate_from:3 unbindable - fuse.x src rw",
            &error);
    const SvMountInfo *m;

    g_assert_no_error(error);
    g_assert_cmpuint(list->len, ==, 4);
    m = list->pdata[0];
    g_assert_cmpint(m->id, ==, 36);
    g_assert_cmpint(m->parent, ==, 35);
    g_assert_cmpuint(m->major, ==, 98);
    g_assert_cmpuint(m->minor, ==, 0);
    g_assert_cmpstr(m->root, ==, "/mnt1");
    g_assert_cmpstr(m->target, ==, "/mnt2");
    g_assert_cmpstr(m->options, ==, "rw,noatime");
    g_assert_cmpstr(m->fstype, ==, "ext3");
    g_assert_cmpstr(m->source, ==, "/dev/root");
    g_assert_cmpstr(m->super_options, ==, "rw,errors=continue");
    g_assert_false(m->shared);
    m = list->pdata[1];
    g_assert_cmpstr(m->target, ==, "/a b\tc\nd\\e");
    g_assert_cmpstr(m->source, ==, "t s");
    g_assert_true(m->shared);
    m = list->pdata[2];
    g_assert_cmpstr(m->root, ==, "/x\\999"); /* not octal: as it is */
    g_assert_cmpstr(m->super_options, ==, "");
    m = list->pdata[3];
    g_assert_cmpstr(m->target, ==, "/y\\000z\\04");
    g_assert_cmpstr(m->fstype, ==, "fuse.x");
}

static void test_parse_bad(void)
{
    static const char *const bad[] = {"x", "36", "36 35 98:0 /mnt1 /mnt2 rw", "- - - - - - - - -",
        "36 35 98:0 /mnt1 /mnt2 rw - ext3", "36 35 98:0 / / rw master:1 ext3 /dev/root rw",
        "a 35 98:0 / / rw - ext3 d rw", "36 b 98:0 / / rw - ext3 d rw",
        "36 35 98 / / rw - ext3 d rw", "36 35 98:0:1 / / rw - ext3 d rw",
        "36 35 :0 / / rw - ext3 d rw", "36 35 -1:0 / / rw - ext3 d rw",
        "99999999999 35 8:0 / / rw - ext3 d rw", "36 35 98:99999999999 / / rw - ext3 d rw"};
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) empty = parse("", &error);

    g_assert_no_error(error);
    g_assert_cmpuint(empty->len, ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *text =
            g_strdup_printf("36 35 98:0 / / rw - ext3 /dev/root rw\n%s\n", bad[i]);

        g_assert_null(parse(text, &error));
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
        g_assert_nonnull(strstr(error->message, "line 2"));
        g_clear_error(&error);
    }
    sv_mount_info_free(NULL);
}

static void test_list(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) self = sv_mount_list(0, &error);
    g_autoptr(GPtrArray) mine = sv_mount_list(getpid(), &error);

    g_assert_no_error(error);
    g_assert_cmpuint(self->len, >, 0);
    g_assert_cmpuint(self->len, ==, mine->len);
    g_assert_null(sv_mount_list(0x7ffffff0, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
}

static const SvMountInfo *find(GPtrArray *list, const char *target)
{
    for (guint i = 0; i < list->len; i++) {
        const SvMountInfo *m = list->pdata[i];

        if (strcmp(m->target, target) == 0)
            return m;
    }
    return NULL;
}

/* The whole life of a mount, in a mount namespace of the test's own. */
static void test_mounts(void)
{
    g_autofree char *dir = g_dir_make_tmp("sv-test-XXXXXX", NULL);
    g_autofree char *a = g_build_filename(dir, "a b", NULL);
    g_autofree char *b = g_build_filename(dir, "b", NULL);
    g_autofree char *in_a = g_build_filename(a, "file", NULL);
    g_autofree char *in_b = g_build_filename(b, "file", NULL);
    g_autofree char *link = g_build_filename(dir, "link", NULL);
    g_autoptr(GPtrArray) list = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) fs = -1;
    g_auto(SvFd) copy = -1;
    const SvMountInfo *m;
    struct stat st;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        g_test_skip("not allowed to mount");
        g_assert_true(sv_file_remove_tree(dir, NULL));
        return;
    }
    g_assert_true(sv_file_mkdirs(a, 0700, NULL));
    g_assert_true(sv_file_mkdirs(b, 0700, NULL));
    g_assert_cmpint(symlink(b, link), ==, 0);

    fs = sv_mount_new("tmpfs", "size=64k,mode=0750", MOUNT_ATTR_NOSUID, &error);
    g_assert_no_error(error);
    g_assert_true(sv_mount_attach(fs, AT_FDCWD, a, &error));
    g_assert_no_error(error);
    g_assert_true(sv_mount_is_mountpoint(a));
    g_assert_false(sv_mount_is_mountpoint(b));
    g_assert_cmpint(stat(a, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 0777, ==, 0750);
    g_assert_true(g_file_set_contents(in_a, "x", 1, NULL));

    copy = sv_mount_clone(AT_FDCWD, a, TRUE, &error);
    g_assert_no_error(error);
    g_assert_true(fcntl(copy, F_GETFD) & FD_CLOEXEC);
    g_assert_true(sv_mount_setattr(copy, MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, 0, TRUE, &error));
    g_assert_true(sv_mount_attach(copy, AT_FDCWD, b, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_test(in_b, G_FILE_TEST_EXISTS));
    g_assert_cmpint(open(in_b, O_WRONLY | O_CLOEXEC), ==, -1);
    g_assert_cmpint(errno, ==, EROFS);
    list = sv_mount_list(0, &error);
    m = find(list, a);
    g_assert_nonnull(m);
    g_assert_nonnull(strstr(m->options, "nosuid"));
    g_assert_cmpstr(m->fstype, ==, "tmpfs");
    g_assert_false(m->shared);
    m = find(list, b);
    g_assert_nonnull(m);
    g_assert_true(g_str_has_prefix(m->options, "ro"));

    /* Never through a symlink. */
    g_assert_true(sv_mount_umount(link, FALSE, &error));
    g_assert_true(sv_mount_is_mountpoint(b));
    g_assert_false(sv_mount_is_mountpoint(link));

    {
        g_auto(SvFd) busy = open(in_b, O_RDONLY | O_CLOEXEC);

        g_assert_false(sv_mount_umount(b, FALSE, &error));
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_BUSY);
        g_clear_error(&error);
        sv_fd_clear(&copy);
        g_assert_true(sv_mount_umount(b, TRUE, &error));
    }
    sv_fd_clear(&fs);
    g_assert_true(sv_mount_umount(a, FALSE, &error));
    g_assert_no_error(error);
    g_assert_true(sv_mount_umount(a, FALSE, &error)); /* not a mount any more */
    g_assert_true(sv_mount_umount("/does/not/exist", FALSE, &error));
    g_assert_no_error(error);
    g_assert_true(sv_file_remove_tree(dir, NULL));
}

static void test_mounts_fail(void)
{
    g_autoptr(GError) error = NULL;

    if (geteuid() != 0) {
        g_test_skip("not allowed to mount");
        return;
    }
    g_assert_cmpint(sv_mount_new("no-such-fs", NULL, 0, &error), ==, -1);
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_assert_cmpint(sv_mount_new("tmpfs", "size=64k,nonsense=1", 0, &error), ==, -1);
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, "nonsense"));
    g_clear_error(&error);
    g_assert_cmpint(sv_mount_clone(AT_FDCWD, "/does/not/exist", FALSE, &error), ==, -1);
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_false(sv_mount_setattr(-1, MOUNT_ATTR_RDONLY, 0, 0, FALSE, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_assert_false(sv_mount_attach(-1, AT_FDCWD, "/", &error));
    g_assert_nonnull(error);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mount/parse", test_parse);
    g_test_add_func("/mount/parse-bad", test_parse_bad);
    g_test_add_func("/mount/list", test_list);
    g_test_add_func("/mount/mounts", test_mounts);
    g_test_add_func("/mount/mounts-fail", test_mounts_fail);
    return g_test_run();
}
