/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Addresses, routes, neighbours and rules of the guest: the difference between what is wanted and what there
 * is. What a workload or the guest's kernel made by itself is not touched. */
#include "agent/network.h"
#include "netns/message.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <string.h>
#include <sys/socket.h>

typedef struct {
    const char *what;
    guint16 add, remove; /* RTM_... */
    guint16 add_flags;
    SvNetEncode *encode;
    /* Equal for what counts as the same. (transfer full) */
    GBytes *(*key)(gconstpointer item);
    /* The kernel or router that made it takes it away too. */
    gboolean (*passes)(gconstpointer item);
    gboolean (*skip)(const SvNetRequest *wanted, gconstpointer item);
    char *(*describe)(gconstpointer item);
} Kind;

static char *address_text(guint family, const ProtobufCBinaryData *bytes, guint length)
{
    char text[INET6_ADDRSTRLEN];

    if (bytes->len == (family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr)) &&
        inet_ntop((int)family, bytes->data, text, sizeof(text)))
        return g_strdup_printf("%s/%u", text, length);
    return g_strdup_printf("default (IPv%d)", family == AF_INET6 ? 6 : 4);
}

/* ---- addresses */

static GBytes *address_key(gconstpointer item)
{
    SvNetAddress copy = *(const SvNetAddress *)item;

    copy.valid_s = copy.preferred_s = 0;
    return sv_net_pack(&copy.base);
}

static gboolean address_passes(gconstpointer item)
{
    return ((const SvNetAddress *)item)->limited;
}

static gboolean address_skip(const SvNetRequest *wanted, gconstpointer item)
{
    const SvNetAddress *address = item;

    return address->family == AF_INET6 && sv_network_ipv6_is_off(wanted, address->link);
}

static char *address_describe(gconstpointer item)
{
    const SvNetAddress *address = item;
    g_autofree char *text = address_text(address->family, &address->local, address->prefix_length);

    return g_strdup_printf("address %s of %s", text, address->link);
}

/* ---- routes */

static GBytes *route_key(gconstpointer item)
{
    SvNetRoute copy = *(const SvNetRoute *)item;

    copy.expires_s = 0;
    return sv_net_pack(&copy.base);
}

static gboolean route_passes(gconstpointer item)
{
    const SvNetRoute *route = item;

    return route->expires_s || route->protocol == RTPROT_RA || route->protocol == RTPROT_REDIRECT;
}

static gboolean route_skip(const SvNetRequest *wanted, gconstpointer item)
{
    const SvNetRoute *route = item;

    for (gsize i = 0; route->family == AF_INET6 && i < route->n_hops; i++)
        if (sv_network_ipv6_is_off(wanted, route->hops[i]->link))
            return TRUE;
    return FALSE;
}

static char *route_describe(gconstpointer item)
{
    const SvNetRoute *route = item;
    g_autofree char *text =
        address_text(route->family, &route->destination, route->destination_length);

    return g_strdup_printf(
        "route %s of %s", text, route->n_hops ? route->hops[0]->link : "no link");
}

/* ---- neighbours */

static GBytes *neighbour_key(gconstpointer item)
{
    return sv_net_pack(&((const SvNetNeighbour *)item)->base);
}

static gboolean neighbour_skip(const SvNetRequest *wanted, gconstpointer item)
{
    const SvNetNeighbour *neighbour = item;

    return neighbour->family == AF_INET6 && sv_network_ipv6_is_off(wanted, neighbour->link);
}

static char *neighbour_describe(gconstpointer item)
{
    const SvNetNeighbour *neighbour = item;
    g_autofree char *text = address_text(
        neighbour->family, &neighbour->destination, (guint)neighbour->destination.len * 8);

    return g_strdup_printf("neighbour %s of %s", text, neighbour->link);
}

/* ---- rules */

static GBytes *rule_key(gconstpointer item)
{
    return sv_net_pack(&((const SvNetRule *)item)->base);
}

