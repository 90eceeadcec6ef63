/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Brings the machine in line with the namespace: reads it, plugs cards for new links and joins them, tells the
 * guest, and gives back what is gone. The record is written before anything is made that could be left. */
#include "core/network-private.h"

#include "base/fd.h"

#include <sys/stat.h>
#include <unistd.h>

#define MAX_QUEUES 8

struct SvNetworkSync {
    gboolean first;
    gboolean save; /* the record has changed */
    GError *error;
    SvNetState *state;
    SvNetworkPlan plan;
    GPtrArray *add, *drop; /* SvLinkRecord of the record */
    guint next; /* in the list at work */
    SvNetRequest *request;
};

/* A call to libvirt or the agent that is out. Both are freed before the network; then nobody calls. */
typedef struct {
    SvPodNetwork *network;
    SvNetworkSync *sync; /* to compare with */
} Wait;

static void attach_next(SvPodNetwork *network);
static void drop_next(SvPodNetwork *network);

static Wait *wait_new(SvPodNetwork *network)
{
    Wait *wait = g_new0(Wait, 1);
    wait->network = network;
    wait->sync = network->sync;
    g_hash_table_add(network->waits, wait);
    return wait;
}

/* FALSE: the sync it was for is over. Frees @wait. */
static gboolean wait_over(Wait *wait, SvPodNetwork **network)
{
    *network = wait->network;
    gboolean current = wait->sync && wait->sync == wait->network->sync;
    g_hash_table_remove(wait->network->waits, wait);
    return current;
}

void sv_network_sync_drop(SvPodNetwork *network)
{
    SvNetworkSync *sync = network->sync;
    if (!sync)
        return;
    network->sync = NULL;
    /* The same address may come again. */
    GHashTableIter iter;
    gpointer wait;
    g_hash_table_iter_init(&iter, network->waits);
    while (g_hash_table_iter_next(&iter, &wait, NULL))
        ((Wait *)wait)->sync = NULL;
    sv_network_plan_clear(&sync->plan);
    sv_net_state_free(sync->state);
    sv_net_request_free(sync->request);
    g_ptr_array_unref(sync->add);
    g_ptr_array_unref(sync->drop);
    g_clear_error(&sync->error);
    g_free(sync);
}

static void finish(SvPodNetwork *network)
{
    g_autoptr(GError) error = g_steal_pointer(&network->sync->error);
    sv_network_sync_drop(network);
    sv_network_synced(network, error);
}

static void save(SvPodNetwork *network)
{
    SvSandbox *sandbox = network->sandbox;
    g_autoptr(GError) error = NULL;
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
}

/* Takes @error. The first time everything is undone, and the sync may be over; later the rest is done. */
static void fail(SvPodNetwork *network, GError *error)
{
    SvNetworkSync *sync = network->sync;
    if (!sync->first) {
        g_warning(
            "sandbox %s: network: ignoring: %s", network->sandbox->paths->sandbox, error->message);
        g_error_free(error);
        return;
    }
    sync->error = error;
    sync->next = 0;
    g_ptr_array_set_size(sync->drop, 0);
    for (guint i = 0; i < sync->add->len; i++)
        g_ptr_array_add(sync->drop, sync->add->pdata[i]);
    drop_next(network);
}

/* ---- giving back */

static void on_detached(SvHv *hv, const GError *error, gpointer user_data)
{
    SvPodNetwork *network;
    if (!wait_over(user_data, &network))
        return;
    SvNetworkSync *sync = network->sync;
    SvLinkRecord *link = sync->drop->pdata[sync->next++];
    if (error && !sv_error_is(error, SV_ERR_NOT_FOUND))
        g_warning("sandbox %s: ignoring: %s: %s", network->sandbox->paths->sandbox, link->name,
            error->message);
    g_ptr_array_remove(network->sandbox->record->links, link);
    save(network);
    drop_next(network);
}

static void on_given_back(
    SvPodNetwork *network, SvNetworkWork *work, const GError *error, gpointer user_data)
{
    SvNetworkSync *sync = network->sync;
    if (!sync) {
        sv_pod_network_go_on(network);
        return;
    }
    SvLinkRecord *link = sync->drop->pdata[sync->next];
    SvHv *hv = network->sandbox->hv;
    if (error)
        g_warning("sandbox %s: ignoring: %s: %s", network->sandbox->paths->sandbox, link->name,
            error->message);
    hv->ops->detach(hv, link->alias, on_detached, wait_new(network));
}

