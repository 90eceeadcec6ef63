/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calls on our domain, but its end. Functions named do_* run in a thread. */
#include <config.h>

#include "hypervisor/libvirt-priv.h"
#include "hypervisor/xml.h"

#include <libvirt/virterror.h>
#include <string.h>

virDomainPtr sv_domain_lookup(virConnectPtr conn, const char *uuid, GError **error)
{
    g_autoptr(AutoDomain) dom = virDomainLookupByUUIDString(conn, uuid);
    if (dom == NULL) {
        if (sv_hv_last_code() != VIR_ERR_NO_DOMAIN)
            sv_hv_set_libvirt_error(error, "look up the domain");
        return NULL;
    }
    /* Never touch what is not ours, whatever its uuid is. */
    char *metadata = virDomainGetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, SV_METADATA_NS, 0);
    int code = sv_hv_last_code();
    gboolean ours = metadata != NULL;
    free(metadata);
    if (ours)
        return g_steal_pointer(&dom);
    if (code != VIR_ERR_NO_DOMAIN_METADATA && code != VIR_ERR_NO_DOMAIN)
        sv_hv_set_libvirt_error(error, "read the metadata of the domain");
    return NULL;
}

/* The same, for calls that need one. */
static virDomainPtr need_domain(SvCall *call, GError **error)
{
    g_autoptr(GError) local = NULL;
    virDomainPtr dom = sv_domain_lookup(call->link.conn, call->uuid, &local);
    if (local != NULL)
        g_propagate_prefixed_error(error, g_steal_pointer(&local), "%s: ", call->what);
    else if (dom == NULL)
        g_set_error(error, SV_HV_ERROR, SV_ERR_NOT_FOUND, "%s: domain %s does not exist",
            call->what, call->name);
    return dom;
}

static gboolean check(SvCall *call, int result, GError **error)
{
    if (result < 0)
        sv_hv_set_libvirt_error(error, "%s", call->what);
    return result >= 0;
}

static void plain_call(SvHv *hv, const char *what, SvCallFunc func, char *text, guint64 number,
    SvHvDone done, gpointer user_data)
{
    SvLibvirt *lv = (SvLibvirt *)hv;
    SvCall *call = sv_call_new(lv, what, func, text);
    call->number = number;
    call->done = done;
    call->user_data = user_data;
    sv_call_go(call, SV_LANE_CHANGE, lv->config->call_ms);
}

/* a definition that is none of ours */

void sv_domain_undefine(virDomainPtr dom)
{
    const unsigned int flags =
        VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA;
    g_autoptr(GError) error = NULL;
    if (virDomainIsPersistent(dom) != 1)
        return;
    if (virDomainUndefineFlags(dom, flags) == 0) {
        g_warning("domain %s was defined by somebody: a pod's machine is transient, the definition "
                  "is dropped",
            virDomainGetName(dom));
        return;
    }
    sv_hv_set_libvirt_error(&error, "drop the definition of domain %s", virDomainGetName(dom));
    g_warning("ignoring: %s", error->message);
}

static gboolean do_undefine(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom = sv_domain_lookup(call->link.conn, call->uuid, error);
    if (dom != NULL)
        sv_domain_undefine(dom);
    return dom != NULL;
}

static void ignore(SvCall *call, const GError *error)
{
    if (error != NULL)
        g_info("ignoring: %s: %s", call->what, error->message);
}

void sv_libvirt_undefine(SvLibvirt *lv)
{
    SvCall *call = sv_call_new(lv, "drop the definition", do_undefine, NULL);
    call->internal_done = ignore;
    sv_call_go(call, SV_LANE_CHANGE, lv->config->call_ms);
}

/* start */

static gboolean name_is_taken(SvCall *call)
{
    g_autoptr(AutoDomain) by_name = virDomainLookupByName(call->link.conn, call->name);
    g_autoptr(AutoDomain) by_uuid = virDomainLookupByUUIDString(call->link.conn, call->uuid);
    return by_name != NULL || by_uuid != NULL;
}

/* Events of the time before the registration are lost: ask once. */
static gboolean still_runs(virDomainPtr dom)
{
    int state = 0;
    if (virDomainGetState(dom, &state, NULL, 0) < 0)
        return FALSE;
    return state != VIR_DOMAIN_SHUTOFF && state != VIR_DOMAIN_CRASHED;
}

