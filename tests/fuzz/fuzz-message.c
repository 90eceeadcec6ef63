/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages in frames' payloads: the guest, a shim or a caller may send anything. */
#include "fuzz.h"

#include "rpc/message.h"
#include "sandvirt.pb-c.h"

static const ProtobufCMessageDescriptor *const types[] = {
    &sandvirt__v1__hello_response__descriptor,
    &sandvirt__v1__stats_response__descriptor,
    &sandvirt__v1__ps_response__descriptor,
    &sandvirt__v1__exit_event__descriptor,
    &sandvirt__v1__create_request__descriptor,
    &sandvirt__v1__setup_request__descriptor,
    &sandvirt__v1__register_request__descriptor,
};

static void check_request(const SvFrame *frame)
{
    g_autoptr(GError) error = NULL;
    SvRequest request = {0};

    if (!sv_request_parse(frame, &request, &error)) {
        g_assert_nonnull(error);
        return;
    }
    g_assert_nonnull(request.service);
    g_assert_nonnull(request.method);
    sv_request_clear(&request);
}

static void check_response(const SvFrame *frame, const ProtobufCMessageDescriptor *type)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message = sv_response_parse(frame, type, &error);

    g_assert_true((message == NULL) == (error != NULL));
    if (message)
        sv_message_free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SvFrame frame = {.length = size, .stream = 1, .type = SV_FRAME_RESPONSE, .payload = data};
    const guint8 *bytes = NULL;
    guint64 offset = 0;
    gsize len = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autoptr(GError) error = NULL;
        ProtobufCMessage *message = sv_message_unpack(types[i], data, size, &error);

        g_assert_true((message == NULL) == (error != NULL));
        if (message)
            sv_message_free(message);
        check_response(&frame, types[i]);
    }
    frame.type = SV_FRAME_REQUEST;
    check_request(&frame);
    frame.type = SV_FRAME_DATA;
    if (sv_frame_parse_offset(&frame, &offset, &bytes, &len))
        g_assert_cmpuint(len, ==, size - 8);
    return 0;
}
