/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ps prints of a machine's processes, by its arguments. */
#include "cli/ps-table.h"
#include <string.h>

#define NOW 1700000000

static Sandvirt__V1__PsRow rows[2];
static Sandvirt__V1__PsRow *all[] = {&rows[0], &rows[1]};

static char *table(GError **error, const char *first, ...) G_GNUC_NULL_TERMINATED;

static char *table(GError **error, const char *first, ...)
{
    Sandvirt__V1__PsResponse response = SANDVIRT__V1__PS_RESPONSE__INIT;
    g_autoptr(GPtrArray) args = g_ptr_array_new();
    va_list list;

    for (guint i = 0; i < 2; i++)
        sandvirt__v1__ps_row__init(&rows[i]);
    rows[0].pid = 100;
    rows[0].ppid = 1;
    rows[0].pgid = rows[0].sid = 100;
    rows[0].user = (char *)"root";
    rows[0].tty = (char *)"pts/0";
    rows[0].tpgid = 101;
    rows[0].comm = (char *)"sh";
    rows[0].args = (char *)"sh -c x\033[1m";
    rows[0].state = (char *)"S";
    rows[0].cpu_ms = 65000;
    rows[0].start_time = NOW - 130;
    rows[0].priority = 20;
    rows[0].threads = 1;
    rows[0].vsz_kib = 4000;
    rows[0].rss_kib = 1000;
    rows[1] = rows[0];
    rows[1].pid = rows[1].pgid = 101;
    rows[1].ppid = 100;
    rows[1].uid = rows[1].gid = 7;
    rows[1].user = (char *)"7";
    rows[1].comm = rows[1].args = (char *)"sleep";
    rows[1].state = (char *)"Z";
    rows[1].cpu_ms = 0;
    rows[1].start_time = NOW - 100000;
    rows[1].nice = 5;
    rows[1].priority = 25;
    rows[1].threads = 2;
    response.rows = all;
    response.n_rows = 2;
    response.memory_kib = 100000;
    response.now = NOW;

    va_start(list, first);
    for (const char *arg = first; arg; arg = va_arg(list, const char *))
        g_ptr_array_add(args, (gpointer)arg);
    va_end(list);
    g_ptr_array_add(args, NULL);
    return sv_ps_table(&response, (char **)args->pdata, error);
}

#define ASSERT_TABLE(want, ...)                                                                    \
    G_STMT_START                                                                                   \
    {                                                                                              \
        g_autoptr(GError) error_ = NULL;                                                           \
        g_autofree char *text_ = table(&error_, __VA_ARGS__);                                      \
        g_assert_no_error(error_);                                                                 \
        g_assert_cmpstr(text_, ==, want);                                                          \
    }                                                                                              \
    G_STMT_END

/* The words of the first line are what ps prints there. */
static void assert_titles(const char *arg, const char *want)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = table(&error, arg, NULL);
    g_autoptr(GString) words = g_string_new(NULL);

    g_assert_no_error(error);
    *strchr(text, '\n') = '\0';
    g_auto(GStrv) parts = g_strsplit(text, " ", -1);
    for (char **part = parts; *part; part++)
        if (**part)
            g_string_append_printf(words, "%s%s", words->len ? " " : "", *part);
    g_assert_cmpstr(words->str, ==, want);
}

static void test_titles(void)
{
    assert_titles("-ef", "UID PID PPID C STIME TTY TIME CMD");
    assert_titles("-e", "PID TTY TIME CMD");
    assert_titles("-eF", "UID PID PPID C SZ RSS PSR STIME TTY TIME CMD");
    assert_titles("-el", "F S UID PID PPID C PRI NI ADDR SZ WCHAN TTY TIME CMD");
    assert_titles("-elf", "F S UID PID PPID C PRI NI ADDR SZ WCHAN STIME TTY TIME CMD");
    assert_titles("-ej", "PID PGID SID TTY TIME CMD");
    assert_titles("ax", "PID TTY STAT TIME COMMAND");
    assert_titles("aux", "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND");
    assert_titles("-aux", "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND");
    assert_titles("axl", "F UID PID PPID PRI NI VSZ RSS WCHAN STAT TTY TIME COMMAND");
    assert_titles("axj", "PPID PID PGID SID TTY TPGID STAT UID TIME COMMAND");
}

static void test_cells(void)
{
    ASSERT_TABLE("PID COMMAND\n100 sh\n101 sleep <defunct>\n", "-o", "pid,comm", NULL);
    ASSERT_TABLE("PID COMMAND\n100 sh\n101 sleep <defunct>\n", "-eo", "pid", "-o", "comm", NULL);
    ASSERT_TABLE("PID COMMAND\n100 sh -c x\\x1b[1m\n101 sleep <defunct>\n", "-opid:8,args", NULL);
    ASSERT_TABLE("100\n101\n", "-o", "pid=", NULL);
    ASSERT_TABLE("100\n101\n", "--no-headers", "-o", "pid", NULL);
    ASSERT_TABLE("  P USER\n100 root\n101 7\n", "-o", "pid=P,user", NULL);
    ASSERT_TABLE(
        "STAT NI PRI %CPU %MEM NLWP\nSs    0  19 50.0  1.0    1\nZNl+  5  14  0.0  1.0    2\n",
        "-o", "stat,ni,pri,pcpu,pmem,nlwp", NULL);
    ASSERT_TABLE("   ELAPSED     TIME TIME  C  VSZ\n"
                 "     02:10 00:01:05 1:05 50 4000\n"
                 "1-03:46:40 00:00:00 0:00  0 4000\n",
        "-o", "etime,time,bsdtime,c,vsz", NULL);
}

static void test_refused(void)
{
    static const char *const wrong[] = {"--sort=pid", "-p", "-C", "", "-", "r", "-T", "nonsense"};

    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(table(&error, wrong[i], NULL));
        g_assert_nonnull(strstr(error->message, "not supported"));
    }
    g_autoptr(GError) no_list = NULL, no_column = NULL;
    g_assert_null(table(&no_list, "-o", NULL));
    g_assert_nonnull(strstr(no_list->message, "needs columns"));
    g_assert_null(table(&no_column, "-o", "pid,nosuch", NULL));
    g_assert_nonnull(strstr(no_column->message, "\"nosuch\""));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/ps/titles", test_titles);
    g_test_add_func("/cli/ps/cells", test_cells);
    g_test_add_func("/cli/ps/refused", test_refused);
    return g_test_run();
}
