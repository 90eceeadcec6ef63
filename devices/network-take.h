/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A link of a pod's network namespace and the tap of the machine's card that stands for it: all frames that come in
 * on one go out on the other. Blocking (the kernel's network lock may be busy): not for the main loop. */
#pragma once

#include "netns/state.h"

G_BEGIN_DECLS

/* Our taps are told apart by their alias: this, the name of the domain, ":", the name of the link. */
#define SV_TAP_ALIAS "sandvirt:"

/* Whether a machine can have @device of @devices: NULL when it can. "": it cannot, and nobody misses it;
 * else why it cannot. */
const char *sv_link_refusal(const SvNetDevice *device, const GPtrArray *devices);
/* The owner (a domain's name, transfer full) when @device is the tap of a machine; else NULL. */
char *sv_link_tap_owner(const SvNetDevice *device);

typedef struct {
    const char *tap; /* name, in both namespaces */
    const char *alias;
    int index; /* of the link in the pod's namespace */
    guint mtu;
    guint32 mark; /* whose: see sv_network_sweep */
    int multicast; /* of sv_multicast_open; -1: none */
} SvTakeLink;

/* Moves the tap, which QEMU holds, out of the caller's namespace into that of @netns_fd, and joins it with the link.
 * *made_qdisc: the link had no ingress qdisc before. Nothing is undone on failure: sv_link_give_back does. */
gboolean sv_link_take(int netns_fd, const SvTakeLink *take, gboolean *made_qdisc, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* The link as it was. What is gone already is fine. */
gboolean sv_link_give_back(int netns_fd, const SvTakeLink *take, gboolean made_qdisc,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* What the machine has got and sent through @tap, in bytes, is added. A tap that is gone adds nothing. */
void sv_link_count(SvNetlink *nl, const char *tap, guint64 *received, guint64 *sent);

G_END_DECLS
