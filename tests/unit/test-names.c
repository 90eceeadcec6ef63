/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/error.h"
#include "base/names.h"

#include <signal.h>
#include <string.h>

static void test_id(void)
{
    static const char *const good[] = {"a", "A9", "a_b+c.d-e", "-x", "_", "+", "a..b", "9"};
    static const char *const bad[] = {"", "a/b", "..", ".", ".x", "a b", "x%0ay", "a\nb", "a\n",
        "\xc3\xa9", "a\xc3\xa9", "a\x7f", "a:b", "a@b", "a\\b", "/", "a/", "~", "a*"};
    g_autofree char *longest = g_strnfill(SV_ID_MAX, 'a');
    g_autofree char *too_long = g_strnfill(SV_ID_MAX + 1, 'a');
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(good); i++) {
        g_assert_true(sv_id_check(good[i], "container id", &error));
        g_assert_no_error(error);
    }
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(sv_id_check(bad[i], "container id", &error));
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
        g_assert_true(g_str_has_prefix(error->message, "container id"));
        g_assert_null(strchr(error->message, '\n'));
        g_clear_error(&error);
    }
    g_assert_false(sv_id_check(NULL, "id", NULL));
    g_assert_true(sv_id_check(longest, "id", NULL));
    g_assert_false(sv_id_check(too_long, "id", &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
}

static void test_signal_parse(void)
{
    static const struct {
        const char *text;
        int signo;
    } cases[] = {{"0", 0}, {"9", 9}, {"64", 64}, {"KILL", SIGKILL}, {"SIGKILL", SIGKILL},
        {"sigkill", SIGKILL}, {"kill", SIGKILL}, {"Term", SIGTERM}, {"SigHup", SIGHUP},
        {"RTMIN", 34}, {"SIGRTMIN+3", 37}, {"RTMIN+3", 37}, {"rtmin+30", 64}, {"RTMAX", 64},
        {"SIGRTMAX-1", 63}, {"sigrtmax-30", 34}, {"IOT", SIGABRT}, {"SIGCLD", SIGCHLD},
        {"POLL", SIGIO}, {"WINCH", SIGWINCH}, {"STOP", SIGSTOP}, {"SIGSYS", SIGSYS}};
    static const char *const bad[] = {"", "65", "-1", "+9", " 9", "9 ", "9x", "0x9", "SIG",
        "SIGSIG", "SIGSIGKILL", "SIG9", "KILLX", "KIL", "RTMIN-1", "RTMIN+31", "RTMIN+", "RTMIN+-1",
        "RTMIN++1", "RTMAX+1", "RTMAX-31", "RTMIN3", "99999999999999999999", "K\nILL"};
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpint(sv_signal_parse(cases[i].text, &error), ==, cases[i].signo);
        g_assert_no_error(error);
    }
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmpint(sv_signal_parse(bad[i], &error), ==, -1);
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
        g_clear_error(&error);
    }
    g_assert_cmpint(sv_signal_parse(NULL, NULL), ==, -1);
}

static void test_signal_names(void)
{
    static const char *const names[] = {"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE",
        "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP",
        "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR",
        "SYS"};

    for (int i = 0; i < (int)G_N_ELEMENTS(names); i++) {
        g_autofree char *full = g_strconcat("SIG", names[i], NULL);
        g_autofree char *lower = g_ascii_strdown(full, -1);

        g_assert_cmpint(sv_signal_parse(names[i], NULL), ==, i + 1);
        g_assert_cmpint(sv_signal_parse(full, NULL), ==, i + 1);
        g_assert_cmpint(sv_signal_parse(lower, NULL), ==, i + 1);
    }
}

static void test_signal_terminates(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM, SIGUSR1, SIGPIPE, SIGALRM,
        SIGSEGV, SIGPWR, SIGIO, 34, 64};
    static const int not [] = {
        0, -1, 65, SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};

    for (guint i = 0; i < G_N_ELEMENTS(ends); i++)
        g_assert_true(sv_signal_terminates(ends[i]));
    for (guint i = 0; i < G_N_ELEMENTS(not ); i++)
        g_assert_false(sv_signal_terminates(not [i]));
}

