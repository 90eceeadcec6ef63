/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/message.h"
#include <string.h>

void sv_bytes_set(ProtobufCBinaryData *field, const void *data, gsize len)
{
    g_free(field->data);
    field->data = len ? g_memdup2(data, len) : NULL;
    field->len = len;
}

void sv_attrs_read(
    const SvAttr *attrs, gsize n, const struct rtattr *const *table, gpointer message)
{
    for (gsize i = 0; i < n; i++) {
        const struct rtattr *attr = table[attrs[i].attr];
        gpointer field = G_STRUCT_MEMBER_P(message, attrs[i].offset);

        if (!attr)
            continue;
        switch (attrs[i].type) {
        case SV_ATTR_U8:
            *(guint32 *)field = sv_nl_u8(attr);
            break;
        case SV_ATTR_U16:
            *(guint32 *)field = sv_nl_u16(attr);
            break;
        case SV_ATTR_U32:
            *(guint32 *)field = sv_nl_u32(attr);
            break;
        case SV_ATTR_BYTES:
            sv_bytes_set(field, RTA_DATA(attr), RTA_PAYLOAD(attr));
            break;
        case SV_ATTR_STRING:
            /* what it had is protobuf-c's own empty string */
            *(char **)field = sv_nl_string(attr);
            break;
        }
    }
}

void sv_attrs_put(const SvAttr *attrs, gsize n, gconstpointer message, GByteArray *msg)
{
    for (gsize i = 0; i < n; i++) {
        gconstpointer field = (const guint8 *)message + attrs[i].offset;
        const ProtobufCBinaryData *bytes = field;
        const char *text;
        guint32 number;
        memcpy(&number, field,
            sizeof number); /* a field of four bytes need not lie as a pointer does */

        switch (attrs[i].type) {
        case SV_ATTR_U8:
            if (number)
                sv_nl_put_u8(msg, attrs[i].attr, (guint8)number);
            break;
        case SV_ATTR_U16:
            if (number)
                sv_nl_put_u16(msg, attrs[i].attr, (guint16)number);
            break;
        case SV_ATTR_U32:
            if (number)
                sv_nl_put_u32(msg, attrs[i].attr, number);
            break;
        case SV_ATTR_BYTES:
            if (bytes->len)
                sv_nl_put(msg, attrs[i].attr, bytes->data, bytes->len);
            break;
        case SV_ATTR_STRING:
            memcpy(&text, field, sizeof text);
            if (*text)
                sv_nl_put_string(msg, attrs[i].attr, text);
            break;
        }
    }
}
