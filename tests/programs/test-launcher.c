/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real launcher with a script in the monitor's place, and the command line's way without it. */
#include "base/command.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "core/client.h"
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What it does is said by the sandbox's name. Every start leaves a line in DIR/starts. */
static const char script[] = "#!/bin/sh\n"
                             "echo $$ >>${0%/*}/starts\n"
                             "case $4 in\n"
                             "bad) printf 'Eno libvirt here' >&3; exit 1;;\n"
                             "held) printf 'E/x/lock: locked by another' >&3; exit 3;;\n"
                             "quiet) exit 3;;\n"
                             "dies) printf R >&3; exec 3>&-; [ $(wc -l <${0%/*}/starts) -gt 1 ] && "
                             "exec sleep 60; exit 7;;\n"
                             "ends) printf R >&3; exit 0;;\n"
                             "*) sleep 0.2; printf R >&3; exec 3>&-; exec sleep 60;;\n"
                             "esac\n";

typedef struct {
    char *dir, *monitor, *socket, *starts;
    pid_t pid;
} Fixture;

static void start(Fixture *f)
{
    g_autoptr(SvCommand) cmd = sv_command_new(SV_TEST_LAUNCHER);
    g_autoptr(GError) error = NULL;
    g_autofree char *config = NULL;

    f->dir = g_dir_make_tmp("test-launcher-XXXXXX", NULL);
    f->monitor = g_build_filename(f->dir, "monitor", NULL);
    f->socket = g_build_filename(f->dir, "launcher", NULL);
    f->starts = g_build_filename(f->dir, "starts", NULL);
    g_assert_true(g_file_set_contents(f->monitor, script, -1, &error));
    g_assert_cmpint(chmod(f->monitor, 0700), ==, 0);
    sv_command_add_args(cmd, "--socket", f->socket, "--monitor", "/nosuch", NULL);
    g_assert_true(sv_command_spawn(cmd, &f->pid, NULL, &error));
    for (int i = 0; i < 500 && access(f->socket, F_OK) != 0; i++)
        g_usleep(10000);
}

static void stop(Fixture *f)
{
    g_autofree char *text = NULL;

    kill(f->pid, SIGTERM);
    g_assert_cmpint(sv_command_wait(f->pid), ==, 0);
    if (g_file_get_contents(f->starts, &text, NULL, NULL)) {
        g_auto(GStrv) pids = g_strsplit(text, "\n", -1);

        for (char **p = pids; *p; p++) {
            pid_t pid = (pid_t)g_ascii_strtoll(*p, NULL, 10);
            guint64 since = 0;

            if (pid > 1 && sv_process_start_time(pid, &since))
                kill(pid, SIGKILL);
        }
    }
    g_assert_true(sv_file_remove_tree(f->dir, NULL));
    g_free(f->dir);
    g_free(f->monitor);
    g_free(f->socket);
    g_free(f->starts);
}

static void ensure(const Fixture *f, const char *sandbox, GError **error)
{
    Sandvirt__V1__EnsureRequest request = SANDVIRT__V1__ENSURE_REQUEST__INIT;
    g_auto(SvFd) fd = sv_unix_connect(f->socket, error);

    g_assert_cmpint(fd, >=, 0);
    request.root = (char *)"/run/nowhere";
    request.sandbox = (char *)sandbox;
    request.monitor = f->monitor;
    sv_rpc_call(fd, 1, SV_SERVICE_LAUNCHER, "Ensure", &request.base, NULL, 20000, error);
}

static guint count_starts(const Fixture *f)
{
    g_autofree char *text = NULL;
    guint n = 0;

    if (g_file_get_contents(f->starts, &text, NULL, NULL))
        for (const char *p = text; (p = strchr(p, '\n')); p++)
            n++;
    return n;
}