static char *rule_describe(gconstpointer item)
{
    const SvNetRule *rule = item;

    return g_strdup_printf("rule %u (IPv%d)", rule->priority, rule->family == AF_INET6 ? 6 : 4);
}

static gboolean never(gconstpointer item)
{
    return FALSE;
}

static gboolean skip_none(const SvNetRequest *wanted, gconstpointer item)
{
    return FALSE;
}

static const Kind addresses = {"address", RTM_NEWADDR, RTM_DELADDR, NLM_F_CREATE | NLM_F_EXCL,
    sv_net_address_encode, address_key, address_passes, address_skip, address_describe};
/* At the end of its kind: in the order of the host. */
static const Kind routes = {"route", RTM_NEWROUTE, RTM_DELROUTE, NLM_F_CREATE | NLM_F_APPEND,
    sv_net_route_encode, route_key, route_passes, route_skip, route_describe};
static const Kind neighbours = {"neighbour", RTM_NEWNEIGH, RTM_DELNEIGH,
    NLM_F_CREATE | NLM_F_REPLACE, sv_net_neighbour_encode, neighbour_key, never, neighbour_skip,
    neighbour_describe};
static const Kind rules = {"rule", RTM_NEWRULE, RTM_DELRULE, NLM_F_CREATE | NLM_F_EXCL,
    sv_net_rule_encode, rule_key, never, skip_none, rule_describe};

/* ---- sets of keys */

typedef GHashTable Keys;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Keys, g_hash_table_unref)

static Keys *keys_of(const Kind *kind, gpointer const *items, gsize n)
{
    Keys *keys =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);

    for (gsize i = 0; i < n; i++)
        g_hash_table_add(keys, kind->key(items[i]));
    return keys;
}

static gboolean has_key(const Kind *kind, Keys *keys, gconstpointer item)
{
    g_autoptr(GBytes) key = kind->key(item);

    return g_hash_table_contains(keys, key);
}

/* ---- one item */

static gboolean is_fine(guint16 type, gboolean adding, int errsv)
{
    if (adding)
        return errsv == EEXIST;
    /* gone by itself, with its address or its link */
    return errsv == ESRCH || errsv == ENOENT || errsv == EADDRNOTAVAIL || errsv == ENODEV;
}

static gboolean send_item(SvNetWork *work, const Kind *kind, gconstpointer item, gboolean adding,
    guint16 flags, int *errsv, GError **error)
{
    g_autoptr(GError) local = NULL;
    guint16 type = adding ? kind->add : kind->remove;
    struct nl_msg *msg = kind->encode(item, type, flags, work->devices, &local);

    *errsv = ENODEV;
    if ((msg && sv_netlink_request(work->nl, msg, errsv, &local)) || is_fine(type, adding, *errsv))
        return TRUE;
    g_autofree char *text = kind->describe(item);
    g_propagate_prefixed_error(
        error, g_steal_pointer(&local), "%s %s: ", adding ? "add" : "remove", text);
    return FALSE;
}

/* Usable at once: the first message says that there is no duplicate; the second, that it is an address
 * like any other. */
static gboolean add_address(
    SvNetWork *work, const SvNetAddress *address, int *errsv, GError **error)
{
    SvNetAddress sure = *address;

    if (address->family != AF_INET6)
        return send_item(work, &addresses, address, TRUE, addresses.add_flags, errsv, error);
    sure.flags |= IFA_F_NODAD;
    return send_item(work, &addresses, &sure, TRUE, NLM_F_CREATE | NLM_F_EXCL, errsv, error) &&
        send_item(work, &addresses, address, TRUE, NLM_F_REPLACE, errsv, error);
}

static gboolean add_item(
    SvNetWork *work, const Kind *kind, gconstpointer item, int *errsv, GError **error)
{
    if (kind == &addresses)
        return add_address(work, item, errsv, error);
    return send_item(work, kind, item, TRUE, kind->add_flags, errsv, error);
}

/* ---- many */

