/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The writer belongs to the process, so each case runs in a child of its own: this program again, with
 * the name of the case. */
#include <config.h>

#include "base/command.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

#include <glib/gstdio.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *name;
    gboolean debug;
    gboolean file;
    SvLogFormat format;
    gboolean to_stderr;
} Case;

static const Case cases[] = {
    {"text", FALSE, TRUE, SV_LOG_TEXT, TRUE},
    {"json", FALSE, TRUE, SV_LOG_JSON, FALSE},
    {"debug", TRUE, TRUE, SV_LOG_JSON, TRUE},
    {"stderr-only", TRUE, FALSE, SV_LOG_TEXT, TRUE},
};

static void speak(void)
{
    g_debug("a debug");
    g_log("GLib-GIO", G_LOG_LEVEL_DEBUG, "foreign debug");
    g_message("a message");
    g_warning("quo\"te \\ new\nline \x1b[31m");
    g_log_structured(G_LOG_DOMAIN, G_LOG_LEVEL_WARNING, "SANDBOX", "pod", "CONTAINER", "c\"1",
        "MESSAGE", "%s %d", "with fields", 3);
    sv_log_fatal_error("final\terror");
}

static int child(const char *name, const char *path)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *c = &cases[i];

        if (strcmp(c->name, name) != 0)
            continue;
        if (!sv_log_init(
                "sandvirt", c->debug, c->file ? path : NULL, c->format, c->to_stderr, NULL))
            return 3;
        speak();
        return 0;
    }
    return 2;
}

/* Runs a case; gives its stderr and its log file. */
static void run_case(const char *name, char **err, char **log)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = g_dir_make_tmp("sv-test-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "log", NULL);
    g_autoptr(SvCommand) cmd = sv_command_new(self);
    g_autoptr(GError) error = NULL;
    int status = -1;

    sv_command_add_args(cmd, "--child", name, path, NULL);
    sv_command_set_env(cmd, "ASAN_OPTIONS", "detect_leaks=0");
    g_assert_true(sv_command_run(cmd, NULL, 0, 30000, 1 << 20, NULL, err, &status, &error));
    g_assert_no_error(error);
    g_assert_cmpint(status, ==, 0);
    if (!sv_file_read(path, 1 << 20, log, NULL, NULL))
        *log = NULL;
    g_assert_true(sv_file_remove_tree(dir, NULL));
}

/* Every "20..Z" of a line becomes TIME. */
static char *without_time(const char *text)
{
    g_autoptr(GRegex) regex = g_regex_new("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z", 0, 0, NULL);

    return g_regex_replace_literal(regex, text, -1, 0, "TIME", 0, NULL);
}

static void test_text(void)
{
    g_autofree char *err = NULL;
    g_autofree char *log = NULL;
    g_autofree char *plain = NULL;

    run_case("text", &err, &log);
    plain = without_time(log);
    g_assert_cmpstr(plain, ==,
        "time=\"TIME\" level=info msg=\"a message\"\n"
        "time=\"TIME\" level=warning msg=\"quo\\\"te \\\\ new\\nline \\\\x1b[31m\"\n"
        "time=\"TIME\" level=warning msg=\"with fields 3\" sandbox=\"pod\" container=\"c\\\"1\"\n"
        "time=\"TIME\" level=error msg=\"final\\\\x09error\"\n");
    g_assert_cmpstr(err, ==,
        "sandvirt: quo\"te \\ new\\x0aline \\x1b[31m\n"
        "sandvirt: with fields 3\n"
        "sandvirt: final\\x09error\n");
}

static void test_json(void)
{
    g_autofree char *err = NULL;
    g_autofree char *log = NULL;
    g_autofree char *plain = NULL;

    run_case("json", &err, &log);
    plain = without_time(log);
    g_assert_cmpstr(plain, ==,
        "{\"level\":\"info\",\"msg\":\"a message\",\"time\":\"TIME\"}\n"
        "{\"level\":\"warning\",\"msg\":\"quo\\\"te \\\\ new\\nline "
        "\\\\x1b[31m\",\"time\":\"TIME\"}\n"
        "{\"level\":\"warning\",\"msg\":\"with fields 3\",\"time\":\"TIME\",\"sandbox\":\"pod\","
        "\"container\":\"c\\\"1\"}\n"
        "{\"level\":\"error\",\"msg\":\"final\\\\x09error\",\"time\":\"TIME\"}\n");
    g_assert_cmpstr(err, ==, "");
}

static void test_debug(void)
{
    g_autofree char *err = NULL;
    g_autofree char *log = NULL;

    run_case("debug", &err, &log);
    g_assert_nonnull(strstr(log, "{\"level\":\"debug\",\"msg\":\"a debug\""));
    g_assert_null(strstr(log, "foreign"));
    g_assert_null(strstr(err, "a debug"));
    g_clear_pointer(&err, g_free);
    g_clear_pointer(&log, g_free);
    run_case("stderr-only", &err, &log);
    g_assert_null(log);
    g_assert_nonnull(strstr(err, "sandvirt: a debug\n"));
    g_assert_null(strstr(err, "foreign"));
}

static void test_fail(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(
        sv_log_init("sandvirt", FALSE, "/does/not/exist/log", SV_LOG_TEXT, TRUE, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
}

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3]);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/log/text", test_text);
    g_test_add_func("/log/json", test_json);
    g_test_add_func("/log/debug", test_debug);
    g_test_add_func("/log/fail", test_fail);
    return g_test_run();
}