static void test_ensure(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    pid_t pid;
    Fixture f;

    start(&f);
    ensure(&f, "good", &error);
    g_assert_no_error(error);
    ensure(&f, "good", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(count_starts(&f), ==, 1);
    /* In a session of its own, child of the launcher. */
    g_assert_true(g_file_get_contents(f.starts, &text, NULL, NULL));
    pid = (pid_t)g_ascii_strtoll(text, NULL, 10);
    g_assert_cmpint(getsid(pid), ==, pid);
    stop(&f);
}

static void test_failures(void)
{
    g_autoptr(GError) error = NULL;
    Fixture f;

    start(&f);
    ensure(&f, "bad", &error);
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, "no libvirt here"));
    g_clear_error(&error);
    ensure(&f, "quiet", &error);
    g_assert_nonnull(error);
    g_clear_error(&error);
    ensure(&f, "held", &error);
    g_assert_no_error(error);
    /* Refused requests do not end it. */
    ensure(&f, "", &error);
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
    stop(&f);
}

/* Two callers at once: one monitor, two answers. */
static void test_together(void)
{
    Sandvirt__V1__EnsureRequest request = SANDVIRT__V1__ENSURE_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = NULL;
    g_auto(SvFd) first = -1;
    gsize len = 0;
    const void *data;
    Fixture f;

    start(&f);
    request.root = (char *)"/run/nowhere";
    request.sandbox = (char *)"good";
    request.monitor = f.monitor;
    bytes = sv_message_request(1, SV_SERVICE_LAUNCHER, "Ensure", &request.base, 0);
    data = g_bytes_get_data(bytes, &len);
    first = sv_unix_connect(f.socket, &error);
    g_assert_true(sv_fd_write_all(first, data, len, &error));
    ensure(&f, "good", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(count_starts(&f), ==, 1);
    stop(&f);
}

static void test_again(void)
{
    g_autoptr(GError) error = NULL;
    Fixture f;

    start(&f);
    ensure(&f, "dies", &error);
    g_assert_no_error(error);
    for (int i = 0; i < 500 && count_starts(&f) < 2; i++)
        g_usleep(10000);
    g_assert_cmpuint(count_starts(&f), ==, 2);
    stop(&f);
}

static void test_normal_end(void)
{
    g_autoptr(GError) error = NULL;
    Fixture f;

    start(&f);
    ensure(&f, "ends", &error);
    g_assert_no_error(error);
    g_usleep(300000);
    g_assert_cmpuint(count_starts(&f), ==, 1);
    ensure(&f, "ends", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(count_starts(&f), ==, 2);
    stop(&f);
}

/* ---- without a launcher */

static void test_by_fork(void)
{
    g_autofree char *conf = NULL;
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(SvPaths) paths = NULL;
    const SvConfig *config;
    Fixture f;

    start(&f);
    conf = g_build_filename(f.dir, "conf", NULL);
    text = g_strdup_printf("[paths]\nrun_dir=%s/run\n", f.dir);
    g_assert_true(g_file_set_contents(conf, text, -1, NULL));
    config = sv_config_load(conf, &error);
    g_assert_no_error(error);
    paths = sv_paths_new(config, f.dir, "bad", FALSE, &error);
    g_assert_no_error(error);
    g_test_expect_message("sv-core", G_LOG_LEVEL_WARNING, "no sandvirt-launcher*");
    g_assert_cmpint(sv_client_ensure(paths, f.monitor, NULL, FALSE, 5000, &error), ==, -1);
    g_test_assert_expected_messages();
    g_assert_nonnull(strstr(error->message, "no libvirt here"));
    sv_config_unref(config);
    stop(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (geteuid() != 0) {
        g_test_message("not root");
        return 77;
    }
    g_test_add_func("/launcher/ensure", test_ensure);
    g_test_add_func("/launcher/failures", test_failures);
    g_test_add_func("/launcher/together", test_together);
    g_test_add_func("/launcher/again", test_again);
    g_test_add_func("/launcher/normal-end", test_normal_end);
    g_test_add_func("/launcher/by-fork", test_by_fork);
    return g_test_run();
}
