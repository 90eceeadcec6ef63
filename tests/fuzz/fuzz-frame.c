/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames: the same bytes in pieces of any size give the same frames. The first byte says how big the
 * pieces are. The scanner for the start of a session gets the same bytes. */
#include "fuzz.h"

#include "rpc/frame.h"
#include <string.h>

#define MAX_PAYLOAD 4096

/* A digest of what the reader made of it. */
static char *read_all(const uint8_t *data, gsize size, gsize piece)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(MAX_PAYLOAD);
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize at = 0;
    int result = 0;

    while (at < size && result >= 0) {
        gsize n = MIN(piece, size - at);
        SvFrame frame = {0};
        g_autoptr(GError) error = NULL;

        sv_frame_reader_push(reader, data + at, n);
        at += n;
        while ((result = sv_frame_reader_next(reader, &frame, &error)) == 1) {
            g_assert_cmpuint(frame.length, <=, MAX_PAYLOAD);
            g_checksum_update(sum, (const guchar *)&frame.stream, sizeof frame.stream);
            g_checksum_update(sum, &frame.type, 1);
            g_checksum_update(sum, &frame.flags, 1);
            g_checksum_update(sum, frame.payload, frame.length);
        }
        g_assert_true((result < 0) == (error != NULL));
    }
    g_checksum_update(sum, (const guchar *)(result < 0 ? "-" : "+"), 1);
    return g_strdup(g_checksum_get_string(sum));
}

static void scan(const uint8_t *data, gsize size, gsize piece)
{
    g_autoptr(SvSyncScanner) scanner =
        sv_sync_scanner_new(sv_sync_magic, SV_SYNC_MAGIC_LEN, SV_SYNC_ID_LEN);
    guint8 tail[SV_SYNC_ID_LEN];
    gsize at = 0;

    while (at < size) {
        gsize n = MIN(piece, size - at);
        gsize used = sv_sync_scanner_feed(scanner, data + at, n, tail);

        g_assert_cmpuint(used, <=, n);
        at += used ? used : n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gsize piece = size ? data[0] % 32 + 1 : 1;

    if (size < 2)
        return 0;
    g_autofree char *pieces = read_all(data + 1, size - 1, piece);
    g_autofree char *whole = read_all(data + 1, size - 1, size);
    g_assert_cmpstr(pieces, ==, whole);
    scan(data + 1, size - 1, piece);
    return 0;
}
