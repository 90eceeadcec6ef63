/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A network interface of the machine: a tap that is moved into the pod's network namespace. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

typedef struct {
    char *tap; /* name, unique in the host's namespace until moved; at most 15 bytes */
    char *mac;
    guint mtu; /* 0: default */
    guint queues; /* 0 or 1: single */
    gboolean vhost;
    gboolean offloads;
} SvNetwork;
SvNetwork *sv_network_copy(const SvNetwork *network);
void sv_network_free(SvNetwork *network);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvNetwork, sv_network_free)

G_END_DECLS
