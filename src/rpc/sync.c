/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the pattern that starts a session in a byte stream (Knuth, Morris, Pratt), so that a pattern
 * that begins inside a broken off one is found too. */
#include "rpc/frame.h"
#include <string.h>

/* No byte of it is valid UTF-8 text, so it hardly ever begins in a workload's output. */
const guint8 sv_sync_magic[SV_SYNC_MAGIC_LEN] = {
    0xfe, 0xff, 's', 'v', '-', 's', 'y', 'n', 'c', 0xf5, 0xc0, 0xc1, 0x00, 0x0d, 0x0a, 0xfb};

#define PATTERN_MAX 64

struct SvSyncScanner {
    guint8 pattern[PATTERN_MAX];
    guint8 fail[PATTERN_MAX + 1]; /* length of the longest border of the first i bytes */
    gsize len;
    gsize matched; /* bytes of the pattern that match now, kept through the tail */
    gsize tail_len;
    gsize tail_got;
    gboolean in_tail;
    guint8 *tail;
};

SvSyncScanner *sv_sync_scanner_new(const guint8 *pattern, gsize len, gsize tail_len)
{
    SvSyncScanner *scanner;
    gsize k = 0;

    g_return_val_if_fail(len > 0 && len <= PATTERN_MAX, NULL);
    scanner = g_new0(SvSyncScanner, 1);
    memcpy(scanner->pattern, pattern, len);
    scanner->len = len;
    scanner->tail_len = tail_len;
    scanner->tail = g_malloc0(MAX(tail_len, 1));
    for (gsize i = 1; i < len; i++) {
        while (k > 0 && pattern[i] != pattern[k])
            k = scanner->fail[k];
        if (pattern[i] == pattern[k])
            k++;
        scanner->fail[i + 1] = (guint8)k;
    }
    return scanner;
}

void sv_sync_scanner_free(SvSyncScanner *scanner)
{
    if (!scanner)
        return;
    g_free(scanner->tail);
    g_free(scanner);
}

/* One byte through the automaton; TRUE when it completes the pattern. */
static gboolean scan_byte(SvSyncScanner *scanner, guint8 byte)
{
    while (scanner->matched > 0 && scanner->pattern[scanner->matched] != byte)
        scanner->matched = scanner->fail[scanner->matched];
    if (scanner->pattern[scanner->matched] == byte)
        scanner->matched++;
    if (scanner->matched < scanner->len)
        return FALSE;
    scanner->matched = scanner->fail[scanner->len];
    return TRUE;
}

gsize sv_sync_scanner_feed(SvSyncScanner *scanner, const void *data, gsize len, guint8 *tail)
{
    const guint8 *p = data;
    gsize i = 0;

    while (i < len) {
        if (!scanner->in_tail && scanner->matched == 0) {
            const guint8 *first = memchr(p + i, scanner->pattern[0], len - i);

            if (!first)
                return 0;
            i = (gsize)(first - p);
        }
        if (scanner->in_tail)
            scanner->tail[scanner->tail_got++] = p[i];
        if (scan_byte(scanner, p[i])) {
            scanner->in_tail = TRUE;
            scanner->tail_got = 0;
        }
        i++;
        if (scanner->in_tail && scanner->tail_got == scanner->tail_len) {
            if (tail && scanner->tail_len > 0)
                memcpy(tail, scanner->tail, scanner->tail_len);
            scanner->in_tail = FALSE;
            scanner->tail_got = 0;
            return i;
        }
    }
    return 0;
}