static gboolean do_start(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom =
        virDomainCreateXML(call->link.conn, call->text, VIR_DOMAIN_START_VALIDATE);
    if (dom == NULL) {
        sv_hv_set_libvirt_error(error, "%s", call->what);
        if (error != NULL && *error != NULL && name_is_taken(call))
            (*error)->code = SV_ERR_EXISTS;
        return FALSE;
    }
    gboolean registered = call->link.callbacks[0] >= 0;
    gboolean ok = sv_events_register(&call->link, dom, call->sink, error);
    if (ok && !still_runs(dom)) {
        g_set_error(error, SV_HV_ERROR, SV_ERR_NOT_RUNNING, "%s: it ended right away", call->what);
        ok = FALSE;
    }
    if (ok && sv_job_commit(call->job)) {
        call->registered = TRUE;
        call->domain_id = (int)virDomainGetID(dom);
        return TRUE;
    }
    virDomainDestroy(dom);
    if (!registered)
        sv_events_unregister(&call->link);
    return FALSE;
}

static void start_done(SvCall *call, const GError *error)
{
    call->lv->starting = NULL;
    call->done(&call->lv->hv, error, call->user_data);
}

void sv_libvirt_start(SvHv *hv, const SvMachine *machine, SvHvDone done, gpointer user_data)
{
    SvLibvirt *lv = (SvLibvirt *)hv;
    /* without metadata it would not be ours */
    g_return_if_fail(machine->metadata != NULL && lv->starting == NULL);
    SvCall *call = sv_call_new(lv, "start the machine", do_start, sv_xml_domain(machine));
    call->done = done;
    call->internal_done = start_done;
    call->user_data = user_data;
    lv->starting = call;
    /* a minute where QEMU's user cannot open /dev/kvm: libvirt probes QEMU again and again */
    sv_call_go(call, SV_LANE_CHANGE, lv->config->call_ms + lv->config->boot_ms);
}

/* status */

static gboolean do_status(SvCall *call, GError **error)
{
    SvHvStatus *status = &call->status;
    status->id = -1;
    status->aliases = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) local = NULL;
    g_autoptr(AutoDomain) dom = sv_domain_lookup(call->link.conn, call->uuid, &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    char *text = dom != NULL ? virDomainGetXMLDesc(dom, 0) : NULL;
    int state = 0, reason = 0;
    if (text == NULL || virDomainGetState(dom, &state, &reason, 0) < 0) {
        int code = sv_hv_last_code();
        if (dom != NULL && code != VIR_ERR_NO_DOMAIN)
            sv_hv_set_libvirt_error(error, "%s", call->what);
        free(text);
        return dom == NULL || code == VIR_ERR_NO_DOMAIN;
    }
    g_autoptr(SvXmlDomain) domain = sv_xml_read_domain(text, strlen(text), error);
    free(text);
    if (domain == NULL)
        return FALSE;
    g_ptr_array_unref(status->aliases);
    status->aliases = g_steal_pointer(&domain->aliases);
    status->exists = TRUE;
    status->running = state == VIR_DOMAIN_RUNNING || state == VIR_DOMAIN_BLOCKED;
    status->suspended = state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_USER;
    status->id = (int)virDomainGetID(dom);
    call->domain_id = status->id;
    sv_domain_undefine(dom);
    return TRUE;
}

void sv_libvirt_status(SvHv *hv, SvHvStatusDone done, gpointer user_data)
{
    SvLibvirt *lv = (SvLibvirt *)hv;
    SvCall *call = sv_call_new(lv, "look at the machine", do_status, NULL);
    call->status_done = done;
    call->user_data = user_data;
    sv_call_go(call, SV_LANE_QUERY, lv->config->call_ms);
}

/* devices */

/* NULL: libvirt does not tell. */
static SvXmlDomain *look_at(virDomainPtr dom)
{
    char *text = virDomainGetXMLDesc(dom, 0);
    SvXmlDomain *domain = text != NULL ? sv_xml_read_domain(text, strlen(text), NULL) : NULL;
    free(text);
    return domain;
}

/* The guest tells disks apart by their serials, and whoever may call libvirt can have given ours to another. */
static gboolean check_serial(virDomainPtr dom, const char *serial, GError **error)
{
    g_autoptr(SvXmlDomain) domain = serial != NULL ? look_at(dom) : NULL;
    if (domain == NULL ||
        !g_ptr_array_find_with_equal_func(domain->serials, serial, g_str_equal, NULL))
        return TRUE;
    g_set_error(
        error, SV_HV_ERROR, SV_ERR_EXISTS, "another disk of the machine has its serial %s", serial);
    return FALSE;
}

