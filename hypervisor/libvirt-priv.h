/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the libvirt driver share. */
#pragma once

#include <libvirt/libvirt.h>

#include "hypervisor/driver.h"
#include "hypervisor/error.h"
#include "hypervisor/worker.h"

G_BEGIN_DECLS

typedef struct SvLibvirt SvLibvirt;
typedef struct SvCall SvCall;

#define SV_LIBVIRT_RUN_DIR "/run/libvirt/qemu" /* of qemu:///system */

/* Where libvirt's callbacks lead: outlives the driver, which they may be late for. */
typedef struct {
    gatomicrefcount refs;
    SvLibvirt *owner; /* main loop only; NULL: freed */
} SvSink;
SvSink *sv_sink_ref(SvSink *sink);
void sv_sink_unref(gpointer sink); /* any thread */

/* An open connection and what is registered with it. */
#define SV_N_CALLBACKS 3
typedef struct {
    virConnectPtr conn;
    gboolean has_close; /* a close callback is registered */
    int callbacks[SV_N_CALLBACKS]; /* -1: none */
} SvLink;

struct SvLibvirt {
    SvHv hv;
    /* immutable */
    const SvConfig *config;
    char *uuid, *name;
    SvHvEventFunc func;
    gpointer user_data;
    /* main loop only */
    SvWorker *worker;
    SvSink *sink;
    SvLink link; /* conn NULL: not connected */
    gboolean keepalive; /* running because a call hangs */
    SvJob *opening; /* nullable */
    SvHvDone connect_done; /* of the first connection; nullable */
    gpointer connect_data;
    guint reconnect_timer, backoff_ms;
    SvCall *starting; /* nullable */
    GQueue parked; /* of SvCall: waiting for the connection */
    GList *destroys; /* of SvDestroy, owned */
    int domain_id; /* libvirt's, -1 */
    guint suspend_serial; /* counts what makes an earlier "suspended" stale */
    gboolean host_shutdown; /* the last shutdown event was caused on the host */
};

/* A call on its way. What is made in the thread is given up in the thread. */
typedef gboolean (*SvCallFunc)(SvCall *call, GError **error);
struct SvCall {
    SvLibvirt *lv; /* main loop only */
    SvJob *job;
    const char *what;
    SvCallFunc func; /* runs in the thread */
    SvLink link; /* copy; its conn is a reference of the call's own */
    gboolean registered; /* link.callbacks were added by this call */
    SvSink *sink;
    char *uri, *uuid, *name;
    char *text;
    char *serial; /* of a disk to be attached */
    guint64 number;
    /* results */
    SvHvStatus status;
    int domain_id; /* -1 */
    /* completion; either */
    SvHvDone done;
    SvHvStatusDone status_done;
    void (*internal_done)(SvCall *call, const GError *error);
    gpointer user_data;
};

/* driver.c */
/* A call that is not started yet; @text is taken. */
SvCall *sv_call_new(SvLibvirt *lv, const char *what, SvCallFunc func, char *text);
/* Starts it, or parks it until there is a connection. */
void sv_call_go(SvCall *call, SvLane lane, guint deadline_ms);
/* Forgets a call that has not ended. */
void sv_call_drop(SvCall *call);
void sv_call_start_parked(SvLibvirt *lv);
/* What a process needs once before its first connection. */
void sv_libvirt_init(void);
void sv_libvirt_emit(SvLibvirt *lv, SvHvEventType type, SvHvEnd end, const char *alias);

/* connection.c */
/* Any thread: a connection of the caller's own. NULL with @error. */
virConnectPtr sv_libvirt_open(const char *uri, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_libvirt_connect(SvHv *hv, SvHvDone done, gpointer user_data);
/* Main loop: gives the connection up without waiting. */
void sv_connection_drop(SvLibvirt *lv);
/* A call did not return in time: watch whether the daemon lives. */
void sv_connection_suspect(SvLibvirt *lv);
/* A call returned: no more need for that. */
void sv_connection_trust(SvLibvirt *lv);

/* events.c */
/* In a thread: adds the callbacks for @dom to @link. */
gboolean sv_events_register(SvLink *link, virDomainPtr dom, SvSink *sink, GError **error);
/* In a thread. */
void sv_events_unregister(SvLink *link);

/* domain.c; all but start and lookup are of SvHvOps */
/* In a thread: our domain; NULL without @error when there is none (or one that is not ours). */
virDomainPtr sv_domain_lookup(virConnectPtr conn, const char *uuid, GError **error);
/* In a thread: drops the definition that somebody (virsh edit, virsh define) has given to our domain, which would
 * outlive it. One that does not run is gone then. */
void sv_domain_undefine(virDomainPtr dom);
/* The same for that of @lv, when it can be done. */
void sv_libvirt_undefine(SvLibvirt *lv);
void sv_libvirt_start(SvHv *hv, const SvMachine *machine, SvHvDone done, gpointer user_data);
void sv_libvirt_status(SvHv *hv, SvHvStatusDone done, gpointer user_data);
void sv_libvirt_attach(SvHv *hv, const SvDevice *device, SvHvDone done, gpointer user_data);
void sv_libvirt_detach(SvHv *hv, const char *alias, SvHvDone done, gpointer user_data);
void sv_libvirt_resume(SvHv *hv, SvHvDone done, gpointer user_data);
void sv_libvirt_set_metadata(
    SvHv *hv, const SvMetadata *metadata, SvHvDone done, gpointer user_data);
void sv_libvirt_set_vcpus(SvHv *hv, guint vcpus, SvHvDone done, gpointer user_data);
void sv_libvirt_set_memory(SvHv *hv, guint64 extra_bytes, SvHvDone done, gpointer user_data);

/* destroy.c */
typedef struct SvDestroy SvDestroy;
void sv_libvirt_destroy(
    SvHv *hv, int qemu_pidfd, guint grace_ms, SvHvDone done, gpointer user_data);
void sv_destroy_free(gpointer destroy);

/* stillborn.c; in a thread */
/* TRUE: libvirt takes it for one that is being started, and it has no process. Also true for a moment in a start. */
gboolean sv_domain_is_stillborn(virDomainPtr dom);
/* Any thread: logs what libvirt keeps of it, and how that goes. */
void sv_domain_tell_stillborn(const char *name);

/* share.c */
int sv_libvirt_share_pid(SvHv *hv);
int sv_libvirt_share_pid_of(int domain_id);
/* Adds the bytes of files that the machine has read and written through its share: its virtiofsd does the work in a
 * child. Nothing is added when there is none. */
void sv_libvirt_share_count(int domain_id, guint64 *read, guint64 *written);

typedef virDomain AutoDomain;
static inline void sv_domain_unref(virDomainPtr dom)
{
    if (dom != NULL)
        virDomainFree(dom);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AutoDomain, sv_domain_unref)
typedef virConnect AutoConnect;
static inline void sv_connect_unref(virConnectPtr conn)
{
    if (conn != NULL)
        virConnectClose(conn);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AutoConnect, sv_connect_unref)

G_END_DECLS