static void drop_next(SvPodNetwork *network)
{
    SvNetworkSync *sync = network->sync;
    if (sync->next < sync->drop->len)
        sv_network_job_give_back(network, sync->drop->pdata[sync->next], on_given_back, NULL);
    else
        finish(network);
}

static void drop_all(SvPodNetwork *network)
{
    network->sync->next = 0;
    drop_next(network);
}

/* ---- the guest */

static void fail_configure(SvPodNetwork *network, GError *error)
{
    gboolean first = network->sync->first;
    g_prefix_error(&error, "network in the guest: ");
    fail(network, error);
    if (!first)
        drop_all(network);
}

static void on_configured(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    SvPodNetwork *network;
    if (!wait_over(user_data, &network))
        return;
    SvNetworkSync *sync = network->sync;
    const char *id = network->sandbox->paths->sandbox;
    if (error) {
        fail_configure(network, g_error_copy(error));
        return;
    }
    const Sandvirt__V1__NetworkResponse *response = (const Sandvirt__V1__NetworkResponse *)reply;
    for (gsize i = 0; i < MIN(response->n_warnings, 32); i++) {
        g_autofree char *text = sv_printable(response->warnings[i], 200);
        g_warning("sandbox %s: network in the guest: %s", id, text);
    }
    g_clear_pointer(&network->sent, g_bytes_unref);
    network->sent = sv_net_pack(&sync->request->base);
    drop_all(network);
}

static void set_device_macs(SvNetworkSync *sync, const SvSandboxRecord *record)
{
    for (gsize i = 0; i < sync->request->n_links; i++) {
        SvNetLink *link = sync->request->links[i];
        const SvNetDevice *device = sync->plan.devices->pdata[i];
        for (guint k = 0; k < record->links->len; k++) {
            const SvLinkRecord *taken = record->links->pdata[k];
            guint8 mac[6];
            if (!taken->joined || taken->index != (guint32)device->index ||
                !sv_mac_parse(taken->mac, mac))
                continue;
            g_free(link->device_mac.data);
            link->device_mac.data = g_memdup2(mac, sizeof mac);
            link->device_mac.len = sizeof mac;
        }
    }
}

/* Links that could not be taken are left out, with what is on them. */
static gboolean is_present(const SvNetLink *link, gpointer user_data)
{
    return link->loopback || link->device_mac.len > 0;
}

static void configure(SvPodNetwork *network)
{
    SvSandbox *sandbox = network->sandbox;
    SvNetworkSync *sync = network->sync;
    sync->request = sv_net_request_new(sync->state, sync->plan.devices);
    set_device_macs(sync, sandbox->record);
    SvNetRequest *whole = sync->request;
    sync->request = sv_net_request_restrict(whole, is_present, NULL);
    sv_net_request_free(whole);
    sync->request->timeout_ms = sandbox->config->device_ms;
    if (network->sysctls)
        sv_net_request_set_sysctls(sync->request, network->sysctls);
    g_autoptr(GBytes) packed = sv_net_pack(&sync->request->base);
    if (network->sent && g_bytes_equal(network->sent, packed)) {
        drop_all(network);
        return;
    }
    if (!sv_agent_is_ready(sandbox->agent)) {
        fail_configure(network,
            g_error_new_literal(SV_CORE_ERROR, SV_ERR_CLOSED, "the guest's agent has left"));
        return;
    }
    sv_agent_call(sandbox->agent, "ConfigureNetwork", &sync->request->base,
        &sandvirt__v1__network_response__descriptor,
        sandbox->config->agent_ms + sandbox->config->device_ms, on_configured, wait_new(network));
}

/* ---- plugging and joining */

static void skip_link(SvPodNetwork *network, const SvLinkRecord *link)
{
    g_ptr_array_add(network->sync->drop, (gpointer)link);
    network->sync->next++;
    attach_next(network);
}

