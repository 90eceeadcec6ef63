/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What exec sends and what events print. */
#include "base/file.h"
#include "cli/options.h"
#include "cli/process-json.h"
#include "cli/stats-json.h"
#include <string.h>

static const char config[] =
    "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"rootfs\"},\"process\":{\"args\":[\"init\"],"
    "\"cwd\":\"/"
    "srv\",\"env\":[\"A=1\"],\"terminal\":true,\"consoleSize\":{\"height\":5,\"width\":6},"
    "\"user\":{\"uid\":7,\"gid\":8},\"capabilities\":{\"bounding\":[\"CAP_KILL\"]}}}";

typedef struct {
    char *dir;
    SvRecord *record;
} Bundle;

static void bundle_make(Bundle *b)
{
    g_autofree char *path = NULL;

    b->dir = g_dir_make_tmp("test-cli-XXXXXX", NULL);
    path = g_build_filename(b->dir, "config.json", NULL);
    g_assert_true(g_file_set_contents(path, config, -1, NULL));
    b->record = sv_record_new("c");
    b->record->bundle = g_strdup(b->dir);
}

static void bundle_clear(Bundle *b)
{
    sv_record_free(b->record);
    g_assert_true(sv_file_remove_tree(b->dir, NULL));
    g_free(b->dir);
}

static GPtrArray *list_of(const char *a, const char *b)
{
    GPtrArray *list = g_ptr_array_new();

    g_ptr_array_add(list, (gpointer)a);
    if (b)
        g_ptr_array_add(list, (gpointer)b);
    return list;
}

static void test_process(void)
{
    static char *args[] = {(char *)"sh", (char *)"-c", (char *)"exit 3", NULL};
    g_autoptr(GPtrArray) env = list_of("B=2", "C=3");
    g_autoptr(GPtrArray) caps = list_of("CAP_CHOWN", NULL);
    g_autoptr(GPtrArray) groups = list_of("11", "12");
    SvExecProcess wanted = {.cwd = "/tmp",
        .user = "1:2",
        .env = env,
        .caps = caps,
        .groups = groups,
        .no_new_privs = TRUE};
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = NULL;
    g_autofree char *text = NULL;
    gboolean terminal = TRUE;
    guint rows = 0, cols = 0;
    Bundle b;

    bundle_make(&b);
    node = sv_process_from_container(b.record, &wanted, args, &error);
    g_assert_no_error(error);
    text = sv_json_text(node, FALSE);
    g_assert_nonnull(strstr(text, "\"args\":[\"sh\",\"-c\",\"exit 3\"]"));
    g_assert_nonnull(strstr(text, "\"cwd\":\"/tmp\""));
    g_assert_nonnull(strstr(text, "\"env\":[\"A=1\",\"B=2\",\"C=3\"]"));
    g_assert_nonnull(strstr(text, "\"uid\":1"));
    g_assert_nonnull(strstr(text, "\"gid\":2"));
    g_assert_nonnull(strstr(text, "\"additionalGids\":[11,12]"));
    g_assert_nonnull(strstr(text, "\"bounding\":[\"CAP_KILL\",\"CAP_CHOWN\"]"));
    g_assert_nonnull(strstr(text, "\"noNewPrivileges\":true"));
    sv_process_terminal(node, &terminal, &rows, &cols);
    g_assert_false(terminal); /* said by --tty, not by the container's own process */
    g_assert_cmpuint(rows, ==, 0);
    bundle_clear(&b);
}

static void test_process_wrong(void)
{
    static char *args[] = {(char *)"true", NULL};
    static const char *const users[] = {"", "root", "1:", "-1", "4294967296", "1:2:3", "1 "};
    static const char *const variables[] = {"", "A", "=1"};
    Bundle b;

    bundle_make(&b);
    for (guint i = 0; i < G_N_ELEMENTS(users); i++) {
        SvExecProcess wanted = {.user = users[i]};
        g_autoptr(GError) error = NULL;

        g_assert_null(sv_process_from_container(b.record, &wanted, args, &error));
        g_assert_nonnull(error);
    }
    for (guint i = 0; i < G_N_ELEMENTS(variables); i++) {
        g_autoptr(GPtrArray) env = list_of("A=", variables[i]);
        SvExecProcess wanted = {.env = env};
        g_autoptr(GError) error = NULL;

        g_assert_null(sv_process_from_container(b.record, &wanted, args, &error));
        g_assert_nonnull(strstr(error->message, "invalid environment variable"));
    }
    bundle_clear(&b);
}

