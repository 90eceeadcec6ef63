/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/message.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IP4_LENGTH 4u
#define IP6_LENGTH 16u

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

static void read_gateway(
    SvNetHop *hop, const struct rtattr *gateway, const struct rtattr *via, guint family)
{
    if (gateway) {
        sv_bytes_set(&hop->gateway, RTA_DATA(gateway), RTA_PAYLOAD(gateway));
    } else if (via && RTA_PAYLOAD(via) > sizeof(struct rtvia)) {
        const struct rtvia *other = RTA_DATA(via);

        sv_bytes_set(&hop->gateway, other->rtvia_addr, RTA_PAYLOAD(via) - sizeof(*other));
    }
}

/* (transfer full) NULL for a link that is not known. */
static SvNetHop *hop_new(const GPtrArray *devices, int index, guint32 flags)
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

static gboolean read_hops(SvNetRoute *route, const struct rtattr *attr, const GPtrArray *devices)
{
    GPtrArray *hops = g_ptr_array_new();
    gssize left = (gssize)RTA_PAYLOAD(attr);

    for (const struct rtnexthop *next = RTA_DATA(attr);
         left >= (gssize)sizeof(*next) && next->rtnh_len >= sizeof(*next) && next->rtnh_len <= left;
         left -= RTNH_ALIGN(next->rtnh_len), next = RTNH_NEXT(next)) {
        const struct rtattr *gateway = NULL, *via = NULL;
        gssize inner = next->rtnh_len - (gssize)sizeof(*next);
        SvNetHop *hop = hop_new(devices, next->rtnh_ifindex, next->rtnh_flags);

        for (const struct rtattr *a = RTNH_DATA(next); RTA_OK(a, inner); a = RTA_NEXT(a, inner)) {
            gateway = a->rta_type == RTA_GATEWAY ? a : gateway;
            via = a->rta_type == RTA_VIA ? a : via;
        }
        if (!hop)
            continue;
        read_gateway(hop, gateway, via, route->family);
        hop->weight = next->rtnh_hops;
        g_ptr_array_add(hops, hop);
    }
    take_hops(route, hops);
    return route->n_hops > 0;
}

static gboolean read_hop(
    SvNetRoute *route, const struct rtattr *const *table, guint32 flags, const GPtrArray *devices)
{
    GPtrArray *hops = g_ptr_array_new();
    gboolean ok = TRUE;

    /* IPv6 names the loopback of what goes nowhere. */
    if (table[RTA_OIF] &&
        (route->type == RTN_UNICAST || route->type == RTN_LOCAL || route->type == RTN_BROADCAST ||
            route->type == RTN_ANYCAST || route->type == RTN_MULTICAST)) {
        SvNetHop *hop = hop_new(devices, (int)sv_nl_u32(table[RTA_OIF]), flags);

        ok = hop != NULL;
        if (hop) {
            read_gateway(hop, table[RTA_GATEWAY], table[RTA_VIA], route->family);
            g_ptr_array_add(hops, hop);
        }
    }
    take_hops(route, hops);
    return ok;
}

static void read_metrics(SvNetRoute *route, const struct rtattr *attr)
{
    const struct rtattr *table[RTAX_MAX + 1];
    GPtrArray *metrics = g_ptr_array_new();

    sv_nl_parse_nested(attr, table, RTAX_MAX);
    for (guint i = 1; i <= RTAX_MAX; i++) {
        if (!table[i] || i == RTAX_CC_ALGO)
            continue;
        Sandvirt__V1__NetMetric *metric = g_new0(Sandvirt__V1__NetMetric, 1);
        sandvirt__v1__net_metric__init(metric);
        metric->metric = i;
        metric->value = sv_nl_u32(table[i]);
        g_ptr_array_add(metrics, metric);
    }
    if (table[RTAX_CC_ALGO])
        route->congestion = sv_nl_string(table[RTAX_CC_ALGO]);
    route->n_metrics = metrics->len;
    route->metrics = (Sandvirt__V1__NetMetric **)g_ptr_array_free(metrics, FALSE);
}

static void read_expiry(SvNetRoute *route, const struct rtattr *attr)
{
    struct rta_cacheinfo info;
    long ticks = sysconf(_SC_CLK_TCK);

    if (!attr || RTA_PAYLOAD(attr) < sizeof(info) || ticks <= 0)
        return;
    memcpy(&info, RTA_DATA(attr), sizeof(info));
    if (info.rta_expires > 0)
        route->expires_s = (guint32)((info.rta_expires + ticks - 1) / ticks);
}

