/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which pod a container belongs to, from annotations of the engines (clients' facts: CRI-O,
 * containerd, podman, dockershim). The family is decided once; keys of others are ignored. */
#pragma once

#include "oci/spec.h"

G_BEGIN_DECLS

typedef enum {
    SV_FAMILY_NONE,
    SV_FAMILY_CRIO,
    SV_FAMILY_CONTAINERD,
    SV_FAMILY_PODMAN,
    SV_FAMILY_DOCKERSHIM
} SvFamily;
typedef enum { SV_ROLE_SINGLE, SV_ROLE_SANDBOX, SV_ROLE_CONTAINER } SvRole;

typedef struct {
    SvFamily family;
    SvRole role;
    /* Of SANDBOX, and of SINGLE without @maybe: the container's own id. */
    char *sandbox_id;
    gboolean
        maybe; /* role SINGLE (podman): a container of sandbox_id when that sandbox lives, else a
                     * sandbox of its own id */
    char *pod_namespace, *pod_name, *container_name; /* nullable; not yet printable-ised */
    /* Sandbox sizing annotations; 0: none. The overhead is the engine's allowance for the machine on the
     * host, not part of the limit. */
    gint64 cpu_period, cpu_quota, cpu_shares, memory_limit, memory_overhead;
} SvPod;
/* @id: the container's id. Bad ids in annotations: SV_ERR_INVALID. */
SvPod *sv_pod_from_spec(const SvSpec *spec, const char *id, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_pod_free(SvPod *pod);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvPod, sv_pod_free)

G_END_DECLS
