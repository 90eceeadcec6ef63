/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/error.h"

#include <errno.h>
#include <string.h>

static void test_errno(void)
{
    static const struct {
        int errsv;
        SvErr code;
    } cases[] = {{ENOENT, SV_ERR_NOT_FOUND}, {EEXIST, SV_ERR_EXISTS}, {EPERM, SV_ERR_PERMISSION},
        {EACCES, SV_ERR_PERMISSION}, {EBUSY, SV_ERR_BUSY}, {ETIMEDOUT, SV_ERR_TIMEOUT},
        {EPIPE, SV_ERR_CLOSED}, {ECONNRESET, SV_ERR_CLOSED}, {ENOTCONN, SV_ERR_CLOSED},
        {ECONNREFUSED, SV_ERR_CLOSED}, {EINVAL, SV_ERR_INVALID}, {ENOSYS, SV_ERR_UNSUPPORTED},
        {EOPNOTSUPP, SV_ERR_UNSUPPORTED}, {EIO, SV_ERR_IO}, {ENOSPC, SV_ERR_IO}};

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        sv_error_set_errno(&error, SV_BASE_ERROR, cases[i].errsv, "open %s", "x");
        g_assert_error(error, SV_BASE_ERROR, (int)cases[i].code);
        g_assert_true(g_str_has_prefix(error->message, "open x: "));
        g_assert_nonnull(strstr(error->message, g_strerror(cases[i].errsv)));
    }
    sv_error_set_errno(NULL, SV_BASE_ERROR, EIO, "nobody listens");
}

static void test_is(void)
{
    g_autoptr(GError) ours = g_error_new(SV_BASE_ERROR, SV_ERR_NOT_FOUND, "x");
    g_autoptr(GError) other = g_error_new(G_FILE_ERROR, SV_ERR_NOT_FOUND, "x");

    g_assert_true(sv_error_is(ours, SV_ERR_NOT_FOUND));
    g_assert_false(sv_error_is(ours, SV_ERR_EXISTS));
    g_assert_false(sv_error_is(other, SV_ERR_NOT_FOUND));
    g_assert_false(sv_error_is(NULL, SV_ERR_FAILED));
}

static void test_printable(void)
{
    static const struct {
        const char *text;
        gsize max;
        const char *wanted;
    } cases[] = {
        {NULL, 10, ""}, {"", 10, ""}, {"plain", 10, "plain"}, {"plain", 5, "plain"},
        {"plain6", 5, "pl..."}, {"plain", 2, ".."}, {"plain", 0, ""},
        {"a\nb\tc\x1b[31m\x7f", 100, "a\\x0ab\\x09c\\x1b[31m\\x7f"},
        {"gr\xc3\xbc\xc3\x9f", 100, "gr\xc3\xbc\xc3\x9f"}, {"\xff\xc3", 100, "\\xff\\xc3"},
        {"\xed\xa0\x80", 100, "\\xed\\xa0\\x80"}, /* a surrogate */
        {"a\xe2\x80\xae z", 100, "a\\xe2\\x80\\xae z"}, /* right-to-left override */
        {"a\xe2\x80\xa8z", 100, "a\\xe2\\x80\\xa8z"}, /* line separator */
        {"\xc3\xbc\xc3\xbc\xc3\xbc", 5, "\xc3\xbc..."}, /* never half a character */
        {"abc\n", 6, "abc..."}, /* nor half an escape */
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = sv_printable(cases[i].text, cases[i].max);

        g_assert_cmpstr(got, ==, cases[i].wanted);
        g_assert_cmpuint(strlen(got), <=, cases[i].max);
    }
}

static void test_printable_len(void)
{
    g_autofree char *got = sv_printable_len("a\0b\xc3\xbc", 4, 100);

    g_assert_cmpstr(got, ==, "a\\x00b\\xc3");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/error/errno", test_errno);
    g_test_add_func("/error/is", test_is);
    g_test_add_func("/error/printable", test_printable);
    g_test_add_func("/error/printable-len", test_printable_len);
    return g_test_run();
}
