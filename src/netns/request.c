/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/state.h"

typedef GPtrArray Borrowed; /* of messages that belong to something else */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Borrowed, g_ptr_array_unref)
typedef GHashTable Names;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Names, g_hash_table_unref)

static gboolean of_address(gconstpointer item, Names *names)
{
    return g_hash_table_contains(names, ((const SvNetAddress *)item)->link);
}

static gboolean of_neighbour(gconstpointer item, Names *names)
{
    return g_hash_table_contains(names, ((const SvNetNeighbour *)item)->link);
}

static gboolean of_route(gconstpointer item, Names *names)
{
    const SvNetRoute *route = item;

    for (gsize i = 0; i < route->n_hops; i++)
        if (!g_hash_table_contains(names, route->hops[i]->link))
            return FALSE;
    return TRUE;
}

static Borrowed *choose(
    gpointer const *items, gsize n, Names *names, gboolean (*of)(gconstpointer item, Names *names))
{
    GPtrArray *chosen = g_ptr_array_new();

    for (gsize i = 0; i < n; i++)
        if (of(items[i], names))
            g_ptr_array_add(chosen, items[i]);
    return chosen;
}

/* @from with @links and what belongs to them; a rule may name links that do not exist. */
static SvNetRequest *restrict_to(const SvNetRequest *from, const Borrowed *links)
{
    g_autoptr(Names) names = g_hash_table_new(g_str_hash, g_str_equal);
    SvNetRequest request = *from;

    for (guint i = 0; i < links->len; i++)
        g_hash_table_add(names, ((SvNetLink *)links->pdata[i])->name);
    g_autoptr(Borrowed) addresses =
        choose((gpointer *)from->addresses, from->n_addresses, names, of_address);
    g_autoptr(Borrowed) routes = choose((gpointer *)from->routes, from->n_routes, names, of_route);
    g_autoptr(Borrowed) neighbours =
        choose((gpointer *)from->neighbours, from->n_neighbours, names, of_neighbour);
    request.n_links = links->len;
    request.links = (SvNetLink **)links->pdata;
    request.n_addresses = addresses->len;
    request.addresses = (SvNetAddress **)addresses->pdata;
    request.n_routes = routes->len;
    request.routes = (SvNetRoute **)routes->pdata;
    request.n_neighbours = neighbours->len;
    request.neighbours = (SvNetNeighbour **)neighbours->pdata;

    g_autoptr(GBytes) packed = sv_net_pack(&request.base);
    gsize len = 0;
    const guint8 *data = g_bytes_get_data(packed, &len);
    return sandvirt__v1__network_request__unpack(NULL, len, data);
}

SvNetRequest *sv_net_request_new(const SvNetState *state, const GPtrArray *devices)
{
    g_autoptr(Borrowed) links = g_ptr_array_new();
    SvNetRequest whole = SANDVIRT__V1__NETWORK_REQUEST__INIT;

    for (guint i = 0; i < devices->len; i++)
        g_ptr_array_add(links, ((SvNetDevice *)devices->pdata[i])->link);
    whole.n_addresses = state->addresses->len;
    whole.addresses = (SvNetAddress **)state->addresses->pdata;
    whole.n_routes = state->routes->len;
    whole.routes = (SvNetRoute **)state->routes->pdata;
    whole.n_neighbours = state->neighbours->len;
    whole.neighbours = (SvNetNeighbour **)state->neighbours->pdata;
    whole.n_rules = state->rules->len;
    whole.rules = (SvNetRule **)state->rules->pdata;
    return restrict_to(&whole, links);
}

SvNetRequest *sv_net_request_restrict(const SvNetRequest *request,
    gboolean (*keep)(const SvNetLink *link, gpointer user_data), gpointer user_data)
{
    g_autoptr(Borrowed) links = g_ptr_array_new();

    for (gsize i = 0; i < request->n_links; i++)
        if (keep(request->links[i], user_data))
            g_ptr_array_add(links, request->links[i]);
    return restrict_to(request, links);
}

void sv_net_request_free(SvNetRequest *request)
{
    if (request)
        protobuf_c_message_free_unpacked(&request->base, NULL);
}
