/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/reaper.h"
#include <signal.h>
#include <unistd.h>

typedef struct {
    guint calls;
    pid_t pid;
    int status;
} Seen;

static void on_end(pid_t pid, int status, gint64 time_ns, gpointer user_data)
{
    Seen *seen = user_data;

    seen->calls++;
    seen->pid = pid;
    seen->status = status;
}

static void test_table(void)
{
    g_autoptr(SvReaper) reaper = sv_reaper_new();
    Seen seen = {0};

    sv_reaper_watch(reaper, 100, on_end, &seen);
    sv_reaper_report(reaper, 101, 0, 1);
    g_assert_cmpuint(seen.calls, ==, 0);
    sv_reaper_report(reaper, 100, 3 << 8, 1);
    g_assert_cmpuint(seen.calls, ==, 1);
    g_assert_cmpint(seen.status, ==, 3);
    sv_reaper_report(reaper, 100, 3 << 8, 1); /* the number was used again */
    g_assert_cmpuint(seen.calls, ==, 1);

    sv_reaper_watch(reaper, 102, on_end, &seen);
    sv_reaper_report(reaper, 102, SIGKILL, 1);
    g_assert_cmpint(seen.status, ==, 128 + SIGKILL);
    sv_reaper_watch(reaper, 103, on_end, &seen);
    sv_reaper_unwatch(reaper, 103);
    sv_reaper_report(reaper, 103, 0, 1);
    g_assert_cmpuint(seen.calls, ==, 2);
}

/* It ends before anybody knows its number. */
static void test_early(void)
{
    g_autoptr(SvReaper) reaper = sv_reaper_new();
    Seen seen = {0};

    sv_reaper_report(reaper, 7, 1 << 8, 1); /* nobody will ask */
    sv_reaper_hold(reaper);
    sv_reaper_hold(reaper);
    sv_reaper_report(reaper, 8, 5 << 8, 1);
    sv_reaper_release(reaper);
    sv_reaper_watch(reaper, 8, on_end, &seen);
    g_assert_cmpuint(seen.calls, ==, 1);
    g_assert_cmpint(seen.pid, ==, 8);
    g_assert_cmpint(seen.status, ==, 5);
    sv_reaper_report(reaper, 9, 5 << 8, 1);
    sv_reaper_release(reaper);
    sv_reaper_watch(reaper, 9, on_end, &seen); /* forgotten at the release */
    g_assert_cmpuint(seen.calls, ==, 1);
}

static void test_real(void)
{
    g_autoptr(SvReaper) reaper = sv_reaper_new();
    g_autoptr(GError) error = NULL;
    Seen seen[20] = {{0}};

    g_assert_true(sv_reaper_attach(reaper, &error));
    g_assert_no_error(error);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();

        g_assert_cmpint(pid, >=, 0);
        if (pid == 0)
            _exit(i);
        sv_reaper_watch(reaper, pid, on_end, &seen[i]);
    }
    for (int i = 0; i < 20; i++) {
        while (seen[i].calls == 0)
            g_main_context_iteration(NULL, TRUE);
        g_assert_cmpuint(seen[i].calls, ==, 1);
        g_assert_cmpint(seen[i].status, ==, i);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agent/reaper/table", test_table);
    g_test_add_func("/agent/reaper/early", test_early);
    g_test_add_func("/agent/reaper/real", test_real);
    return g_test_run();
}
