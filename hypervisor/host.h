/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What libvirt says of this host, and a machine on trial: for `check`, a one-shot program that may
 * block. */
#pragma once

#include "conf/config.h"
#include "devices/machine.h"

G_BEGIN_DECLS

typedef struct {
    guint libvirt[3], qemu[3]; /* major, minor, release */
    char *emulator; /* path of QEMU; nullable */
    char *why; /* no QEMU, or no answer about it: the reason; nullable */
    gboolean has_virtiofs; /* libvirt and QEMU know it */
    int uid, gid; /* QEMU's own, as libvirt starts it; -1: not known */
    char *confinement; /* "apparmor", "selinux"; NULL: none */
} SvHost;
void sv_host_free(SvHost *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvHost, sv_host_free)

/* Connects, asks, closes. Gives up after connect_ms + call_ms with SV_ERR_TIMEOUT, in which case
 * a thread stays behind. Needs no main loop. (transfer full) */
SvHost *sv_libvirt_host(const SvConfig *config, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* A domain that ends with this process, or by sv_trial_end. Blocking. */
typedef struct SvTrial SvTrial;
SvTrial *sv_trial_start(const SvConfig *config, const SvMachine *machine, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_trial_end(SvTrial *trial);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvTrial, sv_trial_end)

G_END_DECLS
