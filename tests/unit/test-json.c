/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/error.h"
#include "base/json.h"

#include <glib/gstdio.h>
#include <string.h>

static void test_good(void)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"{}", "{}"},
        {" {\n} \r\t", "{}"},
        {"[]", "[]"},
        {"{\"b\":1,\"a\":[true,false,null]}", "{\"b\":1,\"a\":[true,false,null]}"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"},
        {"[0,-0,-1,9223372036854775807,-9223372036854775808]",
            "[0,0,-1,9223372036854775807,-9223372036854775808]"},
        {"[18446744073709551615]", "[18446744073709551615]"},
        {"[1.5,0.1,1e3,-2E-2,1.0]", "[1.5,0.1,1000.0,-0.02,1.0]"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\"", "\"\\\"\\\\/\\b\\f\\n\\r\\tA\xc3\xa9\""},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
        {"\"\\u0001\x7f\"", "\"\\u0001\\u007f\""},
        {"{\"\":\"\"}", "{\"\":\"\"}"},
        {"3", "3"},
        {"null", "null"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) node = sv_json_parse(cases[i].text, -1, TRUE, "x", &error);
        g_autofree char *text = NULL;

        g_assert_no_error(error);
        text = sv_json_text(node, FALSE);
        g_assert_cmpstr(text, ==, cases[i].wanted);
    }
}

