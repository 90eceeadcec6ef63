/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/message.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IP4_LENGTH 4u
#define IP6_LENGTH 16u
#define MAX_HOP_LENGTH 64

static const SvAttr attrs[] = {
    {RTA_DST, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetRoute, destination)},
    {RTA_SRC, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetRoute, source)},
    {RTA_TABLE, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetRoute, table)},
    {RTA_PRIORITY, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetRoute, priority)},
    {RTA_PREFSRC, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetRoute, preferred_source)},
    {RTA_PREF, SV_ATTR_U8, G_STRUCT_OFFSET(SvNetRoute, preference)},
    {RTA_FLOW, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetRoute, realms)},
};

/* ---- reading */

static void read_gateway(SvNetHop *hop, struct nlattr *const *table)
{
    const struct nlattr *via = table[RTA_VIA];
    const struct rtvia *other = via ? nla_data(via) : NULL;

    if (table[RTA_GATEWAY])
        sv_attr_bytes(&hop->gateway, table[RTA_GATEWAY]);
    else if (via && nla_len(via) > (int)sizeof(*other))
        sv_bytes_set(&hop->gateway, other->rtvia_addr, (gsize)nla_len(via) - sizeof(*other));
}

SvNetHop *sv_net_hop_new(const GPtrArray *devices, int index, guint32 flags)
{
    const SvNetDevice *device = sv_net_device_at(devices, index);

    if (!device)
        return NULL;
    SvNetHop *hop = g_new0(SvNetHop, 1);
    sandvirt__v1__net_hop__init(hop);
    hop->link = g_strdup(device->link->name);
    hop->flags = flags & (RTNH_F_ONLINK | RTNH_F_PERVASIVE);
    return hop;
}

static void take_hops(SvNetRoute *route, GPtrArray *hops)
{
    route->n_hops = hops->len;
    route->hops = (SvNetHop **)g_ptr_array_free(hops, FALSE);
}

static gboolean read_hops(SvNetRoute *route, const struct nlattr *attr, const GPtrArray *devices)
{
    GPtrArray *hops = g_ptr_array_new();
    gssize left = nla_len(attr);

    for (struct rtnexthop *next = nla_data(attr);
         left >= (gssize)sizeof(*next) && next->rtnh_len >= sizeof(*next) && next->rtnh_len <= left;
         left -= RTNH_ALIGN(next->rtnh_len), next = RTNH_NEXT(next)) {
        struct nlattr *table[RTA_MAX + 1];
        SvNetHop *hop = sv_net_hop_new(devices, next->rtnh_ifindex, next->rtnh_flags);

        if (!hop)
            continue;
        nla_parse(
            table, RTA_MAX, (gpointer)RTNH_DATA(next), next->rtnh_len - (int)sizeof(*next), NULL);
        read_gateway(hop, table);
        hop->weight = next->rtnh_hops;
        g_ptr_array_add(hops, hop);
    }
    take_hops(route, hops);
    return route->n_hops > 0;
}

static gboolean read_hop(
    SvNetRoute *route, struct nlattr *const *table, guint32 flags, const GPtrArray *devices)
{
    GPtrArray *hops = g_ptr_array_new();
    gboolean ok = TRUE;

    /* IPv6 names the loopback of what goes nowhere. */
    if (table[RTA_OIF] &&
        (route->type == RTN_UNICAST || route->type == RTN_LOCAL || route->type == RTN_BROADCAST ||
            route->type == RTN_ANYCAST || route->type == RTN_MULTICAST)) {
        SvNetHop *hop = sv_net_hop_new(devices, (int)sv_attr_u32(table[RTA_OIF]), flags);

        ok = hop != NULL;
        if (hop) {
            read_gateway(hop, table);
            g_ptr_array_add(hops, hop);
        }
    }
    take_hops(route, hops);
    return ok;
}

/* The kernel tells no more than the object's number. */
static gboolean read_nexthop(SvNetRoute *route, guint32 id, const SvNetNumbers *numbers)
{
    GPtrArray *hops = g_ptr_array_new();

    sv_net_nexthop_resolve(hops, id, numbers);
    take_hops(route, hops);
    return route->n_hops > 0;
}

