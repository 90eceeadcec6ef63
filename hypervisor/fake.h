/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A driver without libvirt, for tests: it keeps a pretended domain, records the calls, completes them
 * on the main loop, and fails where it is told to. A library apart (hypervisor_fake_dep). */
#pragma once

#include "core/hypervisor.h"

G_BEGIN_DECLS

/* Same life cycle as a real driver: free with hv->ops->free(hv). All functions: main loop only. */
SvHv *sv_fake_new(SvHvEventFunc func, gpointer user_data) G_GNUC_WARN_UNUSED_RESULT;

/* The @n-th call from now (1: the next one) that has a completion fails with @code. One is pending
 * at a time; n = 0 takes it back. */
void sv_fake_fail_nth(SvHv *hv, guint n, SvErr code);
/* Every later call of the operation @name ("start", "attach", ...: names of SvHvOps) fails with
 * @code, until taken back with SV_ERR_LAST. */
void sv_fake_fail_call(SvHv *hv, const char *name, SvErr code);
/* Completions of @name (NULL: all) come after @delay_ms; 0: from an idle source. */
void sv_fake_set_delay(SvHv *hv, const char *name, guint delay_ms);
/* Completions of @name are kept back until sv_fake_release; free drops them. What the call does to
 * the pretended domain is done at once. */
void sv_fake_hold(SvHv *hv, const char *name);
void sv_fake_release(SvHv *hv, const char *name);
/* Whether detach is followed by DEVICE_REMOVED and destroy by STOPPED (default: yes). */
void sv_fake_set_auto_events(SvHv *hv, gboolean on);
/* Emits @event from an idle source; STOPPED, DISCONNECTED, CONNECTED, SUSPENDED, RESUMED change the
 * pretended domain too. */
void sv_fake_emit(SvHv *hv, SvHvEventType type, SvHvEnd end, const char *alias);
/* Not connected any more, without an event: as a new handle on a domain that runs. */
void sv_fake_close(SvHv *hv);
void sv_fake_set_share_pid(SvHv *hv, int pid);
/* Runs when "start" succeeds, before its completion: a test starts its fake agent here. */
typedef void (*SvFakeStartFunc)(SvHv *hv, const SvMachine *machine, gpointer user_data);
void sv_fake_set_start_func(SvHv *hv, SvFakeStartFunc func, gpointer user_data);

/* What was called, in order, as "attach ua-sv-disk0", "start sandvirt-x", "destroy", ... Failed calls
 * too. (transfer none) of char*. */
GPtrArray *sv_fake_calls(SvHv *hv);
/* How many calls of @name there were. */
guint sv_fake_count(SvHv *hv, const char *name);
gboolean sv_fake_is_running(SvHv *hv);
/* The devices in the pretended domain, of SvDevice; (transfer none). */
GPtrArray *sv_fake_devices(SvHv *hv);
/* The metadata given last, (transfer none), nullable. */
const SvMetadata *sv_fake_metadata(SvHv *hv);
guint sv_fake_vcpus(SvHv *hv);
guint64 sv_fake_extra_memory(SvHv *hv);

G_END_DECLS