static void test_bad(void)
{
    static const char *const bad[] = {"", " ", "{", "}", "[", "[1", "[1,", "[1,]", "[,1]",
        "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}", "['a']", "{} x", "{}{}", "{},",
        "[1 2]", "/* c */ {}", "// c\n{}", "tru", "True", "nul", "truefalse", "01", "-", "-a", "+1",
        ".5", "1.", "1e", "1e+", "0x1", "NaN", "Infinity", "1e999", "\"", "\"abc", "\"\\",
        "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u0000\"", "\"\\ud83d\"", "\"\\ude00\"",
        "\"\\ud83d\\u0041\"", "\"a\nb\"", "\"\t\"", "\xef\xbb\xbf{}", "\"\xff\"",
        "\"\xed\xa0\x80\"", "\v{}", "{\"a\":1 \"b\":2}", "{1:2}", "[\"a\" : 1]"};
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_null(sv_json_parse(bad[i], -1, TRUE, "config.json", &error));
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
        g_assert_true(g_str_has_prefix(error->message, "config.json: "));
        g_clear_error(&error);
    }
    g_assert_null(sv_json_parse("{}\0x", 4, TRUE, "x", &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    g_assert_null(sv_json_parse("{\n  \"a\": ?\n}", -1, TRUE, "x", &error));
    g_assert_cmpstr(error->message, ==, "x: line 2, column 8: unexpected character");
    g_clear_error(&error);
    g_assert_null(sv_json_parse("[]", -1, FALSE, "x", &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
}

/* Every beginning of a valid text is an error, not a crash; read from memory without a NUL after it. */
static void test_truncated(void)
{
    static const char text[] = "{\"a\":[1,-2.5e3,\"\\u00e9\\ud83d\\ude00x\",true,null],\"b\":{}}";

    for (gsize len = 0; len < sizeof(text) - 1; len++) {
        g_autofree char *part = g_memdup2(text, len);
        g_autoptr(GError) error = NULL;

        g_assert_null(sv_json_parse(part != NULL ? part : "", (gssize)len, TRUE, "x", &error));
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
    }
}

static char *nested(guint depth)
{
    GString *s = g_string_new(NULL);

    for (guint i = 0; i < depth; i++)
        g_string_append(s, i % 2 ? "[" : "{\"a\":");
    g_string_append(s, "1");
    for (guint i = depth; i > 0; i--)
        g_string_append(s, (i - 1) % 2 ? "]" : "}");
    return g_string_free(s, FALSE);
}

static void test_depth(void)
{
    g_autofree char *most = nested(SV_JSON_MAX_DEPTH);
    g_autofree char *more = nested(SV_JSON_MAX_DEPTH + 1);
    g_autofree char *bomb = g_strnfill(10000000, '[');
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = sv_json_parse(most, -1, FALSE, "x", &error);
    g_autofree char *text = NULL;

    g_assert_no_error(error);
    text = sv_json_text(node, FALSE);
    g_assert_cmpstr(text, ==, most);
    g_assert_null(sv_json_parse(more, -1, FALSE, "x", &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);
    g_assert_null(sv_json_parse(bomb, -1, TRUE, "x", &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
}

static void test_pretty(void)
{
    g_autoptr(JsonNode) node =
        sv_json_parse("{\"a\":[1,{}],\"b\":[],\"c\":{\"d\":\"e\"}}", -1, FALSE, "x", NULL);
    g_autofree char *text = sv_json_text(node, TRUE);

    g_assert_cmpstr(text, ==,
        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": [],\n  \"c\": {\n    \"d\": \"e\"\n  }\n}");
}

static void test_getters(void)
{
    g_autoptr(JsonNode) node =
        sv_json_parse("{\"s\":\"t\",\"i\":5,\"d\":2.5,\"w\":3.0,\"n\":null,"
                      "\"b\":true,\"o\":{},\"l\":[\"x\",\"y\"],\"m\":[\"x\",1],"
                      "\"u\":18446744073709551615,\"neg\":-1}",
            -1, FALSE, "x", NULL);
    JsonObject *o = json_node_get_object(node);
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) list = NULL;
    const char *s = "default";
    gint64 i = 42;
    guint64 u = 42;
    gboolean b = FALSE;
    JsonObject *object = NULL;
    JsonArray *array = NULL;

    g_assert_true(sv_json_get_string(o, "none", "", &s, &error));
    g_assert_true(sv_json_get_string(o, "n", "", &s, &error));
    g_assert_cmpstr(s, ==, "default");
    g_assert_true(sv_json_get_string(o, "s", "", &s, &error));
    g_assert_cmpstr(s, ==, "t");
    g_assert_false(sv_json_get_string(o, "i", "linux.resources", &s, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
    g_assert_true(g_str_has_prefix(error->message, "linux.resources.i: "));
    g_clear_error(&error);

    g_assert_true(sv_json_get_int(o, "i", "", &i, &error));
    g_assert_cmpint(i, ==, 5);
    g_assert_true(sv_json_get_int(o, "w", "", &i, &error));
    g_assert_cmpint(i, ==, 3);
    for (const char *const *name = (const char *const[]){"d", "s", "b", "o", "l", "u", NULL};
         *name != NULL; name++) {
        g_assert_false(sv_json_get_int(o, *name, "", &i, &error));
        g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
        g_assert_true(g_str_has_prefix(error->message, *name));
        g_clear_error(&error);
    }
    g_assert_cmpint(i, ==, 3);
    g_assert_true(sv_json_get_uint(o, "u", "", &u, &error));
    g_assert_cmpuint(u, ==, G_MAXUINT64);
    g_assert_true(sv_json_get_uint(o, "i", "", &u, &error));
    g_assert_cmpuint(u, ==, 5);
    g_assert_false(sv_json_get_uint(o, "neg", "", &u, NULL));
    g_assert_false(sv_json_get_uint(o, "d", "", &u, NULL));

    g_assert_true(sv_json_get_bool(o, "b", "", &b, &error));
    g_assert_true(b);
    g_assert_false(sv_json_get_bool(o, "i", "", &b, NULL));
    g_assert_true(sv_json_get_object(o, "o", "", &object, &error));
    g_assert_nonnull(object);
    g_assert_false(sv_json_get_object(o, "l", "", &object, NULL));
    g_assert_true(sv_json_get_array(o, "l", "", &array, &error));
    g_assert_nonnull(array);
    g_assert_false(sv_json_get_array(o, "o", "", &array, NULL));

    g_assert_true(sv_json_get_strv(o, "none", "", &list, &error));
    g_assert_null(list);
    g_assert_false(sv_json_get_strv(o, "m", "p", &list, &error));
    g_assert_cmpstr(error->message, ==, "p.m[1]: must be a string");
    g_assert_null(list);
    g_clear_error(&error);
    g_assert_true(sv_json_get_strv(o, "l", "", &list, &error));
    g_assert_cmpuint(g_strv_length(list), ==, 2);
}

static void test_load(void)
{
    g_autofree char *path = g_strdup_printf("%s/sv-json-XXXXXX", g_get_tmp_dir());
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = NULL;
    int fd = g_mkstemp(path);

    g_assert_cmpint(fd, >=, 0);
    g_assert_true(g_close(fd, NULL));
    g_assert_true(g_file_set_contents(path, "{\"a\":1}", -1, NULL));
    node = sv_json_load(path, 100, &error);
    g_assert_no_error(error);
    g_assert_true(JSON_NODE_HOLDS_OBJECT(node));
    g_assert_null(sv_json_load(path, 3, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_LIMIT);
    g_clear_error(&error);
    g_assert_null(sv_json_load("/does/not/exist", 3, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
    g_remove(path);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json/good", test_good);
    g_test_add_func("/json/bad", test_bad);
    g_test_add_func("/json/truncated", test_truncated);
    g_test_add_func("/json/depth", test_depth);
    g_test_add_func("/json/pretty", test_pretty);
    g_test_add_func("/json/getters", test_getters);
    g_test_add_func("/json/load", test_load);
    return g_test_run();
}
