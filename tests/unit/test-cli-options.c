/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/options.h"
#include <string.h>

typedef struct {
    gboolean flag;
    const char *text;
    GPtrArray *list;
    gint64 number;
} Values;
#define FIELD(name) G_STRUCT_OFFSET(Values, name)
static const SvOption options[] = {
    {"flag", 'f', SV_OPT_FLAG, FIELD(flag), NULL, "a flag"},
    {"text", 't', SV_OPT_STRING, FIELD(text), "TEXT", "a text"},
    {"list", 'l', SV_OPT_LIST, FIELD(list), "ITEM", "a list"},
    {"number", 0, SV_OPT_INT, FIELD(number), "N", "a number"},
    {"hidden", 0, SV_OPT_STRING, FIELD(text), "X", NULL},
    {NULL},
};

typedef struct {
    Values values;
    char **argv, **rest;
    gboolean help;
    GError *error;
} Parsed;

static void parse(Parsed *p, const char *line, gboolean first_only)
{
    memset(p, 0, sizeof(*p));
    p->argv = g_strsplit(line, " ", -1);
    p->rest = sv_options_parse(options, &p->values, first_only, p->argv, &p->help, &p->error);
}

static void clear(Parsed *p)
{
    sv_options_clear(options, &p->values);
    g_strfreev(p->argv);
    g_free(p->rest);
    g_clear_error(&p->error);
}

static void test_forms(void)
{
    Parsed p;

    parse(&p, "--text=a=b -f x -l 1 --list=2 -l3 --number -5 y", FALSE);
    g_assert_no_error(p.error);
    g_assert_true(p.values.flag);
    g_assert_cmpstr(p.values.text, ==, "a=b");
    g_assert_cmpuint(p.values.list->len, ==, 3);
    g_assert_cmpstr(p.values.list->pdata[2], ==, "3");
    g_assert_cmpint(p.values.number, ==, -5);
    g_assert_cmpuint(g_strv_length(p.rest), ==, 2);
    g_assert_cmpstr(p.rest[1], ==, "y");
    clear(&p);
    parse(&p, "--flag=false --text - -- -f", FALSE);
    g_assert_no_error(p.error);
    g_assert_false(p.values.flag);
    g_assert_cmpstr(p.values.text, ==, "-");
    g_assert_cmpstr(p.rest[0], ==, "-f");
    clear(&p);
    parse(&p, "-flag -text=a=b -number 7 -list 1 -tmore -f=false", FALSE);
    g_assert_no_error(p.error);
    g_assert_false(p.values.flag);
    g_assert_cmpstr(p.values.text, ==, "more");
    g_assert_cmpint(p.values.number, ==, 7);
    g_assert_cmpuint(p.values.list->len, ==, 1);
    clear(&p);
    parse(&p, "--help", FALSE);
    g_assert_true(p.help);
    clear(&p);
}

/* A command of its own follows the first argument. */
static void test_first_only(void)
{
    Parsed p;

    parse(&p, "-f id sh -c --text -- -x", TRUE);
    g_assert_no_error(p.error);
    g_assert_true(p.values.flag);
    g_assert_null(p.values.text);
    g_assert_cmpuint(g_strv_length(p.rest), ==, 6);
    g_assert_cmpstr(p.rest[2], ==, "-c");
    g_assert_cmpstr(p.rest[4], ==, "--");
    clear(&p);
    parse(&p, "id --help", TRUE);
    g_assert_false(p.help);
    clear(&p);
}

static void test_wrong(void)
{
    static const char *const lines[] = {"--nosuch", "-x", "--text", "--number=x", "--flag=maybe",
        "-fx", "-t", "-text", "--tex=a", "-flags", "--number=9223372036854775808"};

    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        Parsed p;

        parse(&p, lines[i], FALSE);
        g_assert_error(p.error, SV_CLI_ERROR, SV_ERR_INVALID);
        g_assert_null(p.rest);
        clear(&p);
    }
}

static void test_help(void)
{
    g_autofree char *text = sv_options_help(options);

    g_assert_nonnull(strstr(text, "-t, --text TEXT"));
    g_assert_nonnull(strstr(text, "--number N"));
    g_assert_null(strstr(text, "hidden"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli-options/forms", test_forms);
    g_test_add_func("/cli-options/first-only", test_first_only);
    g_test_add_func("/cli-options/wrong", test_wrong);
    g_test_add_func("/cli-options/help", test_help);
    return g_test_run();
}
