/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/network-tc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_mirred.h>
#include <string.h>

/* Marks our filter among others. */
#define PRIORITY 5356
#define INGRESS_HANDLE 0xffff0000u
/* of an ingress qdisc and of clsact alike */
#define INGRESS_BLOCK TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
#define PROTOCOL_AND_PRIORITY TC_H_MAKE(PRIORITY << 16, htons(ETH_P_ALL))

static gboolean tc_send(
    SvNetlink *nl, GByteArray *msg, int *errsv, const char *what, GError **error)
{
    gboolean ok = sv_netlink_request(nl, msg, errsv, error);
    if (!ok)
        g_prefix_error(error, "%s: ", what);
    g_byte_array_unref(msg);
    return ok;
}

static GByteArray *filter_new(int index, guint16 type, guint16 flags)
{
    const struct tcmsg info = {
        .tcm_ifindex = index, .tcm_parent = INGRESS_BLOCK, .tcm_info = PROTOCOL_AND_PRIORITY};
    GByteArray *msg = sv_nl_new(type, flags, &info, sizeof info);
    sv_nl_put_string(msg, TCA_KIND, "u32");
    return msg;
}

static GByteArray *qdisc_new(int index, guint16 type, guint16 flags)
{
    const struct tcmsg info = {
        .tcm_ifindex = index, .tcm_parent = TC_H_INGRESS, .tcm_handle = INGRESS_HANDLE};
    GByteArray *msg = sv_nl_new(type, flags, &info, sizeof info);
    sv_nl_put_string(msg, TCA_KIND, "ingress");
    return msg;
}

/* Every packet, as `u32 match u32 0 0` says it; cls_matchall is not everywhere. */
static void put_match_all(GByteArray *msg)
{
    struct {
        struct tc_u32_sel sel;
        struct tc_u32_key key;
    } match;
    memset(&match, 0, sizeof match);
    match.sel.flags = TC_U32_TERMINAL;
    match.sel.nkeys = 1;
    sv_nl_put(msg, TCA_U32_SEL, &match, sizeof match);
}

static void put_redirect(GByteArray *msg, int to)
{
    const struct tc_mirred redirect = {
        .action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = (guint32)to};
    gsize actions = sv_nl_begin(msg, TCA_U32_ACT);
    gsize first = sv_nl_begin(msg, 1);
    sv_nl_put_string(msg, TCA_ACT_KIND, "mirred");
    gsize options = sv_nl_begin(msg, TCA_ACT_OPTIONS);
    sv_nl_put(msg, TCA_MIRRED_PARMS, &redirect, sizeof redirect);
    sv_nl_end(msg, options);
    sv_nl_end(msg, first);
    sv_nl_end(msg, actions);
}

