/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pod's network namespace: found, taken over by the first container, followed, given back with the machine. */
#include "core/network-private.h"

#include "base/fd.h"
#include "base/process.h"

#include <errno.h>
#include <glib-unix.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTLE_MS 50 /* changes come in flocks */

SvPodNetwork *sv_pod_network_new(SvSandbox *sandbox)
{
    SvPodNetwork *network = g_new0(SvPodNetwork, 1);
    network->sandbox = sandbox;
    network->netns_fd = network->claim_fd = network->multicast_fd = network->table_fd = -1;
    network->tickets = g_array_new(FALSE, FALSE, sizeof(guint64));
    network->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    network->failures = g_hash_table_new(NULL, NULL);
    network->waits = g_hash_table_new_full(NULL, NULL, g_free, NULL);
    return network;
}

static void stop_watching(SvPodNetwork *network)
{
    if (network->events_source)
        g_source_remove(network->events_source);
    if (network->settle_timer)
        g_source_remove(network->settle_timer);
    network->events_source = network->settle_timer = 0;
    g_clear_pointer(&network->events, sv_netlink_free);
    sv_fd_clear(&network->table_fd);
    g_clear_pointer(&network->forwarding, sv_forwarding_free);
    network->no_forwarding = FALSE;
}

void sv_pod_network_free(SvPodNetwork *network)
{
    if (!network)
        return;
    stop_watching(network);
    sv_network_sync_drop(network);
    sv_network_job_forget(network);
    sv_fd_close(network->netns_fd);
    sv_fd_close(network->claim_fd);
    sv_fd_close(network->multicast_fd);
    g_array_unref(network->tickets);
    g_hash_table_unref(network->told);
    g_hash_table_unref(network->failures);
    g_hash_table_unref(network->waits);
    g_clear_pointer(&network->sent, g_bytes_unref);
    g_clear_pointer(&network->sysctls, g_ptr_array_unref);
    g_free(network);
}

/* ---- the namespace */

static gboolean is_own(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_ino == sv_process_ns_inode(0, "net");
}

gboolean sv_pod_network_enter(SvSandbox *sandbox, const SvContainer *container, GError **error)
{
    SvPodNetwork *network = sandbox->network;
    g_autofree char *path = g_strdup_printf("/proc/%d/ns/net", (int)container->init->shim_pid);
    if (network->netns_fd >= 0)
        return TRUE;
    network->netns_fd = sv_network_open(path);
    if (network->netns_fd < 0) {
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "the pod's network namespace");
        return FALSE;
    }
    network->of_host = is_own(network->netns_fd);
    const SvSpecNamespace *entry = sv_spec_namespace(container->spec, "network");
    if (!entry)
        sandbox->record->host_network = TRUE;
    else if (entry->path && !sandbox->record->netns)
        sandbox->record->netns = g_strdup(entry->path);
    return TRUE;
}

void sv_pod_network_find(SvSandbox *sandbox)
{
    SvPodNetwork *network = sandbox->network;
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    guint64 id = sandbox->record->netns_id;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((SvProcess *)value)->shim_pidfd >= 0)
            g_ptr_array_add(
                paths, g_strdup_printf("/proc/%d/ns/net", (int)((SvProcess *)value)->shim_pid));
    /* A shim is in it for sure; a path may lead to another one by now. */
    if (id && sandbox->record->netns)
        g_ptr_array_add(paths, g_strdup(sandbox->record->netns));
    for (guint i = 0; i < paths->len && network->netns_fd < 0; i++) {
        g_auto(SvFd) fd = sv_network_open(paths->pdata[i]);
        g_autoptr(SvNetlink) nl = sv_network_ask(fd, id);
        struct stat st;
        if (!nl || is_own(fd) || fstat(fd, &st) < 0)
            continue;
        network->netns_fd = sv_fd_steal(&fd);
        sandbox->netns = st.st_ino;
    }
}

/* ---- taking over */

void sv_pod_network_want(SvSandbox *sandbox, guint64 ticket)
{
    SvPodNetwork *network = sandbox->network;
    if (network->taken || network->of_host) {
        sv_ticket_next(ticket);
        return;
    }
    g_array_append_val(network->tickets, ticket);
    if (!network->sync && !network->job)
        sv_network_sync_start(network, TRUE);
}

static gboolean can_sync(const SvPodNetwork *network)
{
    const SvSandbox *sandbox = network->sandbox;
    return network->netns_fd >= 0 && !network->of_host && sandbox->machine == SV_MACHINE_UP &&
        sandbox->hv && sv_agent_is_ready(sandbox->agent) && !sandbox->record->suspended &&
        !network->release_ticket;
}

void sv_network_synced(SvPodNetwork *network, const GError *error)
{
    if (!error)
        network->taken = TRUE;
    sv_tickets_end(&network->tickets, error);
    if (network->changed && network->taken && can_sync(network))
        sv_network_sync_start(network, FALSE);
}

