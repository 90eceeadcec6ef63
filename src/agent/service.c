/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>
#include "agent/service.h"
#include "agent/block.h"
#include "agent/container.h"
#include "agent/event.h"
#include "agent/node.h"
#include "agent/forward.h"
#include "agent/hotplug.h"
#include "agent/late.h"
#include "agent/network.h"
#include "agent/power.h"
#include "agent/setup.h"
#include "rpc/message.h"
#include "rpc/sandvirt.pb-c.h"
#include <sys/utsname.h>

static void call_free(SvCall *call)
{
    if (call->message)
        sv_message_free(call->message);
    g_free(call);
}

gboolean sv_call_is_current(const SvCall *call)
{
    return call->session == sv_channel_session(call->agent->channel);
}

void sv_call_reply(SvCall *call, const ProtobufCMessage *message)
{
    if (sv_call_is_current(call))
        sv_channel_send(call->agent->channel, sv_message_response(call->stream, message));
    call_free(call);
}

void sv_call_fail(SvCall *call, const GError *error)
{
    g_info("request %u failed: %s", call->stream, error->message);
    if (sv_call_is_current(call))
        sv_channel_send(call->agent->channel, sv_message_error(call->stream, error));
    call_free(call);
}

/* ---- methods without a file of their own */

static Sandvirt__V1__ProcessInfo *describe(SvProcess *process)
{
    static const Sandvirt__V1__ProcessState states[] = {
        [SV_PROCESS_CREATING] = SANDVIRT__V1__PROCESS_STATE__PROCESS_UNKNOWN,
        [SV_PROCESS_CREATED] = SANDVIRT__V1__PROCESS_STATE__PROCESS_CREATED,
        [SV_PROCESS_RUNNING] = SANDVIRT__V1__PROCESS_STATE__PROCESS_RUNNING,
        [SV_PROCESS_EXITED] = SANDVIRT__V1__PROCESS_STATE__PROCESS_EXITED,
    };
    Sandvirt__V1__ProcessInfo *info = g_new0(Sandvirt__V1__ProcessInfo, 1);
    SvContainer *container = sv_container_lookup(process->agent, process->container_id);

    sandvirt__v1__process_info__init(info);
    info->handle = process->handle;
    info->container_id = process->container_id;
    info->exec = process->exec;
    info->state = states[process->state];
    info->pid = (guint32)process->pid;
    info->exit_code = process->exit_code;
    info->exit_time_ns = process->exit_time_ns;
    info->oom = process->oom;
    if (process->out[0])
        info->stdout_acked = process->out[0]->backlog.base;
    if (process->out[1])
        info->stderr_acked = process->out[1]->backlog.base;
    if (process->in)
        info->stdin_received = sv_input_received(process->in);
    if (container && !process->exec) {
        g_autofree char *text = sv_cgroup_read(container->cgroup, "cgroup.freeze");

        info->frozen = text && *text == '1';
    }
    return info;
}