/* What a namespace has by itself. */
static gboolean is_own(const SvNetRoute *route)
{
    return route->table == RT_TABLE_LOCAL && route->protocol == RTPROT_KERNEL;
}

SvNetRoute *sv_net_route_decode(const struct nlmsghdr *message, const GPtrArray *devices)
{
    const struct rtmsg *info = sv_nl_header(message, sizeof(*info));
    const struct rtattr *table[RTA_MAX + 1];

    if (message->nlmsg_type != RTM_NEWROUTE || !info || (info->rtm_flags & RTM_F_CLONED) ||
        (info->rtm_family != AF_INET && info->rtm_family != AF_INET6))
        return NULL;
    sv_nl_parse(message, sizeof(*info), table, RTA_MAX);
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
    gboolean ok = table[RTA_MULTIPATH] ? read_hops(route, table[RTA_MULTIPATH], devices)
                                       : read_hop(route, table, info->rtm_flags, devices);
    if (ok && !is_own(route))
        return route;
    protobuf_c_message_free_unpacked(&route->base, NULL);
    return NULL;
}

/* ---- writing */

static void put_gateway(GByteArray *msg, const SvNetHop *hop, guint family)
{
    gsize own = family == AF_INET ? IP4_LENGTH : IP6_LENGTH;

    if (hop->gateway.len == 0)
        return;
    if (hop->gateway.len == own) {
        sv_nl_put(msg, RTA_GATEWAY, hop->gateway.data, hop->gateway.len);
        return;
    }
    guint8 via[sizeof(struct rtvia) + IP6_LENGTH];
    struct rtvia head = {.rtvia_family = hop->gateway.len == IP6_LENGTH ? AF_INET6 : AF_INET};
    gsize len = MIN(hop->gateway.len, IP6_LENGTH);
    memcpy(via, &head, sizeof(head));
    memcpy(via + sizeof(head), hop->gateway.data, len);
    sv_nl_put(msg, RTA_VIA, via, sizeof(head) + len);
}

static gboolean put_hops(
    GByteArray *msg, const SvNetRoute *route, const GPtrArray *devices, GError **error)
{
    gsize begun = sv_nl_begin(msg, RTA_MULTIPATH);

    for (gsize i = 0; i < route->n_hops; i++) {
        const SvNetHop *hop = route->hops[i];
        struct rtnexthop next = {.rtnh_flags = (guint8)hop->flags,
            .rtnh_hops = (guint8)hop->weight,
            .rtnh_ifindex = sv_net_index_of(devices, hop->link, error)};
        gsize at = msg->len;

        if (!next.rtnh_ifindex)
            return FALSE;
        g_byte_array_append(msg, (const guint8 *)&next, sizeof(next));
        put_gateway(msg, hop, route->family);
        ((struct rtnexthop *)(gpointer)(msg->data + at))->rtnh_len = (guint16)(msg->len - at);
    }
    sv_nl_end(msg, begun);
    return TRUE;
}

static void put_metrics(GByteArray *msg, const SvNetRoute *route)
{
    if (route->n_metrics == 0 && !*route->congestion)
        return;
    gsize begun = sv_nl_begin(msg, RTA_METRICS);
    for (gsize i = 0; i < route->n_metrics; i++)
        sv_nl_put_u32(msg, (guint16)route->metrics[i]->metric, route->metrics[i]->value);
    if (*route->congestion)
        sv_nl_put_string(msg, RTAX_CC_ALGO, route->congestion);
    sv_nl_end(msg, begun);
}

GByteArray *sv_net_route_encode(
    const SvNetRoute *route, guint16 type, guint16 flags, const GPtrArray *devices, GError **error)
{
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
    int index = only ? sv_net_index_of(devices, only->link, error) : 0;

    if (only && !index)
        return NULL;
    g_autoptr(GByteArray) msg = sv_nl_new(type, flags, &info, sizeof(info));
    sv_attrs_put(attrs, G_N_ELEMENTS(attrs), route, msg);
    put_metrics(msg, route);
    if (only) {
        sv_nl_put_u32(msg, RTA_OIF, (guint32)index);
        put_gateway(msg, only, route->family);
    }
    if (route->n_hops > 1 && !put_hops(msg, route, devices, error))
        return NULL;
    if (route->expires_s && type == RTM_NEWROUTE)
        sv_nl_put_u32(msg, RTA_EXPIRES, route->expires_s);
    return g_steal_pointer(&msg);
}
