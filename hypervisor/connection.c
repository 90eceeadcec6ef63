/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connection to the daemon: opened in a thread, told dead by its close callback, opened again. */
#include <config.h>

#include "hypervisor/libvirt-priv.h"

#include <libvirt/virterror.h>

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 5000
#define KEEPALIVE_S 1
#define KEEPALIVE_COUNT 3

/* An attempt to open. */
typedef struct {
    SvSink *sink;
    char *uri, *uuid;
    SvLink link;
    int domain_id;
} Opening;

static gboolean try_open(SvLibvirt *lv);
static void on_close(virConnectPtr conn, int reason, void *opaque);

/* In a thread: calls the daemon. */
static void link_close(SvLink *link)
{
    if (link->conn == NULL)
        return;
    /* each callback holds the connection */
    sv_events_unregister(link);
    if (link->has_close)
        virConnectUnregisterCloseCallback(link->conn, on_close);
    g_clear_pointer(&link->conn, virConnectClose);
}

static gpointer close_thread(gpointer data)
{
    link_close(data);
    g_free(data);
    return NULL;
}

void sv_connection_drop(SvLibvirt *lv)
{
    g_clear_handle_id(&lv->reconnect_timer, g_source_remove);
    lv->keepalive = FALSE;
    if (lv->link.conn == NULL)
        return;
    SvLink *link = g_new(SvLink, 1);
    *link = lv->link;
    lv->link = (SvLink){.callbacks = {-1, -1, -1}};
    g_thread_unref(g_thread_new("sv-hv-close", close_thread, link));
}

void sv_connection_suspect(SvLibvirt *lv)
{
    if (lv->link.conn == NULL || lv->keepalive)
        return;
    lv->keepalive = virConnectSetKeepAlive(lv->link.conn, KEEPALIVE_S, KEEPALIVE_COUNT) == 0;
}

void sv_connection_trust(SvLibvirt *lv)
{
    if (lv->link.conn == NULL || !lv->keepalive)
        return;
    virConnectSetKeepAlive(lv->link.conn, -1, 0);
    lv->keepalive = FALSE;
}

static gboolean reconnect(gpointer data)
{
    SvLibvirt *lv = data;
    lv->reconnect_timer = 0;
    try_open(lv);
    return G_SOURCE_REMOVE;
}

static void reconnect_later(SvLibvirt *lv)
{
    if (lv->reconnect_timer == 0)
        lv->reconnect_timer = g_timeout_add(lv->backoff_ms, reconnect, lv);
    lv->backoff_ms = MIN(lv->backoff_ms * 2, BACKOFF_MAX_MS);
}

typedef struct {
    SvSink *sink;
    virConnectPtr conn; /* only compared */
} Loss;

static void loss_free(gpointer data)
{
    Loss *loss = data;
    sv_sink_unref(loss->sink);
    g_free(loss);
}

static gboolean on_loss(gpointer data)
{
    Loss *loss = data;
    SvLibvirt *lv = loss->sink->owner;
    if (lv == NULL || lv->link.conn != loss->conn)
        return G_SOURCE_REMOVE;
    g_message("the connection to libvirt is lost, reconnecting");
    sv_connection_drop(lv);
    lv->backoff_ms = BACKOFF_FIRST_MS;
    reconnect_later(lv);
    sv_libvirt_emit(lv, SV_HV_EVENT_DISCONNECTED, SV_HV_END_UNKNOWN, NULL);
    return G_SOURCE_REMOVE;
}

/* In whichever thread noticed, with libvirt's locks held. */
static void on_close(virConnectPtr conn, int reason, void *opaque)
{
    Loss *loss = g_new0(Loss, 1);
    loss->sink = sv_sink_ref(opaque);
    loss->conn = conn;
    GSource *source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, on_loss, loss, loss_free);
    g_source_attach(source, NULL);
    g_source_unref(source);
}

virConnectPtr sv_libvirt_open(const char *uri, GError **error)
{
    virConnectPtr conn = virConnectOpen(uri);
    if (conn == NULL)
        sv_hv_set_libvirt_error(error, "connect to libvirt at %s", uri);
    return conn;
}