static void hello(SvCall *call)
{
    SvAgent *agent = call->agent;
    Sandvirt__V1__HelloRequest *request = (Sandvirt__V1__HelloRequest *)call->message;
    Sandvirt__V1__HelloResponse response = SANDVIRT__V1__HELLO_RESPONSE__INIT;
    g_autoptr(GPtrArray) infos = g_ptr_array_new_with_free_func(g_free);
    struct utsname name;
    GHashTableIter iter;
    gpointer value;

    sv_setup_clock(request->time_ns);
    uname(&name);
    response.version = (char *)PACKAGE_VERSION;
    response.kernel = name.release;
    response.set_up = agent->set_up;
    response.uptime_ns = agent->start_ns;
    response.ready_ns = agent->ready_ns;
    g_hash_table_iter_init(&iter, agent->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((SvProcess *)value)->state != SV_PROCESS_CREATING)
            g_ptr_array_add(infos, describe(value));
    response.n_processes = infos->len;
    response.processes = (Sandvirt__V1__ProcessInfo **)infos->pdata;
    sv_call_reply(call, &response.base);

    agent->greeted = TRUE;
    sv_late_begin(agent);
    g_hash_table_iter_init(&iter, agent->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        sv_process_greet(value);
    g_hash_table_iter_init(&iter, agent->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        sv_container_oom_reset(value);
}

static SvProcess *find_process(SvCall *call, guint32 handle)
{
    SvProcess *process = sv_process_lookup(call->agent, handle);
    g_autoptr(GError) error = NULL;

    if (process && process->state != SV_PROCESS_CREATING)
        return process;
    error = g_error_new(SV_AGENT_ERROR, SV_ERR_NOT_FOUND, "no process has handle %u", handle);
    sv_call_fail(call, error);
    return NULL;
}

static void attach(SvCall *call)
{
    Sandvirt__V1__StreamRequest *request = (Sandvirt__V1__StreamRequest *)call->message;
    Sandvirt__V1__StreamResponse response = SANDVIRT__V1__STREAM_RESPONSE__INIT;
    SvProcess *process = find_process(call, request->handle);
    guint64 offsets[2] = {request->stdout_offset, request->stderr_offset};

    if (!process)
        return;
    if (process->in)
        response.stdin_received = sv_input_received(process->in);
    sv_call_reply(call, &response.base);
    sv_process_attach(process, offsets[0], offsets[1]);
}

static void resize(SvCall *call)
{
    Sandvirt__V1__ResizeRequest *request = (Sandvirt__V1__ResizeRequest *)call->message;
    SvProcess *process = find_process(call, request->handle);
    g_autoptr(GError) error = NULL;

    if (!process)
        return;
    if (sv_process_resize(process, request->rows, request->cols, &error))
        sv_call_reply(call, NULL);
    else
        sv_call_fail(call, error);
}

/* Unknown: the host asks twice when its monitor was killed in between. */
static void forget(SvCall *call)
{
    Sandvirt__V1__HandleRequest *request = (Sandvirt__V1__HandleRequest *)call->message;
    SvProcess *process = sv_process_lookup(call->agent, request->handle);
    g_autoptr(GError) error = NULL;

    if (process && process->state != SV_PROCESS_EXITED) {
        error =
            g_error_new(SV_AGENT_ERROR, SV_ERR_STATE, "process %u has not exited", request->handle);
        sv_call_fail(call, error);
        return;
    }
    if (process)
        sv_process_drop(process);
    sv_call_reply(call, NULL);
}

static void set_time(SvCall *call)
{
    sv_setup_clock(((Sandvirt__V1__TimeRequest *)call->message)->time_ns);
    sv_call_reply(call, NULL);
}

static void shut_down(SvCall *call)
{
    SvAgent *agent = call->agent;
    guint32 grace_ms = ((Sandvirt__V1__ShutdownRequest *)call->message)->grace_ms;

    sv_call_reply(call, NULL);
    sv_power_shut_down(agent, "asked by the host", grace_ms);
}

/* ---- dispatch */

typedef struct {
    const char *name;
    const ProtobufCMessageDescriptor *type;
    void (*func)(SvCall *call);
    gboolean late; /* needs the late modules */
} Method;

static const Method methods[] = {
    {"Hello", &sandvirt__v1__hello_request__descriptor, hello, FALSE},
    {"Setup", &sandvirt__v1__setup_request__descriptor, sv_setup_sandbox, TRUE},
    {"AddSharedMemory", &sandvirt__v1__shared_memory__descriptor, sv_setup_shared_memory, FALSE},
    {"WaitBlock", &sandvirt__v1__wait_block_request__descriptor, sv_block_wait_call, TRUE},
    {"Create", &sandvirt__v1__create_request__descriptor, sv_container_create, TRUE},
    {"Start", &sandvirt__v1__container_request__descriptor, sv_container_start, FALSE},
    {"Pause", &sandvirt__v1__container_request__descriptor, sv_container_pause, FALSE},
    {"Resume", &sandvirt__v1__container_request__descriptor, sv_container_resume, FALSE},
    {"Exec", &sandvirt__v1__exec_request__descriptor, sv_container_exec, FALSE},
    {"Signal", &sandvirt__v1__signal_request__descriptor, sv_container_signal, FALSE},
    {"Remove", &sandvirt__v1__remove_request__descriptor, sv_container_remove, FALSE},
    {"Forget", &sandvirt__v1__handle_request__descriptor, forget, FALSE},
    {"Attach", &sandvirt__v1__stream_request__descriptor, attach, FALSE},
    {"Resize", &sandvirt__v1__resize_request__descriptor, resize, FALSE},
    {"Update", &sandvirt__v1__update_request__descriptor, sv_container_update, FALSE},
    {"AddNode", &sandvirt__v1__node_request__descriptor, sv_node_add_call, FALSE},
    {"RemoveNode", &sandvirt__v1__node_request__descriptor, sv_node_remove_call, FALSE},
    {"Stats", &sandvirt__v1__stats_request__descriptor, sv_container_stats, FALSE},
    {"Ps", &sandvirt__v1__ps_request__descriptor, sv_container_ps, FALSE},
    {"Online", &sandvirt__v1__online_request__descriptor, sv_hotplug_online, TRUE},
    {"ConfigureNetwork", &sandvirt__v1__network_request__descriptor, sv_network_configure, TRUE},
    {"Forward", &sandvirt__v1__forward_request__descriptor, sv_forward_connect, FALSE},
    {"Time", &sandvirt__v1__time_request__descriptor, set_time, FALSE},
    {"Shutdown", &sandvirt__v1__shutdown_request__descriptor, shut_down, FALSE},
};

/* When the request came, its reading and taking apart are the guest's work too. */
static gint64 woken_us(void)
{
    GSource *source = g_main_current_source();

    return source ? g_source_get_time(source) : g_get_monotonic_time();
}

static void dispatch(SvAgent *agent, const SvRequest *request)
{
    SvCall *call = g_new0(SvCall, 1);
    g_autoptr(GError) error = NULL;

    call->agent = agent;
    call->session = sv_channel_session(agent->channel);
    call->stream = request->stream;
    call->began_us = woken_us();
    g_debug("request %u: %s", request->stream, request->method);
    for (gsize i = 0; i < G_N_ELEMENTS(methods); i++) {
        if (!g_str_equal(request->method, methods[i].name) ||
            !g_str_equal(request->service, SV_SERVICE_AGENT))
            continue;
        call->message =
            sv_message_unpack(methods[i].type, request->payload, request->payload_len, &error);
        if (!call->message)
            break;
        if (methods[i].func != hello)
            sv_late_finish(agent, methods[i].late);
        methods[i].func(call);
        return;
    }
    if (!error)
        error = g_error_new(SV_AGENT_ERROR, SV_ERR_UNSUPPORTED, "no method %s of %s",
            request->method, request->service);
    sv_call_fail(call, error);
}

static void on_synced(const guint8 *random, gsize len, gpointer user_data)
{
    SvAgent *agent = user_data;
    GHashTableIter iter;
    gpointer value;

    sv_setup_random(random, len);
    agent->greeted = FALSE;
    sv_event_reset(agent);
    sv_forward_reset(agent);
    g_hash_table_iter_init(&iter, agent->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        sv_process_reset(value);
}

static void on_frame(const SvFrame *frame, gpointer user_data)
{
    SvAgent *agent = user_data;
    SvProcess *process;
    g_autoptr(GError) error = NULL;
    SvRequest request;

    switch (frame->type) {
    case SV_FRAME_REQUEST:
        if (!sv_request_parse(frame, &request, &error)) {
            sv_channel_send(agent->channel, sv_message_error(frame->stream, error));
            return;
        }
        dispatch(agent, &request);
        sv_request_clear(&request);
        break;
    case SV_FRAME_RESPONSE:
        sv_event_answered(agent, frame);
        break;
    default:
        process = sv_process_lookup(agent, frame->stream);
        if (process && frame->type == SV_FRAME_DATA)
            sv_process_take_data(process, frame);
        else if (process)
            sv_process_take_ack(process, frame);
        else
            sv_forward_frame(agent, frame);
        break;
    }
}

const SvChannelFuncs sv_service_funcs = {on_synced, on_frame};
