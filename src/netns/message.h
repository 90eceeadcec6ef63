/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between rtnetlink's messages and those of sandvirt.proto, one file for each kind. */
#pragma once

#include "netns/state.h"

G_BEGIN_DECLS

/* An attribute that is one field of a message. */
typedef enum {
    SV_ATTR_U8, /* the fields of these three are guint32 */
    SV_ATTR_U16,
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
void sv_attrs_read(
    const SvAttr *attrs, gsize n, const struct rtattr *const *table, gpointer message);
/* Fields that are not 0 or empty. */
void sv_attrs_put(const SvAttr *attrs, gsize n, gconstpointer message, GByteArray *msg);
void sv_bytes_set(ProtobufCBinaryData *field, const void *data, gsize len); /* copies */

/* @devices give names to numbers. Each returns NULL for what is left out. */
SvNetDevice *sv_net_device_decode(const struct nlmsghdr *message);
SvNetAddress *sv_net_address_decode(const struct nlmsghdr *message, const GPtrArray *devices);
SvNetRoute *sv_net_route_decode(const struct nlmsghdr *message, const GPtrArray *devices);
SvNetNeighbour *sv_net_neighbour_decode(const struct nlmsghdr *message, const GPtrArray *devices);
SvNetRule *sv_net_rule_decode(const struct nlmsghdr *message);

/* @type: RTM_NEW... or RTM_DEL...; @flags: NLM_F_CREATE and so on. NULL + @error when it names a link that is not
 * there. */
GByteArray *sv_net_address_encode(const SvNetAddress *address, guint16 type, guint16 flags,
    const GPtrArray *devices, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GByteArray *sv_net_route_encode(const SvNetRoute *route, guint16 type, guint16 flags,
    const GPtrArray *devices, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GByteArray *sv_net_neighbour_encode(const SvNetNeighbour *neighbour, guint16 type, guint16 flags,
    const GPtrArray *devices, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GByteArray *sv_net_rule_encode(const SvNetRule *rule, guint16 type, guint16 flags)
    G_GNUC_WARN_UNUSED_RESULT;

/* Index of a link by name; 0 + @error (SV_ERR_NOT_FOUND). */
int sv_net_index_of(const GPtrArray *devices, const char *name, GError **error);

G_END_DECLS
