/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent's parsers. */
#include "agent/agent-error.h"
#include "agent/block.h"
#include "agent/cgroup.h"
#include "agent/crun-error.h"
#include "agent/module.h"
#include "agent/port.h"
#include "agent/ps.h"
#include "agent/setup.h"
#include "agent/uevent.h"
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mount.h>

static void test_uevent(void)
{
    const char good[] = "add@/devices/x/block/vda\0ACTION=add\0DEVPATH=/devices/x/block/vda\0"
                        "SUBSYSTEM=block\0DEVNAME=vda\0SEQNUM=7";
    const char foreign[] = "libudev\0ACTION=add\0DEVPATH=/x";
    SvUevent event;

    g_assert_true(sv_uevent_parse(good, sizeof(good), &event));
    g_assert_cmpstr(event.action, ==, "add");
    g_assert_cmpstr(event.devpath, ==, "/devices/x/block/vda");
    g_assert_cmpstr(event.subsystem, ==, "block");
    g_assert_cmpstr(event.devname, ==, "vda");
    g_assert_false(sv_uevent_parse(foreign, sizeof(foreign), &event));
    g_assert_false(sv_uevent_parse("", 0, &event));
    g_assert_false(sv_uevent_parse("add@/x", 6, &event)); /* no NUL at the end */
    g_assert_false(sv_uevent_parse("add@/x", 7, &event)); /* nothing after the head */
    for (gsize len = 0; len < sizeof(good); len++) {
        g_autofree char *copy = g_memdup2(good, MAX(len, 1));

        sv_uevent_parse(copy, len, &event);
    }
}

static void check_program(
    const char *program, const char *text, int status, SvErr code, const char *want)
{
    g_autoptr(GError) error = sv_crun_error("exec", program, text, status);

    g_assert_true(g_error_matches(error, SV_AGENT_ERROR, (int)code));
    g_assert_cmpstr(error->message, ==, want);
}

static void check_crun(const char *text, int status, SvErr code, const char *want)
{
    check_program(NULL, text, status, code, want);
    check_program("", text, status, code, want);
}

static void test_crun_error(void)
{
    check_crun("executable file `nosuch` not found in $PATH: No such file or directory\n", 1,
        SV_ERR_EXEC_NOT_FOUND, "exec: \"nosuch\": executable file not found in $PATH");
    check_crun("executable file `/no/such` not found in $PATH: No such file or directory\n", 1,
        SV_ERR_EXEC_NOT_FOUND, "exec: \"/no/such\": stat /no/such: no such file or directory");
    check_crun("executable file `a`b\n` not found in $PATH", 1, SV_ERR_EXEC_NOT_FOUND,
        "exec: \"a`b\\x0a\": executable file not found in $PATH");
    check_crun("open executable: Permission denied\n", 1, SV_ERR_EXEC_DENIED,
        "open executable: permission denied");
    check_crun("open executable: Operation not permitted\n", 1, SV_ERR_EXEC_DENIED,
        "open executable: permission denied");
    check_crun("open executable: Too many levels of symbolic links\n", 1, SV_ERR_FAILED,
        "crun exec: open executable: Too many levels of symbolic links");
    check_program("/a/b\n", "open executable: Permission denied\n", 1, SV_ERR_EXEC_DENIED,
        "exec: \"/a/b\\x0a\": permission denied");
    check_program("/a", "open executable: Operation not permitted\n", 1, SV_ERR_EXEC_DENIED,
        "exec: \"/a\": permission denied");
    check_program("a", "open executable: Permission denied\n", 1, SV_ERR_EXEC_NOT_FOUND,
        "exec: \"a\": executable file not found in $PATH");
    check_program("/a/b", "open executable: Not a directory\n", 1, SV_ERR_EXEC_DENIED,
        "exec: \"/a/b\": stat /a/b: not a directory");
    check_program("./a", "executable file `./a` not found in $PATH: No such file or directory\n", 1,
        SV_ERR_EXEC_NOT_FOUND, "exec: \"./a\": stat ./a: no such file or directory");
    check_program("a", "one\n", 1, SV_ERR_FAILED, "crun exec: one");
    check_crun("the container `c` is not running\n", 1, SV_ERR_NOT_RUNNING,
        "crun exec: the container `c` is not running");
    check_crun("one\n\n  two \n", 1, SV_ERR_FAILED, "crun exec: one; two");
    check_crun("", 3, SV_ERR_FAILED, "crun exec failed with status 3");
    check_crun(NULL, 137, SV_ERR_FAILED, "crun exec was killed by signal 9");
}

