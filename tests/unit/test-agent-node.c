/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Nodes inside another root; needs to be root. */
#include <config.h>

#include "agent/node.h"
#include "base/fd.h"
#include "base/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEVICE makedev(254, 16)

typedef struct {
    char *top, *root;
    int fd;
} Root;

static void root_set_up(Root *root, gconstpointer data)
{
    g_autofree char *dev = NULL;
    root->top = g_dir_make_tmp("sv-node-XXXXXX", NULL);
    root->root = g_build_filename(root->top, "root", NULL);
    dev = g_build_filename(root->root, "dev", NULL);
    g_assert_cmpint(g_mkdir_with_parents(dev, 0755), ==, 0);
    root->fd = open(root->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void root_tear_down(Root *root, gconstpointer data)
{
    sv_fd_close(root->fd);
    g_assert_true(sv_file_remove_tree(root->top, NULL));
    g_free(root->top);
    g_free(root->root);
}

static gboolean make(Root *root, const char *path, GError **error)
{
    return sv_node_make(root->fd, path, DEVICE, 0640, 1000, 6, error);
}

static gboolean look(Root *root, const char *path, struct stat *st)
{
    g_autofree char *full = g_strconcat(root->root, path, NULL);
    return lstat(full, st) == 0;
}

static void test_life(Root *root, gconstpointer data)
{
    static const char *const paths[] = {"/dev/x", "/dev/deep/er//x", "/other/x"};
    g_autoptr(GError) error = NULL;
    struct stat st;
    if (geteuid() != 0) {
        g_test_skip("not root");
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_assert_true(make(root, paths[i], &error));
        g_assert_no_error(error);
        g_assert_true(look(root, paths[i], &st));
        g_assert_cmpuint(st.st_mode, ==, S_IFBLK | 0640);
        g_assert_cmpuint(st.st_rdev, ==, DEVICE);
        g_assert_cmpuint(st.st_uid, ==, 1000);
        g_assert_cmpuint(st.st_gid, ==, 6);
        g_assert_false(make(root, paths[i], &error));
        g_assert_true(sv_error_is(error, SV_ERR_EXISTS));
        g_clear_error(&error);
        /* another's stays */
        g_assert_true(sv_node_remove(root->fd, paths[i], makedev(1, 1), &error));
        g_assert_true(look(root, paths[i], &st));
        g_assert_true(sv_node_remove(root->fd, paths[i], DEVICE, &error));
        g_assert_no_error(error);
        g_assert_false(look(root, paths[i], &st));
        g_assert_true(sv_node_remove(root->fd, paths[i], DEVICE, &error));
    }
    g_assert_true(sv_node_remove(root->fd, "/no/such/folder/x", DEVICE, &error));
}

static void test_links(Root *root, gconstpointer data)
{
    g_autofree char *up = g_build_filename(root->root, "up", NULL);
    g_autofree char *absolute = g_build_filename(root->root, "abs", NULL);
    g_autofree char *loop = g_build_filename(root->root, "loop", NULL);
    g_autofree char *file = g_build_filename(root->root, "file", NULL);
    g_autofree char *outside = g_build_filename(root->top, "x", NULL);
    g_autoptr(GError) error = NULL;
    struct stat st;
    if (geteuid() != 0) {
        g_test_skip("not root");
        return;
    }
    g_assert_cmpint(symlink("../../../..", up), ==, 0);
    g_assert_cmpint(symlink("/dev", absolute), ==, 0);
    g_assert_cmpint(symlink("loop", loop), ==, 0);
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    g_assert_true(make(root, "/up/x", &error));
    g_assert_true(look(root, "/x", &st));
    g_assert_false(g_file_test(outside, G_FILE_TEST_EXISTS));
    g_assert_true(make(root, "/abs/y", &error));
    g_assert_true(look(root, "/dev/y", &st));
    g_assert_false(make(root, "/loop/x", &error));
    g_clear_error(&error);
    g_assert_false(make(root, "/file/x", &error));
    g_assert_nonnull(strstr(error->message, "/file/x"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/agent/node/life", Root, NULL, root_set_up, test_life, root_tear_down);
    g_test_add("/agent/node/links", Root, NULL, root_set_up, test_links, root_tear_down);
    return g_test_run();
}