/* That link is left alone; the rest goes on. */
static void give_up_link(SvPodNetwork *network, const SvLinkRecord *link, const GError *cause)
{
    SvNetworkSync *sync = network->sync;
    GError *error = g_error_copy(cause);
    g_prefix_error(&error, "network link %s: ", link->name);
    gboolean first = sync->first;
    fail(network, error);
    if (first)
        return;
    gpointer index = GUINT_TO_POINTER(link->index);
    guint failures = GPOINTER_TO_UINT(g_hash_table_lookup(network->failures, index));
    g_hash_table_insert(network->failures, index, GUINT_TO_POINTER(failures + 1));
    skip_link(network, link);
}

static SvLinkRecord *find_by_alias(SvPodNetwork *network, const char *alias)
{
    GPtrArray *links = network->sandbox->record ? network->sandbox->record->links : NULL;
    for (guint i = 0; links && i < links->len; i++)
        if (g_str_equal(((SvLinkRecord *)links->pdata[i])->alias, alias))
            return links->pdata[i];
    return NULL;
}

static void on_taken(
    SvPodNetwork *network, SvNetworkWork *work, const GError *error, gpointer user_data)
{
    SvLinkRecord *link = find_by_alias(network, work->link->alias);
    if (link && work->made_qdisc)
        link->made_qdisc = TRUE;
    if (!network->sync || !link) {
        sv_pod_network_go_on(network);
        return;
    }
    if (error && work->link_gone) {
        /* Somebody took it away meanwhile: no fault, and there is more to see. */
        network->changed = TRUE;
        skip_link(network, link);
        return;
    }
    if (error) {
        give_up_link(network, link, error);
        return;
    }
    link->joined = TRUE;
    g_hash_table_remove(network->failures, GUINT_TO_POINTER(link->index));
    save(network);
    network->sync->next++;
    attach_next(network);
}

static guint mtu_of(const SvNetworkSync *sync, const SvLinkRecord *link)
{
    const SvNetDevice *device = sv_net_device_at(sync->plan.devices, (int)link->index);
    return device ? device->link->mtu : 0;
}

static void on_attached(SvHv *hv, const GError *error, gpointer user_data)
{
    SvPodNetwork *network;
    if (!wait_over(user_data, &network))
        return;
    SvLinkRecord *link = network->sync->add->pdata[network->sync->next];
    if (error)
        give_up_link(network, link, error);
    else
        sv_network_job_take(network, link, mtu_of(network->sync, link), on_taken, NULL);
}

static void attach_next(SvPodNetwork *network)
{
    SvSandbox *sandbox = network->sandbox;
    SvNetworkSync *sync = network->sync;
    if (sync->next >= sync->add->len) {
        configure(network);
        return;
    }
    const SvLinkRecord *link = sync->add->pdata[sync->next];
    SvNetwork *card = g_new0(SvNetwork, 1);
    card->tap = g_strdup(link->tap);
    card->mac = g_strdup(link->mac);
    card->queues = MIN(sandbox->record->vcpus, MAX_QUEUES);
    card->vhost = access("/dev/vhost-net", R_OK | W_OK) == 0;
    card->offloads = TRUE;
    g_autoptr(SvDevice) device = sv_device_new_network(link->alias, card);
    sandbox->hv->ops->attach(sandbox->hv, device, on_attached, wait_new(network));
}

/* ---- reading */

static void take_work(SvPodNetwork *network, SvNetworkWork *work)
{
    if (work->events && !network->events)
        sv_pod_network_watch(network, g_steal_pointer(&work->events));
    if (work->sysctls && !network->sysctls)
        network->sysctls = g_steal_pointer(&work->sysctls);
    if (network->claim_fd < 0)
        network->claim_fd = sv_fd_steal(&work->claim_fd);
    if (network->multicast_fd < 0)
        network->multicast_fd = sv_fd_steal(&work->multicast_fd);
    if (work->forward_error) {
        network->no_forwarding = TRUE;
        /* Another machine in the same empty namespace is nothing to warn of; in one with links it is refused. */
        g_log(G_LOG_DOMAIN, work->forward_taken ? G_LOG_LEVEL_INFO : G_LOG_LEVEL_WARNING,
            "sandbox %s: connections to localhost are not forwarded: %s",
            network->sandbox->paths->sandbox, work->forward_error);
    } else if (work->ask.forward && !network->forwarding) {
        network->table_fd = sv_fd_steal(&work->table_fd);
        sv_pod_network_forward(network, work->listeners);
    }
}

