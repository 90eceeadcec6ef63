/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What libvirt counts of sandvirt's machines: for `top` and `metrics`, programs that may block. The network is 0: see
 * core/network-count.h. */
#pragma once

#include "conf/config.h"
#include "devices/machine.h"

G_BEGIN_DECLS

typedef struct {
    char *name, *title; /* title nullable */
    SvMetadata *metadata;
    int state; /* libvirt's: 1 running, 3 suspended */
    guint vcpus;
    guint64 cpu_ns; /* of all vCPUs */
    guint64 memory, memory_used; /* bytes: the machine's, QEMU's resident */
    guint64 disk_read, disk_written, net_received, net_sent; /* bytes */
} SvMachineStats;

/* GPtrArray of SvMachineStats (transfer full). */
GPtrArray *sv_libvirt_stats(const SvConfig *config, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