static void test_ps_stat(void)
{
    const char *text = "42 (a) R (b) S 7 43 44 34817 45 4194560 1 2 3 4 150 50 0 0 20 -5 6 0 12345 "
                       "8192 2 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0";
    SvPsStat stat;

    g_assert_true(sv_ps_parse_stat(text, &stat));
    g_assert_cmpstr(stat.comm, ==, "a) R (b");
    g_assert_cmpint(stat.state, ==, 'S');
    g_assert_cmpint(stat.ppid, ==, 7);
    g_assert_cmpint(stat.tty, ==, 34817);
    g_assert_cmpuint(stat.cpu_ticks, ==, 200);
    g_assert_cmpuint(stat.start_ticks, ==, 12345);
    g_assert_cmpint(stat.pgid, ==, 43);
    g_assert_cmpint(stat.sid, ==, 44);
    g_assert_cmpint(stat.tpgid, ==, 45);
    g_assert_cmpuint(stat.flags, ==, 4194560);
    g_assert_cmpint(stat.priority, ==, 20);
    g_assert_cmpint(stat.nice, ==, -5);
    g_assert_cmpint(stat.threads, ==, 6);
    g_assert_cmpuint(stat.vsize, ==, 8192);
    g_assert_cmpint(stat.rss, ==, 2);
    g_assert_cmpint(stat.processor, ==, 3);
    g_assert_false(sv_ps_parse_stat("", &stat));
    g_assert_false(sv_ps_parse_stat("42 (a", &stat));
    g_assert_false(sv_ps_parse_stat("42 )a(", &stat));
    g_assert_false(sv_ps_parse_stat("42 (a) S 7", &stat));
}

static void test_serial(void)
{
    const guint8 page[] = {0, 0x80, 0, 6, ' ', 'a', 'b', 'c', ' ', ' ', 'x'};
    g_autofree char *serial = sv_block_parse_vpd80(page, sizeof(page));

    g_assert_cmpstr(serial, ==, "abc");
    g_assert_null(sv_block_parse_vpd80(page, 3));
    g_assert_null(sv_block_parse_vpd80(page, 9));
    g_assert_true(sv_block_serial_matches("abc", "abc"));
    g_assert_false(sv_block_serial_matches("abc", "abcd"));
    g_assert_false(sv_block_serial_matches("", ""));
    g_assert_true(sv_block_serial_matches("01234567890123456789", "0123456789012345678901"));
    g_assert_false(sv_block_serial_matches("01234567890123456789", "0123456789012345678"));
}

static void put(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);

    g_assert_cmpint(g_mkdir_with_parents(parent, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void test_port(void)
{
    g_autofree char *dir = g_dir_make_tmp("sv-agent-XXXXXX", NULL);
    g_autofree char *command = g_strdup_printf("rm -rf %s", dir);
    g_autofree char *port = NULL;

    put(dir, "vport0p1/name", "org.sandvirt.agent.0\n");
    port = sv_port_find(dir, SV_PORT_NAME);
    g_assert_cmpstr(port, ==, "vport0p1");
    g_assert_null(sv_port_find(dir, "other"));
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
}

static void test_mount_flags(void)
{
    g_autofree char *data = NULL;
    g_autofree char *none = NULL;

    g_assert_cmpuint(
        sv_block_mount_flags("ro,noatime,errors=remount-ro,rw,,x=y", FALSE, &data), ==, MS_NOATIME);
    g_assert_cmpstr(data, ==, "errors=remount-ro,x=y");
    g_assert_cmpuint(sv_block_mount_flags("", TRUE, &none), ==, MS_RDONLY);
    g_assert_cmpstr(none, ==, "");
}

static void check_sysctl(const char *key, const char *want)
{
    g_autofree char *path = sv_setup_sysctl_path(key);

    g_assert_cmpstr(path, ==, want);
}

static void test_sysctl(void)
{
    check_sysctl("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward");
    check_sysctl("net/ipv4/conf/eth0.1/forwarding", "/proc/sys/net/ipv4/conf/eth0.1/forwarding");
    check_sysctl("", NULL);
    check_sysctl("/etc/passwd", NULL);
    check_sysctl("a..b", NULL);
    check_sysctl("../../etc/passwd", NULL);
}

static void test_modules(void)
{
    g_autoptr(SvModules) modules = sv_modules_parse("# comment\nchannel /a.ko\nlate /b.ko\n"
                                                    "broken\nlate relative\nlate /c.ko\n");
    g_autoptr(GPtrArray) late = sv_modules_pending(modules, "late");
    g_autoptr(GPtrArray) none = sv_modules_pending(modules, "fs-xfs");

    g_assert_cmpuint(late->len, ==, 2);
    g_assert_cmpstr(g_ptr_array_index(late, 0), ==, "/b.ko");
    g_assert_cmpstr(g_ptr_array_index(late, 1), ==, "/c.ko");
    g_assert_cmpuint(none->len, ==, 0);
}

static void test_cgroup_value(void)
{
    const char *text = "low 0\noom 3\noom_kill 2\n";

    g_assert_cmpuint(sv_cgroup_value(text, "oom_kill"), ==, 2);
    g_assert_cmpuint(sv_cgroup_value(text, "oom"), ==, 3);
    g_assert_cmpuint(sv_cgroup_value(text, "missing"), ==, 0);
    g_assert_cmpuint(sv_cgroup_value("", "low"), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agent/uevent", test_uevent);
    g_test_add_func("/agent/crun-error", test_crun_error);
    g_test_add_func("/agent/ps-stat", test_ps_stat);
    g_test_add_func("/agent/serial", test_serial);
    g_test_add_func("/agent/port", test_port);
    g_test_add_func("/agent/mount-flags", test_mount_flags);
    g_test_add_func("/agent/sysctl", test_sysctl);
    g_test_add_func("/agent/modules", test_modules);
    g_test_add_func("/agent/cgroup-value", test_cgroup_value);
    return g_test_run();
}