static gboolean read_way(
    SvNetRoute *route, struct nlattr *const *table, guint32 flags, const SvNetNumbers *numbers)
{
    if (table[RTA_MULTIPATH])
        return read_hops(route, table[RTA_MULTIPATH], numbers->devices);
    if (table[RTA_NH_ID] && !table[RTA_OIF] && route->type == RTN_UNICAST)
        return read_nexthop(route, sv_attr_u32(table[RTA_NH_ID]), numbers);
    return read_hop(route, table, flags, numbers->devices);
}

static void read_metrics(SvNetRoute *route, struct nlattr *attr)
{
    struct nlattr *table[RTAX_MAX + 1];
    GPtrArray *metrics = g_ptr_array_new();

    sv_attr_nested(attr, table, RTAX_MAX);
    for (guint i = 1; i <= RTAX_MAX; i++) {
        if (!table[i] || i == RTAX_CC_ALGO)
            continue;
        Sandvirt__V1__NetMetric *metric = g_new0(Sandvirt__V1__NetMetric, 1);
        sandvirt__v1__net_metric__init(metric);
        metric->metric = i;
        metric->value = sv_attr_u32(table[i]);
        g_ptr_array_add(metrics, metric);
    }
    if (table[RTAX_CC_ALGO])
        route->congestion = sv_attr_string(table[RTAX_CC_ALGO]);
    route->n_metrics = metrics->len;
    route->metrics = (Sandvirt__V1__NetMetric **)g_ptr_array_free(metrics, FALSE);
}

static void read_expiry(SvNetRoute *route, const struct nlattr *attr)
{
    struct rta_cacheinfo info = {0};
    long ticks = sysconf(_SC_CLK_TCK);

    nla_memcpy(&info, attr, sizeof(info));
    if (info.rta_expires > 0 && ticks > 0)
        route->expires_s = (guint32)((info.rta_expires + ticks - 1) / ticks);
}

/* What a namespace has by itself. */
static gboolean is_own(const SvNetRoute *route)
{
    return route->table == RT_TABLE_LOCAL && route->protocol == RTPROT_KERNEL;
}

gpointer sv_net_route_decode(struct nlmsghdr *message, const SvNetNumbers *numbers)
{
    const struct rtmsg *info = nlmsg_data(message);
    struct nlattr *table[RTA_MAX + 1];

    if (message->nlmsg_type != RTM_NEWROUTE ||
        nlmsg_parse(message, sizeof(*info), table, RTA_MAX, NULL) < 0 ||
        (info->rtm_flags & RTM_F_CLONED) ||
        (info->rtm_family != AF_INET && info->rtm_family != AF_INET6))
        return NULL;
    SvNetRoute *route = g_new0(SvNetRoute, 1);
    sandvirt__v1__net_route__init(route);
    route->table = info->rtm_table;
    sv_attrs_read(attrs, G_N_ELEMENTS(attrs), table, route);
    route->family = info->rtm_family;
    route->destination_length = info->rtm_dst_len;
    route->source_length = info->rtm_src_len;
    route->type = info->rtm_type;
    route->scope = info->rtm_scope;
    route->protocol = info->rtm_protocol;
    route->tos = info->rtm_tos;
    read_metrics(route, table[RTA_METRICS]);
    read_expiry(route, table[RTA_CACHEINFO]);
    gboolean ok = read_way(route, table, info->rtm_flags, numbers);
    if (ok && !is_own(route))
        return route;
    protobuf_c_message_free_unpacked(&route->base, NULL);
    return NULL;
}

/* ---- writing: FALSE when there is no room */

static gboolean put_gateway(struct nl_msg *msg, const SvNetHop *hop, guint family)
{
    gsize own = family == AF_INET ? IP4_LENGTH : IP6_LENGTH;

    if (hop->gateway.len == 0)
        return TRUE;
    if (hop->gateway.len == own)
        return nla_put(msg, RTA_GATEWAY, (int)own, hop->gateway.data) == 0;
    guint8 via[sizeof(struct rtvia) + IP6_LENGTH];
    struct rtvia head = {.rtvia_family = hop->gateway.len == IP6_LENGTH ? AF_INET6 : AF_INET};
    gsize len = MIN(hop->gateway.len, IP6_LENGTH);
    memcpy(via, &head, sizeof(head));
    memcpy(via + sizeof(head), hop->gateway.data, len);
    return nla_put(msg, RTA_VIA, (int)(sizeof(head) + len), via) == 0;
}

