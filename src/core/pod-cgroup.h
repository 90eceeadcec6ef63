/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which cgroup on the host each process of a sandbox lives in. The machine (QEMU, virtiofsd, and this
 * monitor) lives in the cgroup of the sandbox's own container, where engines look for its statistics; in
 * one beside it when the sandbox has no container of its own, whose end would take the cgroup away. With
 * systemd's paths libvirt puts the machine into the slice, by itself. A host that does not allow it is
 * warned about: the containers' limits are the guest's. */
#pragma once

#include "core/sandbox-priv.h"

G_BEGIN_DECLS

/* At the register of @container: its cgroup, and the sandbox's when it is the first. */
gboolean sv_pod_cgroup_choose(SvContainer *container, gboolean systemd, GError **error);
/* The container's: made, and a shim of it put there. */
void sv_container_cgroup_enter(SvContainer *container, pid_t pid);
void sv_container_cgroup_remove(SvContainer *container);

/* The sandbox's: made, and this monitor put there. Again after a recovery. */
void sv_pod_cgroup_begin(SvSandbox *sandbox);
/* QEMU and virtiofsd put there as soon as they run. */
void sv_pod_cgroup_place(SvSandbox *sandbox);
/* libvirt can plug CPUs only while QEMU is where it has put it. */
void sv_pod_cgroup_lend(SvSandbox *sandbox);
void sv_pod_cgroup_end(SvSandbox *sandbox);

G_END_DECLS
