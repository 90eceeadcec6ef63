/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Nexthop objects: routes name them by number. The kernel says with each route what its object stands for, unless
 * net.ipv4.nexthop_compat_mode is off. A guest gets routes without such objects. */
#include "netns/message.h"
#include <linux/nexthop.h>
#include <string.h>

typedef struct {
    guint32 id;
    int index;
    guint32 flags;
    ProtobufCBinaryData gateway;
    struct nexthop_grp *group; /* NULL: it is none */
    gsize n_group;
} NextHop;

void sv_net_nexthop_free(gpointer data)
{
    NextHop *hop = data;

    if (!hop)
        return;
    g_free(hop->gateway.data);
    g_free(hop->group);
    g_free(hop);
}

gpointer sv_net_nexthop_decode(struct nlmsghdr *message, const SvNetNumbers *numbers)
{
    const struct nhmsg *info = nlmsg_data(message);
    struct nlattr *table[NHA_MAX + 1];

    if (message->nlmsg_type != RTM_NEWNEXTHOP ||
        nlmsg_parse(message, sizeof(*info), table, NHA_MAX, NULL) < 0 || !table[NHA_ID])
        return NULL;
    NextHop *hop = g_new0(NextHop, 1);
    hop->id = sv_attr_u32(table[NHA_ID]);
    hop->index = table[NHA_OIF] ? (int)sv_attr_u32(table[NHA_OIF]) : 0;
    hop->flags = info->nh_flags;
    sv_attr_bytes(&hop->gateway, table[NHA_GATEWAY]);
    if (table[NHA_GROUP]) {
        gsize len = (gsize)nla_len(table[NHA_GROUP]);

        hop->group = g_memdup2(nla_data(table[NHA_GROUP]), len);
        hop->n_group = len / sizeof(*hop->group);
    }
    return hop;
}

static const NextHop *find(const GPtrArray *nexthops, guint32 id)
{
    for (guint i = 0; i < nexthops->len; i++) {
        const NextHop *hop = nexthops->pdata[i];

        if (hop->id == id)
            return hop;
    }
    return NULL;
}

static void add_hop(
    GPtrArray *hops, const NextHop *from, guint32 weight, const SvNetNumbers *numbers)
{
    SvNetHop *hop = from ? sv_net_hop_new(numbers->devices, from->index, from->flags) : NULL;

    if (!hop)
        return;
    sv_bytes_set(&hop->gateway, from->gateway.data, from->gateway.len);
    hop->weight = weight;
    g_ptr_array_add(hops, hop);
}

void sv_net_nexthop_resolve(GPtrArray *hops, guint32 id, const SvNetNumbers *numbers)
{
    const NextHop *nexthop = find(numbers->nexthops, id);

    if (!nexthop || nexthop->n_group == 0)
        add_hop(hops, nexthop, 0, numbers);
    for (gsize i = 0; nexthop && i < nexthop->n_group; i++)
        add_hop(hops, find(numbers->nexthops, nexthop->group[i].id),
            nexthop->n_group > 1 ? nexthop->group[i].weight : 0, numbers);
}
