/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/message.h"
#include <linux/fib_rules.h>
#include <sys/socket.h>

#define NO_GROUP 0xffffffffu

static const SvAttr attrs[] = {
    {FRA_DST, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetRule, destination)},
    {FRA_SRC, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetRule, source)},
    {FRA_IIFNAME, SV_ATTR_STRING, G_STRUCT_OFFSET(SvNetRule, in_link)},
    {FRA_OIFNAME, SV_ATTR_STRING, G_STRUCT_OFFSET(SvNetRule, out_link)},
    {FRA_GOTO, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetRule, target)},
    {FRA_FWMARK, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetRule, mark)},
    {FRA_FWMASK, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetRule, mask)},
    {FRA_FLOW, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetRule, realms)},
    {FRA_TABLE, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetRule, table)},
    {FRA_L3MDEV, SV_ATTR_U8, G_STRUCT_OFFSET(SvNetRule, l3mdev)},
    {FRA_IP_PROTO, SV_ATTR_U8, G_STRUCT_OFFSET(SvNetRule, ip_protocol)},
    {FRA_SPORT_RANGE, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetRule, source_ports)},
    {FRA_DPORT_RANGE, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetRule, destination_ports)},
    {FRA_UID_RANGE, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetRule, uids)},
    {FRA_PROTOCOL, SV_ATTR_U8, G_STRUCT_OFFSET(SvNetRule, protocol)},
};

gpointer sv_net_rule_decode(struct nlmsghdr *message, const SvNetNumbers *numbers)
{
    const struct fib_rule_hdr *info = nlmsg_data(message);
    struct nlattr *table[FRA_MAX + 1];

    if (message->nlmsg_type != RTM_NEWRULE ||
        nlmsg_parse(message, sizeof(*info), table, FRA_MAX, NULL) < 0 ||
        (info->family != AF_INET && info->family != AF_INET6))
        return NULL;
    SvNetRule *rule = g_new0(SvNetRule, 1);
    sandvirt__v1__net_rule__init(rule);
    rule->table = info->table;
    sv_attrs_read(attrs, G_N_ELEMENTS(attrs), table, rule);
    /* Rule 0 does not tell its priority. */
    rule->priority = sv_attr_u32(table[FRA_PRIORITY]);
    rule->family = info->family;
    rule->action = info->action;
    rule->tos = info->tos;
    rule->flags = info->flags & FIB_RULE_INVERT;
    rule->source_length = info->src_len;
    rule->destination_length = info->dst_len;
    rule->has_suppress_length = table[FRA_SUPPRESS_PREFIXLEN] != NULL &&
        sv_attr_u32(table[FRA_SUPPRESS_PREFIXLEN]) != NO_GROUP;
    if (rule->has_suppress_length)
        rule->suppress_length = sv_attr_u32(table[FRA_SUPPRESS_PREFIXLEN]);
    rule->has_suppress_group =
        table[FRA_SUPPRESS_IFGROUP] != NULL && sv_attr_u32(table[FRA_SUPPRESS_IFGROUP]) != NO_GROUP;
    if (rule->has_suppress_group)
        rule->suppress_group = sv_attr_u32(table[FRA_SUPPRESS_IFGROUP]);
    return rule;
}

struct nl_msg *sv_net_rule_encode(
    gconstpointer item, guint16 type, guint16 flags, const GPtrArray *devices, GError **error)
{
    const SvNetRule *rule = item;
    struct fib_rule_hdr info = {.family = (guint8)rule->family,
        .dst_len = (guint8)rule->destination_length,
        .src_len = (guint8)rule->source_length,
        .tos = (guint8)rule->tos,
        .table = rule->table < 256 ? (guint8)rule->table : RT_TABLE_UNSPEC,
        .action = (guint8)rule->action,
        .flags = rule->flags};
    struct nl_msg *msg = sv_nl_new(type, flags, &info, sizeof(info));

    if (!sv_attrs_put(attrs, G_N_ELEMENTS(attrs), rule, msg))
        goto nla_put_failure;
    /* also 0, else the kernel chooses one */
    NLA_PUT_U32(msg, FRA_PRIORITY, rule->priority);
    if (rule->has_suppress_length)
        NLA_PUT_U32(msg, FRA_SUPPRESS_PREFIXLEN, rule->suppress_length);
    if (rule->has_suppress_group)
        NLA_PUT_U32(msg, FRA_SUPPRESS_IFGROUP, rule->suppress_group);
    return msg;

nla_put_failure:
    return sv_nl_no_room(msg, error);
}
