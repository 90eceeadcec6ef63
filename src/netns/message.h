/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between rtnetlink's messages and those of sandvirt.proto, one file for each kind. */
#pragma once

#include "netns/state.h"

G_BEGIN_DECLS

/* An attribute that is one field of a message. */
typedef enum {
    SV_ATTR_U8, /* the fields of these two are guint32 */
    SV_ATTR_U32,
    SV_ATTR_BYTES, /* ProtobufCBinaryData */
    SV_ATTR_STRING, /* char * */
} SvAttrType;
typedef struct {
    guint16 attr;
    SvAttrType type;
    gsize offset; /* in the message's struct */
} SvAttr;

/* Attributes that are there set their fields. */
void sv_attrs_read(const SvAttr *attrs, gsize n, struct nlattr *const *table, gpointer message);
/* Fields that are not 0 or empty. FALSE: there is no room. */
gboolean sv_attrs_put(const SvAttr *attrs, gsize n, gconstpointer message, struct nl_msg *msg)
    G_GNUC_WARN_UNUSED_RESULT;
/* NULL + @error, for a message (freed) that was too short for all of its attributes. */
struct nl_msg *sv_nl_no_room(struct nl_msg *msg, GError **error);

/* @attr may be NULL, or shorter than one thinks: 0, nothing, NULL. */
guint32 sv_attr_u32(const struct nlattr *attr);
guint8 sv_attr_u8(const struct nlattr *attr);
void sv_attr_bytes(ProtobufCBinaryData *field, const struct nlattr *attr);
char *sv_attr_string(const struct nlattr *attr); /* transfer full */
void sv_attr_nested(struct nlattr *attr, struct nlattr **table, int max);
void sv_bytes_set(ProtobufCBinaryData *field, const void *data, gsize len); /* copies */

/* What numbers stand for. */
typedef struct {
    const GPtrArray *devices; /* SvNetDevice */
    const GPtrArray *nexthops; /* see netns/nexthop.c */
} SvNetNumbers;
/* One entry as the message of its kind (transfer full). NULL for what is left out. */
typedef gpointer SvNetDecode(struct nlmsghdr *message, const SvNetNumbers *numbers);
SvNetDecode sv_net_device_decode, sv_net_address_decode, sv_net_route_decode,
    sv_net_neighbour_decode, sv_net_rule_decode;
/* A nexthop object, which no other side gets to see. */
SvNetDecode sv_net_nexthop_decode;
void sv_net_nexthop_free(gpointer nexthop);
/* Adds what the object with that number stands for, of links that are known. */
void sv_net_nexthop_resolve(GPtrArray *hops, guint32 id, const SvNetNumbers *numbers);
/* (transfer full) NULL for a link that is not known. @flags: RTNH_F_... */
SvNetHop *sv_net_hop_new(const GPtrArray *devices, int index, guint32 flags);

/* @type: RTM_NEW... or RTM_DEL...; @flags: NLM_F_CREATE and so on. NULL + @error when the message of its kind, @item, names
 * a link that is not there, or is too long. */
typedef struct nl_msg *SvNetEncode(
    gconstpointer item, guint16 type, guint16 flags, const GPtrArray *devices, GError **error);
SvNetEncode sv_net_address_encode, sv_net_route_encode, sv_net_neighbour_encode, sv_net_rule_encode;

/* Index of a link by name; 0 + @error (SV_ERR_NOT_FOUND). */
int sv_net_index_of(const GPtrArray *devices, const char *name, GError **error);

G_END_DECLS
