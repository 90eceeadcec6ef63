/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char *dir;
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    f->dir = g_dir_make_tmp("sv-test-XXXXXX", NULL);
    g_assert_nonnull(f->dir);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(sv_file_remove_tree(f->dir, &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(f->dir, G_FILE_TEST_EXISTS));
    g_free(f->dir);
}

static guint count_entries(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

static void test_atomic(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_build_filename(f->dir, "state.json", NULL);
    g_autofree char *folder = g_build_filename(f->dir, "folder", NULL);
    g_autofree char *none = g_build_filename(f->dir, "none", "x", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    struct stat st;
    mode_t old = umask(077);
    gsize len = 0;

    g_assert_true(sv_file_write_atomic(path, "one", 3, 0644, TRUE, &error));
    g_assert_true(sv_file_write_atomic(path, "second", 6, 0644, FALSE, &error));
    umask(old);
    g_assert_true(sv_file_read(path, 100, &text, &len, &error));
    g_assert_cmpstr(text, ==, "second");
    g_assert_cmpuint(len, ==, 6);
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 0777, ==, 0644);
    g_assert_cmpuint(count_entries(f->dir), ==, 1);

    /* The rename fails: the temporary is gone. */
    g_assert_cmpint(mkdir(folder, 0700), ==, 0);
    g_assert_false(sv_file_write_atomic(folder, "x", 1, 0600, FALSE, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_assert_cmpuint(count_entries(f->dir), ==, 2);
    g_assert_false(sv_file_write_atomic(none, "x", 1, 0600, FALSE, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_false(sv_file_write_atomic("/", "x", 1, 0600, FALSE, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
}

static void test_read(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_build_filename(f->dir, "file", NULL);
    g_autofree char *fifo = g_build_filename(f->dir, "fifo", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize len = 0;

    g_assert_true(g_file_set_contents(path, "a\0b", 3, NULL));
    g_assert_true(sv_file_read(path, 3, &text, &len, &error));
    g_assert_cmpmem(text, len + 1, "a\0b", 4);
    g_clear_pointer(&text, g_free);
    g_assert_false(sv_file_read(path, 2, &text, &len, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_LIMIT);
    g_assert_nonnull(strstr(error->message, path));
    g_clear_error(&error);

    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    g_assert_false(sv_file_read(fifo, 10, &text, NULL, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    g_assert_false(sv_file_read(f->dir, 10, &text, NULL, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    g_assert_false(sv_file_read("/does/not/exist", 10, &text, NULL, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
    g_assert_null(text);
    g_assert_true(sv_file_read("/proc/self/stat", 4096, &text, &len, NULL));
    g_assert_cmpuint(len, >, 10);
}

static void test_mkdirs(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_strdup_printf("%s/a//b/c/", f->dir);
    g_autofree char *file = g_build_filename(f->dir, "file", NULL);
    g_autofree char *under = g_build_filename(f->dir, "file", "x", NULL);
    g_autoptr(GError) error = NULL;
    struct stat st;

    g_assert_true(sv_file_mkdirs(path, 0700, &error));
    g_assert_true(sv_file_mkdirs(path, 0700, &error));
    g_assert_true(sv_file_mkdirs("/", 0700, &error));
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 0777, ==, 0700);
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    g_assert_false(sv_file_mkdirs(file, 0700, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_assert_false(sv_file_mkdirs(under, 0700, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_assert_false(sv_file_mkdirs("", 0700, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
}

static void test_remove(Fixture *f, gconstpointer data)
{
    g_autofree char *tree = g_build_filename(f->dir, "tree", NULL);
    g_autofree char *sub = g_build_filename(tree, "sub", NULL);
    g_autofree char *kept = g_build_filename(f->dir, "kept", NULL);
    g_autofree char *kept_file = g_build_filename(kept, "file", NULL);
    g_autofree char *link = g_build_filename(sub, "link", NULL);
    g_autofree char *link_top = g_build_filename(f->dir, "link", NULL);
    g_autofree char *plain = g_build_filename(sub, "plain", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(sv_file_mkdirs(sub, 0700, NULL));
    g_assert_true(sv_file_mkdirs(kept, 0700, NULL));
    g_assert_true(g_file_set_contents(kept_file, "", 0, NULL));
    g_assert_true(g_file_set_contents(plain, "", 0, NULL));
    g_assert_cmpint(symlink(kept, link), ==, 0);
    g_assert_cmpint(symlink(kept, link_top), ==, 0);
    g_assert_true(sv_file_remove_tree(tree, &error));
    g_assert_false(g_file_test(tree, G_FILE_TEST_EXISTS));
    g_assert_true(sv_file_remove_tree(link_top, &error));
    g_assert_true(g_file_test(kept_file, G_FILE_TEST_EXISTS));
    g_assert_true(sv_file_remove_tree(kept_file, &error));
    g_assert_true(sv_file_remove_tree(kept_file, &error)); /* missing */
    g_assert_true(sv_file_remove_tree("/does/not/exist", &error));
    g_assert_no_error(error);
}

/* Deeper than any stack or table of descriptors likes; with names in the way of the temporary ones. */
static void test_remove_deep(Fixture *f, gconstpointer data)
{
    g_autofree char *tree = g_build_filename(f->dir, "tree", NULL);
    g_autofree char *in_way = g_build_filename(tree, ".rm-0", NULL);
    g_autoptr(GError) error = NULL;
    int fd;

    g_assert_true(sv_file_mkdirs(in_way, 0700, NULL));
    fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {
        int next;

        g_assert_cmpint(mkdirat(fd, "d", 0700), ==, 0);
        g_assert_cmpint(mkdirat(fd, "e", 0700), ==, 0);
        next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        sv_fd_close(fd);
        fd = next;
    }
    sv_fd_close(fd);
    g_assert_true(sv_file_remove_tree(tree, &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(tree, G_FILE_TEST_EXISTS));
}

static void test_remove_mount(Fixture *f, gconstpointer data)
{
    g_autofree char *tree = g_build_filename(f->dir, "tree", NULL);
    g_autofree char *at = g_build_filename(tree, "mnt", NULL);
    g_autofree char *inside = g_build_filename(at, "precious", NULL);
    g_autofree char *other = g_build_filename(tree, "z-other", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(sv_file_mkdirs(at, 0700, NULL));
    g_assert_true(g_file_set_contents(other, "", 0, NULL));
    g_assert_true(g_file_set_contents(inside, "", 0, NULL));
    if (mount(at, at, NULL, MS_BIND, NULL) < 0) {
        g_test_skip("not allowed to mount");
        return;
    }
    g_assert_false(sv_file_remove_tree(tree, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_BUSY);
    g_clear_error(&error);
    g_assert_false(sv_file_remove_tree(at, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_BUSY);
    g_assert_true(g_file_test(inside, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(other, G_FILE_TEST_EXISTS)); /* the rest was tried */
    g_assert_cmpint(umount2(at, MNT_DETACH), ==, 0);
}

static void test_lock(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_build_filename(f->dir, "lock", NULL);
    g_autofree char *none = g_build_filename(f->dir, "none", "lock", NULL);
    g_autoptr(GError) error = NULL;
    struct stat st;
    int fd = sv_file_lock(path, &error);

    g_assert_no_error(error);
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 0777, ==, 0600);
    g_assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    g_assert_cmpint(sv_file_lock(path, &error), ==, -1);
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_BUSY);
    g_clear_error(&error);
    sv_fd_clear(&fd);
    fd = sv_file_lock(path, &error);
    g_assert_cmpint(fd, >=, 0);
    sv_fd_clear(&fd);
    g_assert_cmpint(sv_file_lock(none, &error), ==, -1);
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
}

static void test_tail(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_build_filename(f->dir, "console", NULL);
    g_autofree char *all = NULL;
    g_autofree char *part = NULL;
    g_autofree char *missing = sv_file_tail("/does/not/exist", 10);
    g_autofree char *folder = sv_file_tail("/", 10);

    g_assert_true(g_file_set_contents(path, "one\r\n\x1b[0mtwo\n\0three", 19, NULL));
    all = sv_file_tail(path, 1000);
    g_assert_cmpstr(all, ==, "one\n\\x1b[0mtwo\n\\x00three");
    part = sv_file_tail(path, 5);
    g_assert_cmpstr(part, ==, "three");
    g_assert_cmpstr(missing, ==, "");
    g_assert_cmpstr(folder, ==, "");
}

static void test_open_parent(Fixture *f, gconstpointer data)
{
    static const char *const bad[] = {"", "/", "a/", ".", "..", "/tmp/..", "/tmp/."};
    g_autofree char *name = NULL;
    g_auto(SvFd) fd = sv_file_open_parent("/file", &name, NULL);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpstr(name, ==, "file");
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(sv_file_open_parent(bad[i], &name, &error), ==, -1);
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
    }
}

#define ADD(name, func) g_test_add("/file/" name, Fixture, NULL, set_up, func, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("atomic", test_atomic);
    ADD("read", test_read);
    ADD("mkdirs", test_mkdirs);
    ADD("remove", test_remove);
    ADD("remove-deep", test_remove_deep);
    ADD("remove-mount", test_remove_mount);
    ADD("lock", test_lock);
    ADD("tail", test_tail);
    ADD("open-parent", test_open_parent);
    return g_test_run();
}