static void test_process_file(void)
{
    g_autofree char *dir = g_dir_make_tmp("test-cli-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "p.json", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = NULL;
    gboolean terminal = FALSE;
    guint rows = 0, cols = 0;

    g_assert_null(sv_process_from_file(path, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_assert_true(g_file_set_contents(path, "{\"args\":[]", -1, NULL));
    g_assert_null(sv_process_from_file(path, &error));
    g_assert_nonnull(strstr(error->message, path));
    g_clear_error(&error);
    g_assert_true(g_file_set_contents(path,
        "{\"args\":[\"a\"],\"cwd\":\"/\",\"terminal\":true,"
        "\"consoleSize\":{\"height\":40,\"width\":120}}",
        -1, NULL));
    node = sv_process_from_file(path, &error);
    g_assert_no_error(error);
    sv_process_terminal(node, &terminal, &rows, &cols);
    g_assert_true(terminal);
    g_assert_cmpuint(rows, ==, 40);
    g_assert_cmpuint(cols, ==, 120);
    g_assert_true(sv_file_remove_tree(dir, NULL));
}

static Sandvirt__V1__KeyValue *file(const char *name, const char *text)
{
    Sandvirt__V1__KeyValue *kv = g_new(Sandvirt__V1__KeyValue, 1);

    sandvirt__v1__key_value__init(kv);
    kv->key = (char *)name;
    kv->value = (char *)text;
    return kv;
}

static void test_stats(void)
{
    Sandvirt__V1__KeyValue *files[] = {
        file("cpu.stat", "usage_usec 12\nuser_usec 8\nsystem_usec 4\nnr_periods x\n"),
        file("memory.current", "4096\n"), file("memory.max", "max\n"),
        file("memory.stat", "anon 1\nfile 2\nbad\n\xff 3\n"), file("pids.current", "3\n"),
        file("pids.max", "20\n"),
        file("io.stat", "8:0 rbytes=5 wbytes=6 rios=1 wios=2 dbytes=0\nnonsense\n")};
    Sandvirt__V1__StatsResponse stats = SANDVIRT__V1__STATS_RESPONSE__INIT;
    g_autofree char *text = NULL;
    g_autoptr(JsonNode) node = NULL;
    g_autoptr(GError) error = NULL;

    stats.n_files = G_N_ELEMENTS(files);
    stats.files = files;
    text = sv_stats_json("c", &stats);
    node = sv_json_parse(text, -1, FALSE, "stats", &error);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(text, "\"usage\":{\"total\":12000,\"kernel\":4000,\"user\":8000}"));
    g_assert_nonnull(strstr(text, "\"usage\":4096"));
    g_assert_nonnull(strstr(text, "\"pids\":{\"current\":3,\"limit\":20}"));
    g_assert_nonnull(strstr(text, "{\"major\":8,\"minor\":0,\"op\":\"Write\",\"value\":6}"));
    g_assert_nonnull(strstr(text, "\"raw\":{\"anon\":1,\"file\":2}"));
    for (guint i = 0; i < G_N_ELEMENTS(files); i++)
        g_free(files[i]);
}

static void test_stats_empty(void)
{
    Sandvirt__V1__StatsResponse stats = SANDVIRT__V1__STATS_RESPONSE__INIT;
    g_autofree char *text = sv_stats_json("c", &stats);
    g_autoptr(JsonNode) node = sv_json_parse(text, -1, FALSE, "stats", NULL);

    g_assert_nonnull(node);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli-json/process", test_process);
    g_test_add_func("/cli-json/process-wrong", test_process_wrong);
    g_test_add_func("/cli-json/process-file", test_process_file);
    g_test_add_func("/cli-json/stats", test_stats);
    g_test_add_func("/cli-json/stats-empty", test_stats_empty);
    return g_test_run();
}
