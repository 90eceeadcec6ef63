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

static void read_lifetime(SvNetAddress *address, const struct nlattr *attr)
{
    struct ifa_cacheinfo info;

    if (nla_memcpy(&info, attr, sizeof(info)) < (int)sizeof(info))
        return;
    address->limited = info.ifa_valid != FOR_EVER || info.ifa_prefered != FOR_EVER;
    if (!address->limited)
        return;
    address->valid_s = info.ifa_valid;
    address->preferred_s = info.ifa_prefered;
}

gpointer sv_net_address_decode(struct nlmsghdr *message, const SvNetNumbers *numbers)
{
    const struct ifaddrmsg *info = nlmsg_data(message);
    struct nlattr *table[ADDRESS_MAX + 1];

    if (message->nlmsg_type != RTM_NEWADDR ||
        nlmsg_parse(message, sizeof(*info), table, ADDRESS_MAX, NULL) < 0 ||
        (info->ifa_family != AF_INET && info->ifa_family != AF_INET6))
        return NULL;
    const SvNetDevice *device = sv_net_device_at(numbers->devices, (int)info->ifa_index);
    const struct nlattr *peer = table[IFA_LOCAL] ? table[IFA_ADDRESS] : NULL;
    const struct nlattr *local = table[IFA_LOCAL] ? table[IFA_LOCAL] : table[IFA_ADDRESS];
    if (!device || !local)
        return NULL;
    SvNetAddress *address = g_new0(SvNetAddress, 1);
    sandvirt__v1__net_address__init(address);
    sv_attrs_read(attrs, G_N_ELEMENTS(attrs), table, address);
    address->link = g_strdup(device->link->name);
    address->family = info->ifa_family;
    address->prefix_length = info->ifa_prefixlen;
    address->scope = info->ifa_scope;
    address->flags =
        (table[IFA_FLAGS] ? sv_attr_u32(table[IFA_FLAGS]) : info->ifa_flags) & ADDRESS_FLAGS;
    sv_attr_bytes(&address->local, local);
    /* IPv4 tells it always. */
    if (peer && nla_memcmp(peer, address->local.data, address->local.len) != 0)
        sv_attr_bytes(&address->peer, peer);
    read_lifetime(address, table[IFA_CACHEINFO]);
    return address;
}

struct nl_msg *sv_net_address_encode(
    gconstpointer item, guint16 type, guint16 flags, const GPtrArray *devices, GError **error)
{
    const SvNetAddress *address = item;
    int index = sv_net_index_of(devices, address->link, error);
    const ProtobufCBinaryData *peer = address->peer.len ? &address->peer : &address->local;
    struct ifaddrmsg info = {.ifa_family = (guint8)address->family,
        .ifa_prefixlen = (guint8)address->prefix_length,
        .ifa_scope = (guint8)address->scope,
        .ifa_index = (guint32)index};

    if (!index)
        return NULL;
    struct nl_msg *msg = sv_nl_new(type, flags, &info, sizeof(info));
    NLA_PUT(msg, IFA_LOCAL, (int)address->local.len, address->local.data);
    NLA_PUT(msg, IFA_ADDRESS, (int)peer->len, peer->data);
    if (!sv_attrs_put(attrs, G_N_ELEMENTS(attrs), address, msg))
        goto nla_put_failure;
    if (address->flags)
        NLA_PUT_U32(msg, IFA_FLAGS, address->flags);
    if (address->limited) {
        struct ifa_cacheinfo life = {
            .ifa_valid = address->valid_s, .ifa_prefered = address->preferred_s};

        NLA_PUT(msg, IFA_CACHEINFO, sizeof(life), &life);
    }
    return msg;

nla_put_failure:
    return sv_nl_no_room(msg, error);
}