static gboolean put_hop(struct nl_msg *msg, const SvNetHop *hop, int index, guint family)
{
    struct rtnexthop *next = nlmsg_reserve(msg, sizeof(*next), NLMSG_ALIGNTO);

    if (!next)
        return FALSE;
    *next = (struct rtnexthop){
        .rtnh_flags = (guint8)hop->flags, .rtnh_hops = (guint8)hop->weight, .rtnh_ifindex = index};
    if (!put_gateway(msg, hop, family))
        return FALSE;
    next->rtnh_len = (guint16)((char *)nlmsg_tail(nlmsg_hdr(msg)) - (char *)next);
    return TRUE;
}

static gboolean put_hops(struct nl_msg *msg, const SvNetRoute *route, const GPtrArray *devices)
{
    /* Before there are pointers into it. */
    nlmsg_expand(msg, nlmsg_get_max_size(msg) + route->n_hops * MAX_HOP_LENGTH);
    struct nlattr *list = nla_nest_start(msg, RTA_MULTIPATH);

    for (gsize i = 0; list && i < route->n_hops; i++) {
        int index = sv_net_index_of(devices, route->hops[i]->link, NULL);
        if (!put_hop(msg, route->hops[i], index, route->family))
            return FALSE;
    }
    return list && nla_nest_end(msg, list) == 0;
}

static gboolean put_metrics(struct nl_msg *msg, const SvNetRoute *route)
{
    struct nlattr *list = nla_nest_start(msg, RTA_METRICS);

    if (!list)
        return FALSE;
    for (gsize i = 0; i < route->n_metrics; i++)
        NLA_PUT_U32(msg, (int)route->metrics[i]->metric, route->metrics[i]->value);
    if (*route->congestion)
        NLA_PUT_STRING(msg, RTAX_CC_ALGO, route->congestion);
    return nla_nest_end(msg, list) == 0;

nla_put_failure:
    return FALSE;
}

struct nl_msg *sv_net_route_encode(
    gconstpointer item, guint16 type, guint16 flags, const GPtrArray *devices, GError **error)
{
    const SvNetRoute *route = item;
    const SvNetHop *only = route->n_hops == 1 ? route->hops[0] : NULL;
    struct rtmsg info = {.rtm_family = (guint8)route->family,
        .rtm_dst_len = (guint8)route->destination_length,
        .rtm_src_len = (guint8)route->source_length,
        .rtm_tos = (guint8)route->tos,
        .rtm_table = route->table < 256 ? (guint8)route->table : RT_TABLE_COMPAT,
        .rtm_protocol = (guint8)route->protocol,
        .rtm_scope = (guint8)route->scope,
        .rtm_type = (guint8)route->type,
        .rtm_flags = only ? only->flags : 0};
    int index = 0;

    for (gsize i = 0; i < route->n_hops; i++) {
        index = sv_net_index_of(devices, route->hops[i]->link, error);
        if (!index)
            return NULL;
    }
    struct nl_msg *msg = sv_nl_new(type, flags, &info, sizeof(info));
    if (!sv_attrs_put(attrs, G_N_ELEMENTS(attrs), route, msg) || !put_metrics(msg, route))
        goto nla_put_failure;
    if (only) {
        NLA_PUT_U32(msg, RTA_OIF, (guint32)index);
        if (!put_gateway(msg, only, route->family))
            goto nla_put_failure;
    }
    if (route->n_hops > 1 && !put_hops(msg, route, devices))
        goto nla_put_failure;
    if (route->expires_s && type == RTM_NEWROUTE)
        NLA_PUT_U32(msg, RTA_EXPIRES, route->expires_s);
    return msg;

nla_put_failure:
    return sv_nl_no_room(msg, error);
}
