/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/network-tc.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_mirred.h>
#include <netlink/route/act/mirred.h>
#include <netlink/route/action.h>
#include <netlink/route/classifier.h>
#include <netlink/route/cls/u32.h>
#include <netlink/route/qdisc.h>

/* Marks our filter among others. */
#define PRIORITY 5356
#define INGRESS_HANDLE 0xffff0000u
/* of an ingress qdisc and of clsact alike */
#define INGRESS_BLOCK TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

typedef struct rtnl_qdisc Qdisc;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Qdisc, rtnl_qdisc_put)
typedef struct rtnl_cls Filter;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Filter, rtnl_cls_put)
typedef struct nl_cache List;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(List, nl_cache_free)

static Qdisc *qdisc_new(int index)
{
    Qdisc *qdisc = rtnl_qdisc_alloc();
    rtnl_tc_set_ifindex(TC_CAST(qdisc), index);
    rtnl_tc_set_parent(TC_CAST(qdisc), TC_H_INGRESS);
    rtnl_tc_set_handle(TC_CAST(qdisc), INGRESS_HANDLE);
    rtnl_tc_set_kind(TC_CAST(qdisc), "ingress");
    return qdisc;
}

static Filter *filter_new(int index)
{
    Filter *filter = rtnl_cls_alloc();
    rtnl_tc_set_ifindex(TC_CAST(filter), index);
    rtnl_tc_set_parent(TC_CAST(filter), INGRESS_BLOCK);
    rtnl_tc_set_kind(TC_CAST(filter), "u32");
    rtnl_cls_set_prio(filter, PRIORITY);
    rtnl_cls_set_protocol(filter, ETH_P_ALL);
    return filter;
}

/* Every packet, as `u32 match u32 0 0` says it; cls_matchall is not everywhere. */
static void set_redirect(Filter *filter, int to)
{
    struct rtnl_act *redirect = rtnl_act_alloc();
    rtnl_tc_set_kind(TC_CAST(redirect), "mirred");
    rtnl_mirred_set_action(redirect, TCA_EGRESS_REDIR);
    rtnl_mirred_set_policy(redirect, TC_ACT_STOLEN);
    rtnl_mirred_set_ifindex(redirect, (guint32)to);
    rtnl_u32_add_key(filter, 0, 0, 0, 0);
    rtnl_u32_set_cls_terminal(filter);
    rtnl_u32_add_action(filter, redirect);
    rtnl_act_put(redirect);
}

/* @result: of removing something. */
static gboolean is_gone(SvNetlink *nl, int result, const char *what, GError **error)
{
    int errsv = 0;
    g_autoptr(GError) local = NULL;
    /* no such filter, no such qdisc (EINVAL), no such link */
    if (sv_netlink_check(nl, result, &errsv, &local) || errsv == ENOENT || errsv == EINVAL ||
        errsv == ENODEV)
        return TRUE;
    g_propagate_prefixed_error(error, g_steal_pointer(&local), "remove the %s: ", what);
    return FALSE;
}

static gboolean remove_filter(SvNetlink *nl, int index, GError **error)
{
    g_autoptr(Filter) filter = filter_new(index);
    return is_gone(nl, rtnl_cls_delete(sv_netlink_socket(nl), filter, 0), "filter", error);
}

gboolean sv_tc_redirect(
    SvNetlink *nl, int from, int to, guint32 mark, gboolean *made, GError **error)
{
    const int flags = NLM_F_CREATE | NLM_F_EXCL;
    g_autoptr(Qdisc) qdisc = qdisc_new(from);
    g_autoptr(Filter) filter = filter_new(from);
    g_autoptr(GError) local = NULL;
    int errsv = 0;
    *made =
        sv_netlink_check(nl, rtnl_qdisc_add(sv_netlink_socket(nl), qdisc, flags), &errsv, &local);
    if (!*made && errsv != EEXIST) {
        g_propagate_prefixed_error(error, g_steal_pointer(&local), "add an ingress qdisc: ");
        return FALSE;
    }
    if (!*made && !remove_filter(nl, from, error))
        return FALSE;
    set_redirect(filter, to);
    /* There are no classes on the way in: the number means nothing to the kernel. */
    rtnl_u32_set_classid(filter, mark);
    if (sv_netlink_check(nl, rtnl_cls_add(sv_netlink_socket(nl), filter, flags), NULL, error))
        return TRUE;
    g_prefix_error(error, "redirect what comes in: ");
    return FALSE;
}

