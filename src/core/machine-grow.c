/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How big the machine is: from what its containers ask for, at its start and while it runs. */
#include "core/update-limits.h"
#include "core/pod-cgroup.h"
#include "core/sandbox-priv.h"

#include "core/sizing.h"

#define ONLINE_MS 3000
/* CPUs that a machine can have: each one that it may get costs the guest about 100 KiB. */
#define MAX_ROOM_VCPUS 16u
#define MIB (G_GUINT64_CONSTANT(1) << 20)

static SvSize wanted_size(SvSandbox *sandbox)
{
    const SvDemand pod = {sandbox->record->pod_cpu, sandbox->record->pod_memory};
    g_autoptr(GArray) demands = g_array_new(FALSE, FALSE, sizeof(SvDemand));
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, sandbox->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const SvRecord *record = ((SvContainer *)value)->record;
        const SvDemand demand = {record->demand_cpu, record->demand_memory};
        if (record->state != SV_STATE_STOPPED)
            g_array_append_val(demands, demand);
    }
    return sv_size_for(sandbox->config, &pod, (const SvDemand *)demands->data, demands->len);
}

void sv_machine_note_demand(SvContainer *container)
{
    SvSandbox *sandbox = container->sandbox;
    SvSandboxRecord *record = sandbox->record;
    const SvConfig *config = sandbox->config;
    SvDemand demand = sv_demand_of_spec(container->spec);
    SvDemand pod = sv_demand_of_pod(container->pod);
    container->record->demand_cpu = demand.cpu_milli;
    container->record->demand_memory = demand.memory_bytes;
    sv_limits_note(container->record, sv_resources_of_spec(container->spec));
    if (sandbox->machine != SV_MACHINE_NONE)
        return;
    if (pod.cpu_milli)
        record->pod_cpu = pod.cpu_milli;
    if (pod.memory_bytes)
        record->pod_memory = pod.memory_bytes;
    SvSize size = wanted_size(sandbox);
    record->vcpus = size.vcpus;
    record->memory_mib = record->boot_memory_mib = size.memory_mib;
    record->max_vcpus = MAX(MIN(config->max_vcpus, MAX_ROOM_VCPUS), size.vcpus);
    /* whole blocks of virtio-mem */
    record->max_memory_mib = MAX(config->max_memory_mib & ~1u, size.memory_mib);
}

void sv_machine_change_demand(SvContainer *container, JsonNode *node)
{
    JsonObject *resources = json_node_get_object(node);
    SvRecord *record = container->record;
    SvSandboxRecord *sandbox = container->sandbox->record;
    SvDemand demand = sv_demand_of_resources(resources);
    JsonObject *part = NULL;
    sv_limits_note(record, resources);
    if (sv_json_get_object(resources, "cpu", "", &part, NULL) && part &&
        json_object_has_member(part, "quota")) {
        /* the pod's annotations are of its start: they follow what is changed */
        if (sandbox->pod_cpu && record->demand_cpu && demand.cpu_milli)
            sandbox->pod_cpu = MAX(sandbox->pod_cpu + demand.cpu_milli - record->demand_cpu, 1);
        record->demand_cpu = demand.cpu_milli;
    }
    part = NULL;
    if (sv_json_get_object(resources, "memory", "", &part, NULL) && part &&
        json_object_has_member(part, "limit")) {
        if (sandbox->pod_memory && record->demand_memory && demand.memory_bytes)
            sandbox->pod_memory =
                MAX(sandbox->pod_memory + demand.memory_bytes - record->demand_memory, 1);
        record->demand_memory = demand.memory_bytes;
    }
}

/* ---- growing: libvirt's calls are made one after the other, in the order of asking */

typedef struct {
    SvSandbox *sandbox;
    guint old_vcpus;
    guint64 old_memory_mib;
    SvSize size;
    SvDone done;
    gpointer user_data;
} Grow;

