/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/network-take.h"

#include "devices/network-multicast.h"
#include "devices/network-tc.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <netlink/route/link.h>
#include <netlink/route/link/inet6.h>
#include <string.h>

/* ---- which links */

/* Kinds whose frames all pass the link's own ingress, and that do not send through the pod's other links. */
static const char *const kinds[] = {
    "veth", "bridge", "macvlan", "ipvlan", "vlan", "tun", "dummy", "bond", "team", "netkit", "ifb"};

static gboolean is_takable_kind(const char *kind)
{
    for (gsize i = 0; kind != NULL && i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i], kind) == 0)
            return TRUE;
    }
    return kind == NULL; /* hardware */
}

char *sv_link_tap_owner(const SvNetDevice *device)
{
    if (device->alias == NULL || !g_str_has_prefix(device->alias, SV_TAP_ALIAS))
        return NULL;
    const char *name = device->alias + strlen(SV_TAP_ALIAS);
    const char *end = strrchr(name, ':');
    return end != NULL ? g_strndup(name, (gsize)(end - name)) : g_strdup(name);
}

static gboolean is_port(const SvNetDevice *device, const GPtrArray *devices)
{
    const SvNetDevice *master = device->master ? sv_net_device_at(devices, device->master) : NULL;
    return master != NULL && master->kind != NULL && is_takable_kind(master->kind);
}

const char *sv_link_refusal(const SvNetDevice *device, const GPtrArray *devices)
{
    if (device->link->loopback)
        return NULL;
    if (device->alias != NULL && g_str_has_prefix(device->alias, SV_TAP_ALIAS))
        return "";
    /* The kernel adds links of its own to each namespace (sit0, tunl0): nobody has set them up. */
    const char *reason = device->link->flags & IFF_UP ? "its kind is not known to sandvirt" : "";
    if (device->type != ARPHRD_ETHER)
        return device->link->flags & IFF_UP ? "it is no Ethernet link" : "";
    if (!is_takable_kind(device->kind))
        return reason;
    if (is_port(device, devices))
        return "it is a port of another link, which carries its frames";
    /* The two ends of a veth name each other. */
    if (device->lower != 0 && g_strcmp0(device->kind, "veth") != 0)
        return "it lies on another link of the same namespace";
    return NULL;
}

/* ---- taking */

/* Frees @changes. @index 0: the link is known by the name that is among the changes. */
static gboolean change_link(SvNetlink *nl, int index, struct rtnl_link *changes, GError **error)
{
    struct rtnl_link *link = rtnl_link_alloc();
    rtnl_link_set_ifindex(link, index);
    int result = rtnl_link_change(sv_netlink_socket(nl), link, changes, 0);
    rtnl_link_put(link);
    rtnl_link_put(changes);
    return sv_netlink_check(nl, result, NULL, error);
}

static gboolean move_tap(const char *tap, int netns_fd, GError **error)
{
    g_autoptr(SvNetlink) nl = sv_netlink_new(NETLINK_ROUTE, error);
    if (nl == NULL)
        return FALSE;
    struct rtnl_link *changes = rtnl_link_alloc();
    rtnl_link_set_name(changes, tap);
    rtnl_link_set_ns_fd(changes, netns_fd);
    return change_link(nl, 0, changes, error);
}

/* A tap counts the Ethernet header in; a veth does not. What is redirected is not held against it. */
#define TAP_MTU_MAX (65535 - ETH_HLEN)

/* Up, and without a word of its own to the guest. */
static gboolean set_up_tap(SvNetlink *nl, int index, const SvTakeLink *take, GError **error)
{
    struct rtnl_link *changes = rtnl_link_alloc();
    rtnl_link_inet6_set_addr_gen_mode(changes, IN6_ADDR_GEN_MODE_NONE);
    /* Without IPv6 there are none. */
    change_link(nl, index, changes, NULL);

    changes = rtnl_link_alloc();
    rtnl_link_set_flags(changes, IFF_UP);
    rtnl_link_set_ifalias(changes, take->alias);
    if (take->mtu > 0)
        rtnl_link_set_mtu(changes, MIN(take->mtu, TAP_MTU_MAX));
    return change_link(nl, index, changes, error);
}

static const SvNetDevice *find_tap(const GPtrArray *devices, const SvTakeLink *take)
{
    const SvNetDevice *device = sv_net_device_find(devices, take->tap);
    return device != NULL && g_strcmp0(device->kind, "tun") == 0 ? device : NULL;
}