static gboolean open_link(Opening *opening, GError **error)
{
    SvLink *link = &opening->link;
    link->conn = sv_libvirt_open(opening->uri, error);
    if (link->conn == NULL)
        return FALSE;
    /* libvirt's test driver never breaks: it takes the callback and forgets it, opaque and all */
    if (!g_str_has_prefix(opening->uri, "test:")) {
        link->has_close = virConnectRegisterCloseCallback(
                              link->conn, on_close, sv_sink_ref(opening->sink), sv_sink_unref) == 0;
        if (!link->has_close) {
            sv_hv_set_libvirt_error(error, "watch the connection to libvirt");
            sv_sink_unref(opening->sink);
            return FALSE;
        }
    }

    g_autoptr(GError) local = NULL;
    g_autoptr(AutoDomain) dom = sv_domain_lookup(link->conn, opening->uuid, &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (dom == NULL)
        return TRUE;
    opening->domain_id = (int)virDomainGetID(dom);
    return sv_events_register(link, dom, opening->sink, error);
}

/* In the thread. */
static gboolean opening_run(SvJob *job, gpointer data, GError **error)
{
    Opening *opening = data;
    if (sv_job_is_abandoned(job))
        return FALSE;
    gboolean ok = open_link(opening, error);
    if (!ok || !sv_job_commit(job)) {
        link_close(&opening->link);
        return FALSE;
    }
    return TRUE;
}

static void opening_free(gpointer data)
{
    Opening *opening = data;
    if (opening->link.conn != NULL) { /* committed, then dropped: nobody took it */
        SvLink *link = g_new(SvLink, 1);
        *link = opening->link;
        g_thread_unref(g_thread_new("sv-hv-close", close_thread, link));
    }
    sv_sink_unref(opening->sink);
    g_free(opening->uri);
    g_free(opening->uuid);
    g_free(opening);
}

static void opening_done(gpointer data, const GError *error)
{
    Opening *opening = data;
    SvLibvirt *lv = opening->sink->owner;
    SvHvDone done = lv->connect_done;
    lv->opening = NULL;
    lv->connect_done = NULL;
    g_autoptr(GError) local = error != NULL ? g_error_copy(error) : NULL;
    /* its close callback came before the connection was ours */
    if (local == NULL && opening->link.has_close && virConnectIsAlive(opening->link.conn) != 1)
        local = g_error_new_literal(SV_HV_ERROR, SV_ERR_CLOSED, "libvirt closed the connection");
    if (local == NULL) {
        lv->link = opening->link;
        opening->link.conn = NULL;
        lv->domain_id = opening->domain_id;
        sv_call_start_parked(lv);
    } else if (done == NULL) {
        g_debug("still no connection: %s", local->message);
        reconnect_later(lv);
        return;
    }
    if (done != NULL) {
        done(&lv->hv, local, lv->connect_data);
        return;
    }
    g_message("connected to libvirt again");
    sv_libvirt_emit(lv, SV_HV_EVENT_CONNECTED, SV_HV_END_UNKNOWN, NULL);
}

static gboolean try_open(SvLibvirt *lv)
{
    if (lv->opening != NULL)
        return FALSE;
    Opening *opening = g_new0(Opening, 1);
    opening->sink = sv_sink_ref(lv->sink);
    opening->uri = g_strdup(lv->config->uri);
    opening->uuid = g_strdup(lv->uuid);
    opening->domain_id = -1;
    opening->link = (SvLink){.callbacks = {-1, -1, -1}};
    SvJobSpec spec = {.what = "connect to libvirt",
        .lane = SV_LANE_QUERY,
        .deadline_ms = lv->config->connect_ms,
        .func = opening_run,
        .done = opening_done,
        .free = opening_free};
    lv->opening = sv_job_new(lv->worker, &spec, opening);
    sv_job_start(lv->opening);
    return TRUE;
}

void sv_libvirt_connect(SvHv *hv, SvHvDone done, gpointer user_data)
{
    SvLibvirt *lv = (SvLibvirt *)hv;
    g_return_if_fail(lv->link.conn == NULL && lv->opening == NULL && done != NULL);
    lv->connect_done = done;
    lv->connect_data = user_data;
    lv->backoff_ms = BACKOFF_FIRST_MS;
    try_open(lv);
}
