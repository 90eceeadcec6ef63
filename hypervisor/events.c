/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libvirt's events of our domain. They are registered for it alone: with one monitor per pod, each
 * would else wake up for the events of all pods. Callbacks come on the default main context. */
#include <config.h>

#include "hypervisor/libvirt-priv.h"

#define SUSPEND_CHECK_MS 5000

/* What the domain ended with; @host_shutdown: a preceding shutdown came from outside the guest. */
static SvHvEnd end_of(int detail, gboolean host_shutdown)
{
    switch (detail) {
    case VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN:
        /* SIGTERM to QEMU looks like this, with a shutdown "by the host" before it */
        return host_shutdown ? SV_HV_END_DESTROYED : SV_HV_END_SHUTDOWN;
    case VIR_DOMAIN_EVENT_STOPPED_DESTROYED:
        return SV_HV_END_DESTROYED;
    case VIR_DOMAIN_EVENT_STOPPED_CRASHED:
        return SV_HV_END_CRASHED;
    case VIR_DOMAIN_EVENT_STOPPED_FAILED:
        return SV_HV_END_FAILED;
    default: /* migrated, saved, snapshot: not by us, but gone it is */
        return SV_HV_END_UNKNOWN;
    }
}

/* In the thread. call->number becomes 1 when an administrator suspended the domain. */
static gboolean check_suspended(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom = sv_domain_lookup(call->link.conn, call->uuid, error);
    int state = 0, reason = 0;
    if (dom == NULL || virDomainGetState(dom, &state, &reason, 0) < 0)
        return TRUE;
    call->status.suspended = state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_USER;
    return TRUE;
}

static void suspended_checked(SvCall *call, const GError *error)
{
    SvLibvirt *lv = call->lv;
    if (error == NULL && call->status.suspended && call->number == lv->suspend_serial)
        sv_libvirt_emit(lv, SV_HV_EVENT_SUSPENDED, SV_HV_END_UNKNOWN, NULL);
}

/* The event looks the same for an administrator's suspend, a snapshot, a dump and a panic: the state's
 * reason tells. What happens to the domain until it is known makes the answer stale. */
static void on_paused(SvLibvirt *lv)
{
    SvCall *call = sv_call_new(lv, "look at the suspended domain", check_suspended, NULL);
    call->number = ++lv->suspend_serial;
    call->internal_done = suspended_checked;
    sv_call_go(call, SV_LANE_QUERY, SUSPEND_CHECK_MS);
}

static int on_life_cycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *opaque)
{
    SvLibvirt *lv = ((SvSink *)opaque)->owner;
    if (lv == NULL || lv->link.conn != conn)
        return 0;
    g_debug("life cycle event %d/%d", event, detail);
    switch (event) {
    case VIR_DOMAIN_EVENT_SUSPENDED:
        if (detail == VIR_DOMAIN_EVENT_SUSPENDED_PAUSED)
            on_paused(lv);
        break;
    case VIR_DOMAIN_EVENT_RESUMED:
        lv->suspend_serial++;
        sv_libvirt_emit(lv, SV_HV_EVENT_RESUMED, SV_HV_END_UNKNOWN, NULL);
        break;
    case VIR_DOMAIN_EVENT_SHUTDOWN:
        lv->host_shutdown = detail == VIR_DOMAIN_EVENT_SHUTDOWN_HOST;
        sv_libvirt_emit(lv, SV_HV_EVENT_SHUTTING_DOWN,
            lv->host_shutdown ? SV_HV_END_DESTROYED : SV_HV_END_SHUTDOWN, NULL);
        break;
    case VIR_DOMAIN_EVENT_CRASHED:
        lv->suspend_serial++;
        sv_libvirt_emit(lv, SV_HV_EVENT_PANICKED, SV_HV_END_UNKNOWN, NULL);
        break;
    case VIR_DOMAIN_EVENT_STOPPED: {
        SvHvEnd end = end_of(detail, lv->host_shutdown);
        lv->suspend_serial++;
        lv->host_shutdown = FALSE;
        lv->domain_id = -1;
        sv_libvirt_emit(lv, SV_HV_EVENT_STOPPED, end, NULL);
        break;
    }
    case VIR_DOMAIN_EVENT_DEFINED:
        sv_libvirt_undefine(lv);
        break;
    default: /* started, undefined, pmsuspended: nothing of ours */
        break;
    }
    return 0;
}

static void on_device(SvSink *sink, virConnectPtr conn, SvHvEventType type, const char *alias)
{
    SvLibvirt *lv = sink->owner;
    if (lv != NULL && lv->link.conn == conn)
        sv_libvirt_emit(lv, type, SV_HV_END_UNKNOWN, alias);
}

static void on_removed(virConnectPtr conn, virDomainPtr dom, const char *alias, void *opaque)
{
    on_device(opaque, conn, SV_HV_EVENT_DEVICE_REMOVED, alias);
}

static void on_removal_failed(virConnectPtr conn, virDomainPtr dom, const char *alias, void *opaque)
{
    on_device(opaque, conn, SV_HV_EVENT_REMOVAL_FAILED, alias);
}

gboolean sv_events_register(SvLink *link, virDomainPtr dom, SvSink *sink, GError **error)
{
    static const int ids[SV_N_CALLBACKS] = {VIR_DOMAIN_EVENT_ID_LIFECYCLE,
        VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED};
    const virConnectDomainEventGenericCallback functions[SV_N_CALLBACKS] = {
        VIR_DOMAIN_EVENT_CALLBACK(on_life_cycle), VIR_DOMAIN_EVENT_CALLBACK(on_removed),
        VIR_DOMAIN_EVENT_CALLBACK(on_removal_failed)};
    for (guint i = 0; i < SV_N_CALLBACKS; i++) {
        if (link->callbacks[i] >= 0)
            continue; /* of an earlier domain with this uuid: they go by uuid */
        link->callbacks[i] = virConnectDomainEventRegisterAny(
            link->conn, dom, ids[i], functions[i], sv_sink_ref(sink), sv_sink_unref);
        if (link->callbacks[i] < 0) {
            sv_hv_set_libvirt_error(error, "register for events");
            sv_sink_unref(sink);
            return FALSE;
        }
    }
    return TRUE;
}

void sv_events_unregister(SvLink *link)
{
    for (guint i = 0; i < SV_N_CALLBACKS; i++) {
        if (link->callbacks[i] >= 0)
            virConnectDomainEventDeregisterAny(link->conn, link->callbacks[i]);
        link->callbacks[i] = -1;
    }
}
