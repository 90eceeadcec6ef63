/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/command.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static SvCommand *shell(const char *script)
{
    SvCommand *cmd = sv_command_new("/bin/sh");

    sv_command_add_args(cmd, "-c", script, NULL);
    sv_command_set_env(cmd, "PATH", "/usr/bin:/bin");
    return cmd;
}

/* Runs @cmd and returns what it printed; its status must be @status. */
static char *output(SvCommand *cmd, int status)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *err = NULL;
    char *out = NULL;
    int got = -1;

    g_assert_true(sv_command_run(cmd, NULL, 0, 20000, 1 << 20, &out, &err, &got, &error));
    g_assert_no_error(error);
    if (got != status)
        g_test_message("stderr: %s", err);
    g_assert_cmpint(got, ==, status);
    return out;
}

static guint count_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

static gboolean no_children(void)
{
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static void test_args_env(void)
{
    g_autoptr(SvCommand) cmd = shell("echo \"$0|$1|$2|$A|$B\"; env | wc -l; pwd");
    g_autofree char *out = NULL;

    sv_command_add_arg(cmd, "zero");
    sv_command_add_arg(cmd, "a b");
    sv_command_add_arg(cmd, "$x;'\"");
    sv_command_set_env(cmd, "A", "first");
    sv_command_set_env(cmd, "A", "1");
    sv_command_set_env(cmd, "B", "2 3");
    sv_command_set_cwd(cmd, "/usr");
    g_setenv("SV_TEST_LEAK", "x", TRUE);
    out = output(cmd, 0);
    /* PATH, A, B and the PWD of the shell itself */
    g_assert_cmpstr(out, ==, "zero|a b|$x;'\"|1|2 3\n4\n/usr\n");
}

static void test_environ_argv0(void)
{
    static const char *const envp[] = {"X=1", "Y=2", NULL};
    g_autoptr(SvCommand) cmd = shell("tr '\\0' ' ' < /proc/$$/cmdline; echo $X$Y");
    g_autofree char *out = NULL;

    sv_command_set_environ(cmd, envp);
    sv_command_set_env(cmd, "PATH", "/usr/bin:/bin");
    sv_command_set_argv0(cmd, "named");
    out = output(cmd, 0);
    g_assert_true(g_str_has_prefix(out, "named -c "));
    g_assert_true(g_str_has_suffix(out, "12\n"));
}

static void test_status(void)
{
    g_autoptr(SvCommand) seven = shell("exit 7");
    g_autoptr(SvCommand) killed = shell("kill -KILL $$");
    g_autoptr(SvCommand) err = shell("echo no >&2; exit 255");
    g_autofree char *text = NULL;
    int status = -1;

    g_free(output(seven, 7));
    g_free(output(killed, 137));
    g_assert_true(sv_command_run(err, NULL, 0, 0, 100, NULL, &text, &status, NULL));
    g_assert_cmpint(status, ==, 255);
    g_assert_cmpstr(text, ==, "no\n");
    g_assert_true(no_children());
    g_assert_cmpint(sv_command_wait(0x7ffffff0), ==, -1);
    g_assert_cmpint(errno, ==, ECHILD);
}

static void check_spawn_fails(SvCommand *cmd, SvErr code, const char *text)
{
    g_autoptr(GError) error = NULL;
    guint before = count_fds();
    int pidfd = -1;
    pid_t pid = -5;

    g_assert_false(sv_command_spawn(cmd, &pid, &pidfd, &error));
    g_assert_error(error, SV_BASE_ERROR, (int)code);
    g_assert_nonnull(strstr(error->message, text));
    g_clear_error(&error);
    g_assert_false(sv_command_spawn_orphan(cmd, &error));
    g_assert_error(error, SV_BASE_ERROR, (int)code);
    g_clear_error(&error);
    g_assert_false(sv_command_run(cmd, "x", 1, 1000, 10, NULL, NULL, NULL, &error));
    g_assert_error(error, SV_BASE_ERROR, (int)code);
    g_assert_cmpint(pid, ==, -5);
    g_assert_cmpint(pidfd, ==, -1);
    g_assert_cmpuint(count_fds(), ==, before);
    g_assert_true(no_children());
}

static int pre_exec_fails(gpointer data)
{
    return EBUSY;
}

static void test_spawn_fails(void)
{
    g_autoptr(SvCommand) missing = sv_command_new("/does/not/exist");
    g_autoptr(SvCommand) relative = sv_command_new("true");
    g_autoptr(SvCommand) denied = sv_command_new("/etc/passwd");
    g_autoptr(SvCommand) cwd = sv_command_new("/bin/true");
    g_autoptr(SvCommand) pre = sv_command_new("/bin/true");
    g_autoptr(SvCommand) bad_fd = sv_command_new("/bin/true");
    g_autoptr(SvCommand) no_ns = sv_command_new("/bin/true");
    g_auto(SvFd) null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    check_spawn_fails(missing, SV_ERR_NOT_FOUND, "/does/not/exist");
    check_spawn_fails(relative, SV_ERR_INVALID, "absolute");
    check_spawn_fails(denied, SV_ERR_PERMISSION, "/etc/passwd");
    sv_command_set_cwd(cwd, "/does/not");
    check_spawn_fails(cwd, SV_ERR_NOT_FOUND, "folder");
    sv_command_set_pre_exec(pre, pre_exec_fails, NULL);
    check_spawn_fails(pre, SV_ERR_BUSY, "prepare");
    sv_command_map_fd(bad_fd, 9999, 5);
    check_spawn_fails(bad_fd, SV_ERR_IO, "descriptors");
    sv_command_set_netns(no_ns, null_fd);
    check_spawn_fails(no_ns, SV_ERR_INVALID, "namespace");
}

/* What the shell sees open, apart from the folder that ls itself reads (ls opens it as the last). */
static void test_fds_closed(void)
{
    g_autoptr(SvCommand) cmd = sv_command_new("/bin/ls");
    g_auto(SvFd) leak = open("/dev/zero", O_RDONLY); /* not CLOEXEC */
    g_auto(SvFd) high = fcntl(leak, F_DUPFD, 500);
    g_autofree char *out = NULL;

    sv_command_add_arg(cmd, "/proc/self/fd");
    g_assert_cmpint(high, >=, 500);
    out = output(cmd, 0);
    g_assert_cmpstr(out, ==, "0\n1\n2\n3\n");
}

static void test_defaults_null(void)
{
    g_autoptr(SvCommand) cmd = shell("readlink /proc/self/fd/0 /proc/self/fd/2 >&7");
    g_autofree char *text = NULL;
    pid_t pid = 0;
    int fds[2];

    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    sv_command_map_fd(cmd, fds[1], 7);
    g_assert_true(sv_command_spawn(cmd, &pid, NULL, NULL));
    sv_fd_clear(&fds[1]);
    g_assert_true(sv_fd_read_all(fds[0], 1000, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "/dev/null\n/dev/null\n");
    g_assert_cmpint(sv_command_wait(pid), ==, 0);
    sv_fd_clear(&fds[0]);
}

/* Sources whose numbers are targets of others: a swap and a chain. */
static void test_fds_collide(void)
{
    g_autoptr(SvCommand) cmd = shell("for i in 10 11 12 13 14; do readlink /proc/self/fd/$i; done");
    g_autofree char *out = NULL;
    static const char *const names[] = {"/dev/zero", "/dev/full", "/dev/random"};
    int at[3] = {10, 11, 12};

    for (int i = 0; i < 3; i++) {
        int fd = open(names[i], O_RDONLY | O_CLOEXEC);

        g_assert_cmpint(dup3(fd, at[i], O_CLOEXEC), ==, at[i]);
        sv_fd_close(fd);
    }
    sv_command_map_fd(cmd, 10, 11);
    sv_command_map_fd(cmd, 11, 10);
    sv_command_map_fd(cmd, 12, 13);
    sv_command_map_fd(cmd, 12, 12);
    sv_command_map_fd(cmd, 10, 14);
    sv_command_map_fd(cmd, -1, 14); /* the last one counts: /dev/null */
    out = output(cmd, 0);
    g_assert_cmpstr(out, ==, "/dev/full\n/dev/zero\n/dev/random\n/dev/random\n/dev/null\n");
    for (int i = 0; i < 3; i++)
        sv_fd_close(at[i]);
}

static void test_std_collide(void)
{
    g_autoptr(SvCommand) cmd = shell("echo out; echo err >&2");
    g_autofree char *text = NULL;
    pid_t pid = 0;
    int fds[2];

    /* Both on one pipe, and our own 0 as the source of a 5. */
    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    sv_command_map_fd(cmd, fds[1], 1);
    sv_command_map_fd(cmd, fds[1], 2);
    sv_command_map_fd(cmd, 0, 5);
    g_assert_true(sv_command_spawn(cmd, &pid, NULL, NULL));
    sv_fd_clear(&fds[1]);
    g_assert_true(sv_fd_read_all(fds[0], 1000, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "out\nerr\n");
    g_assert_cmpint(sv_command_wait(pid), ==, 0);
    sv_fd_clear(&fds[0]);
}

/* Ignored and blocked signals of the caller are not the child's. */
static void test_signals(void)
{
    g_autoptr(SvCommand) cmd = shell("exec grep -E 'Sig(Blk|Ign)' /proc/self/status");
    g_autofree char *out = NULL;
    sigset_t set, old;

    signal(SIGUSR1, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    out = output(cmd, 0);
    g_assert_cmpstr(out, ==, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    g_assert_true(sigismember(&set, SIGTERM));
    g_assert_false(sigismember(&set, SIGHUP));
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    signal(SIGUSR1, SIG_DFL);
}

static void test_session(void)
{
    g_autoptr(SvCommand) cmd = shell("test \"$(ps -o sid= -p $$ | tr -d ' ')\" = $$");
    g_autoptr(SvCommand) without = shell("test \"$(ps -o sid= -p $$ | tr -d ' ')\" = $$");

    sv_command_set_new_session(cmd, TRUE);
    g_free(output(cmd, 0));
    g_free(output(without, 1));
}

static void test_namespaces(void)
{
    g_autoptr(SvCommand) cmd = shell("echo $$; readlink /proc/self/ns/net; cat >&9");
    g_autofree char *text = NULL;
    g_autofree char *ours = g_strdup_printf("net:[%lu]", (gulong)sv_process_ns_inode(0, "net"));
    g_autoptr(GError) error = NULL;
    pid_t pid = 0;
    int pidfd = -1;
    int fds[2];
    g_auto(SvFd) zero = open("/dev/null", O_RDONLY | O_CLOEXEC);

    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    sv_command_map_fd(cmd, fds[1], 1);
    sv_command_map_fd(cmd, zero, 9);
    sv_command_set_clone_flags(cmd, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET);
    sv_command_set_new_session(cmd, TRUE);
    if (!sv_command_spawn(cmd, &pid, &pidfd, &error)) {
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_PERMISSION);
        g_test_skip("not allowed to make namespaces");
        sv_fd_clear(&fds[0]);
        sv_fd_clear(&fds[1]);
        return;
    }
    sv_fd_clear(&fds[1]);
    g_assert_true(sv_fd_read_all(fds[0], 1000, &text, NULL, NULL));
    g_assert_true(g_str_has_prefix(text, "1\n"));
    /* /proc is still the host's, so "self" cannot be told there: no link, or another one */
    g_assert_null(strstr(text, ours));
    g_assert_cmpint(sv_fd_wait(pidfd, POLLIN, -1), >, 0);
    g_assert_cmpint(sv_command_wait(pid), >=, 0);
    sv_fd_clear(&pidfd);
    sv_fd_clear(&fds[0]);
}

static char *oom_adj_of_child(int floor)
{
    g_autoptr(SvCommand) cmd = shell("cat /proc/self/oom_score_adj");

    sv_command_set_oom_floor(cmd, floor);
    return g_strchomp(output(cmd, 0));
}

static void test_oom_floor(void)
{
    static const char *const path = "/proc/self/oom_score_adj";
    g_autofree char *before = NULL;

    g_assert_true(g_file_get_contents(path, &before, NULL, NULL));
    FILE *file = fopen(path, "w");
    g_assert_nonnull(file);
    fputs("700", file);
    g_assert_cmpint(fclose(file), ==, 0);
    g_autofree char *below = oom_adj_of_child(900), *above = oom_adj_of_child(0);
    g_assert_cmpstr(below, ==, "900");
    g_assert_cmpstr(above, ==, "700");
    file = fopen(path, "w");
    fputs(before, file);
    g_assert_cmpint(fclose(file), ==, 0);
}

static void test_netns(void)
{
    g_autoptr(SvCommand) holder = sv_command_new("/bin/sleep");
    g_autoptr(SvCommand) cmd = shell("readlink /proc/self/ns/net");
    g_autofree char *path = NULL;
    g_autofree char *out = NULL;
    g_autofree char *wanted = NULL;
    g_auto(SvFd) netns = -1;
    pid_t pid = 0;
    int pidfd = -1;

    sv_command_add_arg(holder, "1000");
    sv_command_set_clone_flags(holder, CLONE_NEWNET);
    if (!sv_command_spawn(holder, &pid, &pidfd, NULL)) {
        g_test_skip("not allowed to make namespaces");
        return;
    }
    path = g_strdup_printf("/proc/%d/ns/net", (int)pid);
    netns = open(path, O_RDONLY | O_CLOEXEC);
    wanted = g_strdup_printf("net:[%lu]\n", (gulong)sv_process_ns_inode(pid, "net"));
    sv_command_set_netns(cmd, netns);
    out = output(cmd, 0);
    g_assert_cmpstr(out, ==, wanted);
    g_assert_true(sv_process_signal(pidfd, SIGKILL));
    g_assert_cmpint(sv_command_wait(pid), ==, 137);
    sv_fd_clear(&pidfd);
}

static int pre_exec_writes(gpointer data)
{
    int fd = *(int *)data;

    return write(fd, "pre", 3) == 3 ? 0 : errno;
}

static void test_pre_exec(void)
{
    g_autoptr(SvCommand) cmd = shell("exit 3");
    g_autofree char *text = NULL;
    pid_t pid = 0;
    int fds[2];

    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    sv_command_set_pre_exec(cmd, pre_exec_writes, &fds[1]); /* the caller's number */
    g_assert_true(sv_command_spawn(cmd, &pid, NULL, NULL));
    sv_fd_clear(&fds[1]);
    g_assert_true(sv_fd_read_all(fds[0], 10, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "pre");
    g_assert_cmpint(sv_command_wait(pid), ==, 3);
    sv_fd_clear(&fds[0]);
}

static void test_orphan(void)
{
    g_autoptr(SvCommand) cmd = shell("echo $$ $(ps -o ppid= -o sid= -p $$) >&5; exec 5>&-; exit 0");
    g_autofree char *text = NULL;
    int pid = 0, ppid = 0, sid = 0;
    int fds[2];

    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    sv_command_map_fd(cmd, fds[1], 5);
    g_assert_true(sv_command_spawn_orphan(cmd, NULL));
    sv_fd_clear(&fds[1]);
    g_assert_true(no_children());
    g_assert_true(sv_fd_read_all(fds[0], 100, &text, NULL, NULL));
    g_assert_cmpint(sscanf(text, "%d %d %d", &pid, &ppid, &sid), ==, 3);
    g_assert_cmpint(ppid, !=, getpid());
    g_assert_cmpint(sid, ==, pid);
    sv_fd_clear(&fds[0]);
}

static void test_run_io(void)
{
    g_autoptr(SvCommand) cmd = sv_command_new("/bin/cat");
    g_autofree char *data = g_strnfill(500000, 'd');
    g_autofree char *out = NULL;
    g_autofree char *cut = NULL;
    int status = -1;

    g_assert_true(sv_command_run(cmd, data, 500000, 20000, 1 << 20, &out, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpstr(out, ==, data);
    /* The child is not held up by output that nobody keeps. */
    g_assert_true(sv_command_run(cmd, data, 500000, 20000, 1000, &cut, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpuint(strlen(cut), ==, 1000);
}

/* A child that never reads its input: no SIGPIPE, no error. */
static void test_run_no_reader(void)
{
    g_autoptr(SvCommand) cmd = shell("exec <&-; exit 4");
    g_autofree char *data = g_strnfill(500000, 'd');
    sigset_t pending;
    int status = -1;

    signal(SIGPIPE, SIG_DFL);
    g_assert_true(sv_command_run(cmd, data, 500000, 20000, 10, NULL, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 4);
    sigpending(&pending);
    g_assert_false(sigismember(&pending, SIGPIPE));
}

static void test_run_timeout(void)
{
    g_autoptr(SvCommand) cmd = shell("echo begun; sleep 1000; echo done");
    g_autoptr(GError) error = NULL;
    g_autofree char *out = NULL;
    gint64 before = g_get_monotonic_time();
    guint fds = count_fds();

    sv_command_set_new_session(cmd, TRUE);
    g_assert_false(sv_command_run(cmd, NULL, 0, 200, 100, &out, NULL, NULL, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_TIMEOUT);
    g_assert_cmpint(g_get_monotonic_time() - before, <, 5000000);
    g_assert_null(out);
    g_assert_true(no_children());
    g_assert_cmpuint(count_fds(), ==, fds);
}

/* A descendant that keeps the output open does not hold up the end. */
static void test_run_daemon(void)
{
    g_autoptr(SvCommand) cmd = shell("sleep 3 & echo started");
    g_autofree char *out = NULL;
    gint64 before = g_get_monotonic_time();

    out = output(cmd, 0);
    g_assert_cmpstr(out, ==, "started\n");
    g_assert_cmpint(g_get_monotonic_time() - before, <, 2500000);
}

static gpointer spawn_many(gpointer data)
{
    for (int i = 0; i < 20; i++) {
        g_autoptr(SvCommand) cmd = shell("exit 5");
        pid_t pid = 0;

        g_assert_true(sv_command_spawn(cmd, &pid, NULL, NULL));
        g_assert_cmpint(sv_command_wait(pid), ==, 5);
    }
    return NULL;
}

static void test_threads(void)
{
    GThread *threads[4];

    for (guint i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("spawner", spawn_many, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

static void test_free(void)
{
    sv_command_free(NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/command/args-env", test_args_env);
    g_test_add_func("/command/environ-argv0", test_environ_argv0);
    g_test_add_func("/command/status", test_status);
    g_test_add_func("/command/spawn-fails", test_spawn_fails);
    g_test_add_func("/command/fds-closed", test_fds_closed);
    g_test_add_func("/command/defaults-null", test_defaults_null);
    g_test_add_func("/command/fds-collide", test_fds_collide);
    g_test_add_func("/command/std-collide", test_std_collide);
    g_test_add_func("/command/signals", test_signals);
    g_test_add_func("/command/session", test_session);
    g_test_add_func("/command/namespaces", test_namespaces);
    g_test_add_func("/command/oom-floor", test_oom_floor);
    g_test_add_func("/command/netns", test_netns);
    g_test_add_func("/command/pre-exec", test_pre_exec);
    g_test_add_func("/command/orphan", test_orphan);
    g_test_add_func("/command/run-io", test_run_io);
    g_test_add_func("/command/run-no-reader", test_run_no_reader);
    g_test_add_func("/command/run-timeout", test_run_timeout);
    g_test_add_func("/command/run-daemon", test_run_daemon);
    g_test_add_func("/command/threads", test_threads);
    g_test_add_func("/command/free", test_free);
    return g_test_run();
}
