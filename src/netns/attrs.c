/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/message.h"
#include <string.h>

guint32 sv_attr_u32(const struct nlattr *attr)
{
    guint32 value = 0;

    nla_memcpy(&value, attr, sizeof(value));
    return value;
}

guint8 sv_attr_u8(const struct nlattr *attr)
{
    guint8 value = 0;

    nla_memcpy(&value, attr, sizeof(value));
    return value;
}

void sv_attr_bytes(ProtobufCBinaryData *field, const struct nlattr *attr)
{
    if (attr)
        sv_bytes_set(field, nla_data(attr), (gsize)nla_len(attr));
}

char *sv_attr_string(const struct nlattr *attr)
{
    return attr ? g_strndup(nla_data(attr), (gsize)nla_len(attr)) : NULL;
}

void sv_attr_nested(struct nlattr *attr, struct nlattr **table, int max)
{
    nla_parse(table, max, attr ? nla_data(attr) : NULL, attr ? nla_len(attr) : 0, NULL);
}

void sv_bytes_set(ProtobufCBinaryData *field, const void *data, gsize len)
{
    g_free(field->data);
    field->data = len ? g_memdup2(data, len) : NULL;
    field->len = len;
}

void sv_attrs_read(const SvAttr *attrs, gsize n, struct nlattr *const *table, gpointer message)
{
    for (gsize i = 0; i < n; i++) {
        const struct nlattr *attr = table[attrs[i].attr];
        gpointer field = G_STRUCT_MEMBER_P(message, attrs[i].offset);

        if (!attr)
            continue;
        switch (attrs[i].type) {
        case SV_ATTR_U8:
            *(guint32 *)field = sv_attr_u8(attr);
            break;
        case SV_ATTR_U32:
            *(guint32 *)field = sv_attr_u32(attr);
            break;
        case SV_ATTR_BYTES:
            sv_attr_bytes(field, attr);
            break;
        case SV_ATTR_STRING:
            /* what it had is protobuf-c's own empty string */
            *(char **)field = sv_attr_string(attr);
            break;
        }
    }
}

gboolean sv_attrs_put(const SvAttr *attrs, gsize n, gconstpointer message, struct nl_msg *msg)
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
                NLA_PUT_U8(msg, attrs[i].attr, (guint8)number);
            break;
        case SV_ATTR_U32:
            if (number)
                NLA_PUT_U32(msg, attrs[i].attr, number);
            break;
        case SV_ATTR_BYTES:
            if (bytes->len)
                NLA_PUT(msg, attrs[i].attr, (int)bytes->len, bytes->data);
            break;
        case SV_ATTR_STRING:
            memcpy(&text, field, sizeof text);
            if (*text)
                NLA_PUT_STRING(msg, attrs[i].attr, text);
            break;
        }
    }
    return TRUE;

nla_put_failure:
    return FALSE;
}

struct nl_msg *sv_nl_no_room(struct nl_msg *msg, GError **error)
{
    nlmsg_free(msg);
    g_set_error_literal(error, SV_NET_ERROR, SV_ERR_LIMIT, "too long for a message to the kernel");
    return NULL;
}