static gboolean remove_filter(SvNetlink *nl, int index, GError **error)
{
    int errsv = 0;
    g_autoptr(GError) local = NULL;
    if (tc_send(nl, filter_new(index, RTM_DELTFILTER, 0), &errsv, "remove the filter", &local))
        return TRUE;
    /* no such filter, no such qdisc (EINVAL), no such link */
    if (errsv == ENOENT || errsv == EINVAL || errsv == ENODEV)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

gboolean sv_tc_redirect(SvNetlink *nl, int from, int to, gboolean *made, GError **error)
{
    int errsv = 0;
    g_autoptr(GError) local = NULL;
    *made = tc_send(nl, qdisc_new(from, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL), &errsv,
        "add an ingress qdisc", &local);
    if (!*made && errsv != EEXIST) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (!*made && !remove_filter(nl, from, error))
        return FALSE;
    GByteArray *msg = filter_new(from, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL);
    gsize options = sv_nl_begin(msg, TCA_OPTIONS);
    put_match_all(msg);
    put_redirect(msg, to);
    sv_nl_end(msg, options);
    return tc_send(nl, msg, NULL, "redirect what comes in", error);
}

typedef struct {
    guint own, others;
} Filters;

static gboolean count_filter(const struct nlmsghdr *message, gpointer user_data, GError **error)
{
    const struct tcmsg *info = sv_nl_header(message, sizeof *info);
    Filters *filters = user_data;
    if (info != NULL && TC_H_MAJ(info->tcm_info) == TC_H_MAJ(PROTOCOL_AND_PRIORITY))
        filters->own++;
    else
        filters->others++;
    return TRUE;
}

static Filters count_filters(SvNetlink *nl, int index)
{
    const struct tcmsg info = {.tcm_ifindex = index, .tcm_parent = INGRESS_BLOCK};
    g_autoptr(GByteArray) msg = sv_nl_new(RTM_GETTFILTER, NLM_F_DUMP, &info, sizeof info);
    Filters filters = {0, 0};
    /* Not to be read: as if there were some. */
    if (!sv_netlink_dump(nl, msg, count_filter, NULL, &filters, NULL))
        filters.others++;
    return filters;
}

static gboolean note_qdisc(const struct nlmsghdr *message, gpointer user_data, GError **error)
{
    const struct tcmsg *info = sv_nl_header(message, sizeof *info);
    const struct rtattr *table[TCA_MAX + 1];
    if (info == NULL)
        return TRUE;
    sv_nl_parse(message, sizeof *info, table, TCA_MAX);
    g_autofree char *kind = sv_nl_string(table[TCA_KIND]);
    if (g_strcmp0(kind, "ingress") == 0 || g_strcmp0(kind, "clsact") == 0)
        g_hash_table_insert(
            user_data, GINT_TO_POINTER(info->tcm_ifindex), GINT_TO_POINTER(*kind == 'c'));
    return TRUE;
}

static gboolean is_left_behind(gpointer key, gpointer is_clsact, gpointer nl)
{
    if (GPOINTER_TO_INT(is_clsact))
        return FALSE;
    Filters filters = count_filters(nl, GPOINTER_TO_INT(key));
    return filters.own > 0 && filters.others == 0;
}

gboolean sv_tc_foreign(SvNetlink *nl, GHashTable *indexes, GError **error)
{
    const struct tcmsg info = {.tcm_family = 0};
    g_autoptr(GByteArray) msg = sv_nl_new(RTM_GETQDISC, NLM_F_DUMP, &info, sizeof info);
    if (!sv_netlink_dump(nl, msg, note_qdisc, NULL, indexes, error))
        return FALSE;
    g_hash_table_foreach_remove(indexes, is_left_behind, nl);
    return TRUE;
}

static gboolean note_target(const struct nlmsghdr *message, gpointer user_data, GError **error)
{
    const struct tcmsg *info = sv_nl_header(message, sizeof *info);
    const struct rtattr *table[TCA_MAX + 1], *options[TCA_U32_MAX + 1], *actions[2],
        *action[TCA_ACT_MAX + 1], *mirred[TCA_MIRRED_MAX + 1];
    struct tc_mirred parms;
    if (info == NULL || TC_H_MAJ(info->tcm_info) != TC_H_MAJ(PROTOCOL_AND_PRIORITY))
        return TRUE;
    sv_nl_parse(message, sizeof *info, table, TCA_MAX);
    sv_nl_parse_nested(table[TCA_OPTIONS], options, TCA_U32_MAX);
    sv_nl_parse_nested(options[TCA_U32_ACT], actions, 1);
    sv_nl_parse_nested(actions[1], action, TCA_ACT_MAX);
    sv_nl_parse_nested(action[TCA_ACT_OPTIONS], mirred, TCA_MIRRED_MAX);
    if (mirred[TCA_MIRRED_PARMS] == NULL || RTA_PAYLOAD(mirred[TCA_MIRRED_PARMS]) < sizeof parms)
        return TRUE;
    memcpy(&parms, RTA_DATA(mirred[TCA_MIRRED_PARMS]), sizeof parms);
    *(int *)user_data = (int)parms.ifindex;
    return TRUE;
}

int sv_tc_target(SvNetlink *nl, int index)
{
    const struct tcmsg info = {.tcm_ifindex = index, .tcm_parent = INGRESS_BLOCK};
    g_autoptr(GByteArray) msg = sv_nl_new(RTM_GETTFILTER, NLM_F_DUMP, &info, sizeof info);
    int target = -1;
    return sv_netlink_dump(nl, msg, note_target, NULL, &target, NULL) ? target : -1;
}

gboolean sv_tc_clear(SvNetlink *nl, int index, gboolean made, GError **error)
{
    int errsv = 0;
    g_autoptr(GError) local = NULL;
    if (!remove_filter(nl, index, error))
        return FALSE;
    Filters filters = count_filters(nl, index);
    if (!made || filters.own + filters.others > 0 ||
        tc_send(nl, qdisc_new(index, RTM_DELQDISC, 0), &errsv, "remove the ingress qdisc", &local))
        return TRUE;
    if (errsv == ENOENT || errsv == EINVAL || errsv == ENODEV)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}
