/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mount points in a rootfs with all kinds of symlinks: made inside, never outside. */
#include <config.h>

#include "base/file.h"
#include "core/mountpoints.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char *tmp, *root;
} Fixture;

static void set_up(Fixture *f, gconstpointer data)
{
    f->tmp = g_dir_make_tmp("sv-mountpoints-XXXXXX", NULL);
    f->root = g_build_filename(f->tmp, "rootfs", NULL);
    g_assert_cmpint(mkdir(f->root, 0755), ==, 0);
}

static void tear_down(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    /* Only the rootfs is there. */
    g_assert_true(sv_file_remove_tree(f->root, &error));
    g_assert_cmpint(rmdir(f->tmp), ==, 0);
    g_free(f->tmp);
    g_free(f->root);
}

static void link_in(Fixture *f, const char *name, const char *target)
{
    g_autofree char *path = g_build_filename(f->root, name, NULL);

    g_assert_cmpint(symlink(target, path), ==, 0);
}

static gboolean make(Fixture *f, const char *destination, gboolean is_dir, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{\"root\":{\"path\":\"rootfs\"},\"process\":{\"args\":[\"a\"],\"cwd\":\"/srv/dir\"},"
        "\"mounts\":[{\"destination\":\"%s\",\"source\":\"/x\",\"options\":[\"bind\"]},"
        "{\"destination\":\"/dev\",\"type\":\"tmpfs\"},{\"destination\":\"/dev/"
        "pts\",\"type\":\"devpts\"}]}",
        destination);
    g_autoptr(SvSpec) spec = sv_spec_parse(text, strlen(text), f->tmp, error);
    SvSourceInfo sources[3] = {{.is_dir = is_dir}};

    g_assert_nonnull(spec);
    return sv_mountpoints_make(spec, sources, error);
}

static void assert_is(Fixture *f, const char *name, mode_t type)
{
    g_autofree char *path = g_build_filename(f->root, name, NULL);
    struct stat st;

    g_test_message("%s", name);
    if (type == 0) {
        g_assert_cmpint(lstat(path, &st), ==, -1);
        return;
    }
    g_assert_cmpint(lstat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & S_IFMT, ==, type);
}

static void test_plain(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(make(f, "/a/b/file", FALSE, &error));
    g_assert_true(make(f, "/c/dir", TRUE, &error));
    g_assert_true(make(f, "/c/dir", TRUE, &error));
    g_assert_true(make(f, "/../../up", TRUE, &error));
    g_assert_no_error(error);
    assert_is(f, "a/b/file", S_IFREG);
    assert_is(f, "c/dir", S_IFDIR);
    assert_is(f, "up", S_IFDIR);
    assert_is(f, "dev", S_IFDIR);
    assert_is(f, "dev/pts", 0);
    assert_is(f, "srv/dir", S_IFDIR);
}

static void test_links(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *var = g_build_filename(f->root, "var", NULL);

    g_assert_cmpint(mkdir(var, 0755), ==, 0);
    link_in(f, "var/run", "/run");
    link_in(f, "var/lock", "../lock");
    link_in(f, "localtime", "/usr/share/x");
    link_in(f, "up", "../../../../tmp2");
    g_assert_true(make(f, "/var/run/a", TRUE, &error));
    g_assert_true(make(f, "/var/lock/b", FALSE, &error));
    g_assert_true(make(f, "/localtime", FALSE, &error));
    g_assert_true(make(f, "/up/c", TRUE, &error));
    g_assert_no_error(error);
    assert_is(f, "run/a", S_IFDIR);
    assert_is(f, "lock/b", S_IFREG);
    assert_is(f, "usr/share/x", S_IFREG);
    assert_is(f, "tmp2/c", S_IFDIR);
    assert_is(f, "var/run", S_IFLNK);
}

static void test_errors(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = g_build_filename(f->root, "file", NULL);

    link_in(f, "x", "/y");
    link_in(f, "y", "x");
    g_assert_false(make(f, "/x/a", TRUE, &error));
    g_assert_nonnull(strstr(error->message, "mounts[0]"));
    g_clear_error(&error);
    g_assert_true(g_file_set_contents(file, "x", -1, NULL));
    g_assert_false(make(f, "/file/below", TRUE, &error));
    g_clear_error(&error);
    g_assert_true(sv_file_remove_tree(f->root, &error));
    g_assert_false(make(f, "/a", TRUE, &error));
    g_assert_true(sv_error_is(error, SV_ERR_NOT_FOUND));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/mountpoints/plain", Fixture, NULL, set_up, test_plain, tear_down);
    g_test_add("/mountpoints/links", Fixture, NULL, set_up, test_links, tear_down);
    g_test_add("/mountpoints/errors", Fixture, NULL, set_up, test_errors, tear_down);
    return g_test_run();
}
