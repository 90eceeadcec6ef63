/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a sandbox needs before its first container. */
#pragma once

#include "agent/service.h"
#include "rpc/sandvirt.pb-c.h"

G_BEGIN_DECLS

/* Sets CLOCK_REALTIME when it is off; 0 is ignored. */
void sv_setup_clock(gint64 time_ns);
/* Feeds the kernel's random numbers. Without it the first reader waits a second in a machine that has
     * no source of its own, and a restored machine repeats what its image knows. */
void sv_setup_random(const guint8 *seed, gsize len);
/* "net.ipv4.ip_forward" to its path below /proc/sys (transfer full); NULL for a bad key. */
char *sv_setup_sysctl_path(const char *key);
gboolean sv_setup_sysctls(Sandvirt__V1__Sysctl *const *sysctls, gsize n, GError **error);

/* Methods Setup and AddSharedMemory */
void sv_setup_sandbox(SvCall *call);
void sv_setup_shared_memory(SvCall *call);

G_END_DECLS
