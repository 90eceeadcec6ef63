/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real monitor, of a sandbox without a machine: there are never two of them, whenever one is killed. */
#include "base/command.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/client.h"
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 25

typedef struct {
    char *dir, *conf, *root, *state;
} Fixture;

typedef struct {
    pid_t pid;
    int ready; /* what it says */
} Monitor;

static void set_up(Fixture *f, gconstpointer data)
{
    g_autofree char *text = NULL;

    f->dir = g_dir_make_tmp("test-monitors-XXXXXX", NULL);
    f->conf = g_build_filename(f->dir, "conf", NULL);
    f->root = g_build_filename(f->dir, "root", NULL);
    f->state = g_build_filename(f->root, ".sandbox", "one", NULL);
    text = g_strdup_printf("[paths]\nrun_dir=%s/run\n", f->dir);
    g_assert_true(g_file_set_contents(f->conf, text, -1, NULL));
}

static void tear_down(Fixture *f, gconstpointer data)
{
    g_assert_true(sv_file_remove_tree(f->dir, NULL));
    g_free(f->dir);
    g_free(f->conf);
    g_free(f->root);
    g_free(f->state);
}

static Monitor begin(const Fixture *f)
{
    g_autoptr(SvCommand) cmd = sv_command_new(SV_TEST_MONITOR);
    g_autoptr(GError) error = NULL;
    int fds[2];
    Monitor m = {0};

    g_assert_true(sv_fd_pipe(fds, 0, &error));
    sv_command_add_args(cmd, "--root", f->root, "--sandbox", "one", "--config", f->conf, NULL);
    sv_command_add_args(cmd, "--ready-fd", "3", NULL);
    sv_command_map_fd(cmd, fds[1], 3);
    g_assert_true(sv_command_spawn(cmd, &m.pid, NULL, &error));
    g_assert_no_error(error);
    close(fds[1]);
    m.ready = fds[0];
    return m;
}

static gboolean has_spoken(const Monitor *m)
{
    struct pollfd fd = {m->ready, POLLIN, 0};

    return poll(&fd, 1, 0) > 0;
}

/* It serves; FALSE: another one does, and this one ends. */
static gboolean serves(Monitor *m)
{
    char text[1024] = "";
    ssize_t n = read(m->ready, text, sizeof(text) - 1);

    sv_fd_clear(&m->ready);
    g_assert_cmpint(n, >, 0);
    if (text[0] == SV_READY_OK)
        return TRUE;
    g_assert_nonnull(strstr(text, SV_READY_LOCKED));
    g_assert_cmpint(sv_command_wait(m->pid), ==, 3);
    return FALSE;
}

static void end(const Monitor *m)
{
    kill(m->pid, SIGKILL);
    g_assert_cmpint(sv_command_wait(m->pid), ==, 128 + SIGKILL);
}

static void test_one(Fixture *f, gconstpointer data)
{
    for (guint round = 0; round < ROUNDS; round++) {
        Monitor all[3], next[2], winner = {0};
        guint n = 0;

        for (guint i = 0; i < G_N_ELEMENTS(all); i++)
            all[i] = begin(f);
        for (guint i = 0; i < G_N_ELEMENTS(all); i++)
            if (serves(&all[i])) {
                winner = all[i];
                n++;
            }
        g_assert_cmpuint(n, ==, 1);
        /* two more are on their way when it is killed */
        for (guint i = 0; i < G_N_ELEMENTS(next); i++)
            next[i] = begin(f);
        g_usleep((gulong)g_test_rand_int_range(0, 20000));
        for (guint i = 0; i < G_N_ELEMENTS(next); i++) {
            char c = 0;

            if (has_spoken(&next[i]) && read(next[i].ready, &c, 1) == 1)
                g_assert_cmpint(c, ==, SV_READY_ERROR);
            if (c) {
                sv_fd_clear(&next[i].ready);
                g_assert_cmpint(sv_command_wait(next[i].pid), ==, 3);
            }
        }
        end(&winner);
        n = 0;
        for (guint i = 0; i < G_N_ELEMENTS(next); i++)
            if (next[i].ready >= 0 && serves(&next[i])) {
                winner = next[i];
                n++;
            }
        g_assert_cmpuint(n, <=, 1);
        if (n == 1)
            end(&winner);
    }
}

/* Nobody comes: it ends by itself, and takes the lock's folder with it. */
static void test_idle(Fixture *f, gconstpointer data)
{
    Monitor m = begin(f);

    g_assert_true(serves(&m));
    g_assert_true(g_file_test(f->state, G_FILE_TEST_IS_DIR));
    g_assert_cmpint(sv_command_wait(m.pid), ==, 0);
    g_assert_false(g_file_test(f->state, G_FILE_TEST_EXISTS));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (geteuid() != 0) {
        g_test_message("not root");
        return 77;
    }
    g_test_add("/monitors/one", Fixture, NULL, set_up, test_one, tear_down);
    g_test_add("/monitors/idle", Fixture, NULL, set_up, test_idle, tear_down);
    return g_test_run();
}