/* ---- what there is */

/* NULL: it cannot be told. */
static List *filters_of(SvNetlink *nl, int index)
{
    List *filters = NULL;
    int result = rtnl_cls_alloc_cache(sv_netlink_socket(nl), index, INGRESS_BLOCK, &filters);
    return sv_netlink_check(nl, result, NULL, NULL) ? filters : NULL;
}

static gboolean is_own(Filter *filter)
{
    return rtnl_cls_get_prio(filter) == PRIORITY;
}

static void count_filter(struct nl_object *filter, gpointer counts)
{
    ((guint *)counts)[is_own((Filter *)filter)]++;
}

static gboolean is_left_behind(gpointer index, gpointer is_clsact, gpointer nl)
{
    guint counts[2] = {0, 0};
    g_autoptr(List) filters =
        GPOINTER_TO_INT(is_clsact) ? NULL : filters_of(nl, GPOINTER_TO_INT(index));
    if (filters != NULL)
        nl_cache_foreach(filters, count_filter, counts);
    return counts[TRUE] > 0 && counts[FALSE] == 0;
}

static void note_qdisc(struct nl_object *object, gpointer indexes)
{
    struct rtnl_tc *qdisc = TC_CAST(object);
    const char *kind = rtnl_tc_get_kind(qdisc);
    if (g_strcmp0(kind, "ingress") == 0 || g_strcmp0(kind, "clsact") == 0)
        g_hash_table_insert(
            indexes, GINT_TO_POINTER(rtnl_tc_get_ifindex(qdisc)), GINT_TO_POINTER(*kind == 'c'));
}

gboolean sv_tc_foreign(SvNetlink *nl, GHashTable *indexes, GError **error)
{
    g_autoptr(List) qdiscs = NULL;
    int result = rtnl_qdisc_alloc_cache(sv_netlink_socket(nl), &qdiscs);
    if (!sv_netlink_check(nl, result, NULL, error))
        return FALSE;
    nl_cache_foreach(qdiscs, note_qdisc, indexes);
    g_hash_table_foreach_remove(indexes, is_left_behind, nl);
    return TRUE;
}

typedef struct {
    int index;
    guint32 mark;
} Target;

static void note_target(struct nl_object *object, gpointer user_data)
{
    Filter *filter = (Filter *)object;
    Target *target = user_data;
    struct rtnl_act *redirect = is_own(filter) ? rtnl_u32_get_action(filter) : NULL;
    if (redirect == NULL)
        return;
    target->index = (int)rtnl_mirred_get_ifindex(redirect);
    rtnl_u32_get_classid(filter, &target->mark);
}

int sv_tc_target(SvNetlink *nl, int index, guint32 *mark)
{
    g_autoptr(List) filters = filters_of(nl, index);
    Target target = {-1, 0};
    if (filters != NULL)
        nl_cache_foreach(filters, note_target, &target);
    if (mark != NULL)
        *mark = target.mark;
    return target.index;
}

gboolean sv_tc_clear(SvNetlink *nl, int index, gboolean made, GError **error)
{
    if (!remove_filter(nl, index, error))
        return FALSE;
    g_autoptr(List) filters = filters_of(nl, index);
    /* Not to be read: as if there were some. */
    if (!made || filters == NULL || !nl_cache_is_empty(filters))
        return TRUE;
    g_autoptr(Qdisc) qdisc = qdisc_new(index);
    return is_gone(nl, rtnl_qdisc_delete(sv_netlink_socket(nl), qdisc), "ingress qdisc", error);
}
