/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What libvirt counts of sandvirt's machines: for `top` and `metrics`, programs that may block. The network is 0: see
 * core/network-count.h. */
#pragma once

#include "conf/config.h"
#include "devices/machine.h"

G_BEGIN_DECLS

/* Two of libvirt's numbers. */
enum { SV_MACHINE_RUNNING = 1, SV_MACHINE_SUSPENDED = 3 };

typedef struct {
    char *name, *title; /* title nullable */
    SvMetadata *metadata;
    int state; /* libvirt's: SV_MACHINE_RUNNING and so on */
    guint vcpus;
    guint64 cpu_ns; /* of all vCPUs */
    guint64 memory, memory_used; /* bytes: the machine's, QEMU's resident */
    guint64 disk_read, disk_written, net_received, net_sent; /* bytes */
    guint64 file_read, file_written; /* bytes, through the share */
} SvMachineStats;

/* GPtrArray of SvMachineStats (transfer full). */
GPtrArray *sv_libvirt_stats(const SvConfig *config, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