/* A gateway is reached through another route, which may come later. */
static gboolean add_all(SvNetWork *work, const Kind *kind, GPtrArray *items, GError **error)
{
    gboolean progress = TRUE;

    while (items->len > 0) {
        g_autoptr(GPtrArray) again = g_ptr_array_new();
        gboolean last = !progress;

        progress = FALSE;
        for (guint i = 0; i < items->len; i++) {
            GError *local = NULL;
            int errsv = 0;

            if (add_item(work, kind, items->pdata[i], &errsv, &local)) {
                progress = TRUE;
            } else if (!last && (errsv == ENETUNREACH || errsv == EHOSTUNREACH)) {
                g_error_free(local);
                g_ptr_array_add(again, items->pdata[i]);
            } else if (!sv_network_pass(work, local, NULL, error)) {
                return FALSE;
            }
        }
        g_ptr_array_set_size(items, 0);
        for (guint i = 0; i < again->len; i++)
            g_ptr_array_add(items, again->pdata[i]);
    }
    return TRUE;
}

static gboolean remove_item(SvNetWork *work, const Kind *kind, gconstpointer item, GError **error)
{
    GError *local = NULL;
    int errsv = 0;

    return send_item(work, kind, item, FALSE, 0, &errsv, &local) ||
        sv_network_pass(work, local, NULL, error);
}

/* What was wanted before and is no more. */
static gboolean remove_old(SvNetWork *work, const Kind *kind, gpointer const *wanted,
    gsize n_wanted, gpointer const *before, gsize n_before, GError **error)
{
    g_autoptr(Keys) keys = keys_of(kind, wanted, n_wanted);

    for (gsize i = 0; i < n_before; i++)
        if (!has_key(kind, keys, before[i]) && !kind->passes(before[i]) &&
            !remove_item(work, kind, before[i], error))
            return FALSE;
    return TRUE;
}

/* The kernel lists a link's IPv6 addresses in the reverse order of their coming. */
static void reverse_ipv6(GPtrArray *items)
{
    for (guint begin = 0, end; begin < items->len; begin = end) {
        const SvNetAddress *first = items->pdata[begin];

        for (end = begin + 1; end < items->len; end++) {
            const SvNetAddress *next = items->pdata[end];

            if (next->family != first->family || strcmp(next->link, first->link) != 0)
                break;
        }
        for (guint a = begin, b = end; first->family == AF_INET6 && a + 1 < b; a++, b--) {
            gpointer item = items->pdata[a];

            items->pdata[a] = items->pdata[b - 1];
            items->pdata[b - 1] = item;
        }
    }
}

/* What is wanted and missing: new since the last time, or there when this began. */
static gboolean add_new(SvNetWork *work, const Kind *kind, gpointer const *wanted, gsize n_wanted,
    gpointer const *before, gsize n_before, const GPtrArray *start, const GPtrArray *now,
    GError **error)
{
    g_autoptr(Keys) old = keys_of(kind, before, n_before);
    g_autoptr(Keys) started = keys_of(kind, start->pdata, start->len);
    g_autoptr(Keys) current = keys_of(kind, now->pdata, now->len);
    g_autoptr(GPtrArray) missing = g_ptr_array_new();

    for (gsize i = 0; i < n_wanted; i++) {
        gpointer item = wanted[i];

        if (has_key(kind, current, item) || kind->skip(work->wanted, item))
            continue;
        if (!has_key(kind, old, item) || has_key(kind, started, item))
            g_ptr_array_add(missing, item);
    }
    if (kind == &addresses)
        reverse_ipv6(missing);
    return add_all(work, kind, missing, error);
}

#define LIST(request, name)                                                                        \
    (gpointer const *)((request) ? (request)->name : NULL), (request) ? (request)->n_##name : 0

