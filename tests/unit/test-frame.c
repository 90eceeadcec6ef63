/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/error.h"
#include "rpc/frame.h"
#include <string.h>

static GByteArray *make_frame(guint32 stream, guint8 type, guint8 flags, const char *payload)
{
    GByteArray *bytes = g_byte_array_new();
    guint8 header[SV_FRAME_HEADER];

    sv_frame_put_header(header, (guint32)strlen(payload), stream, type, flags);
    g_byte_array_append(bytes, header, sizeof(header));
    g_byte_array_append(bytes, (const guint8 *)payload, (guint)strlen(payload));
    return bytes;
}

static void assert_frame(
    const SvFrame *frame, guint32 stream, guint8 type, guint8 flags, const char *payload)
{
    g_assert_cmpuint(frame->stream, ==, stream);
    g_assert_cmpuint(frame->type, ==, type);
    g_assert_cmpuint(frame->flags, ==, flags);
    g_assert_cmpmem(frame->payload, frame->length, payload, strlen(payload));
}

static void test_header(void)
{
    const guint8 want[] = {0, 1, 2, 3, 0x80, 0, 0, 5, 3, 0x0d};
    guint8 header[SV_FRAME_HEADER];

    sv_frame_put_header(header, 0x00010203, 0x80000005, SV_FRAME_DATA, 0x0d);
    g_assert_cmpmem(header, sizeof(header), want, sizeof(want));
}

/* Two frames, cut into two pieces at every byte, and byte by byte. */
static void test_fragments(void)
{
    g_autoptr(GByteArray) all = make_frame(1, SV_FRAME_REQUEST, 0, "first");
    g_autoptr(GByteArray) second = make_frame(0xffffffff, SV_FRAME_ACK, 0x0a, "");

    g_byte_array_append(all, second->data, second->len);
    for (guint cut = 0; cut <= all->len; cut++) {
        g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
        g_autoptr(GError) error = NULL;
        SvFrame frame;
        int n = 0;

        sv_frame_reader_push(reader, all->data, cut);
        for (int part = 0; part < 2; part++) {
            while (sv_frame_reader_next(reader, &frame, &error) == 1) {
                if (n++ == 0)
                    assert_frame(&frame, 1, SV_FRAME_REQUEST, 0, "first");
                else
                    assert_frame(&frame, 0xffffffff, SV_FRAME_ACK, 0x0a, "");
            }
            g_assert_no_error(error);
            if (part == 0)
                sv_frame_reader_push(reader, all->data + cut, all->len - cut);
        }
        g_assert_cmpint(n, ==, 2);
    }
}

static void test_space(void)
{
    g_autoptr(GByteArray) bytes = make_frame(7, SV_FRAME_DATA, 1, "abcdefghijklmnop");
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(64);
    SvFrame frame;

    for (int round = 0; round < 100; round++) {
        for (guint i = 0; i < bytes->len; i++) {
            gsize room = 0;
            guint8 *space = sv_frame_reader_space(reader, &room);

            g_assert_cmpuint(room, >=, 1);
            g_assert_cmpuint(room, <=, SV_DATA_CHUNK + SV_FRAME_HEADER);
            *space = bytes->data[i];
            sv_frame_reader_added(reader, 1);
            g_assert_cmpint(sv_frame_reader_next(reader, &frame, NULL), ==, i + 1 == bytes->len);
        }
        assert_frame(&frame, 7, SV_FRAME_DATA, 1, "abcdefghijklmnop");
    }
}

static void test_big(void)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    g_autofree guint8 *bytes = g_malloc0(SV_FRAME_HEADER + SV_FRAME_MAX);
    gsize len = SV_FRAME_HEADER + SV_FRAME_MAX;
    gsize done = 0;
    SvFrame frame;

    sv_frame_put_header(bytes, SV_FRAME_MAX, 3, SV_FRAME_RESPONSE, 0);
    bytes[len - 1] = 0x5a;
    while (done < len) {
        gsize room = 0;
        guint8 *space = sv_frame_reader_space(reader, &room);
        gsize n = MIN(room, len - done);

        g_assert_cmpint(sv_frame_reader_next(reader, &frame, NULL), ==, 0);
        memcpy(space, bytes + done, n);
        sv_frame_reader_added(reader, n);
        done += n;
    }
    g_assert_cmpint(sv_frame_reader_next(reader, &frame, NULL), ==, 1);
    g_assert_cmpuint(frame.length, ==, SV_FRAME_MAX);
    g_assert_cmpuint(frame.payload[frame.length - 1], ==, 0x5a);
}

static void test_too_long(void)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(100);
    g_autoptr(GError) error = NULL;
    guint8 header[SV_FRAME_HEADER];
    SvFrame frame;

    sv_frame_put_header(header, 101, 1, SV_FRAME_REQUEST, 0);
    sv_frame_reader_push(reader, header, sizeof(header));
    g_assert_cmpint(sv_frame_reader_next(reader, &frame, &error), ==, -1);
    g_assert_true(g_error_matches(error, SV_RPC_ERROR, SV_ERR_LIMIT));
    /* It stays broken until it is reset. */
    g_assert_cmpint(sv_frame_reader_next(reader, &frame, NULL), ==, -1);
    sv_frame_reader_reset(reader);
    sv_frame_put_header(header, 0, 1, SV_FRAME_REQUEST, 0);
    sv_frame_reader_push(reader, header, sizeof(header));
    g_assert_cmpint(sv_frame_reader_next(reader, &frame, NULL), ==, 1);
}

static void test_unknown_type(void)
{
    for (guint type = 0; type < 256; type++) {
        g_autoptr(SvFrameReader) reader = sv_frame_reader_new(100);
        g_autoptr(GError) error = NULL;
        guint8 header[SV_FRAME_HEADER];
        SvFrame frame;

        sv_frame_put_header(header, 0, 1, (guint8)type, 0);
        sv_frame_reader_push(reader, header, sizeof(header));
        if (type >= SV_FRAME_REQUEST && type <= SV_FRAME_ACK) {
            g_assert_cmpint(sv_frame_reader_next(reader, &frame, &error), ==, 1);
        } else {
            g_assert_cmpint(sv_frame_reader_next(reader, &frame, &error), ==, -1);
            g_assert_true(g_error_matches(error, SV_RPC_ERROR, SV_ERR_INVALID));
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/frame/header", test_header);
    g_test_add_func("/frame/fragments", test_fragments);
    g_test_add_func("/frame/space", test_space);
    g_test_add_func("/frame/big", test_big);
    g_test_add_func("/frame/too-long", test_too_long);
    g_test_add_func("/frame/unknown-type", test_unknown_type);
    return g_test_run();
}
