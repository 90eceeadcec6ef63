/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shared folder with real mounts, in a mount namespace of its own. A second namespace, held by a
 * child, stands for virtiofsd's. */
#include <config.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/mount.h"
#include "core/lifecycle.h"
#include "core/share.h"
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char *tmp; /* a tmpfs */
    char *source; /* tree to be bound: file, dir/inner, sub (a mount) */
    SvPaths *paths;
    char *kernel, *image;
} Fixture;

static void write_file(const char *path, const char *text)
{
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    SvConfig config = {.launcher_socket = (char *)""};

    f->tmp = g_dir_make_tmp("sv-share-XXXXXX", NULL);
    g_assert_cmpint(mount("tmpfs", f->tmp, "tmpfs", 0, "size=4m"), ==, 0);
    f->source = g_build_filename(f->tmp, "source", NULL);
    f->kernel = g_build_filename(f->tmp, "vmlinux", NULL);
    f->image = g_build_filename(f->tmp, "image", NULL);
    g_autofree char *dir = g_build_filename(f->source, "dir", NULL);
    g_autofree char *sub = g_build_filename(f->source, "sub", NULL);
    g_autofree char *file = g_build_filename(f->source, "file", NULL);
    g_autofree char *inner = g_build_filename(sub, "inner", NULL);
    g_assert_true(sv_file_mkdirs(dir, 0755, &error));
    g_assert_true(sv_file_mkdirs(sub, 0755, &error));
    g_assert_cmpint(mount("tmpfs", sub, "tmpfs", 0, "size=1m"), ==, 0);
    write_file(file, "content");
    write_file(inner, "inner");
    write_file(f->kernel, "kernel");
    write_file(f->image, "image");

    config.run_dir = g_build_filename(f->tmp, "run", NULL);
    config.image_dir = g_build_filename(f->tmp, "lib", "images", NULL);
    f->paths = sv_paths_new(&config, f->tmp, "box", FALSE, &error);
    g_assert_no_error(error);
    g_free(config.run_dir);
    g_free(config.image_dir);
    g_assert_true(sv_share_make(f->paths, f->kernel, f->image, &error));
    g_assert_no_error(error);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(sv_share_destroy(f->paths, &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(f->paths->box_dir, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(f->paths->boot_dir, G_FILE_TEST_EXISTS));
    /* Nothing of the source was touched. */
    g_autofree char *file = g_build_filename(f->source, "file", NULL);
    g_autofree char *inner = g_build_filename(f->source, "sub", "inner", NULL);
    g_assert_true(g_file_test(file, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(inner, G_FILE_TEST_EXISTS));
    /* And nothing holds it. */
    g_autofree char *sub = g_build_filename(f->source, "sub", NULL);
    g_assert_cmpint(umount2(sub, 0), ==, 0);
    g_assert_cmpint(umount2(f->tmp, 0), ==, 0);
    g_assert_cmpint(rmdir(f->tmp), ==, 0);
    sv_paths_free(f->paths);
    g_free(f->tmp);
    g_free(f->source);
    g_free(f->kernel);
    g_free(f->image);
}

static char *in_share(Fixture *f, guint index, const char *rest)
{
    return g_strdup_printf("%s/c/%u/%s", f->paths->share_dir, index, rest);
}

static void assert_content(const char *path, const char *text)
{
    g_autofree char *content = NULL;

    g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, text);
}

static void assert_read_only(const char *folder, gboolean yes)
{
    g_autofree char *path = g_build_filename(folder, "written", NULL);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (yes) {
        g_assert_cmpint(fd, ==, -1);
        g_assert_cmpint(errno, ==, EROFS);
    } else {
        g_assert_cmpint(fd, >=, 0);
        close(fd);
        g_assert_cmpint(unlink(path), ==, 0);
    }
}

/* ---- virtiofsd's namespace */

typedef struct {
    pid_t pid;
    int request, answer;
} Peer;

/* A child that waits in a namespace of its own, with that root, holding @path open when given; a slave of
 * ours, as virtiofsd's is. */
static Peer peer_start_in(const char *root, const char *path)
{
    int request[2], answer[2];
    Peer peer;
    char byte = 0;

    g_assert_cmpint(pipe(request), ==, 0);
    g_assert_cmpint(pipe(answer), ==, 0);
    peer.pid = fork();
    if (peer.pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
            _exit(1);
        if (chroot(root) < 0 || (path && open(path, O_RDONLY) < 0))
            _exit(2);
        if (write(answer[1], "x", 1) != 1)
            _exit(3);
        close(request[1]);
        while (read(request[0], &byte, 1) == 1)
            ;
        _exit(0);
    }
    close(request[0]);
    close(answer[1]);
    g_assert_cmpint(read(answer[0], &byte, 1), ==, 1);
    close(answer[0]);
    peer.request = request[1];
    return peer;
}

static Peer peer_start(const char *path)
{
    return peer_start_in("/", path);
}

static void peer_stop(Peer *peer)
{
    int status = 0;

    close(peer->request);
    g_assert_cmpint(waitpid(peer->pid, &status, 0), ==, peer->pid);
    g_assert_cmpint(status, ==, 0);
}

static gboolean peer_sees(Peer *peer, const char *path)
{
    g_autofree char *full = g_strdup_printf("/proc/%d/root%s", peer->pid, path);

    return g_file_test(full, G_FILE_TEST_EXISTS);
}

/* ---- tests */

static void test_make(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    struct stat st;

    /* Again, as a recovering monitor does. */
    g_assert_true(sv_share_make(f->paths, f->kernel, f->image, &error));
    g_assert_no_error(error);
    g_assert_true(sv_mount_is_mountpoint(f->paths->share_dir));
    assert_read_only(f->paths->share_dir, TRUE);
    assert_read_only(f->paths->base_dir, FALSE);
    assert_content(f->paths->boot_kernel, "kernel");
    g_assert_cmpint(open(f->paths->boot_kernel, O_WRONLY | O_CLOEXEC), ==, -1);
    g_assert_cmpint(errno, ==, EROFS);
    g_assert_cmpint(chown(f->paths->boot_image, 1, 1), ==, -1);
    g_assert_cmpint(stat(f->paths->boot_dir, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 0777, ==, 0755);

    g_autoptr(GPtrArray) mounts = sv_mount_list(0, &error);
    guint shares = 0;
    for (guint i = 0; i < mounts->len; i++) {
        SvMountInfo *info = mounts->pdata[i];

        if (strcmp(info->target, f->paths->share_dir) == 0) {
            shares++;
            g_assert_true(info->shared);
        }
    }
    g_assert_cmpuint(shares, ==, 1);
}

static void test_make_fails(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(sv_share_destroy(f->paths, &error));
    g_assert_false(sv_share_make(f->paths, "/nonexistent/kernel", f->image, &error));
    g_assert_true(sv_error_is(error, SV_ERR_NOT_FOUND));
    g_clear_error(&error);
    g_assert_false(sv_share_make(f->paths, f->tmp, f->image, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    /* What was made goes away all the same. */
    g_assert_true(sv_share_destroy(f->paths, &error));
    g_assert_true(sv_share_destroy(f->paths, &error));
    g_assert_no_error(error);
}

static void test_bind_tree(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *bound = in_share(f, 3, "rootfs");
    g_autofree char *inner = in_share(f, 3, "rootfs/sub/inner");
    g_autofree char *sub = in_share(f, 3, "rootfs/sub");
    g_autofree char *flat = in_share(f, 3, "m0");
    g_autofree char *flat_inner = in_share(f, 3, "m0/sub/inner");
    Peer peer = peer_start(NULL);

    g_assert_true(sv_share_bind(f->paths, 3, "rootfs", f->source, TRUE, FALSE, &error));
    g_assert_no_error(error);
    assert_content(inner, "inner");
    assert_read_only(bound, FALSE);
    assert_read_only(sub, FALSE);
    g_assert_true(peer_sees(&peer, inner));

    g_assert_true(sv_share_bind(f->paths, 3, "m0", f->source, FALSE, TRUE, &error));
    g_assert_false(g_file_test(flat_inner, G_FILE_TEST_EXISTS));
    assert_read_only(flat, TRUE);
    g_assert_true(peer_sees(&peer, flat));

    g_assert_false(sv_share_bind(f->paths, 3, "rootfs", f->source, TRUE, FALSE, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_EXISTS);
    g_clear_error(&error);

    g_autoptr(GPtrArray) names = sv_share_list(f->paths, &error);
    g_assert_cmpuint(names->len, ==, 2);
    g_assert_cmpstr(names->pdata[0], ==, "3/m0");
    g_assert_cmpstr(names->pdata[1], ==, "3/rootfs");

    g_autoptr(GPtrArray) busy = NULL;
    g_assert_true(sv_share_release(f->paths, 3, FALSE, &busy, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(busy->len, ==, 0);
    g_assert_false(peer_sees(&peer, bound));
    g_assert_true(sv_share_release(f->paths, 3, FALSE, NULL, &error));
    g_autoptr(GPtrArray) none = sv_share_list(f->paths, &error);
    g_assert_cmpuint(none->len, ==, 0);
    peer_stop(&peer);
}

/* Recursively: a mount below a read-only one is read-only too. */
static void test_read_only(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *bound = in_share(f, 0, "m1");
    g_autofree char *sub = in_share(f, 0, "m1/sub");
    g_autofree char *source_sub = g_build_filename(f->source, "sub", NULL);

    g_assert_true(sv_share_bind(f->paths, 0, "m1", f->source, TRUE, TRUE, &error));
    g_assert_no_error(error);
    assert_read_only(bound, TRUE);
    assert_read_only(sub, TRUE);
    /* The source stays as it was. */
    assert_read_only(f->source, FALSE);
    assert_read_only(source_sub, FALSE);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpuint(strlen(path), <, sizeof address.sun_path);
    strcpy(address.sun_path, path);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    close(fd);
}

/* Files of every kind, and symlinks to them; nothing blocks. */
static void test_kinds(Fixture *f, gconstpointer data)
{
    static const char *const names[] = {"file", "fifo", "socket", "null", "link"};
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *source = g_build_filename(f->source, names[i], NULL);
        g_autofree char *name = g_strdup_printf("m%u", i);
        g_autofree char *bound = in_share(f, 1, name);
        struct stat a, b;

        if (strcmp(names[i], "fifo") == 0)
            g_assert_cmpint(mkfifo(source, 0600), ==, 0);
        else if (strcmp(names[i], "socket") == 0)
            make_socket(source);
        else if (strcmp(names[i], "null") == 0)
            g_assert_cmpint(mknod(source, S_IFCHR | 0666, makedev(1, 3)), ==, 0);
        else if (strcmp(names[i], "link") == 0)
            g_assert_cmpint(symlink("file", source), ==, 0);
        g_assert_true(sv_share_bind(f->paths, 1, name, source, i % 2, i % 2, &error));
        g_assert_no_error(error);
        g_assert_cmpint(stat(source, &a), ==, 0);
        g_assert_cmpint(lstat(bound, &b), ==, 0);
        g_assert_cmpuint(a.st_ino, ==, b.st_ino);
        g_assert_cmpuint(a.st_mode, ==, b.st_mode);
    }
    g_assert_true(sv_share_release(f->paths, 1, FALSE, NULL, &error));
    g_assert_no_error(error);
}

static void test_bind_fails(Fixture *f, gconstpointer data)
{
    static const char *const bad[] = {"", "..", "a/b/c", "a/.x", ".x", "/a"};
    g_autoptr(GError) error = NULL;
    g_autofree char *loop = g_build_filename(f->source, "loop", NULL);
    g_autofree char *folder = g_build_filename(f->paths->base_dir, "c", "2", NULL);

    g_assert_false(sv_share_bind(f->paths, 2, "m0", "/nonexistent/x", TRUE, FALSE, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
    g_assert_nonnull(strstr(error->message, "/nonexistent/x"));
    g_clear_error(&error);
    g_assert_cmpint(symlink("loop", loop), ==, 0);
    g_assert_false(sv_share_bind(f->paths, 2, "m0", loop, TRUE, FALSE, &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_IO);
    g_clear_error(&error);
    g_assert_false(g_file_test(folder, G_FILE_TEST_EXISTS));
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(sv_share_bind(f->paths, 2, bad[i], f->source, TRUE, FALSE, &error));
        g_assert_true(sv_error_is(error, SV_ERR_INVALID));
        g_clear_error(&error);
    }
}

/* Nothing propagates to the source, or from it. */
static void test_propagation(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = in_share(f, 5, "m0/dir");
    g_autofree char *seen = g_build_filename(f->source, "dir", "mark", NULL);
    g_autofree char *mark = in_share(f, 5, "m0/dir/mark");

    g_assert_cmpint(mount(NULL, f->tmp, NULL, MS_SHARED | MS_REC, NULL), ==, 0);
    g_assert_true(sv_share_bind(f->paths, 5, "m0", f->source, TRUE, FALSE, &error));
    g_assert_cmpint(mount("tmpfs", dir, "tmpfs", 0, "size=4k"), ==, 0);
    write_file(mark, "x");
    g_assert_false(g_file_test(seen, G_FILE_TEST_EXISTS));
    /* A foreign mount below goes with the release. */
    g_assert_true(sv_share_release(f->paths, 5, FALSE, NULL, &error));
    g_assert_no_error(error);
    g_assert_cmpint(mount(NULL, f->tmp, NULL, MS_PRIVATE | MS_REC, NULL), ==, 0);
}

static void test_busy(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = in_share(f, 7, "m0/file");
    g_autofree char *target = in_share(f, 7, "m0");
    g_autofree char *other = in_share(f, 7, "m1");
    g_autoptr(GPtrArray) busy = NULL;

    g_assert_true(sv_share_bind(f->paths, 7, "m0", f->source, TRUE, FALSE, &error));
    g_assert_true(sv_share_bind(f->paths, 7, "m1", f->source, FALSE, FALSE, &error));
    Peer peer = peer_start(file);

    g_assert_false(sv_share_release(f->paths, 7, FALSE, &busy, &error));
    g_assert_true(sv_error_is(error, SV_ERR_BUSY));
    g_clear_error(&error);
    g_assert_cmpuint(busy->len, ==, 1);
    g_assert_true(g_str_has_prefix(busy->pdata[0], target));
    /* What was not busy is gone; the source lives. */
    g_assert_false(sv_mount_is_mountpoint(other));
    g_assert_true(sv_mount_is_mountpoint(target));
    assert_content(file, "content");
    g_clear_pointer(&busy, g_ptr_array_unref);

    g_assert_true(sv_share_release(f->paths, 7, TRUE, &busy, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(busy->len, ==, 1);
    g_assert_false(sv_mount_is_mountpoint(target));
    g_assert_false(peer_sees(&peer, file));
    /* The number can be used again. */
    g_assert_true(sv_share_bind(f->paths, 7, "m0", f->source, TRUE, FALSE, &error));
    peer_stop(&peer);
}

static void test_clone(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) tree = -1;
    struct stat st;

    g_assert_cmpint(sv_share_clone(f->paths, 9, "rootfs", &error), ==, -1);
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_true(sv_share_bind(f->paths, 9, "rootfs", f->source, TRUE, FALSE, &error));
    tree = sv_share_clone(f->paths, 9, "rootfs", &error);
    g_assert_no_error(error);
    g_assert_cmpint(fstatat(tree, "sub/inner", &st, 0), ==, 0);
    /* Not held by the share any more, only by the descriptor. */
    g_assert_true(sv_share_release(f->paths, 9, FALSE, NULL, &error));
    g_assert_cmpint(fstatat(tree, "file", &st, 0), ==, 0);
}

/* ---- volumes */

static guint count_volumes(Fixture *f)
{
    g_autofree char *top = g_build_filename(f->paths->base_dir, "v", NULL);
    g_autoptr(GDir) dir = g_dir_open(top, 0, NULL);
    guint n = 0;

    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

static void assert_same_mount(Fixture *f, const char *a, const char *b, gboolean same)
{
    g_autofree char *left = g_build_filename(f->paths->share_dir, a, NULL);
    g_autofree char *right = g_build_filename(f->paths->share_dir, b, NULL);
    struct statx sa, sb;

    g_assert_cmpint(statx(AT_FDCWD, left, 0, STATX_MNT_ID, &sa), ==, 0);
    g_assert_cmpint(statx(AT_FDCWD, right, 0, STATX_MNT_ID, &sb), ==, 0);
    g_assert_cmpint(sa.stx_mnt_id == sb.stx_mnt_id, ==, same);
}

static void bind_volume(Fixture *f, guint index, const char *name, const char *below, gboolean ro)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *source = g_build_filename(f->source, below, NULL);

    g_assert_true(sv_share_bind_volume(f->paths, index, name, source, TRUE, ro, &error));
    g_assert_no_error(error);
}

/* What several containers mount is one mount, until the last has gone. */
static void test_volumes(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = in_share(f, 2, "m4/data/file");
    g_autofree char *first = in_share(f, 1, "m0/data");
    g_autofree char *read_only = in_share(f, 2, "m5/data");

    bind_volume(f, 1, "m0/data", ".", FALSE);
    bind_volume(f, 2, "m4/data", ".", FALSE);
    bind_volume(f, 2, "m5/data", ".", TRUE);
    bind_volume(f, 2, "m6", "file", FALSE);
    bind_volume(f, 2, "m7/sub", "sub", FALSE);
    assert_same_mount(f, "c/1/m0/data/file", "c/2/m4/data/file", TRUE);
    assert_same_mount(f, "c/1/m0/data/file", "c/2/m5/data/file", FALSE);
    assert_same_mount(f, "c/1/m0/data/file", "c/2/m6", FALSE);
    assert_read_only(first, FALSE);
    assert_read_only(read_only, TRUE);
    g_assert_cmpuint(count_volumes(f), ==, 4);

    g_assert_true(sv_share_release(f->paths, 1, FALSE, NULL, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count_volumes(f), ==, 4);
    assert_content(file, "content");
    bind_volume(f, 3, "m0/other-name", ".", FALSE);
    assert_same_mount(f, "c/3/m0/other-name/file", "c/2/m4/data/file", TRUE);
    g_assert_true(sv_share_release(f->paths, 2, FALSE, NULL, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count_volumes(f), ==, 1);
    g_assert_true(sv_share_release(f->paths, 3, FALSE, NULL, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count_volumes(f), ==, 0);
}

/* What cannot be looked at counts: else what other containers use would be taken away. */
static void test_volume_unread(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *kept = in_share(f, 1, "m0/data/file");
    struct rlimit before, one;
    int free_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    bind_volume(f, 1, "m0/data", ".", FALSE);
    bind_volume(f, 2, "m0/sub", "sub", FALSE);
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
    one = (struct rlimit){(rlim_t)free_fd + 2, before.rlim_max};
    close(free_fd);
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &one), ==, 0);
    g_assert_false(sv_share_release(f->paths, 2, TRUE, NULL, &error));
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &before), ==, 0);
    g_assert_nonnull(error);
    g_clear_error(&error);
    assert_content(kept, "content");
    g_assert_true(sv_share_release(f->paths, 2, FALSE, NULL, &error));
    g_assert_true(sv_share_release(f->paths, 1, FALSE, NULL, &error));
    g_assert_no_error(error);
}

/* A bind shows the mounts that were there: another set is another volume. */
static void test_volume_submounts(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = g_build_filename(f->source, "dir", NULL);
    g_autofree char *mark = g_build_filename(dir, "mark", NULL);
    g_autofree char *later = in_share(f, 2, "m0/dir/mark");
    g_autofree char *before = in_share(f, 1, "m0/dir/mark");

    bind_volume(f, 1, "m0", ".", FALSE);
    g_assert_cmpint(mount("tmpfs", dir, "tmpfs", 0, "size=4k"), ==, 0);
    write_file(mark, "x");
    bind_volume(f, 2, "m0", ".", FALSE);
    g_assert_true(g_file_test(later, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(before, G_FILE_TEST_EXISTS));
    g_assert_true(sv_share_release(f->paths, 1, FALSE, NULL, &error));
    g_assert_true(sv_share_release(f->paths, 2, FALSE, NULL, &error));
    g_assert_no_error(error);
    g_assert_cmpint(umount2(dir, 0), ==, 0);
}

/* The namespace's mounts made private under a machine: what is bound from then on does not come to virtiofsd,
 * what it has it keeps. */
static void test_not_seen(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    Peer peer = peer_start_in(f->paths->share_dir, NULL);
    Peer other = peer_start(NULL);

    g_assert_true(sv_share_bind(f->paths, 1, "rootfs", f->source, TRUE, FALSE, &error));
    bind_volume(f, 1, "m0/data", "dir", FALSE);
    g_assert_true(sv_share_check_seen(f->paths, peer.pid, 1, "rootfs", &error));
    g_assert_true(sv_share_check_seen(f->paths, peer.pid, 1, "m0/data", &error));
    g_assert_cmpint(mount(NULL, f->paths->share_dir, NULL, MS_PRIVATE | MS_REC, NULL), ==, 0);
    g_assert_true(sv_share_bind(f->paths, 2, "rootfs", f->source, TRUE, FALSE, &error));
    bind_volume(f, 2, "m0/data", "dir", FALSE);
    bind_volume(f, 2, "m1/sub", "sub", FALSE);
    g_assert_no_error(error);
    g_assert_true(sv_share_check_seen(f->paths, peer.pid, 2, "m0/data", &error));
    g_assert_false(sv_share_check_seen(f->paths, peer.pid, 2, "m1/sub", &error));
    g_assert_error(error, SV_CORE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    g_assert_false(sv_share_check_seen(f->paths, peer.pid, 2, "rootfs", &error));
    g_assert_nonnull(strstr(error->message, "does not reach virtiofsd"));
    g_clear_error(&error);
    /* not known, or with another root: nothing can be said */
    g_assert_true(sv_share_check_seen(f->paths, 0, 2, "rootfs", &error));
    g_assert_true(sv_share_check_seen(f->paths, other.pid, 2, "rootfs", &error));
    peer_stop(&other);
    peer_stop(&peer);
}

/* Held: stays with its container until it is let go; what a killed monitor left goes too. */
static void test_volume_busy(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = in_share(f, 1, "m0/data/file");
    g_autofree char *link = g_build_filename(f->paths->base_dir, "c", "1", "m0", "data", NULL);

    bind_volume(f, 1, "m0/data", ".", FALSE);
    Peer peer = peer_start(file);
    g_assert_false(sv_share_release(f->paths, 1, FALSE, NULL, &error));
    g_assert_true(sv_error_is(error, SV_ERR_BUSY));
    g_clear_error(&error);
    g_assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK));
    peer_stop(&peer);
    g_assert_cmpint(unlink(link), ==, 0);
    g_assert_true(sv_share_release(f->paths, 1, FALSE, NULL, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count_volumes(f), ==, 0);
}

/* A machine that is gone leaves a busy share: everything is taken away all the same. */
static void test_destroy_busy(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = in_share(f, 1, "rootfs/file");

    g_assert_true(sv_share_bind(f->paths, 1, "rootfs", f->source, TRUE, FALSE, &error));
    Peer peer = peer_start(file);
    g_assert_true(sv_share_destroy(f->paths, &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(f->paths->box_dir, G_FILE_TEST_EXISTS));
    peer_stop(&peer);
}

/* ---- a server that nobody knows */

static pid_t start_server(const char *source)
{
    const char *argv[] = {"/bin/sh", "-c", "kill -STOP $$", "virtiofsd", "-o", source, NULL};
    g_autoptr(GError) error = NULL;
    GPid pid = 0;
    /* comes back when it has become that program */
    g_spawn_async(NULL, (char **)argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, &error);
    g_assert_no_error(error);
    return pid;
}

static void test_servers(Fixture *f, gconstpointer data)
{
    g_autofree char *plain = g_strdup_printf("source=%s", f->paths->share_dir);
    g_autofree char *more = g_strdup_printf("source=%s,xattr", f->paths->share_dir);
    g_autofree char *other = g_strdup_printf("source=%s2,xattr", f->paths->share_dir);
    pid_t pids[] = {start_server(plain), start_server(more), start_server(other)};
    const SvConfig named = {.virtiofsd = (char *)"/usr/lib/sh"}, other_name = {.virtiofsd = NULL};
    int status = 0;
    sv_share_end_servers(f->paths, &other_name);
    g_assert_cmpint(waitpid(pids[0], &status, WNOHANG), ==, 0);
    sv_share_end_servers(f->paths, &named);
    for (guint i = 0; i < 2; i++) {
        g_assert_cmpint(waitpid(pids[i], &status, 0), ==, pids[i]);
        g_assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    g_assert_cmpint(waitpid(pids[2], &status, WNOHANG), ==, 0);
    kill(pids[2], SIGKILL);
    g_assert_cmpint(waitpid(pids[2], &status, 0), ==, pids[2]);
}

#define ADD(name, func) g_test_add("/share/" name, Fixture, NULL, set_up, func, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0) {
        g_print("1..0 # SKIP needs root and mount namespaces\n");
        return 0;
    }
    ADD("servers", test_servers);
    ADD("make", test_make);
    ADD("make-fails", test_make_fails);
    ADD("bind-tree", test_bind_tree);
    ADD("read-only", test_read_only);
    ADD("kinds", test_kinds);
    ADD("bind-fails", test_bind_fails);
    ADD("propagation", test_propagation);
    ADD("busy", test_busy);
    ADD("volumes", test_volumes);
    ADD("volume-unread", test_volume_unread);
    ADD("volume-submounts", test_volume_submounts);
    ADD("volume-busy", test_volume_busy);
    ADD("not-seen", test_not_seen);
    ADD("clone", test_clone);
    ADD("destroy-busy", test_destroy_busy);
    return g_test_run();
}
