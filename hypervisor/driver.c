/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "hypervisor/libvirt-priv.h"

#include <libvirt/virterror.h>
#include <libxml/parser.h>
#include <malloc.h>
#include <string.h>

#define MAX_ARENAS 2 /* each thread's own arena would cost more than what a thread allocates */

SvSink *sv_sink_ref(SvSink *sink)
{
    g_atomic_ref_count_inc(&sink->refs);
    return sink;
}

void sv_sink_unref(gpointer sink)
{
    if (g_atomic_ref_count_dec(&((SvSink *)sink)->refs))
        g_free(sink);
}

void sv_libvirt_emit(SvLibvirt *lv, SvHvEventType type, SvHvEnd end, const char *alias)
{
    SvHvEvent event = {.type = type, .end = end, .alias = alias};
    lv->func(&lv->hv, &event, lv->user_data); /* may free lv */
}

SvCall *sv_call_new(SvLibvirt *lv, const char *what, SvCallFunc func, char *text)
{
    SvCall *call = g_new0(SvCall, 1);
    call->lv = lv;
    call->what = what;
    call->func = func;
    call->sink = sv_sink_ref(lv->sink);
    call->uri = g_strdup(lv->config->uri);
    call->uuid = g_strdup(lv->uuid);
    call->name = g_strdup(lv->name);
    call->text = text;
    call->domain_id = -1;
    return call;
}

static void call_free(gpointer data)
{
    SvCall *call = data;
    sv_sink_unref(call->sink);
    g_free(call->uri);
    g_free(call->uuid);
    g_free(call->name);
    g_free(call->text);
    g_free(call->serial);
    g_clear_pointer(&call->status.aliases, g_ptr_array_unref);
    g_free(call);
}

/* In the thread. */
static gboolean call_run(SvJob *job, gpointer data, GError **error)
{
    SvCall *call = data;
    gboolean ok = sv_job_is_abandoned(job) ? FALSE : call->func(call, error);
    if (call->link.conn == NULL)
        return ok;
    if (sv_job_is_abandoned(job) && virConnectIsAlive(call->link.conn) == 1)
        virConnectSetKeepAlive(call->link.conn, -1, 0); /* it did return, see suspect */
    virConnectClose(call->link.conn);
    return ok;
}

static void call_done(gpointer data, const GError *error)
{
    SvCall *call = data;
    SvLibvirt *lv = call->lv;
    g_queue_remove(&lv->parked, call);
    if (sv_error_is(error, SV_ERR_TIMEOUT))
        sv_connection_suspect(lv);
    else if (error == NULL)
        sv_connection_trust(lv);
    /* of another connection when that one was lost meanwhile; its end removes them */
    if (call->registered && error == NULL && call->link.conn == lv->link.conn)
        memcpy(lv->link.callbacks, call->link.callbacks, sizeof lv->link.callbacks);
    if (call->domain_id >= 0 && error == NULL)
        lv->domain_id = call->domain_id;

    if (call->internal_done != NULL)
        call->internal_done(call, error);
    else if (call->status_done != NULL)
        call->status_done(&lv->hv, error == NULL ? &call->status : NULL, error, call->user_data);
    else if (call->done != NULL)
        call->done(&lv->hv, error, call->user_data);
}

/* Gives the call a reference of its own. */
static void start_call(SvLibvirt *lv, SvCall *call)
{
    call->link = lv->link;
    virConnectRef(call->link.conn);
    sv_job_start(call->job);
}

void sv_call_go(SvCall *call, SvLane lane, guint deadline_ms)
{
    SvLibvirt *lv = call->lv;
    SvJobSpec spec = {.what = call->what,
        .lane = lane,
        .deadline_ms = deadline_ms,
        .func = call_run,
        .done = call_done,
        .free = call_free};
    call->job = sv_job_new(lv->worker, &spec, call);
    if (lv->link.conn != NULL)
        start_call(lv, call);
    else
        g_queue_push_tail(&lv->parked, call);
}

void sv_call_drop(SvCall *call)
{
    g_queue_remove(&call->lv->parked, call);
    sv_job_drop(call->job);
}

void sv_call_start_parked(SvLibvirt *lv)
{
    SvCall *call = NULL;
    while (lv->link.conn != NULL && (call = g_queue_pop_head(&lv->parked)) != NULL)
        start_call(lv, call);
}

static gboolean libvirt_is_connected(SvHv *hv)
{
    return ((SvLibvirt *)hv)->link.conn != NULL;
}

static void libvirt_free(SvHv *hv)
{
    if (hv == NULL)
        return;
    SvLibvirt *lv = (SvLibvirt *)hv;
    lv->sink->owner = NULL;
    g_list_free_full(g_steal_pointer(&lv->destroys), sv_destroy_free);
    sv_worker_free(lv->worker);
    g_queue_clear(&lv->parked);
    sv_connection_drop(lv);
    sv_sink_unref(lv->sink);
    sv_config_unref(lv->config);
    g_free(lv->uuid);
    g_free(lv->name);
    g_free(lv);
}

static const SvHvOps libvirt_ops = {
    .connect = sv_libvirt_connect,
    .start = sv_libvirt_start,
    .status = sv_libvirt_status,
    .attach = sv_libvirt_attach,
    .detach = sv_libvirt_detach,
    .destroy = sv_libvirt_destroy,
    .resume = sv_libvirt_resume,
    .set_metadata = sv_libvirt_set_metadata,
    .set_vcpus = sv_libvirt_set_vcpus,
    .set_memory = sv_libvirt_set_memory,
    .share_pid = sv_libvirt_share_pid,
    .is_connected = libvirt_is_connected,
    .free = libvirt_free,
};

static void ignore_error(void *unused, virErrorPtr error)
{
}

/* Each step does nothing when it was done before. */
void sv_libvirt_init(void)
{
    mallopt(M_ARENA_MAX, MAX_ARENAS);
    xmlInitParser();
    virInitialize();
    virEventRegisterDefaultImpl();
    virSetErrorFunc(NULL, ignore_error); /* else each error goes to stderr */
}

SvHv *sv_libvirt_new(const SvConfig *config, const char *uuid, const char *name, SvHvEventFunc func,
    gpointer user_data)
{
    g_return_val_if_fail(config != NULL && uuid != NULL && name != NULL && func != NULL, NULL);
    sv_libvirt_init();
    SvLibvirt *lv = g_new0(SvLibvirt, 1);
    lv->hv.ops = &libvirt_ops;
    lv->config = sv_config_ref(config);
    lv->uuid = g_strdup(uuid);
    lv->name = g_strdup(name);
    lv->func = func;
    lv->user_data = user_data;
    lv->worker = sv_worker_new();
    lv->sink = g_new0(SvSink, 1);
    g_atomic_ref_count_init(&lv->sink->refs);
    lv->sink->owner = lv;
    lv->domain_id = -1;
    g_queue_init(&lv->parked);
    for (guint i = 0; i < SV_N_CALLBACKS; i++)
        lv->link.callbacks[i] = -1;
    return &lv->hv;
}