static gboolean of_wanted_link(const SvNetWork *work, const SvNetRoute *route)
{
    for (gsize i = 0; route->n_hops == 1 && i < work->wanted->n_links; i++)
        if (!work->wanted->links[i]->loopback &&
            strcmp(work->wanted->links[i]->name, route->hops[0]->link) == 0)
            return TRUE;
    return FALSE;
}

/* The kernel gives each new address a route; the host may have taken that away. */
static gboolean remove_made(
    SvNetWork *work, const GPtrArray *start, const GPtrArray *now, GError **error)
{
    g_autoptr(Keys) wanted = keys_of(&routes, LIST(work->wanted, routes));
    g_autoptr(Keys) started = keys_of(&routes, start->pdata, start->len);

    for (guint i = 0; i < now->len; i++) {
        const SvNetRoute *route = now->pdata[i];

        if (route->protocol == RTPROT_KERNEL && of_wanted_link(work, route) &&
            !has_key(&routes, wanted, route) && !has_key(&routes, started, route) &&
            !remove_item(work, &routes, route, error))
            return FALSE;
    }
    return TRUE;
}

/* The rules a namespace is born with may be missing on the host. */
static gboolean remove_born_rules(SvNetWork *work, const SvNetState *start, GError **error)
{
    if (work->before)
        return TRUE;
    return remove_old(
        work, &rules, LIST(work->wanted, rules), start->rules->pdata, start->rules->len, error);
}

static const SvNetAddress *find_like(const SvNetRequest *request, const SvNetAddress *address)
{
    g_autoptr(GBytes) wanted = address_key(address);

    for (gsize i = 0; i < request->n_addresses; i++) {
        g_autoptr(GBytes) key = address_key(request->addresses[i]);

        if (g_bytes_equal(key, wanted))
            return request->addresses[i];
    }
    return NULL;
}

/* Somebody on the host has renewed an address that is limited in time. Those that the guest renews by itself only grow
 * older there. */
static gboolean renew(SvNetWork *work, GError **error)
{
    for (gsize i = 0; work->before && i < work->wanted->n_addresses; i++) {
        const SvNetAddress *address = work->wanted->addresses[i];
        const SvNetAddress *old = address->limited ? find_like(work->before, address) : NULL;
        GError *local = NULL;
        int errsv = 0;

        if (!old || address->valid_s <= old->valid_s)
            continue;
        if (!send_item(work, &addresses, address, TRUE, NLM_F_REPLACE, &errsv, &local) &&
            !sv_network_pass(work, local, NULL, error))
            return FALSE;
    }
    return TRUE;
}

gboolean sv_network_apply_items(SvNetWork *work, GError **error)
{
    const SvNetRequest *wanted = work->wanted, *before = work->before;
    g_autoptr(SvNetState) start = sv_net_state_read(work->nl, error);

    if (!start ||
        !remove_old(work, &neighbours, LIST(wanted, neighbours), LIST(before, neighbours), error) ||
        !remove_old(work, &routes, LIST(wanted, routes), LIST(before, routes), error) ||
        !remove_old(work, &addresses, LIST(wanted, addresses), LIST(before, addresses), error))
        return FALSE;
    g_autoptr(SvNetState) bare = sv_net_state_read(work->nl, error);
    if (!bare ||
        !add_new(work, &addresses, LIST(wanted, addresses), LIST(before, addresses),
            start->addresses, bare->addresses, error))
        return FALSE;
    g_autoptr(SvNetState) now = sv_net_state_read(work->nl, error);
    return now && renew(work, error) && remove_made(work, start->routes, now->routes, error) &&
        add_new(work, &routes, LIST(wanted, routes), LIST(before, routes), start->routes,
            now->routes, error) &&
        add_new(work, &neighbours, LIST(wanted, neighbours), LIST(before, neighbours),
            start->neighbours, now->neighbours, error) &&
        add_new(work, &rules, LIST(wanted, rules), LIST(before, rules), start->rules, now->rules,
            error) &&
        remove_old(work, &rules, LIST(wanted, rules), LIST(before, rules), error) &&
        remove_born_rules(work, start, error);
}
