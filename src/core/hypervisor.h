/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of functions that a hypervisor driver fills (libvirt, or the fake one of the tests).
 * core never includes hypervisor/. Every call returns at once; blocking work happens in a worker
 * and @done comes on the main loop, exactly once, never from inside the call itself. */
#pragma once

#include "base/error.h"
#include "devices/machine.h"

G_BEGIN_DECLS

/* Here and not in a library: core speaks of it and links no driver. */
#define SV_HV_ERROR (sv_hv_error_quark())
static inline GQuark sv_hv_error_quark(void)
{
    return g_quark_from_static_string("sv-hv-error-quark");
}

typedef struct SvHv SvHv; /* instance of a driver; its first member is SvHv */
typedef struct SvHvOps SvHvOps;

typedef enum {
    SV_HV_EVENT_STOPPED, /* the domain is gone; @cause tells why */
    SV_HV_EVENT_SHUTTING_DOWN, /* QEMU is about to end; @end tells why. STOPPED follows */
    SV_HV_EVENT_SUSPENDED, /* by an administrator (virsh suspend), not I/O error, snapshot, migration */
    SV_HV_EVENT_RESUMED,
    SV_HV_EVENT_PANICKED, /* guest panic; STOPPED follows */
    SV_HV_EVENT_DEVICE_REMOVED, /* @alias */
    SV_HV_EVENT_REMOVAL_FAILED, /* @alias */
    SV_HV_EVENT_DISCONNECTED, /* connection to the daemon lost; reconnecting by itself */
    SV_HV_EVENT_CONNECTED, /* again; events of the gap are lost: compare with reality */
} SvHvEventType;

/* why a domain ended */
typedef enum {
    SV_HV_END_UNKNOWN,
    SV_HV_END_SHUTDOWN, /* guest powered off (6/1, 5/0) */
    SV_HV_END_DESTROYED, /* virsh destroy, or our destroy (5/1) */
    SV_HV_END_CRASHED, /* guest panic with on_crash=destroy (5/2) */
    SV_HV_END_FAILED, /* QEMU died (5/5) */
} SvHvEnd;

typedef struct {
    SvHvEventType type;
    SvHvEnd end; /* STOPPED */
    const char *alias; /* DEVICE_*; borrowed */
} SvHvEvent;
typedef void (*SvHvEventFunc)(SvHv *hv, const SvHvEvent *event, gpointer user_data);

/* @error: NULL on success, owned by the caller of @done (copy to keep). */
typedef void (*SvHvDone)(SvHv *hv, const GError *error, gpointer user_data);

/* What reality says of our domain. */
typedef struct {
    gboolean exists, running, suspended; /* suspended: by an administrator */
    int id; /* libvirt's, -1 when it does not run */
    GPtrArray *aliases; /* of char*: aliases of the devices in the live XML */
} SvHvStatus;
typedef void (*SvHvStatusDone)(
    SvHv *hv, const SvHvStatus *status, const GError *error, gpointer user_data);

struct SvHvOps {
    /* Starts connecting (deadline from the configuration). After this events of the domain @uuid
     * flow to the function given to the constructor. */
    void (*connect)(SvHv *hv, SvHvDone done, gpointer user_data);
    /* virDomainCreateXML of a transient domain. Fails with SV_ERR_EXISTS when the name is taken. */
    void (*start)(SvHv *hv, const SvMachine *machine, SvHvDone done, gpointer user_data);
    /* Looks our domain up by uuid; a domain without our metadata is treated as absent. */
    void (*status)(SvHv *hv, SvHvStatusDone done, gpointer user_data);
    /* SV_ERR_LIMIT: no root port is free (a SCSI disk needs none). */
    void (*attach)(SvHv *hv, const SvDevice *device, SvHvDone done, gpointer user_data);
    /* Asks for removal; the end is SV_HV_EVENT_DEVICE_REMOVED. Unknown alias: SV_ERR_NOT_FOUND. */
    void (*detach)(SvHv *hv, const char *alias, SvHvDone done, gpointer user_data);
    /* Ends the domain: virDomainDestroy; when it has not ended after @grace_ms, QEMU is killed
     * through @qemu_pidfd (-1: no escalation; borrowed, duplicated inside). Gone already: success. A
     * start on its way is given up (SV_ERR_CANCELLED) and undone. With the daemon gone or hanging, the
     * end of a killed QEMU is success, and STOPPED may come late or never. So is a domain that libvirt
     * lists without a process and cannot end. */
    void (*destroy)(SvHv *hv, int qemu_pidfd, guint grace_ms, SvHvDone done, gpointer user_data);
    void (*resume)(SvHv *hv, SvHvDone done, gpointer user_data);
    /* Replaces our metadata element. */
    void (*set_metadata)(SvHv *hv, const SvMetadata *metadata, SvHvDone done, gpointer user_data);
    void (*set_vcpus)(SvHv *hv, guint vcpus, SvHvDone done, gpointer user_data);
    /* virtio-mem: wanted size of the pluggable part. */
    void (*set_memory)(SvHv *hv, guint64 extra_bytes, SvHvDone done, gpointer user_data);
    /* Pid of the virtiofsd of our domain (from libvirt's pid file), -1 when unknown. Quick. */
    int (*share_pid)(SvHv *hv);
    gboolean (*is_connected)(SvHv *hv);
    /* Drops pending calls (their @done is not called any more) and frees. */
    void (*free)(SvHv *hv);
};

struct SvHv {
    const SvHvOps *ops;
};

G_END_DECLS