/* The first qdisc of a link without a queue gives it one; plug-ins make such links. */
static gboolean restore_queue_length(SvNetlink *nl, const SvNetDevice *link, GError **error)
{
    if (link->link->queue_length != 0)
        return TRUE;
    struct rtnl_link *changes = rtnl_link_alloc();
    rtnl_link_set_txqlen(changes, 0);
    return change_link(nl, link->index, changes, error);
}

static gboolean join(SvNetlink *nl, const SvTakeLink *take, gboolean *made_qdisc, GError **error)
{
    g_autoptr(GPtrArray) devices = sv_net_devices_read(nl, error);
    gboolean made = FALSE;
    if (devices == NULL)
        return FALSE;
    const SvNetDevice *tap = find_tap(devices, take);
    const SvNetDevice *link = sv_net_device_at(devices, take->index);
    if (tap == NULL || link == NULL) {
        g_set_error(error, SV_NET_ERROR, SV_ERR_NOT_FOUND, "%s is not in the namespace any more",
            tap == NULL ? take->tap : "the link");
        return FALSE;
    }
    if (!set_up_tap(nl, tap->index, take, error) ||
        !sv_tc_redirect(nl, tap->index, take->index, take->mark, &made, error) ||
        !sv_tc_redirect(nl, take->index, tap->index, take->mark, made_qdisc, error) ||
        !restore_queue_length(nl, link, error))
        return FALSE;
    sv_multicast_add(take->multicast, take->index);
    return TRUE;
}

gboolean sv_link_take(int netns_fd, const SvTakeLink *take, gboolean *made_qdisc, GError **error)
{
    *made_qdisc = FALSE;
    g_autoptr(SvNetlink) inside = sv_netlink_new_in(netns_fd, NETLINK_ROUTE, error);
    if (inside == NULL)
        return FALSE;
    if (move_tap(take->tap, netns_fd, error) && join(inside, take, made_qdisc, error))
        return TRUE;
    g_prefix_error(error, "connect %s with the pod's network: ", take->tap);
    return FALSE;
}

/* Another machine may have taken the link since ours was killed: then its filter leads to its own tap. */
static gboolean is_ours(
    SvNetlink *nl, const GPtrArray *devices, const SvNetDevice *tap, const SvTakeLink *take)
{
    if (sv_net_device_at(devices, take->index) == NULL)
        return FALSE;
    const SvNetDevice *target = sv_net_device_at(devices, sv_tc_target(nl, take->index, NULL));
    return target == NULL || target == tap;
}

gboolean sv_link_give_back(
    int netns_fd, const SvTakeLink *take, gboolean made_qdisc, GError **error)
{
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(netns_fd, NETLINK_ROUTE, error);
    g_autoptr(GPtrArray) devices = nl != NULL ? sv_net_devices_read(nl, error) : NULL;
    if (devices == NULL)
        return FALSE;
    const SvNetDevice *tap = find_tap(devices, take);
    gboolean ours = is_ours(nl, devices, tap, take);
    gboolean ok = !ours || sv_tc_clear(nl, take->index, made_qdisc, error);
    if (ours)
        sv_multicast_remove(take->multicast, take->index);
    if (tap == NULL)
        return ok;
    struct rtnl_link *gone = rtnl_link_alloc();
    rtnl_link_set_ifindex(gone, tap->index);
    int errsv = 0, result = rtnl_link_delete(sv_netlink_socket(nl), gone);
    rtnl_link_put(gone);
    g_autoptr(GError) local = NULL;
    if (!sv_netlink_check(nl, result, &errsv, &local) && errsv != ENODEV && ok) {
        g_propagate_prefixed_error(
            error, g_steal_pointer(&local), "remove the tap %s: ", take->tap);
        return FALSE;
    }
    return ok;
}

void sv_link_count(SvNetlink *nl, const char *tap, guint64 *received, guint64 *sent)
{
    struct rtnl_link *link = NULL;
    int result = rtnl_link_get_kernel(sv_netlink_socket(nl), 0, tap, &link);
    if (!sv_netlink_check(nl, result, NULL, NULL))
        return;
    /* What the tap sends, the machine gets. */
    *received += rtnl_link_get_stat(link, RTNL_LINK_TX_BYTES);
    *sent += rtnl_link_get_stat(link, RTNL_LINK_RX_BYTES);
    rtnl_link_put(link);
}
