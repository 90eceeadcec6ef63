/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/sizing.h"

#define MIB (G_GINT64_CONSTANT(1) << 20)
#define BLOCK_MIB 2
#define DEFAULT_PERIOD 100000
/* Engines write "no limit" as a number near the largest one. */
#define UNLIMITED (G_GINT64_CONSTANT(1) << 60)

gint64 sv_cpu_milli(gint64 quota, gint64 period)
{
    if (quota <= 0 || quota >= UNLIMITED)
        return 0;
    if (period <= 0)
        period = DEFAULT_PERIOD;
    /* up: a limit is never taken for none */
    return quota / period * 1000 + (quota % period * 1000 + period - 1) / period;
}

static gint64 bounded(gint64 memory)
{
    return memory > 0 && memory < UNLIMITED ? memory : 0;
}

SvDemand sv_demand_of_resources(JsonObject *resources)
{
    SvDemand demand = {0, 0};
    JsonObject *cpu = NULL, *memory = NULL;
    gint64 quota = 0, period = 0, limit = 0;
    if (!resources)
        return demand;
    /* checked when the file was read; what an update says wrongly the guest's runtime refuses */
    if (sv_json_get_object(resources, "cpu", "cpu", &cpu, NULL) && cpu &&
        sv_json_get_int(cpu, "quota", "cpu", &quota, NULL) &&
        sv_json_get_int(cpu, "period", "cpu", &period, NULL))
        demand.cpu_milli = sv_cpu_milli(quota, period);
    if (sv_json_get_object(resources, "memory", "memory", &memory, NULL) && memory &&
        sv_json_get_int(memory, "limit", "memory", &limit, NULL))
        demand.memory_bytes = bounded(limit);
    return demand;
}

JsonObject *sv_resources_of_spec(const SvSpec *spec)
{
    JsonObject *root = json_node_get_object(spec->json);
    JsonObject *linux_object = NULL, *resources = NULL;
    if (!sv_json_get_object(root, "linux", "linux", &linux_object, NULL) || !linux_object ||
        !sv_json_get_object(linux_object, "resources", "linux.resources", &resources, NULL))
        return NULL;
    return resources;
}

SvDemand sv_demand_of_spec(const SvSpec *spec)
{
    return sv_demand_of_resources(sv_resources_of_spec(spec));
}

SvDemand sv_demand_of_pod(const SvPod *pod)
{
    SvDemand demand = {sv_cpu_milli(pod->cpu_quota, pod->cpu_period), bounded(pod->memory_limit)};
    return demand;
}

static gint64 add(gint64 a, gint64 b)
{
    return a > UNLIMITED - b ? UNLIMITED : a + b;
}

SvSize sv_size_for(const SvConfig *config, const SvDemand *pod, const SvDemand *demands, guint n)
{
    gint64 cpu = 0, memory = 0;
    gboolean free_cpu = n == 0;
    for (guint i = 0; i < n; i++) {
        cpu = add(cpu, demands[i].cpu_milli);
        memory = add(memory, demands[i].memory_bytes);
        free_cpu = free_cpu || !demands[i].cpu_milli;
    }
    if (pod && pod->cpu_milli) {
        cpu = pod->cpu_milli;
        free_cpu = FALSE;
    }
    if (pod && pod->memory_bytes)
        memory = pod->memory_bytes;

    gint64 vcpus = (cpu + 999) / 1000;
    if (free_cpu)
        vcpus = MAX(vcpus, (gint64)config->vcpus);
    gint64 mib = config->memory_mib;
    if (memory)
        mib = MAX(mib, (memory + MIB - 1) / MIB + (gint64)config->overhead_mib);
    mib = (mib + BLOCK_MIB - 1) / BLOCK_MIB * BLOCK_MIB;
    SvSize size = {
        (guint)CLAMP(vcpus, 1, (gint64)MAX(config->max_vcpus, 1)),
        (guint64)MIN(mib, (gint64)MAX(config->max_memory_mib, config->memory_mib)),
    };
    return size;
}