/* ---- following */

static gboolean on_settled(gpointer user_data)
{
    SvPodNetwork *network = user_data;
    network->settle_timer = 0;
    if (network->sync || network->job)
        network->changed = TRUE;
    else if (network->taken && can_sync(network))
        sv_network_sync_start(network, FALSE);
    return G_SOURCE_REMOVE;
}

void sv_pod_network_look(SvSandbox *sandbox)
{
    SvPodNetwork *network = sandbox->network;
    if (network->events && !network->settle_timer)
        network->settle_timer = g_timeout_add(SETTLE_MS, on_settled, network);
}

static gboolean on_event(gint fd, GIOCondition condition, gpointer user_data)
{
    SvPodNetwork *network = user_data;
    if (sv_netlink_drain(network->events))
        sv_pod_network_look(network->sandbox);
    return G_SOURCE_CONTINUE;
}

void sv_pod_network_watch(SvPodNetwork *network, SvNetlink *events)
{
    network->events = events;
    network->events_source =
        g_unix_fd_add(nl_socket_get_fd(sv_netlink_socket(events)), G_IO_IN, on_event, network);
}

static SvAgent *ready_agent(gpointer user_data)
{
    const SvPodNetwork *network = user_data;
    SvAgent *agent = network->sandbox->agent;
    return network->taken && sv_agent_is_ready(agent) ? agent : NULL;
}

void sv_pod_network_forward(SvPodNetwork *network, int listeners[2])
{
    network->forwarding = sv_forwarding_new(listeners, ready_agent, network);
    listeners[0] = listeners[1] = -1;
}

void sv_pod_network_frame(SvSandbox *sandbox, const SvFrame *frame)
{
    if (sandbox->network->forwarding)
        sv_forwarding_frame(sandbox->network->forwarding, frame);
}

void sv_pod_network_recover(SvSandbox *sandbox)
{
    SvPodNetwork *network = sandbox->network;
    sv_pod_network_find(sandbox);
    if (!can_sync(network) || !sandbox->record->netns_id)
        return; /* a first create was cut off, or there is nothing to follow */
    network->taken = TRUE;
    if (!network->sync && !network->job)
        sv_network_sync_start(network, FALSE);
}

/* ---- giving back */

static void release_next(SvPodNetwork *network);

static void on_released(
    SvPodNetwork *network, SvNetworkWork *work, const GError *error, gpointer user_data)
{
    if (error)
        g_warning("sandbox %s: ignoring: give %s back: %s", network->sandbox->paths->sandbox,
            work->link->name, error->message);
    network->release_next++;
    release_next(network);
}

static void release_next(SvPodNetwork *network)
{
    SvSandboxRecord *record = network->sandbox->record;
    if (network->netns_fd >= 0 && record && network->release_next < record->links->len) {
        sv_network_job_give_back(
            network, record->links->pdata[network->release_next], on_released, NULL);
        return;
    }
    if (record && record->links->len > 0) {
        /* Not again: somebody else may have them then. */
        g_autoptr(GError) error = NULL;
        g_ptr_array_set_size(record->links, 0);
        if (!sv_sandbox_save(network->sandbox, &error))
            g_warning("sandbox %s: ignoring: %s", network->sandbox->paths->sandbox, error->message);
    }
    guint64 ticket = network->release_ticket;
    network->release_ticket = 0;
    network->taken = network->of_host = FALSE;
    g_clear_pointer(&network->sent, g_bytes_unref);
    g_clear_pointer(&network->sysctls, g_ptr_array_unref);
    g_hash_table_remove_all(network->told);
    g_hash_table_remove_all(network->failures);
    sv_fd_clear(&network->claim_fd);
    sv_fd_clear(&network->netns_fd);
    sv_ticket_next(ticket);
}

static void on_cleared(
    SvPodNetwork *network, SvNetworkWork *work, const GError *error, gpointer user_data)
{
    if (error)
        g_warning("sandbox %s: ignoring: %s", network->sandbox->paths->sandbox, error->message);
    release_next(network);
}

static void release_begin(SvPodNetwork *network)
{
    if (network->netns_fd >= 0 && !network->of_host)
        sv_network_job_clear(network, on_cleared, NULL);
    else
        release_next(network);
}

void sv_pod_network_release(SvSandbox *sandbox, guint64 ticket)
{
    SvPodNetwork *network = sandbox->network;
    stop_watching(network);
    sv_network_sync_drop(network);
    network->release_ticket = ticket;
    network->release_next = 0;
    if (network->netns_fd < 0 && sandbox->record)
        sv_pod_network_find(sandbox);
    if (!network->job)
        release_begin(network);
}

void sv_pod_network_go_on(SvPodNetwork *network)
{
    if (network->release_ticket)
        release_begin(network);
    else if (network->tickets->len > 0 && !network->sync)
        sv_network_sync_start(network, TRUE);
}
