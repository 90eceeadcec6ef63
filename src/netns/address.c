/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/message.h"
#include <linux/if_addr.h>
#include <string.h>
#include <sys/socket.h>

/* Those that can be asked for. */
#define ADDRESS_FLAGS                                                                              \
    (IFA_F_NODAD | IFA_F_HOMEADDRESS | IFA_F_MANAGETEMPADDR | IFA_F_NOPREFIXROUTE |                \
        IFA_F_MCAUTOJOIN)
#define FOR_EVER 0xffffffffu

#ifndef IFA_PROTO
#define IFA_PROTO 11
#endif
#define ADDRESS_MAX MAX(IFA_MAX, IFA_PROTO)

static const SvAttr attrs[] = {
    {IFA_BROADCAST, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetAddress, broadcast)},
    {IFA_LABEL, SV_ATTR_STRING, G_STRUCT_OFFSET(SvNetAddress, label)},
    {IFA_RT_PRIORITY, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetAddress, metric)},
    {IFA_PROTO, SV_ATTR_U8, G_STRUCT_OFFSET(SvNetAddress, protocol)},
};

static void read_lifetime(SvNetAddress *address, const struct rtattr *attr)
{
    struct ifa_cacheinfo info;

    if (!attr || RTA_PAYLOAD(attr) < sizeof(info))
        return;
    memcpy(&info, RTA_DATA(attr), sizeof(info));
    address->limited = info.ifa_valid != FOR_EVER || info.ifa_prefered != FOR_EVER;
    if (!address->limited)
        return;
    address->valid_s = info.ifa_valid;
    address->preferred_s = info.ifa_prefered;
}

SvNetAddress *sv_net_address_decode(const struct nlmsghdr *message, const GPtrArray *devices)
{
    const struct ifaddrmsg *info = sv_nl_header(message, sizeof(*info));
    const struct rtattr *table[ADDRESS_MAX + 1];
    const SvNetDevice *device = info ? sv_net_device_at(devices, (int)info->ifa_index) : NULL;

    if (message->nlmsg_type != RTM_NEWADDR || !device ||
        (info->ifa_family != AF_INET && info->ifa_family != AF_INET6))
        return NULL;
    sv_nl_parse(message, sizeof(*info), table, ADDRESS_MAX);
    const struct rtattr *peer = table[IFA_LOCAL] ? table[IFA_ADDRESS] : NULL;
    const struct rtattr *local = table[IFA_LOCAL] ? table[IFA_LOCAL] : table[IFA_ADDRESS];
    if (!local)
        return NULL;
    SvNetAddress *address = g_new0(SvNetAddress, 1);
    sandvirt__v1__net_address__init(address);
    sv_attrs_read(attrs, G_N_ELEMENTS(attrs), table, address);
    address->link = g_strdup(device->link->name);
    address->family = info->ifa_family;
    address->prefix_length = info->ifa_prefixlen;
    address->scope = info->ifa_scope;
    address->flags =
        (table[IFA_FLAGS] ? sv_nl_u32(table[IFA_FLAGS]) : info->ifa_flags) & ADDRESS_FLAGS;
    sv_bytes_set(&address->local, RTA_DATA(local), RTA_PAYLOAD(local));
    /* IPv4 tells it always. */
    if (peer &&
        (RTA_PAYLOAD(peer) != address->local.len ||
            memcmp(RTA_DATA(peer), address->local.data, address->local.len) != 0))
        sv_bytes_set(&address->peer, RTA_DATA(peer), RTA_PAYLOAD(peer));
    read_lifetime(address, table[IFA_CACHEINFO]);
    return address;
}

GByteArray *sv_net_address_encode(const SvNetAddress *address, guint16 type, guint16 flags,
    const GPtrArray *devices, GError **error)
{
    int index = sv_net_index_of(devices, address->link, error);
    const ProtobufCBinaryData *peer = address->peer.len ? &address->peer : &address->local;
    struct ifaddrmsg info = {.ifa_family = (guint8)address->family,
        .ifa_prefixlen = (guint8)address->prefix_length,
        .ifa_scope = (guint8)address->scope,
        .ifa_index = (guint32)index};

    if (!index)
        return NULL;
    GByteArray *msg = sv_nl_new(type, flags, &info, sizeof(info));
    sv_nl_put(msg, IFA_LOCAL, address->local.data, address->local.len);
    sv_nl_put(msg, IFA_ADDRESS, peer->data, peer->len);
    sv_attrs_put(attrs, G_N_ELEMENTS(attrs), address, msg);
    if (address->flags)
        sv_nl_put_u32(msg, IFA_FLAGS, address->flags);
    if (address->limited) {
        struct ifa_cacheinfo life = {
            .ifa_valid = address->valid_s, .ifa_prefered = address->preferred_s};

        sv_nl_put(msg, IFA_CACHEINFO, &life, sizeof(life));
    }
    return msg;
}
