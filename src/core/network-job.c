/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/network-private.h"

#include "base/fd.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <sys/stat.h>

typedef gboolean (*Func)(SvNetworkWork *work, GError **error);

struct SvNetworkJob {
    SvPodNetwork *network; /* NULL: freed meanwhile */
    SvNetworkWork work;
    Func func;
    SvNetworkDone done;
    gpointer user_data;
};

static void job_free(gpointer data)
{
    SvNetworkJob *job = data;
    SvNetworkWork *work = &job->work;
    sv_fd_close(work->netns_fd);
    sv_fd_close(work->multicast_fd);
    sv_fd_close(work->claim_fd);
    g_free(work->claim_error);
    sv_link_record_free(work->link);
    g_free(work->tap_alias);
    g_free(work->forward_error);
    sv_fd_close(work->listeners[0]);
    sv_fd_close(work->listeners[1]);
    sv_fd_close(work->table_fd);
    sv_net_state_free(work->state);
    sv_netlink_free(work->events);
    g_clear_pointer(&work->foreign, g_hash_table_unref);
    g_clear_pointer(&work->pairs, g_hash_table_unref);
    g_clear_pointer(&work->sysctls, g_ptr_array_unref);
    g_free(job);
}

/* What tells a namespace from all others of this boot. */
static guint64 number_of(const SvNetlink *nl, int netns_fd)
{
    guint64 cookie = sv_netlink_cookie(nl);
    struct stat st;
    if (cookie)
        return cookie;
    /* Older kernels: the file's number, which another namespace may get later. */
    return fstat(netns_fd, &st) == 0 ? st.st_ino : 0;
}

int sv_network_open(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

SvNetlink *sv_network_ask(int netns_fd, guint64 id)
{
    g_autoptr(SvNetlink) nl =
        netns_fd >= 0 ? sv_netlink_new_in(netns_fd, NETLINK_ROUTE, NULL) : NULL;
    return nl && (!id || number_of(nl, netns_fd) == id) ? g_steal_pointer(&nl) : NULL;
}

/* ---- in the thread */

static gboolean join_groups(SvNetlink *nl, GError **error)
{
    int result = nl_socket_add_memberships(sv_netlink_socket(nl), RTNLGRP_LINK, RTNLGRP_NEIGH,
        RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_IFADDR,
        RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV6_RULE, RTNLGRP_NONE);
    if (!sv_netlink_check(nl, result, NULL, error))
        return FALSE;
    /* Kernels that have no nexthop objects have no such group. */
    nl_socket_add_membership(sv_netlink_socket(nl), RTNLGRP_NEXTHOP);
    return TRUE;
}

/* A link that was taken out of the namespace and put back may have its number again, but not its filter. */
static GHashTable *read_pairs(SvNetlink *nl, const GPtrArray *devices)
{
    GHashTable *pairs = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < devices->len; i++) {
        const SvNetDevice *device = devices->pdata[i];
        g_autofree char *owner = sv_link_tap_owner(device);
        int link = owner ? sv_tc_target(nl, device->index, NULL) : -1;
        if (link > 0 && sv_tc_target(nl, link, NULL) == device->index)
            g_hash_table_insert(pairs, GINT_TO_POINTER(device->index), GINT_TO_POINTER(link));
    }
    return pairs;
}

static gboolean has_links(const GPtrArray *devices)
{
    for (guint i = 0; i < devices->len; i++) {
        const SvNetDevice *device = devices->pdata[i];
        if (!device->link->loopback && !sv_link_refusal(device, devices))
            return TRUE;
    }
    return FALSE;
}