static void test_enum(void)
{
    static const char *const names[] = {"creating", NULL, "running"};
    guint value = 7;

    g_assert_cmpstr(sv_enum_name(names, 3, 0), ==, "creating");
    g_assert_cmpstr(sv_enum_name(names, 3, 1), ==, "?");
    g_assert_cmpstr(sv_enum_name(names, 3, 3), ==, "?");
    g_assert_true(sv_enum_parse(names, 3, "running", &value));
    g_assert_cmpuint(value, ==, 2);
    g_assert_false(sv_enum_parse(names, 3, "Running", &value));
    g_assert_false(sv_enum_parse(names, 3, "", &value));
    g_assert_false(sv_enum_parse(names, 3, NULL, &value));
    g_assert_cmpuint(value, ==, 2);
}

static void test_int64(void)
{
    static const char *const bad[] = {"", "-", "+1", " 1", "1 ", "1\n", "0x10", "1.0", "1e3", "a"};
    g_autoptr(GError) error = NULL;
    gint64 value = 5;

    g_assert_true(sv_parse_int64("0", 0, 10, &value, NULL));
    g_assert_cmpint(value, ==, 0);
    g_assert_true(sv_parse_int64("-9223372036854775808", G_MININT64, 0, &value, NULL));
    g_assert_cmpint(value, ==, G_MININT64);
    g_assert_true(sv_parse_int64("9223372036854775807", 0, G_MAXINT64, &value, NULL));
    g_assert_cmpint(value, ==, G_MAXINT64);
    value = 5;
    g_assert_false(sv_parse_int64("9223372036854775808", 0, G_MAXINT64, &value, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_LIMIT);
    g_clear_error(&error);
    g_assert_false(sv_parse_int64("11", 0, 10, &value, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_LIMIT);
    g_clear_error(&error);
    g_assert_false(sv_parse_int64("-1", 0, 10, &value, NULL));
    g_assert_false(sv_parse_int64(NULL, 0, 10, &value, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(sv_parse_int64(bad[i], 0, 10000, &value, &error));
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
        g_clear_error(&error);
    }
    g_assert_cmpint(value, ==, 5);
}

static void test_size(void)
{
    static const struct {
        const char *text;
        gint64 value;
    } good[] = {{"-1", -1}, {"0", 0}, {"10", 10}, {"10b", 10}, {"1k", 1024}, {"2M", 2 << 20},
        {"3GB", G_GINT64_CONSTANT(3) << 30}, {"4 GiB", G_GINT64_CONSTANT(4) << 30},
        {"1.5g", G_GINT64_CONSTANT(3) << 29}, {"0.5", 0}, {"1t", G_GINT64_CONSTANT(1) << 40},
        {"9223372036854775807", G_MAXINT64}, {"1.0000000000000k", 1024}};
    static const char *const bad[] = {"", " ", "-2", "x", "1x", "1.", ".5", "1.5.2", "1 ", "1  k",
        "k", "1kk", "1bk", "9223372036854775808", "99999999999999999999999", "8388608t", "8192p",
        "+1", "0x10", "1e3", "-1k"};
    gint64 value = 7;

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_test_message("%s", good[i].text);
        g_assert_true(sv_parse_size(good[i].text, &value));
        g_assert_cmpint(value, ==, good[i].value);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_test_message("%s", bad[i]);
        g_assert_false(sv_parse_size(bad[i], &value));
    }
    g_assert_false(sv_parse_size(NULL, &value));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/names/id", test_id);
    g_test_add_func("/names/signal-parse", test_signal_parse);
    g_test_add_func("/names/signal-names", test_signal_names);
    g_test_add_func("/names/signal-terminates", test_signal_terminates);
    g_test_add_func("/names/enum", test_enum);
    g_test_add_func("/names/int64", test_int64);
    g_test_add_func("/names/size", test_size);
    return g_test_run();
}
