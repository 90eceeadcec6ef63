/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Update: new devices and limits of a live container. Devices are added and the machine grows first, then the
 * guest's cgroup is written, and at last devices go; what is refused on the way changes nothing. */
#include "core/disks.h"
#include "core/guestspec.h"
#include "core/update-limits.h"
#include "core/sandbox-priv.h"

#include <string.h>

typedef struct {
    SvSandbox *sandbox;
    char *id;
    JsonNode *resources;
    SvDeviceChange *devices; /* nullable */
    gint64 old_cpu, old_memory, old_quota, old_period, old_pod_cpu, old_pod_memory;
    SvDone done;
    gpointer user_data;
} Update;

/* Answers and frees. */
static void update_end(const GError *error, gpointer user_data)
{
    Update *update = user_data;
    update->done(error, update->user_data);
    json_node_unref(update->resources);
    g_free(update->id);
    g_free(update);
}

static void refuse(Update *update, const GError *error)
{
    if (update->devices)
        sv_device_change_undo(update->devices, error, update_end, update);
    else
        update_end(error, update);
}

static void succeed(Update *update)
{
    if (update->devices)
        sv_device_change_keep(update->devices, update_end, update);
    else
        update_end(NULL, update);
}

/* The machine keeps what it has got; the next to ask counts on the old limits. */
static void take_back(Update *update)
{
    SvContainer *container = sv_sandbox_find(update->sandbox, update->id, NULL);
    if (!container)
        return;
    container->record->demand_cpu = update->old_cpu;
    container->record->demand_memory = update->old_memory;
    container->record->cpu_quota = update->old_quota;
    container->record->cpu_period = update->old_period;
    update->sandbox->record->pod_cpu = update->old_pod_cpu;
    update->sandbox->record->pod_memory = update->old_pod_memory;
}

static void on_updated(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Update *update = user_data;
    g_autoptr(GError) failure = NULL;
    SvContainer *container = sv_sandbox_find(update->sandbox, update->id, NULL);
    if (error) {
        take_back(update);
        refuse(update, error);
        return;
    }
    if (container &&
        (!sv_container_save(container, &failure) || !sv_sandbox_save(update->sandbox, &failure)))
        g_warning("ignoring: %s", failure->message);
    succeed(update);
}

static void on_grown(const GError *ignored, gpointer user_data)
{
    Update *update = user_data;
    SvSandbox *sandbox = update->sandbox;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = NULL;
    SvContainer *container = sv_container_find_for(sandbox, update->id, "update", &error);
    if (container) {
        g_autoptr(GHashTable) numbers = sv_disks_numbers(container);
        text = sv_guest_resources(
            update->resources, sandbox->record->vcpus, numbers, warnings, &error);
    }
    for (guint i = 0; i < warnings->len; i++)
        g_warning("container %s: %s", update->id, (char *)warnings->pdata[i]);
    if (!text) {
        take_back(update);
        refuse(update, error);
        return;
    }
    Sandvirt__V1__UpdateRequest message = SANDVIRT__V1__UPDATE_REQUEST__INIT;
    SvLimitsFirst first;
    sv_limits_first(json_node_get_object(update->resources), &first);
    message.first = first.list;
    message.n_first = first.n;
    message.container_id = update->id;
    message.resources.data = (guint8 *)text;
    message.resources.len = strlen(text);
    sv_agent_call(sandbox->agent, "Update", &message.base, NULL, sandbox->config->agent_ms,
        on_updated, update);
}

static void begin(Update *update)
{
    SvSandbox *sandbox = update->sandbox;
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_container_find_for(sandbox, update->id, "update", &error);
    if (!container) {
        refuse(update, error);
        return;
    }
    update->old_cpu = container->record->demand_cpu;
    update->old_memory = container->record->demand_memory;
    update->old_quota = container->record->cpu_quota;
    update->old_period = container->record->cpu_period;
    update->old_pod_cpu = sandbox->record->pod_cpu;
    update->old_pod_memory = sandbox->record->pod_memory;
    sv_limits_complete(container->record, json_node_get_object(update->resources));
    sv_machine_change_demand(container, update->resources);
    sv_machine_grow(sandbox, on_grown, update);
}

static void on_devices_changed(const GError *error, gpointer user_data)
{
    Update *update = user_data;
    if (error)
        update_end(error, update);
    else if (json_object_get_size(json_node_get_object(update->resources)) == 0)
        succeed(update);
    else
        begin(update);
}

/* Everything is looked at before anything is changed. */
static JsonNode *check(
    SvContainer *container, const Sandvirt__V1__UpdateContainerRequest *request, GError **error)
{
    SvSandbox *sandbox = container->sandbox;
    if (sv_sandbox_refuse_suspended(sandbox, "update", error))
        return NULL;
    g_autoptr(JsonNode) node =
        sv_resources_parse((const char *)request->resources.data, request->resources.len, error);
    g_autofree char *text =
        node ? sv_guest_resources(node, sandbox->record->max_vcpus, NULL, NULL, error) : NULL;
    return text ? g_steal_pointer(&node) : NULL;
}

void sv_container_update(SvSandbox *sandbox, const Sandvirt__V1__UpdateContainerRequest *request,
    SvDone done, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    SvContainer *container =
        sv_container_find_for(sandbox, request->container_id, "update", &error);
    JsonNode *resources = container ? check(container, request, &error) : NULL;
    if (!resources) {
        sv_answer_later(done, error, user_data);
        return;
    }
    Update *update = g_new0(Update, 1);
    update->sandbox = sandbox;
    update->id = g_strdup(request->container_id);
    update->resources = resources;
    update->done = done;
    update->user_data = user_data;
    SvDeviceList list = {.add = request->device_add,
        .remove = request->device_remove,
        .n_add = request->n_device_add,
        .n_remove = request->n_device_remove};
    if (list.n_add || list.n_remove)
        update->devices = sv_container_change_devices(container, &list, on_devices_changed, update);
    else
        begin(update);
}
