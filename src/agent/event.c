/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/event.h"
#include "agent/container.h"
#include "agent/power.h"
#include "rpc/message.h"
#include "rpc/sandvirt.pb-c.h"

typedef struct {
    guint32 handle; /* of an Exit, else 0 */
    char *container_id; /* of an Oom, else NULL */
    guint32 container; /* of an Oom: handle of its init, because ids come again */
    guint64 kills; /* of an Oom */
} Pending;

static void pending_free(gpointer data)
{
    Pending *pending = data;

    g_free(pending->container_id);
    g_free(pending);
}

/* What is told now, and waits for its answer; NULL: nobody listens. (transfer none) */
static Pending *send_event(
    SvAgent *agent, const char *method, const ProtobufCMessage *message, guint32 handle)
{
    Pending *pending;

    if (!agent->channel || !agent->greeted)
        return NULL;
    if (!agent->unanswered)
        agent->unanswered = g_hash_table_new_full(NULL, NULL, NULL, pending_free);
    agent->next_stream += 2;
    pending = g_new0(Pending, 1);
    pending->handle = handle;
    g_hash_table_insert(agent->unanswered, GUINT_TO_POINTER(agent->next_stream), pending);
    sv_channel_send(agent->channel,
        sv_message_request(agent->next_stream, SV_SERVICE_HOST, method, message, 0));
    return pending;
}

void sv_event_exit(SvProcess *process)
{
    Sandvirt__V1__ExitEvent event = SANDVIRT__V1__EXIT_EVENT__INIT;

    event.handle = process->handle;
    event.container_id = process->container_id;
    event.exit_code = process->exit_code;
    event.exit_time_ns = process->exit_time_ns;
    event.oom = process->oom;
    if (process->ordered_us)
        event.guest_ns = (g_get_monotonic_time() - process->ordered_us) * 1000;
    send_event(process->agent, "Exit", &event.base, process->handle);
}

gboolean sv_event_oom(const SvContainer *container)
{
    Sandvirt__V1__OomEvent event = SANDVIRT__V1__OOM_EVENT__INIT;
    Pending *pending;

    event.container_id = container->id;
    event.kills = container->oom_kills;
    pending = send_event(container->agent, "Oom", &event.base, 0);
    if (!pending)
        return FALSE;
    pending->container_id = g_strdup(container->id);
    pending->container = container->handle;
    pending->kills = container->oom_kills;
    return TRUE;
}

void sv_event_shutting_down(SvAgent *agent, const char *reason)
{
    Sandvirt__V1__ShuttingDownEvent event = SANDVIRT__V1__SHUTTING_DOWN_EVENT__INIT;

    event.reason = (char *)reason;
    send_event(agent, "ShuttingDown", &event.base, 0);
}

void sv_event_answered(SvAgent *agent, const SvFrame *frame)
{
    gpointer key = GUINT_TO_POINTER(frame->stream);
    Pending *pending = agent->unanswered ? g_hash_table_lookup(agent->unanswered, key) : NULL;
    SvProcess *process = NULL;
    gboolean gone = FALSE;

    if (!pending)
        return;
    if (pending->handle) {
        process = sv_process_lookup(agent, pending->handle);
        if (process) {
            process->exit_acked = TRUE;
            gone = process->exec || !sv_container_lookup(agent, process->container_id);
        }
    } else if (pending->container_id) {
        SvContainer *container = sv_container_lookup(agent, pending->container_id);

        if (container && container->handle == pending->container)
            sv_container_oom_told(container, pending->kills);
    }
    g_hash_table_remove(agent->unanswered, key);
    if (gone)
        sv_process_drop(process);
    sv_power_check(agent);
}

void sv_event_reset(SvAgent *agent)
{
    if (agent->unanswered)
        g_hash_table_remove_all(agent->unanswered);
}

static gboolean is_of_handle(gpointer key, gpointer value, gpointer user_data)
{
    return ((Pending *)value)->handle == GPOINTER_TO_UINT(user_data);
}

void sv_event_forget_process(SvAgent *agent, guint32 handle)
{
    if (agent->unanswered)
        g_hash_table_foreach_remove(agent->unanswered, is_of_handle, GUINT_TO_POINTER(handle));
}
