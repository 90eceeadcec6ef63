/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which acceleration a machine gets when the configuration says "auto". That /dev/kvm opens and tells
 * its version proves nothing (on a host that is itself a guest the firmware may run and the kernel
 * never): a tiny machine with the guest's kernel and no image is started through libvirt. Where KVM
 * works the kernel comes up, finds no image, says so on its console and resets. The answer is kept in
 * RUN_DIR/.accel for this boot of the host. */
#pragma once

#include "conf/config.h"
#include "devices/machine.h"

G_BEGIN_DECLS

/* @reason: why it is TCG although "auto" would like KVM; NULL otherwise. @error: neither could be found
 * out (no guest image, no connection). Borrowed. On the default main context, once. */
typedef void (*SvAccelDone)(
    SvAccel accel, const char *reason, const GError *error, gpointer user_data);
/* Main thread. Cannot be taken back. An answer from the cache takes well below 1 ms; a trial takes as
 * long as a machine needs to start, and accel_probe_ms when KVM is no use. Warns when a trial ends
 * with TCG. */
void sv_accel_resolve(const SvConfig *config, SvAccelDone done, gpointer user_data);

/* The same, blocking. @fresh: try although an answer is in the cache, or "kvm" is
 * configured. @reason (out, transfer full,
 * nullable). Needs no running main loop. */
gboolean sv_accel_find(const SvConfig *config, gboolean fresh, SvAccel *accel, char **reason,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
