/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/file.h"
#include "core/paths.h"
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static SvConfig config = {
    .run_dir = (char *)"/run/sandvirt",
    .launcher_socket = (char *)"",
    .image_dir = (char *)"/var/lib/sandvirt/images",
};

static SvPaths *paths_new(const char *root, const char *sandbox)
{
    g_autoptr(GError) error = NULL;
    SvPaths *paths = sv_paths_new(&config, root, sandbox, FALSE, &error);

    g_assert_no_error(error);
    return paths;
}

static void test_layout(void)
{
    g_autoptr(SvPaths) p = paths_new(NULL, "box");

    g_assert_cmpstr(p->root, ==, "/run/sandvirt");
    g_assert_cmpstr(p->state_dir, ==, "/run/sandvirt/.sandbox/box");
    g_assert_cmpstr(p->sandbox_file, ==, "/run/sandvirt/.sandbox/box/sandbox.json");
    g_assert_cmpstr(p->lock_file, ==, "/run/sandvirt/.sandbox/box/lock");
    g_assert_cmpuint(strlen(p->hash), ==, 16);
    g_assert_cmpstr(p->launcher_socket, ==, "/run/sandvirt/.sock/launcher");
    g_assert_true(g_str_has_suffix(p->monitor_socket, ".monitor"));
    g_assert_true(g_str_has_prefix(p->boot_kernel, "/var/lib/sandvirt/boot/"));
    g_assert_cmpstr(p->domain_name, ==, "sandvirt-box");
    g_assert_cmpuint(strlen(p->domain_uuid), ==, 36);
    g_assert_cmpint(p->domain_uuid[14], ==, '8');
}

/* Two pods never share a domain, socket or folder. */
static void test_distinct(void)
{
    static const char *const roots[] = {NULL, "/nonexistent/other", "/nonexistent/other2"};
    g_autofree char *long1 = g_strnfill(250, 'a');
    g_autofree char *long2 = g_strnfill(250, 'a');
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    long2[249] = 'b';
    const char *ids[] = {ID64, "a", "b", long1, long2};
    for (gsize r = 0; r < G_N_ELEMENTS(roots); r++)
        for (gsize i = 0; i < G_N_ELEMENTS(ids); i++) {
            g_autoptr(SvPaths) p = paths_new(roots[r], ids[i]);

            g_assert_true(g_hash_table_add(seen, g_strdup(p->domain_name)));
            g_assert_true(g_hash_table_add(seen, g_strdup(p->domain_uuid)));
            g_assert_true(g_hash_table_add(seen, g_strdup(p->hash)));
            g_assert_cmpuint(strlen(p->domain_name), <=, 100);
            g_assert_cmpuint(strlen(p->monitor_socket), <=, 107);
            g_assert_cmpuint(strlen(p->agent_socket), <=, 107);
        }
    g_autoptr(SvPaths) plain = paths_new(NULL, ID64);
    g_assert_cmpstr(plain->domain_name, ==, "sandvirt-" ID64);
}

/* The same names before and after the root is made, and through a symlink. */
static void test_root(void)
{
    g_autofree char *tmp = g_dir_make_tmp("sv-paths-XXXXXX", NULL);
    g_autofree char *root = g_build_filename(tmp, "a", "b", "root", NULL);
    g_autofree char *link = g_build_filename(tmp, "link", NULL);
    g_autofree char *through = g_build_filename(link, "b", "root", NULL);
    g_autoptr(SvPaths) before = paths_new(root, "box");
    g_autoptr(GError) error = NULL;
    struct stat st;

    g_assert_cmpint(stat(root, &st), ==, -1);
    g_autoptr(SvPaths) made = sv_paths_new(&config, root, "box", TRUE, &error);
    g_assert_no_error(error);
    g_assert_cmpint(stat(root, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 07777, ==, 0700);
    g_assert_cmpstr(before->hash, ==, made->hash);
    g_assert_cmpstr(before->root, ==, made->root);

    g_assert_cmpint(symlink("a", link), ==, 0);
    g_autoptr(SvPaths) linked = sv_paths_new(&config, through, "box", TRUE, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(linked->root, ==, made->root);
    g_assert_cmpstr(linked->domain_uuid, ==, made->domain_uuid);
    g_assert_true(sv_file_remove_tree(tmp, &error));
}

static void test_errors(void)
{
    static const char *const bad[] = {"", ".", "..", ".x", "a/b", "a b", "x\ny", "é", "x\xff"};
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_null(sv_paths_new(&config, NULL, bad[i], FALSE, &error));
        g_assert_true(sv_error_is(error, SV_ERR_INVALID));
        g_clear_error(&error);
    }
    g_assert_null(sv_paths_new(&config, "", "box", FALSE, &error));
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
    g_clear_error(&error);
    g_assert_null(sv_paths_new(&config, "/proc/self/nosuch/root", "box", TRUE, &error));
    g_assert_nonnull(error);
}

static void test_container(void)
{
    g_autofree char *dir = sv_paths_container_dir("/r", "c");
    g_autofree char *file = sv_paths_container_file("/r", "c");

    g_assert_cmpstr(dir, ==, "/r/c");
    g_assert_cmpstr(file, ==, "/r/c/state.json");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/paths/layout", test_layout);
    g_test_add_func("/paths/distinct", test_distinct);
    g_test_add_func("/paths/root", test_root);
    g_test_add_func("/paths/errors", test_errors);
    g_test_add_func("/paths/container", test_container);
    return g_test_run();
}
