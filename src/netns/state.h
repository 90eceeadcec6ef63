/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A network namespace as plain data: what the kernel tells, as the messages of sandvirt.proto. Host and guest read
 * with the same code, so that what is equal looks equal. */
#pragma once

#include "netns/netlink.h"
#include "rpc/sandvirt.pb-c.h"

G_BEGIN_DECLS

typedef Sandvirt__V1__NetLink SvNetLink;
typedef Sandvirt__V1__NetSetting SvNetSetting;
typedef Sandvirt__V1__NetAddress SvNetAddress;
typedef Sandvirt__V1__NetRoute SvNetRoute;
typedef Sandvirt__V1__NetHop SvNetHop;
typedef Sandvirt__V1__NetNeighbour SvNetNeighbour;
typedef Sandvirt__V1__NetRule SvNetRule;
typedef Sandvirt__V1__NetworkRequest SvNetRequest;

/* A link, and what is of no concern to the other side. */
typedef struct {
    SvNetLink *link; /* owned */
    int index;
    guint16 type; /* ARPHRD_... */
    char *kind; /* "veth", ...; NULL: hardware, loopback */
    char *alias; /* nullable */
    int master, lower; /* index of the link it is a port of, or lies on; 0: none here */
    guint8 mac[8], mac_len; /* what it was born with; else the one it has */
} SvNetDevice;
void sv_net_device_free(SvNetDevice *device);

typedef struct {
    GPtrArray *devices; /* SvNetDevice, by index */
    GPtrArray *addresses, *routes, *neighbours, *rules; /* messages, owned; in the kernel's order */
} SvNetState;
void sv_net_state_free(SvNetState *state);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvNetState, sv_net_state_free)

/* More than this is no pod's: SV_ERR_LIMIT. */
#define SV_NET_MAX 16384
/* All of the namespace of @nl, but for what the kernel keeps by itself: table local and routes of the cache;
 * neighbours are the permanent ones. */
SvNetState *sv_net_state_read(SvNetlink *nl, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The links alone. */
GPtrArray *sv_net_devices_read(SvNetlink *nl, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* NULL when there is none. */
SvNetDevice *sv_net_device_find(const GPtrArray *devices, const char *name);
SvNetDevice *sv_net_device_at(const GPtrArray *devices, int index);

/* What of @state is about @devices (of SvNetDevice), as a request of its own. (transfer full) */
SvNetRequest *sv_net_request_new(const SvNetState *state, const GPtrArray *devices)
    G_GNUC_WARN_UNUSED_RESULT;
/* A copy with the links for which @keep says so and what belongs to them. */
SvNetRequest *sv_net_request_restrict(const SvNetRequest *request,
    gboolean (*keep)(const SvNetLink *link, gpointer user_data), gpointer user_data)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_net_request_free(SvNetRequest *request);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvNetRequest, sv_net_request_free)

/* A message as bytes: equal for equal ones. (transfer full) */
GBytes *sv_net_pack(const ProtobufCMessage *message) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