static void on_online(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    g_autofree Grow *grow = user_data;
    g_autoptr(GError) failure = NULL;
    if (error)
        g_warning("ignoring: new CPUs and memory in the guest: %s", error->message);
    if (!sv_sandbox_save(grow->sandbox, &failure))
        g_warning("ignoring: %s", failure->message);
    grow->done(NULL, grow->user_data);
}

static void wait_online(Grow *grow)
{
    SvSandbox *sandbox = grow->sandbox;
    const SvSandboxRecord *record = sandbox->record;
    if (!sv_agent_is_ready(sandbox->agent)) {
        on_online(NULL, NULL, grow);
        return;
    }
    Sandvirt__V1__OnlineRequest message = SANDVIRT__V1__ONLINE_REQUEST__INIT;
    message.cpus = record->vcpus;
    message.extra_memory = (record->memory_mib - record->boot_memory_mib) * MIB;
    message.timeout_ms = ONLINE_MS;
    sv_agent_call(sandbox->agent, "Online", &message.base,
        &sandvirt__v1__online_response__descriptor, sandbox->config->agent_ms, on_online, grow);
}

static void on_memory(SvHv *hv, const GError *error, gpointer user_data)
{
    Grow *grow = user_data;
    if (error) {
        g_warning("ignoring: the machine keeps %" G_GUINT64_FORMAT " MiB: %s", grow->old_memory_mib,
            error->message);
        grow->sandbox->record->memory_mib = grow->old_memory_mib;
    }
    wait_online(grow);
}

static void grow_memory(Grow *grow)
{
    SvSandbox *sandbox = grow->sandbox;
    SvSandboxRecord *record = sandbox->record;
    if (grow->size.memory_mib <= grow->old_memory_mib) {
        wait_online(grow);
        return;
    }
    sandbox->hv->ops->set_memory(
        sandbox->hv, (grow->size.memory_mib - record->boot_memory_mib) * MIB, on_memory, grow);
}

static void on_vcpus(SvHv *hv, const GError *error, gpointer user_data)
{
    Grow *grow = user_data;
    sv_pod_cgroup_place(grow->sandbox);
    if (error) {
        g_warning("ignoring: the machine keeps %u CPUs: %s", grow->old_vcpus, error->message);
        grow->sandbox->record->vcpus = grow->old_vcpus;
    }
    grow_memory(grow);
}

void sv_machine_grow(SvSandbox *sandbox, SvDone done, gpointer user_data)
{
    SvSandboxRecord *record = sandbox->record;
    SvSize size = wanted_size(sandbox);
    size.vcpus = MIN(size.vcpus, record->max_vcpus);
    size.memory_mib = MIN(size.memory_mib, record->max_memory_mib);
    if (sandbox->machine != SV_MACHINE_UP || !sandbox->hv ||
        (size.vcpus <= record->vcpus && size.memory_mib <= record->memory_mib)) {
        sv_answer_later(done, NULL, user_data);
        return;
    }
    Grow *grow = g_new0(Grow, 1);
    grow->sandbox = sandbox;
    grow->old_vcpus = record->vcpus;
    grow->old_memory_mib = record->memory_mib;
    grow->size = size;
    grow->done = done;
    grow->user_data = user_data;
    g_message("the machine of sandbox %s grows to %u CPUs, %" G_GUINT64_FORMAT " MiB",
        sandbox->paths->sandbox, MAX(size.vcpus, record->vcpus),
        MAX(size.memory_mib, record->memory_mib));
    /* At once: who asks meanwhile, asks for what is missing then. */
    record->vcpus = MAX(size.vcpus, record->vcpus);
    record->memory_mib = MAX(size.memory_mib, record->memory_mib);
    if (size.vcpus > grow->old_vcpus) {
        sv_pod_cgroup_lend(sandbox);
        sandbox->hv->ops->set_vcpus(sandbox->hv, size.vcpus, on_vcpus, grow);
    } else {
        grow_memory(grow);
    }
}
