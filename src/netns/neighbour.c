/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/message.h"
#include <linux/neighbour.h>
#include <sys/socket.h>

#define NEIGHBOUR_FLAGS NTF_ROUTER

static const SvAttr attrs[] = {
    {NDA_DST, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetNeighbour, destination)},
    {NDA_LLADDR, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetNeighbour, mac)},
};

gpointer sv_net_neighbour_decode(struct nlmsghdr *message, const SvNetNumbers *numbers)
{
    const struct ndmsg *info = nlmsg_data(message);
    struct nlattr *table[NDA_MAX + 1];

    if (message->nlmsg_type != RTM_NEWNEIGH ||
        nlmsg_parse(message, sizeof(*info), table, NDA_MAX, NULL) < 0 ||
        info->ndm_state != NUD_PERMANENT ||
        (info->ndm_family != AF_INET && info->ndm_family != AF_INET6))
        return NULL;
    const SvNetDevice *device = sv_net_device_at(numbers->devices, info->ndm_ifindex);
    if (!device || !table[NDA_DST])
        return NULL;
    SvNetNeighbour *neighbour = g_new0(SvNetNeighbour, 1);
    sandvirt__v1__net_neighbour__init(neighbour);
    sv_attrs_read(attrs, G_N_ELEMENTS(attrs), table, neighbour);
    neighbour->link = g_strdup(device->link->name);
    neighbour->family = info->ndm_family;
    neighbour->flags = info->ndm_flags & NEIGHBOUR_FLAGS;
    return neighbour;
}

struct nl_msg *sv_net_neighbour_encode(
    gconstpointer item, guint16 type, guint16 flags, const GPtrArray *devices, GError **error)
{
    const SvNetNeighbour *neighbour = item;
    struct ndmsg info = {.ndm_family = (guint8)neighbour->family,
        .ndm_ifindex = sv_net_index_of(devices, neighbour->link, error),
        .ndm_state = NUD_PERMANENT,
        .ndm_flags = (guint8)neighbour->flags};

    if (!info.ndm_ifindex)
        return NULL;
    struct nl_msg *msg = sv_nl_new(type, flags, &info, sizeof(info));
    return sv_attrs_put(attrs, G_N_ELEMENTS(attrs), neighbour, msg) ? msg
                                                                    : sv_nl_no_room(msg, error);
}
