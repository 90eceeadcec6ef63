/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/cgroup-mark.h"
#include "core/host-cgroup.h"

#include "base/file.h"
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static void check_path(const char *text, gboolean systemd, const char *path, const char *slice)
{
    g_autofree char *got_slice = NULL, *unit = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *got = sv_cgroup_path(text, systemd, &got_slice, &unit, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(got, ==, path);
    g_assert_cmpstr(got_slice, ==, slice);
}

static void test_paths(void)
{
    g_autofree char *slice = NULL, *unit = NULL;
    g_autoptr(GError) error = NULL;
    check_path("/kubepods/podX/crio-1", FALSE, "/kubepods/podX/crio-1", NULL);
    check_path("relative/a", TRUE, "/relative/a", NULL);
    check_path("a:b:c", FALSE, "/a:b:c", NULL);
    check_path("kubepods-burstable-pod1.slice:crio:abc", TRUE,
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/crio-abc.scope",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice");
    check_path(":docker:abc", TRUE, "/system.slice/docker-abc.scope", "/system.slice");
    check_path("-.slice:p:n", TRUE, "/p-n.scope", "");
    g_assert_null(sv_cgroup_path("/a/../b", FALSE, &slice, &unit, &error));
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
}

static char *fake_top(gboolean v2)
{
    char *top = g_dir_make_tmp("cgroup-XXXXXX", NULL);
    const char *names[] = {v2 ? "" : "cpu", v2 ? "" : "devices"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *folder = g_build_filename(top, names[i], NULL);
        g_autofree char *procs = g_build_filename(folder, "cgroup.procs", NULL);
        g_mkdir_with_parents(folder, 0755);
        g_assert_true(g_file_set_contents(procs, "", 0, NULL));
    }
    return top;
}

static gboolean is_dir(const char *top, const char *hierarchy, const char *path)
{
    g_autofree char *folder = g_build_filename(top, hierarchy, path, NULL);
    return g_file_test(folder, G_FILE_TEST_IS_DIR);
}

static void check_tree(gboolean v2)
{
    g_autofree char *top = fake_top(v2), *made = NULL, *again = NULL;
    g_autoptr(GError) error = NULL;
    const char *first = v2 ? "" : "cpu";
    g_autofree char *engines = g_build_filename(top, first, "pods", NULL);
    g_assert_cmpint(g_mkdir(engines, 0755), ==, 0);

    g_assert_true(sv_cgroup_make(top, "/pods/a/b", NULL, &made, &error));
    /* in the other hierarchy of version 1 "pods" was missing too */
    g_assert_cmpstr(made, ==, v2 ? "/pods/a" : "/pods");
    g_assert_true(is_dir(top, first, "pods/a/b"));
    g_assert_true(sv_cgroup_make(top, "/pods/a/b", NULL, &again, &error));
    g_assert_null(again);
    /* what is not empty stays, with everything above it */
    g_autofree char *busy = g_build_filename(top, first, "pods/a/other", NULL);
    g_assert_cmpint(g_mkdir(busy, 0755), ==, 0);
    sv_cgroup_remove(top, "/pods/a/b", made);
    g_assert_false(is_dir(top, first, "pods/a/b"));
    g_assert_true(is_dir(top, first, "pods/a"));
    g_assert_cmpint(g_rmdir(busy), ==, 0);
    sv_cgroup_remove(top, "/pods/a/b", "/pods/a");
    g_assert_false(is_dir(top, first, "pods/a"));
    g_assert_true(is_dir(top, first, "pods"));
    g_assert_true(sv_file_remove_tree(top, &error));
}

static void test_v1(void)
{
    check_tree(FALSE);
}

static void test_v2(void)
{
    check_tree(TRUE);
}

static void test_enter(void)
{
    g_autofree char *top = fake_top(FALSE), *cpu = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_build_filename(top, "cpu/x", NULL);
    g_autofree char *file = g_build_filename(folder, "cgroup.procs", NULL);
    g_mkdir(folder, 0755);
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    g_assert_true(sv_cgroup_enter(top, "/x", 1234, TRUE, &error));
    g_assert_true(g_file_get_contents(file, &cpu, NULL, NULL));
    g_assert_cmpstr(cpu, ==, "1234");
    /* "devices" has no such group */
    g_assert_false(sv_cgroup_enter(top, "/x", 1234, FALSE, &error));
    g_clear_error(&error);
    /* back to where libvirt had it, which is above "emulator" */
    g_assert_true(
        sv_cgroup_return(top, "1:cpu:/x/emulator\n2:memory:/nowhere\n0::/y\n", 99, TRUE, &error));
    g_autofree char *back = NULL;
    g_assert_true(g_file_get_contents(file, &back, NULL, NULL));
    g_assert_cmpstr(back, ==, "9934");
    g_assert_true(sv_file_remove_tree(top, &error));
}

/* What was made is told apart from what was there. */
static void test_marks(void)
{
    g_autofree char *top = fake_top(TRUE), *made = NULL;
    g_autofree char *engines = g_build_filename(top, "pods", NULL);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(g_mkdir(engines, 0755), ==, 0);
    g_assert_true(sv_cgroup_make(top, "/pods/a/b", "box\n/run/root\n", &made, &error));
    g_autoptr(GPtrArray) marks = sv_cgroup_marks(top);
    if (marks->len > 0) {
        const SvCgroupMark *inner = marks->pdata[0], *outer = marks->pdata[1];
        g_assert_cmpuint(marks->len, ==, 2);
        g_assert_true(g_str_has_suffix(inner->folder, "/pods/a/b"));
        g_assert_true(g_str_has_suffix(outer->folder, "/pods/a"));
        g_assert_cmpstr(inner->root, ==, "/run/root");
        g_assert_cmpstr(inner->sandbox, ==, "box");
    } else {
        g_test_skip("no marks on this file system");
    }
    g_assert_true(sv_file_remove_tree(top, &error));
}

static void make_machine(const char *top, const char *hierarchy, const char *name)
{
    g_autofree char *folder = g_build_filename(top, hierarchy, "machine", name, "emulator", NULL);
    g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
}

/* What libvirt has forgotten of one machine, and of no other. */
static void test_machine(void)
{
    g_autoptr(GError) error = NULL;
    const char *domain = "sandvirt-a_-.b@0123456789abcdef";
    g_autofree char *id = g_strnfill(64, 'e');
    g_autofree char *plain = g_strdup_printf("sandvirt-%s", id);
    g_autofree char *cut = g_strdup_printf("qemu-7-%.57s.libvirt-qemu", plain);
    g_autofree char *other = g_strdup_printf("qemu-7-%.56s.libvirt-qemu", plain);
    for (int v2 = 0; v2 < 2; v2++) {
        g_autofree char *top = fake_top(v2);
        const char *const hierarchies[] = {v2 ? "" : "cpu", v2 ? "" : "devices"};
        const char *const stay[] = {"qemu-1-sandvirt-a-b0123456789abcdef-1.libvirt-qemu",
            "qemu-1-sandvirt-a.libvirt-qemu", "qemu--sandvirt-a-b0123456789abcdef.libvirt-qemu",
            "qemu-1-sandvirt-a-b0123456789abcdef", "lxc-1-sandvirt-a-b0123456789abcdef.libvirt-lxc",
            other};
        sv_cgroup_remove_machine(top, domain); /* no such place */
        for (guint h = 0; h < 2; h++) {
            make_machine(top, hierarchies[h], "qemu-1-sandvirt-a-b0123456789abcdef.libvirt-qemu");
            make_machine(top, hierarchies[h], "qemu-23-sandvirt-a-b0123456789abcdef.libvirt-qemu");
            make_machine(top, hierarchies[h], cut);
            for (guint i = 0; i < G_N_ELEMENTS(stay); i++)
                make_machine(top, hierarchies[h], stay[i]);
        }
        sv_cgroup_remove_machine(top, domain);
        sv_cgroup_remove_machine(top, plain);
        for (guint h = 0; h < 2; h++) {
            g_autofree char *place = g_build_filename(top, hierarchies[h], "machine", NULL);
            g_autoptr(GDir) dir = g_dir_open(place, 0, NULL);
            guint n = 0;
            while (g_dir_read_name(dir))
                n++;
            g_assert_cmpuint(n, ==, G_N_ELEMENTS(stay));
            for (guint i = 0; i < G_N_ELEMENTS(stay); i++) {
                g_autofree char *below = g_build_filename("machine", stay[i], "emulator", NULL);
                g_assert_true(is_dir(top, hierarchies[h], below));
            }
        }
        g_assert_true(sv_file_remove_tree(top, &error));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host-cgroup/paths", test_paths);
    g_test_add_func("/host-cgroup/v1", test_v1);
    g_test_add_func("/host-cgroup/v2", test_v2);
    g_test_add_func("/host-cgroup/enter", test_enter);
    g_test_add_func("/host-cgroup/marks", test_marks);
    g_test_add_func("/host-cgroup/machine", test_machine);
    return g_test_run();
}
