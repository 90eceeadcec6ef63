/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/streams.h"
#include <string.h>

static gboolean data(SvOutput *o, guint64 offset, const char *text, gboolean eof)
{
    return sv_output_data(o, offset, (const guint8 *)text, strlen(text), eof, NULL);
}

static void test_queue(void)
{
    SvByteQueue q = {0};
    GString *model = g_string_new(NULL);

    for (guint i = 0; i < 20000; i++) {
        char chunk[300];
        gsize n = (gsize)g_test_rand_int_range(0, sizeof(chunk));

        memset(chunk, 'a' + (int)(i % 26), sizeof(chunk));
        sv_byte_queue_push(&q, chunk, n);
        g_string_append_len(model, chunk, (gssize)n);
        n = (gsize)g_test_rand_int_range(0, (gint32)MIN(q.len + 1, 400));
        sv_byte_queue_drop(&q, n);
        g_string_erase(model, 0, (gssize)n);
        g_assert_cmpuint(q.len, ==, model->len);
        g_assert_true(q.len == 0 || memcmp(sv_byte_queue_peek(&q), model->str, q.len) == 0);
    }
    sv_byte_queue_clear(&q);
    g_string_free(model, TRUE);
}

static void test_output(void)
{
    SvOutput o = {0};

    g_assert_true(data(&o, 0, "abc", FALSE));
    g_assert_true(data(&o, 0, "abcde", FALSE)); /* the first three are known */
    g_assert_cmpuint(o.waiting.len, ==, 5);
    g_assert_true(memcmp(sv_byte_queue_peek(&o.waiting), "abcde", 5) == 0);
    g_assert_false(data(&o, 6, "x", FALSE)); /* a gap */
    sv_output_wrote(&o, 2);
    g_assert_true(o.ack);
    g_assert_cmpuint(o.written, ==, 2);
    g_assert_true(data(&o, 1, "b", FALSE)); /* written already */
    g_assert_cmpuint(o.waiting.len, ==, 3);
    g_assert_true(data(&o, 5, "f", TRUE));
    g_assert_false(sv_output_drained(&o));
    g_assert_true(data(&o, 6, "", TRUE));
    g_assert_false(data(&o, 6, "g", FALSE)); /* behind the end */
    sv_output_wrote(&o, 4);
    g_assert_true(sv_output_drained(&o));
    g_assert_cmpuint(o.written, ==, 6);
    sv_output_clear(&o);
}

static void test_output_window(void)
{
    SvOutput o = {0};
    g_autofree guint8 *block = g_malloc0(SV_STREAM_WINDOW);

    g_assert_true(sv_output_data(&o, 0, block, SV_STREAM_WINDOW, FALSE, NULL));
    g_assert_false(sv_output_data(&o, SV_STREAM_WINDOW, block, 1, FALSE, NULL));
    sv_output_wrote(&o, 1);
    g_assert_true(sv_output_data(&o, SV_STREAM_WINDOW, block, 1, FALSE, NULL));
    sv_output_clear(&o);
}

static void test_output_broken(void)
{
    SvOutput o = {0};

    g_assert_true(data(&o, 0, "abc", FALSE));
    sv_output_break(&o);
    g_assert_cmpuint(o.written, ==, 3);
    o.ack = FALSE;
    g_assert_true(data(&o, 3, "defg", TRUE)); /* not wanted, but taken */
    g_assert_true(o.ack);
    g_assert_cmpuint(o.written, ==, 7);
    g_assert_true(sv_output_drained(&o));
    sv_output_clear(&o);
}

static void expect_next(SvInput *in, guint64 offset, const char *text, gboolean eof)
{
    guint64 at = 0;
    const guint8 *bytes = NULL;
    gsize len = 0;
    gboolean end = FALSE;

    g_assert_true(sv_input_next(in, &at, &bytes, &len, &end));
    g_assert_cmpuint(at, ==, offset);
    g_assert_cmpuint(len, ==, strlen(text));
    g_assert_true(len == 0 || memcmp(bytes, text, len) == 0);
    g_assert_true(end == eof);
}

static gboolean has_next(SvInput *in)
{
    SvInput copy = *in;
    guint64 at;
    const guint8 *bytes;
    gsize len;
    gboolean eof;

    return sv_input_next(&copy, &at, &bytes, &len, &eof);
}

static void test_input(void)
{
    SvInput in = {0};

    sv_input_read(&in, (const guint8 *)"hello", 5);
    expect_next(&in, 0, "hello", FALSE);
    g_assert_false(has_next(&in));
    g_assert_true(sv_input_ack(&in, 2, FALSE, NULL));
    g_assert_true(sv_input_ack(&in, 1, FALSE, NULL)); /* old */
    g_assert_false(sv_input_ack(&in, 6, FALSE, NULL)); /* never read */
    sv_input_rewind(&in);
    expect_next(&in, 2, "llo", FALSE);
    sv_input_end(&in);
    g_assert_cmpuint(sv_input_room(&in), ==, 0);
    expect_next(&in, 5, "", TRUE);
    g_assert_false(has_next(&in));
    sv_input_rewind(&in);
    /* What the new monitor has from the old one is acknowledged before anything is sent. */
    g_assert_true(sv_input_ack(&in, 4, FALSE, NULL));
    expect_next(&in, 4, "o", TRUE);
    g_assert_true(sv_input_ack(&in, 5, FALSE, NULL));
    sv_input_rewind(&in);
    expect_next(&in, 5, "", TRUE);
    sv_input_clear(&in);
}

static void test_input_broken(void)
{
    SvInput in = {0};

    sv_input_read(&in, (const guint8 *)"hello", 5);
    g_assert_true(sv_input_ack(&in, 2, TRUE, NULL));
    g_assert_false(has_next(&in));
    g_assert_cmpuint(sv_input_room(&in), ==, 0);
    sv_input_rewind(&in);
    g_assert_false(has_next(&in));
    sv_input_clear(&in);
}

static void test_input_window(void)
{
    SvInput in = {0};
    g_autofree guint8 *block = g_malloc0(SV_STREAM_WINDOW);
    guint64 at = 0, expected = 0;
    const guint8 *bytes = NULL;
    gsize len = 0;
    gboolean eof = FALSE;

    sv_input_read(&in, block, SV_STREAM_WINDOW);
    g_assert_cmpuint(sv_input_room(&in), ==, 0);
    while (sv_input_next(&in, &at, &bytes, &len, &eof)) {
        g_assert_cmpuint(at, ==, expected);
        g_assert_cmpuint(len, <=, SV_DATA_CHUNK);
        expected += len;
    }
    g_assert_cmpuint(expected, ==, SV_STREAM_WINDOW);
    g_assert_true(sv_input_ack(&in, 10, FALSE, NULL));
    g_assert_cmpuint(sv_input_room(&in), ==, 10);
    sv_input_clear(&in);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/shim-streams/queue", test_queue);
    g_test_add_func("/shim-streams/output", test_output);
    g_test_add_func("/shim-streams/output-window", test_output_window);
    g_test_add_func("/shim-streams/output-broken", test_output_broken);
    g_test_add_func("/shim-streams/input", test_input);
    g_test_add_func("/shim-streams/input-broken", test_input_broken);
    g_test_add_func("/shim-streams/input-window", test_input_window);
    return g_test_run();
}