/* An empty namespace is nobody's. */
static gboolean claim(SvNetworkWork *work, GError **error)
{
    g_autoptr(GError) local = NULL;
    work->claim_fd = sv_network_claim(work->netns_fd, &local);
    work->ask.claim = FALSE;
    if (work->claim_fd >= 0)
        return TRUE;
    if (!sv_error_is(local, SV_ERR_BUSY)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    work->claim_error = g_strdup(local->message);
    return TRUE;
}

/* What others have taken is told by what is read behind the claim, so a first look decides whether there is one. */
static gboolean read_state(SvNetworkWork *work, SvNetlink *nl, GError **error)
{
    g_autoptr(GPtrArray) first = work->ask.claim ? sv_net_devices_read(nl, error) : NULL;
    if (work->ask.claim && (!first || (has_links(first) && !claim(work, error))))
        return FALSE;
    work->state = sv_net_state_read(nl, error);
    /* links that have come in between */
    while (work->state && work->ask.claim && has_links(work->state->devices)) {
        if (!claim(work, error))
            return FALSE;
        sv_net_state_free(work->state);
        work->state = sv_net_state_read(nl, error);
    }
    return work->state != NULL;
}

/* Those that the machine has already. Without it only groups of the guest's own are missed. */
static void open_multicast(SvNetworkWork *work)
{
    g_autoptr(GError) error = NULL;
    GHashTableIter iter;
    gpointer link;
    work->multicast_fd = sv_multicast_open(work->netns_fd, &error);
    if (error)
        g_info("ignoring: groups of the guest: %s", error->message);
    g_hash_table_iter_init(&iter, work->pairs);
    while (g_hash_table_iter_next(&iter, NULL, &link))
        sv_multicast_add(work->multicast_fd, GPOINTER_TO_INT(link));
}

static gboolean read_namespace(SvNetworkWork *work, GError **error)
{
    /* The network's own descriptor has it too. */
    if (!sv_network_hold(work->netns_fd, error))
        return FALSE;
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(work->netns_fd, NETLINK_ROUTE, error);
    if (!nl)
        return FALSE;
    if (work->ask.watch) {
        work->events = sv_netlink_new_in(work->netns_fd, NETLINK_ROUTE, error);
        if (!work->events || !join_groups(work->events, error))
            return FALSE;
    }
    if (work->ask.settings) {
        work->sysctls = sv_net_sysctls_read(work->netns_fd, error);
        if (!work->sysctls)
            return FALSE;
    }
    if (work->ask.forward) {
        g_autoptr(GError) local = NULL;
        if (!sv_localhost_catch(work->netns_fd, work->listeners, &work->table_fd, &local)) {
            work->forward_taken = sv_error_is(local, SV_ERR_PERMISSION);
            work->forward_error = g_strdup(local->message);
        }
    }
    work->netns_id = number_of(nl, work->netns_fd);
    work->foreign = g_hash_table_new(NULL, NULL);
    if (!read_state(work, nl, error))
        return FALSE;
    work->pairs = read_pairs(nl, work->state->devices);
    if (work->multicast_fd < 0)
        open_multicast(work);
    return sv_tc_foreign(nl, work->foreign, error);
}

static gboolean clear(SvNetworkWork *work, GError **error)
{
    /* It is the last one. */
    sv_fd_clear(&work->multicast_fd);
    return sv_localhost_release(work->netns_fd, error);
}

static SvTakeLink take_of(const SvNetworkWork *work)
{
    SvTakeLink take = {.tap = work->link->tap,
        .alias = work->tap_alias,
        .index = (int)work->link->index,
        .mtu = work->mtu,
        .mark = work->mark,
        .multicast = work->multicast_fd};
    return take;
}

static gboolean is_gone(int netns_fd, guint32 index)
{
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(netns_fd, NETLINK_ROUTE, NULL);
    g_autoptr(GPtrArray) devices = nl ? sv_net_devices_read(nl, NULL) : NULL;
    return devices && !sv_net_device_at(devices, (int)index);
}

static gboolean take(SvNetworkWork *work, GError **error)
{
    SvTakeLink link = take_of(work);
    if (sv_link_take(work->netns_fd, &link, &work->made_qdisc, error))
        return TRUE;
    work->link_gone = is_gone(work->netns_fd, work->link->index);
    return FALSE;
}

static gboolean give_back(SvNetworkWork *work, GError **error)
{
    SvTakeLink link = take_of(work);
    return sv_link_give_back(work->netns_fd, &link, work->link->made_qdisc, error);
}

static void run(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    SvNetworkJob *job = data;
    GError *error = NULL;
    if (job->func(&job->work, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

/* ---- on the loop */

static void on_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    SvNetworkJob *job = g_task_get_task_data(G_TASK(result));
    SvPodNetwork *network = job->network;
    g_autoptr(GError) error = NULL;
    g_task_propagate_boolean(G_TASK(result), &error);
    if (!network)
        return;
    network->job = NULL;
    job->done(network, &job->work, error, job->user_data);
}

static void start(
    SvPodNetwork *network, SvNetworkJob *job, Func func, SvNetworkDone done, gpointer user_data)
{
    g_return_if_fail(network->job == NULL);
    network->job = job;
    job->network = network;
    job->work.listeners[0] = job->work.listeners[1] = -1;
    job->work.claim_fd = job->work.table_fd = -1;
    job->work.netns_fd = fcntl(network->netns_fd, F_DUPFD_CLOEXEC, 3);
    job->work.multicast_fd =
        network->multicast_fd < 0 ? -1 : fcntl(network->multicast_fd, F_DUPFD_CLOEXEC, 3);
    job->func = func;
    job->done = done;
    job->user_data = user_data;
    g_autoptr(GTask) task = g_task_new(NULL, NULL, on_done, NULL);
    g_task_set_task_data(task, job, job_free);
    g_task_run_in_thread(task, run);
}

void sv_network_job_clear(SvPodNetwork *network, SvNetworkDone done, gpointer user_data)
{
    start(network, g_new0(SvNetworkJob, 1), clear, done, user_data);
    sv_fd_clear(&network->multicast_fd);
}

void sv_network_job_read(
    SvPodNetwork *network, const SvNetworkAsk *ask, SvNetworkDone done, gpointer user_data)
{
    SvNetworkJob *job = g_new0(SvNetworkJob, 1);
    job->work.ask = *ask;
    start(network, job, read_namespace, done, user_data);
}

static SvNetworkJob *link_job_new(SvPodNetwork *network, const SvLinkRecord *link)
{
    SvNetworkJob *job = g_new0(SvNetworkJob, 1);
    job->work.link = sv_link_record_copy(link);
    job->work.mark = sv_paths_mark(network->sandbox->paths);
    job->work.tap_alias =
        g_strdup_printf(SV_TAP_ALIAS "%s:%s", network->sandbox->paths->domain_name, link->name);
    return job;
}

void sv_network_job_take(SvPodNetwork *network, const SvLinkRecord *link, guint mtu,
    SvNetworkDone done, gpointer user_data)
{
    SvNetworkJob *job = link_job_new(network, link);
    job->work.mtu = mtu;
    start(network, job, take, done, user_data);
}

void sv_network_job_give_back(
    SvPodNetwork *network, const SvLinkRecord *link, SvNetworkDone done, gpointer user_data)
{
    start(network, link_job_new(network, link), give_back, done, user_data);
}

void sv_network_job_forget(SvPodNetwork *network)
{
    if (network->job)
        network->job->network = NULL;
    network->job = NULL;
}