static gboolean do_attach(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom = need_domain(call, error);
    if (dom == NULL || !check_serial(dom, call->serial, error))
        return FALSE;
    if (virDomainAttachDeviceFlags(dom, call->text, VIR_DOMAIN_AFFECT_LIVE) == 0)
        return TRUE;
    virErrorPtr last = virGetLastError();
    gboolean full = last != NULL && last->message != NULL &&
        strstr(last->message, "No more available PCI slots") != NULL;
    sv_hv_set_libvirt_error(error, "%s", call->what);
    if (full && error != NULL && *error != NULL)
        (*error)->code = SV_ERR_LIMIT;
    return FALSE;
}

void sv_libvirt_attach(SvHv *hv, const SvDevice *device, SvHvDone done, gpointer user_data)
{
    SvLibvirt *lv = (SvLibvirt *)hv;
    SvCall *call = sv_call_new(lv, "attach a device", do_attach, sv_xml_device(device));
    call->serial = device->type == SV_DEVICE_BLOCK ? g_strdup(device->u.block->serial) : NULL;
    call->done = done;
    call->user_data = user_data;
    sv_call_go(call, SV_LANE_CHANGE, lv->config->call_ms);
}

static gboolean has_alias(virDomainPtr dom, const char *alias)
{
    g_autoptr(SvXmlDomain) domain = look_at(dom);
    return domain == NULL ||
        g_ptr_array_find_with_equal_func(domain->aliases, alias, g_str_equal, NULL);
}

static gboolean do_detach(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom = need_domain(call, error);
    if (dom == NULL)
        return FALSE;
    if (virDomainDetachDeviceAlias(dom, call->text, VIR_DOMAIN_AFFECT_LIVE) == 0)
        return TRUE;
    virErrorPtr last = virGetLastError();
    /* asked for twice: the event is still to come */
    if (last != NULL && last->message != NULL && strstr(last->message, "process of unplug") != NULL)
        return TRUE;
    sv_hv_set_libvirt_error(error, "%s %s", call->what, call->text);
    /* libvirt calls an unknown alias an internal error */
    if (error != NULL && *error != NULL && !has_alias(dom, call->text))
        (*error)->code = SV_ERR_NOT_FOUND;
    return FALSE;
}

void sv_libvirt_detach(SvHv *hv, const char *alias, SvHvDone done, gpointer user_data)
{
    plain_call(hv, "detach the device", do_detach, g_strdup(alias), 0, done, user_data);
}

/* the rest */

static gboolean do_resume(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom = need_domain(call, error);
    if (dom == NULL)
        return FALSE;
    int state = 0;
    if (virDomainGetState(dom, &state, NULL, 0) == 0 && state == VIR_DOMAIN_RUNNING)
        return TRUE;
    return check(call, virDomainResume(dom), error);
}

void sv_libvirt_resume(SvHv *hv, SvHvDone done, gpointer user_data)
{
    plain_call(hv, "resume the machine", do_resume, NULL, 0, done, user_data);
}

static gboolean do_set_metadata(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom = need_domain(call, error);
    return dom != NULL &&
        check(call,
            virDomainSetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, call->text,
                SV_XML_METADATA_PREFIX, SV_METADATA_NS, VIR_DOMAIN_AFFECT_LIVE),
            error);
}

void sv_libvirt_set_metadata(
    SvHv *hv, const SvMetadata *metadata, SvHvDone done, gpointer user_data)
{
    plain_call(
        hv, "write the metadata", do_set_metadata, sv_xml_metadata(metadata), 0, done, user_data);
}

static gboolean do_set_vcpus(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom = need_domain(call, error);
    return dom != NULL &&
        check(call, virDomainSetVcpusFlags(dom, (unsigned)call->number, VIR_DOMAIN_AFFECT_LIVE),
            error);
}

void sv_libvirt_set_vcpus(SvHv *hv, guint vcpus, SvHvDone done, gpointer user_data)
{
    plain_call(hv, "set the number of CPUs", do_set_vcpus, NULL, vcpus, done, user_data);
}

static gboolean do_set_memory(SvCall *call, GError **error)
{
    g_autoptr(AutoDomain) dom = need_domain(call, error);
    char *text = dom != NULL ? virDomainGetXMLDesc(dom, 0) : NULL;
    if (text == NULL)
        return dom != NULL ? check(call, -1, error) : FALSE;
    g_autofree char *device = sv_xml_read_memory(text, strlen(text), call->number, error);
    free(text);
    return device != NULL &&
        check(call, virDomainUpdateDeviceFlags(dom, device, VIR_DOMAIN_AFFECT_LIVE), error);
}

void sv_libvirt_set_memory(SvHv *hv, guint64 extra_bytes, SvHvDone done, gpointer user_data)
{
    plain_call(hv, "set the memory", do_set_memory, NULL, extra_bytes, done, user_data);
}
