/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/command.h"
#include "base/fd.h"
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static pid_t start_sleep(int *pidfd)
{
    g_autoptr(SvCommand) cmd = sv_command_new("/bin/sleep");
    g_autoptr(GError) error = NULL;
    pid_t pid = 0;

    sv_command_add_arg(cmd, "1000");
    g_assert_true(sv_command_spawn(cmd, &pid, pidfd, &error));
    g_assert_no_error(error);
    return pid;
}

static void test_boot_id(void)
{
    g_autofree char *id = sv_process_boot_id();

    g_assert_cmpuint(strlen(id), ==, 36);
}

static void test_start_time(void)
{
    guint64 ticks = 0;

    g_assert_true(sv_process_start_time(getpid(), &ticks));
    g_assert_cmpuint(ticks, >, 0);
    g_assert_false(sv_process_start_time(0, &ticks));
    g_assert_false(sv_process_start_time(-1, &ticks));
    g_assert_false(sv_process_start_time(0x7ffffff0, &ticks));
}

/* The name of a process is its own choice. */
static void test_hostile_name(void)
{
    guint64 before = 0, after = 0;

    g_assert_true(sv_process_start_time(getpid(), &before));
    g_assert_cmpint(prctl(PR_SET_NAME, ") Z 1 2 (3) 4", 0, 0, 0), ==, 0);
    g_assert_true(sv_process_start_time(getpid(), &after));
    g_assert_cmpuint(before, ==, after);
    g_assert_true(sv_process_is(getpid(), before, NULL));
}

static void test_is(void)
{
    g_autofree char *boot = sv_process_boot_id();
    guint64 ticks = 0, init_ticks = 0;
    int pidfd = -1;
    pid_t pid = start_sleep(&pidfd);

    g_assert_true(sv_process_start_time(pid, &ticks));
    g_assert_true(sv_process_is(pid, ticks, boot));
    g_assert_true(sv_process_is(pid, ticks, NULL));
    g_assert_false(sv_process_is(pid, ticks + 1, boot));
    g_assert_false(sv_process_is(pid, ticks, "other"));
    g_assert_false(sv_process_is(pid, ticks, ""));
    g_assert_false(sv_process_is(0, 0, NULL));
    g_assert_true(sv_process_start_time(1, &init_ticks));
    g_assert_false(sv_process_is(1, init_ticks, NULL));

    g_assert_cmpint(sv_process_open(pid, ticks + 1), ==, -1);
    g_assert_cmpint(errno, ==, ESRCH);
    g_assert_true(sv_process_signal(pidfd, SIGKILL));
    g_assert_cmpint(sv_fd_wait(pidfd, POLLIN, -1), >, 0);
    /* A zombie is gone. */
    g_assert_false(sv_process_is(pid, ticks, boot));
    g_assert_cmpint(sv_process_open(pid, ticks), ==, -1);
    g_assert_cmpint(sv_command_wait(pid), ==, 128 + SIGKILL);
    g_assert_false(sv_process_is(pid, ticks, boot));
    g_assert_false(sv_process_signal(pidfd, 0));
    g_assert_cmpint(errno, ==, ESRCH);
    sv_fd_clear(&pidfd);
}

static void test_never_init(void)
{
    guint64 ticks = 0;

    g_assert_true(sv_process_start_time(1, &ticks));
    g_assert_cmpint(sv_process_open(1, ticks), ==, -1);
    g_assert_cmpint(errno, ==, ESRCH);
    g_assert_cmpint(sv_process_open(0, ticks), ==, -1);
    g_assert_cmpint(sv_process_open(-1, ticks), ==, -1);
}

static void test_cmdline(void)
{
    int pidfd = -1;
    pid_t pid = start_sleep(&pidfd);
    g_autofree char *text = sv_process_cmdline(pid);

    g_assert_cmpstr(text, ==, "sleep 1000");
    g_assert_null(sv_process_cmdline(0x7ffffff0));
    g_assert_null(sv_process_cmdline(-1));
    g_assert_true(sv_process_signal(pidfd, SIGKILL));
    g_assert_cmpint(sv_process_pid(pidfd), ==, pid);
    g_assert_cmpint(sv_command_wait(pid), ==, 128 + SIGKILL);
    g_assert_cmpint(sv_process_pid(pidfd), ==, 0);
    sv_fd_clear(&pidfd);
    g_assert_cmpint(sv_process_pid(-1), ==, 0);
}

static void test_ns(void)
{
    guint64 ours = sv_process_ns_inode(0, "net");

    g_assert_cmpuint(ours, >, 0);
    g_assert_cmpuint(sv_process_ns_inode(getpid(), "net"), ==, ours);
    g_assert_cmpuint(sv_process_ns_inode(0, "nothing"), ==, 0);
    g_assert_cmpuint(sv_process_ns_inode(0, "../exe"), ==, 0);
    g_assert_cmpuint(sv_process_ns_inode(0x7ffffff0, "net"), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/process/boot-id", test_boot_id);
    g_test_add_func("/process/start-time", test_start_time);
    g_test_add_func("/process/hostile-name", test_hostile_name);
    g_test_add_func("/process/is", test_is);
    g_test_add_func("/process/never-init", test_never_init);
    g_test_add_func("/process/cmdline", test_cmdline);
    g_test_add_func("/process/ns", test_ns);
    return g_test_run();
}
