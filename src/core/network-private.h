/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pod's network: its namespace on the host, whose links the machine has. */
#pragma once

#include "core/forward.h"
#include "core/sandbox-priv.h"
#include "devices/network-claim.h"
#include "devices/network-localhost.h"
#include "devices/network-multicast.h"
#include "devices/network-sweep.h"
#include "devices/network-take.h"
#include "devices/network-tc.h"
#include "netns/sysctl.h"

G_BEGIN_DECLS

typedef struct SvNetworkSync SvNetworkSync;
typedef struct SvNetworkJob SvNetworkJob;

/* Of a sandbox, as long as its machine. Main loop only. */
struct SvPodNetwork {
    SvSandbox *sandbox;
    int netns_fd; /* -1: not known (yet), or gone */
    int claim_fd; /* -1: none; see devices/network-claim.h */
    int multicast_fd; /* -1: none; see devices/network-multicast.h */
    gboolean of_host; /* the monitor's own namespace: nothing of it is ever taken */
    gboolean taken; /* the machine has it; later changes are followed */
    GArray *tickets; /* guint64: steps that wait for it to be taken */
    guint64 release_ticket; /* step that waits for it to be given back */
    guint release_next; /* number of the link that is given back next */
    SvNetworkSync *sync; /* at work; nullable */
    SvNetworkJob *job; /* in a thread; nullable */
    GPtrArray *sysctls; /* see netns/sysctl.h; NULL: not known yet */
    GBytes *sent; /* what the guest has, packed; nullable */
    GHashTable *told; /* warnings that were given */
    GHashTable *failures; /* index of a link -> how often it could not be joined */
    GHashTable *waits; /* calls that are out, owned */
    SvNetlink *events; /* tells of changes; nullable */
    guint events_source, settle_timer;
    gboolean changed; /* while a sync was at work */
    SvForwarding *forwarding; /* of connections to localhost; nullable */
    int table_fd; /* what brings them to it goes with this; -1 */
    gboolean no_forwarding; /* it was tried in vain */
};

/* ---- network-job.c: what may wait for the kernel's network lock is done in a thread */

/* What is done beside reading the namespace. */
typedef struct {
    gboolean watch; /* a socket for events is opened, before */
    gboolean forward; /* connections to localhost are caught */
    gboolean settings; /* the sysctls are read too */
    gboolean claim; /* when there are links for a machine */
} SvNetworkAsk;
typedef struct {
    /* in */
    int netns_fd; /* a copy */
    int multicast_fd; /* a copy, or -1; reading opens one when there is none */
    SvNetworkAsk ask;
    SvLinkRecord *link; /* of take and give back, a copy */
    char *tap_alias;
    guint32 mark; /* of the root */
    guint mtu;
    /* out */
    SvNetState *state;
    GPtrArray *sysctls;
    GHashTable *foreign; /* indexes of links with an ingress qdisc of somebody else */
    GHashTable
        *pairs; /* index of a tap of ours -> that of the link, when each leads to the other */
    guint64 netns_id;
    SvNetlink *events;
    int claim_fd; /* -1: none */
    char *claim_error; /* somebody else has it; nullable */
    int listeners[2]; /* -1: none */
    int table_fd; /* of connections that come to them; -1 */
    char *forward_error; /* nullable */
    gboolean forward_taken; /* another machine forwards them */
    gboolean made_qdisc;
    gboolean link_gone; /* which is why it could not be taken */
} SvNetworkWork;
/* @work is borrowed: what is stolen from it is the caller's. The error is borrowed too. */
typedef void (*SvNetworkDone)(
    SvPodNetwork *network, SvNetworkWork *work, const GError *error, gpointer user_data);

/* One at a time. @done is not called any more after the network is freed. */
void sv_network_job_read(
    SvPodNetwork *network, const SvNetworkAsk *ask, SvNetworkDone done, gpointer user_data);
void sv_network_job_take(SvPodNetwork *network, const SvLinkRecord *link, guint mtu,
    SvNetworkDone done, gpointer user_data);
void sv_network_job_give_back(
    SvPodNetwork *network, const SvLinkRecord *link, SvNetworkDone done, gpointer user_data);
/* Connections to localhost are no more caught. */
void sv_network_job_clear(SvPodNetwork *network, SvNetworkDone done, gpointer user_data);
void sv_network_job_forget(SvPodNetwork *network);
/* A descriptor of the namespace; -1 + errno. */
int sv_network_open(const char *path);
/* NULL: @netns_fd is none, or not that of the namespace with the number @id (0: any). */
SvNetlink *sv_network_ask(int netns_fd, guint64 id) G_GNUC_WARN_UNUSED_RESULT;

/* ---- network-plan.c: the namespace held against the record */

typedef struct {
    GPtrArray *
        devices; /* SvNetDevice of the state: what the machine is to have, the loopback too; owned array */
    GPtrArray *add; /* SvLinkRecord: new, owned by the record afterwards */
    GPtrArray *drop; /* SvLinkRecord of the record (borrowed): gone, or never finished */
    GPtrArray *warnings; /* of char*, with the names of links in front */
} SvNetworkPlan;
/* What is known of links besides. */
typedef struct {
    GHashTable *foreign, *pairs; /* see SvNetworkWork */
    GHashTable *failures; /* see SvPodNetwork */
} SvNetworkHints;
/* More often a link is not tried: each try is a change of the namespace, which leads to the next. */
#define SV_LINK_TRIES 3
/* FALSE + SV_ERR_BUSY: another machine has the namespace. */
gboolean sv_network_plan(SvNetworkPlan *plan, const SvNetState *state, const SvNetworkHints *hints,
    SvSandboxRecord *record, const char *domain, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_network_plan_clear(SvNetworkPlan *plan);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SvNetworkPlan, sv_network_plan_clear)
/* "02:00:..." to 6 bytes. */
gboolean sv_mac_parse(const char *text, guint8 mac[6]);

/* ---- network-sync.c */

/* Brings machine and namespace in line; sv_network_synced follows. With @first a failure undoes it all. */
void sv_network_sync_start(SvPodNetwork *network, gboolean first);
void sv_network_sync_drop(SvPodNetwork *network);

/* ---- network.c */
void sv_network_synced(SvPodNetwork *network, const GError *error);
/* A job has ended whose sync was dropped. */
void sv_pod_network_go_on(SvPodNetwork *network);
/* From now on changes of the namespace are followed. Takes @events. */
void sv_pod_network_watch(SvPodNetwork *network, SvNetlink *events);
/* Connections that come to @listeners (taken) are forwarded. */
void sv_pod_network_forward(SvPodNetwork *network, int listeners[2]);

G_END_DECLS
