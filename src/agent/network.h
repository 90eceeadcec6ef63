/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guest's network, made like the pod's namespace on the host. */
#pragma once

#include "agent/service.h"
#include "netns/state.h"

G_BEGIN_DECLS

/* Method ConfigureNetwork. */
void sv_network_configure(SvCall *call);

/* TRUE when the device of every link is there; else *missing is the first that is not. */
gboolean sv_network_devices_there(
    const SvNetRequest *wanted, const GPtrArray *devices, const SvNetLink **missing);
/* Makes the network of @nl's namespace so. @before: what was wanted the last time, nullable: only what is
 * new since then is added, and only what is no more is taken away. What cannot be done is an error the
 * first time, and goes to @warnings (of char*) later. The calling thread is in that namespace. */
gboolean sv_network_apply(SvNetlink *nl, const SvNetRequest *wanted, const SvNetRequest *before,
    GPtrArray *warnings, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* ---- parts of it */

typedef struct {
    SvNetlink *nl;
    const SvNetRequest *wanted, *before;
    GPtrArray *warnings;
    GPtrArray *devices; /* SvNetDevice, as they are now; owned */
} SvNetWork;
/* Takes @error: into the warnings when there was a configuration before: TRUE. */
gboolean sv_network_pass(SvNetWork *work, GError *local, const char *what, GError **error);
gboolean sv_network_reread_devices(SvNetWork *work, GError **error);
/* network-links.c: names, MACs, settings, up or down. */
gboolean sv_network_apply_links(SvNetWork *work, GError **error);
/* The kernel makes link-local addresses again as the link says. */
void sv_network_settle_links(SvNetWork *work);
/* The one of @request with the same device; NULL: none. */
const SvNetLink *sv_network_link_like(const SvNetRequest *request, const SvNetLink *link);
/* The link has no IPv6. */
gboolean sv_network_ipv6_is_off(const SvNetRequest *wanted, const char *link);

/* network-items.c: addresses, routes, neighbours, rules. */
gboolean sv_network_apply_items(SvNetWork *work, GError **error);

G_END_DECLS
