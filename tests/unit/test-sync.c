/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rpc/frame.h"
#include <string.h>

/* Feeds @text cut at every byte; the pattern's end must be found at @want (0: never). */
static void check(
    const char *pattern, gsize tail_len, const char *text, gsize want, const char *want_tail)
{
    gsize len = strlen(text);

    for (gsize cut = 0; cut <= len; cut++) {
        g_autoptr(SvSyncScanner) scanner =
            sv_sync_scanner_new((const guint8 *)pattern, strlen(pattern), tail_len);
        guint8 tail[64] = {0};
        gsize got = sv_sync_scanner_feed(scanner, text, cut, tail);

        if (got == 0) {
            got = sv_sync_scanner_feed(scanner, text + cut, len - cut, tail);
            if (got > 0)
                got += cut;
        }
        g_assert_cmpuint(got, ==, want);
        if (want > 0)
            g_assert_cmpstr((char *)tail, ==, want_tail);
    }
}

static void test_simple(void)
{
    check("abc", 0, "abc", 3, "");
    check("abc", 2, "abcde", 5, "de");
    check("abc", 2, "xxabcdeyy", 7, "de");
    check("abc", 2, "abcd", 0, NULL);
    check("abc", 0, "ab", 0, NULL);
    check("a", 1, "ba!", 3, "!");
}

static void test_overlap(void)
{
    check("aab", 0, "aaab", 4, "");
    check("abab", 0, "abacabab", 8, "");
    check("abcabd", 1, "abcabcabdx", 10, "x");
    check("aaaab", 1, "aaaaaaaaaaab!", 13, "!");
}

/* A new pattern inside the tail starts anew: the former one was broken off. */
static void test_pattern_in_tail(void)
{
    check("ab", 6, "ab12ab345678", 12, "345678");
}

/* The tail of a broken off one swallows the start of the next: the next is still found. */
static void test_broken_off(void)
{
    const char *text = "ABCD12ABCDEFGHIJKLMN";
    g_autoptr(SvSyncScanner) scanner = sv_sync_scanner_new((const guint8 *)"ABCD", 4, 5);
    guint8 tail[6] = {0};
    gsize len = strlen(text);
    gsize first = sv_sync_scanner_feed(scanner, text, len, tail);

    g_assert_cmpuint(first, ==, 9);
    g_assert_cmpstr((char *)tail, ==, "12ABC");
    g_assert_cmpuint(sv_sync_scanner_feed(scanner, text + first, len - first, tail), ==, 6);
    g_assert_cmpstr((char *)tail, ==, "EFGHI");
    g_assert_cmpuint(sv_sync_scanner_feed(scanner, text + 15, len - 15, tail), ==, 0);
}

/* The same against the naive search, on random text of two letters. */
static void test_random(void)
{
    for (int round = 0; round < 2000; round++) {
        gsize pattern_len = (gsize)g_test_rand_int_range(1, 9);
        gsize len = (gsize)g_test_rand_int_range(0, 64);
        char pattern[16] = "", text[65] = "";
        g_autoptr(SvSyncScanner) scanner = NULL;
        const char *found;

        for (gsize i = 0; i < pattern_len; i++)
            pattern[i] = g_test_rand_bit() ? 'a' : 'b';
        for (gsize i = 0; i < len; i++)
            text[i] = g_test_rand_bit() ? 'a' : 'b';
        scanner = sv_sync_scanner_new((const guint8 *)pattern, pattern_len, 0);
        found = strstr(text, pattern);
        g_assert_cmpuint(sv_sync_scanner_feed(scanner, text, len, NULL), ==,
            found ? (gsize)(found - text) + pattern_len : 0);
    }
}

static void test_magic(void)
{
    g_autoptr(SvSyncScanner) scanner =
        sv_sync_scanner_new(sv_sync_magic, SV_SYNC_MAGIC_LEN, SV_SYNC_ID_LEN);
    guint8 bytes[SV_SYNC_MAGIC_LEN + SV_SYNC_ID_LEN];
    guint8 tail[SV_SYNC_ID_LEN];

    memcpy(bytes, sv_sync_magic, SV_SYNC_MAGIC_LEN);
    memset(bytes + SV_SYNC_MAGIC_LEN, 7, SV_SYNC_ID_LEN);
    g_assert_false(g_utf8_validate((const char *)sv_sync_magic, SV_SYNC_MAGIC_LEN, NULL));
    g_assert_cmpuint(sv_sync_scanner_feed(scanner, bytes, sizeof(bytes), tail), ==, sizeof(bytes));
    g_assert_cmpmem(tail, sizeof(tail), bytes + SV_SYNC_MAGIC_LEN, SV_SYNC_ID_LEN);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sync/simple", test_simple);
    g_test_add_func("/sync/overlap", test_overlap);
    g_test_add_func("/sync/pattern-in-tail", test_pattern_in_tail);
    g_test_add_func("/sync/broken-off", test_broken_off);
    g_test_add_func("/sync/random", test_random);
    g_test_add_func("/sync/magic", test_magic);
    return g_test_run();
}
