/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/state.h"
#include "netns/message.h"
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <sys/socket.h>

static void message_free(gpointer message)
{
    protobuf_c_message_free_unpacked(message, NULL);
}

void sv_net_state_free(SvNetState *state)
{
    if (!state)
        return;
    g_clear_pointer(&state->devices, g_ptr_array_unref);
    g_clear_pointer(&state->addresses, g_ptr_array_unref);
    g_clear_pointer(&state->routes, g_ptr_array_unref);
    g_clear_pointer(&state->neighbours, g_ptr_array_unref);
    g_clear_pointer(&state->rules, g_ptr_array_unref);
    g_free(state);
}

GBytes *sv_net_pack(const ProtobufCMessage *message)
{
    gsize len = protobuf_c_message_get_packed_size(message);
    guint8 *data = g_malloc(len ? len : 1);

    protobuf_c_message_pack(message, data);
    return g_bytes_new_take(data, len);
}

/* ---- reading */

typedef struct {
    GPtrArray *items;
    guint kept; /* items of earlier dumps */
    const SvNetNumbers *numbers;
    SvNetDecode *decode;
    guint8 family;
} Dump;

static gboolean take_item(struct nlmsghdr *message, gpointer user_data, GError **error)
{
    Dump *dump = user_data;
    const guint8 *family = nlmsg_data(message);
    gpointer item = NULL;

    /* A kernel without IPv6 answers with everything it has. */
    if (dump->family == AF_UNSPEC || (nlmsg_datalen(message) && *family == dump->family))
        item = dump->decode(message, dump->numbers);
    if (item)
        g_ptr_array_add(dump->items, item);
    if (dump->items->len <= SV_NET_MAX)
        return TRUE;
    g_set_error(error, SV_NET_ERROR, SV_ERR_LIMIT,
        "the network namespace has more than %u entries of a kind", SV_NET_MAX);
    return FALSE;
}

static void start_again(gpointer user_data)
{
    Dump *dump = user_data;

    g_ptr_array_set_size(dump->items, (gint)dump->kept);
}

/* Adds to @items. @header: begins with the family. */
static gboolean dump_items(SvNetlink *nl, guint16 type, const void *header, gsize len,
    SvNetDecode *decode, const SvNetNumbers *numbers, GPtrArray *items, GError **error)
{
    Dump dump = {items, items->len, numbers, decode, *(const guint8 *)header};

    return sv_netlink_dump(nl, type, header, len, take_item, start_again, &dump, error);
}

GPtrArray *sv_net_devices_read(SvNetlink *nl, GError **error)
{
    g_autoptr(GPtrArray) devices =
        g_ptr_array_new_with_free_func((GDestroyNotify)sv_net_device_free);
    const struct ifinfomsg links = {.ifi_family = AF_UNSPEC};

    if (!dump_items(
            nl, RTM_GETLINK, &links, sizeof(links), sv_net_device_decode, NULL, devices, error))
        return NULL;
    return g_steal_pointer(&devices);
}

/* Older kernels have none. */
static gboolean read_nexthops(SvNetlink *nl, GPtrArray *nexthops, GError **error)
{
    const struct nhmsg all = {.nh_family = AF_UNSPEC};
    g_autoptr(GError) local = NULL;

    if (dump_items(
            nl, RTM_GETNEXTHOP, &all, sizeof(all), sv_net_nexthop_decode, NULL, nexthops, &local) ||
        sv_error_is(local, SV_ERR_UNSUPPORTED))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

static gboolean read_family(
    SvNetlink *nl, SvNetState *state, const SvNetNumbers *numbers, guint8 family, GError **error)
{
    const struct ifaddrmsg address = {.ifa_family = family};
    const struct rtmsg route = {.rtm_family = family};
    const struct ndmsg neighbour = {.ndm_family = family};
    const struct fib_rule_hdr rule = {.family = family};

    return dump_items(nl, RTM_GETADDR, &address, sizeof(address), sv_net_address_decode, numbers,
               state->addresses, error) &&
        dump_items(nl, RTM_GETROUTE, &route, sizeof(route), sv_net_route_decode, numbers,
            state->routes, error) &&
        dump_items(nl, RTM_GETNEIGH, &neighbour, sizeof(neighbour), sv_net_neighbour_decode,
            numbers, state->neighbours, error) &&
        dump_items(
            nl, RTM_GETRULE, &rule, sizeof(rule), sv_net_rule_decode, numbers, state->rules, error);
}

SvNetState *sv_net_state_read(SvNetlink *nl, GError **error)
{
    static const guint8 families[] = {AF_INET, AF_INET6};
    g_autoptr(SvNetState) state = g_new0(SvNetState, 1);

    state->devices = sv_net_devices_read(nl, error);
    state->addresses = g_ptr_array_new_with_free_func(message_free);
    state->routes = g_ptr_array_new_with_free_func(message_free);
    state->neighbours = g_ptr_array_new_with_free_func(message_free);
    state->rules = g_ptr_array_new_with_free_func(message_free);
    if (!state->devices)
        return NULL;
    g_autoptr(GPtrArray) nexthops = g_ptr_array_new_with_free_func(sv_net_nexthop_free);
    const SvNetNumbers numbers = {state->devices, nexthops};
    if (!read_nexthops(nl, nexthops, error))
        return NULL;
    for (guint i = 0; i < G_N_ELEMENTS(families); i++) {
        g_autoptr(GError) local = NULL;

        if (read_family(nl, state, &numbers, families[i], &local))
            continue;
        if (families[i] == AF_INET6 && sv_error_is(local, SV_ERR_UNSUPPORTED))
            continue;
        g_propagate_prefixed_error(error, g_steal_pointer(&local), "read the network namespace: ");
        return NULL;
    }
    return g_steal_pointer(&state);
}
