/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How big a machine is: from the pod's sizing annotations, else from its containers' limits, else from the
 * configuration. Pure functions.
 *
 * vCPUs: the sum of quota/period, rounded up; at least 1, at most max_vcpus. While any container has no
 * CPU limit: at least the configured vcpus. Memory: the sum of the limits plus overhead_mib, rounded up to
 * 2 MiB (virtio-mem's block); never below the configured memory_mib, at most max_memory_mib. A limit above what the host has is
 * clamped for the machine; the container's own cgroup gets it as it is. */
#pragma once

#include "conf/config.h"
#include "oci/pod.h"

G_BEGIN_DECLS

/* What one container, or a whole pod, asks for. */
typedef struct {
    gint64 cpu_milli; /* thousandths of a CPU; 0: no limit */
    gint64 memory_bytes; /* 0: no limit */
} SvDemand;
typedef struct {
    guint vcpus;
    guint64 memory_mib;
} SvSize;

/* quota and period of the CFS (microseconds); quota <= 0: no limit. */
gint64 sv_cpu_milli(gint64 quota, gint64 period);
/* linux.resources of @spec, or of an `update` request (@resources: its object; nullable). */
SvDemand sv_demand_of_spec(const SvSpec *spec);
JsonObject *sv_resources_of_spec(const SvSpec *spec); /* (transfer none) (nullable) */
SvDemand sv_demand_of_resources(JsonObject *resources);
/* Annotations of a pod sandbox; both 0 when it has none. */
SvDemand sv_demand_of_pod(const SvPod *pod);
/* @demands: of all containers, @n of them. @pod: (nullable) of the sandbox; what it names wins. */
SvSize sv_size_for(const SvConfig *config, const SvDemand *pod, const SvDemand *demands, guint n);

G_END_DECLS