/* Once for each link. */
static void warn(SvPodNetwork *network, const GPtrArray *warnings)
{
    for (guint i = 0; i < warnings->len; i++) {
        const char *text = warnings->pdata[i];
        if (g_hash_table_add(network->told, g_strdup(text)))
            g_warning("sandbox %s: network: %s", network->sandbox->paths->sandbox, text);
    }
}

static void take_plan(SvPodNetwork *network)
{
    SvNetworkSync *sync = network->sync;
    SvSandboxRecord *record = network->sandbox->record;
    GError *error = NULL;
    for (guint i = 0; i < sync->plan.drop->len; i++)
        g_ptr_array_add(sync->drop, sync->plan.drop->pdata[i]);
    while (sync->plan.add->len > 0) {
        SvLinkRecord *link = g_ptr_array_steal_index(sync->plan.add, 0);
        g_ptr_array_add(record->links, link);
        g_ptr_array_add(sync->add, link);
    }
    if ((sync->save || sync->add->len > 0) && !sv_sandbox_save(network->sandbox, &error)) {
        /* nothing was made yet */
        for (guint i = 0; i < sync->add->len; i++)
            g_ptr_array_remove(record->links, sync->add->pdata[i]);
        g_ptr_array_set_size(sync->add, 0);
        gboolean first = sync->first;
        fail(network, error);
        if (!first)
            finish(network);
        return;
    }
    attach_next(network);
}

static gboolean is_gone(gpointer index, gpointer unused, gpointer state)
{
    return sv_net_device_at(((SvNetState *)state)->devices, GPOINTER_TO_INT(index)) == NULL;
}

/* A monitor that comes back may meet one that is about to see that the links are taken. */
static gboolean may_take(const SvNetworkSync *sync, const SvNetworkWork *work, GError **error)
{
    if (!work->claim_error || !sync->first)
        return TRUE;
    g_set_error_literal(error, SV_CORE_ERROR, SV_ERR_BUSY, work->claim_error);
    return FALSE;
}

static void on_read(
    SvPodNetwork *network, SvNetworkWork *work, const GError *error, gpointer user_data)
{
    SvNetworkSync *sync = network->sync;
    SvSandbox *sandbox = network->sandbox;
    GError *failure = error ? g_error_copy(error) : NULL;
    if (!sync || !sandbox->record) {
        g_clear_error(&failure);
        sv_pod_network_go_on(network);
        return;
    }
    take_work(network, work);
    const SvNetworkHints hints = {work->foreign, work->pairs, network->failures};
    sync->state = g_steal_pointer(&work->state);
    if (sync->state)
        g_hash_table_foreach_remove(network->failures, is_gone, sync->state);
    if (!failure &&
        sv_network_plan(&sync->plan, sync->state, &hints, sandbox->record,
            sandbox->paths->domain_name, &failure) &&
        may_take(sync, work, &failure)) {
        sync->save = sandbox->record->netns_id != work->netns_id;
        sandbox->record->netns_id = work->netns_id;
        warn(network, sync->plan.warnings);
        take_plan(network);
        return;
    }
    gboolean first = sync->first;
    fail(network, failure);
    if (!first)
        finish(network);
}

void sv_network_sync_start(SvPodNetwork *network, gboolean first)
{
    g_return_if_fail(!network->sync && !network->job);
    SvNetworkSync *sync = g_new0(SvNetworkSync, 1);
    sync->first = first;
    sync->add = g_ptr_array_new();
    sync->drop = g_ptr_array_new();
    network->sync = sync;
    network->changed = FALSE;
    const SvConfig *config = network->sandbox->config;
    SvNetworkAsk ask = {.watch = config->follow_changes && !network->events,
        .forward = config->forward_localhost && !network->forwarding && !network->no_forwarding,
        .settings = !network->sysctls,
        .claim = network->claim_fd < 0};
    sv_network_job_read(network, &ask, on_read, NULL);
}
