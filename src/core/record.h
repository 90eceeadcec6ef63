/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is on disk: the container's and the sandbox's record. Written by the sandbox's monitor only
 * (it holds the lock); read by anybody. Atomic, versioned, bounded; unknown members are ignored. */
#pragma once

#include "core/disk-record.h"
#include "core/lifecycle.h"
#include "core/paths.h"
#include <sys/types.h>

G_BEGIN_DECLS

typedef struct {
    guint32 handle;
    pid_t shim_pid;
    guint64 shim_start;
} SvExecRecord;

typedef struct {
    char *id, *sandbox, *bundle, *rootfs, *oci_version;
    char *name; /* what the engine's pod calls it, printable; nullable */
    char *boot_id;
    guint32 handle; /* of the init process */
    guint index; /* share folder c/INDEX */
    SvState state; /* only through sv_record_set_state */
    gboolean frozen; /* by pause */
    pid_t shim_pid; /* 0: none yet */
    guint64 shim_start;
    gint64 created_us, started_us, finished_us; /* g_get_real_time; 0: not yet */
    gint64 kill_at_us; /* g_get_monotonic_time at which a stop's KILL is due; 0: never */
    int exit_status; /* 0..255, -1: none */
    SvCause cause;
    gboolean oom, terminal,
        stopping; /* stopping: the stop has begun (an exit is known, release under way) */
    int pending_status; /* exit status known while stopping, -1 */
    char *error; /* nullable: what went wrong at the end */
    uid_t owner;
    gint64 demand_cpu, demand_memory; /* what it asks of the machine (core/sizing.h); 0: no limit */
    gint64 cpu_quota, cpu_period; /* of its cgroup, microseconds; 0: none, the default */
    GHashTable *annotations; /* never NULL */
    GPtrArray *execs; /* SvExecRecord (g_free) */
    char *cgroup, *cgroup_made, *scope; /* on the host; nullable. See core/host-cgroup.h */
    GPtrArray *disks; /* SvDiskRecord */
} SvRecord;

#define SV_RECORD_MAX (32u * 1024 * 1024) /* bytes of a record file */
#define SV_RECORD_OCI_VERSION "1.0.2" /* printed when the record names none */
/* Only id, boot_id (this boot's) and created_us are set; the other strings are NULL. */
SvRecord *sv_record_new(const char *id);
void sv_record_free(SvRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvRecord, sv_record_free)
/* Missing: SV_ERR_NOT_FOUND "container \"ID\" does not exist". Damaged: SV_ERR_INVALID. */
SvRecord *sv_record_load(const char *root, const char *id, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
SvRecord *sv_record_parse(const char *text, gsize len, GError **error) G_GNUC_WARN_UNUSED_RESULT;
char *sv_record_text(const SvRecord *record) G_GNUC_WARN_UNUSED_RESULT; /* JSON (transfer full) */
/* The first save: ROOT/ID must not exist (SV_ERR_EXISTS), and is there with its record or not at all, whenever the
 * caller is killed; undone on failure. The sandbox's folder must exist (sv_sandbox_record_save). */
gboolean sv_record_create(const SvRecord *record, const char *root, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
gboolean sv_record_save(const SvRecord *record, const char *root, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* The whole entry, damaged or not, in one step. Missing: TRUE. @sandbox: the caller's, whose monitor it is. */
gboolean sv_record_remove(const char *root, const char *sandbox, const char *id, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* What a monitor that was killed meanwhile has left of an entry on its way in or out. What cannot be removed is warned
 * of; it goes with the sandbox. */
void sv_record_drop_entry(const char *root, const char *sandbox);

/* The one setter: checks the move (lifecycle table), sets times, saves, logs (structured fields SANDBOX,
 * CONTAINER, PHASE), then calls @notify (nullable). On a save error the state stays as it was. A move to
 * GONE removes ROOT/ID. Entering STOPPED takes pending_status as exit_status when that is -1 (255 when
 * neither is known), clears stopping and frozen. An exit of what has ended is no move: TRUE, no @notify. */
typedef void (*SvRecordNotify)(const SvRecord *record, SvState old, gpointer user_data);
gboolean sv_record_set_state(SvRecord *record, SvEvent event, const char *root,
    SvRecordNotify notify, gpointer user_data, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* What a query answers, without writing: liveness of the recorded shim (pid + start time + boot id).
 * A RUNNING/READY/PAUSED record whose shim is gone, or of another boot: "stopped", pid 0. */
SvState sv_record_effective_state(const SvRecord *record);
/* The OCI state JSON that `state` prints and hooks get (transfer full), indented, no newline at the end.
 * @status NULL: effective state, and @pid is ignored: the shim's, 0 when stopped. */
char *sv_record_oci_state(const SvRecord *record, const char *status, pid_t pid)
    G_GNUC_WARN_UNUSED_RESULT;
/* The same as a node (transfer full). */
JsonNode *sv_record_oci_state_node(const SvRecord *record, const char *status, pid_t pid)
    G_GNUC_WARN_UNUSED_RESULT;

/* "2024-01-02T03:04:05.000006Z" of a g_get_real_time() value (transfer full). */
char *sv_time_rfc3339(gint64 real_us) G_GNUC_WARN_UNUSED_RESULT;

/* All records below @root, sorted by id; damaged entries: a warning in @warnings (char*, nullable) and
 * skipped. No root folder: empty. Names starting with '.' are ours and skipped. */
GPtrArray *sv_record_list(const char *root, GPtrArray *warnings, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* ---- sandbox */
typedef struct {
    char *name; /* "shm-0" */
    char *source; /* host path of the engine's tmpfs */
    guint64 size;
    guint mode;
} SvShmRecord;
void sv_shm_record_free(SvShmRecord *shm);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvShmRecord, sv_shm_record_free)
/* A link of the pod's network namespace that the machine has. */
typedef struct {
    char *name; /* when it was taken */
    guint32 index; /* in the namespace */
    char *tap; /* name of the tap */
    char *alias; /* of the card in the domain */
    char *mac; /* of the card: "02:..." */
    gboolean joined; /* link and tap are connected */
    gboolean made_qdisc; /* the link had no ingress qdisc before */
} SvLinkRecord;
SvLinkRecord *sv_link_record_copy(const SvLinkRecord *link) G_GNUC_WARN_UNUSED_RESULT;
void sv_link_record_free(SvLinkRecord *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvLinkRecord, sv_link_record_free)
typedef struct {
    char *id, *root, *boot_id;
    char *token; /* hex of the channel's TOKEN */
    char *config_path; /* nullable: --config given at create */
    char *netns; /* path of the network namespace in config.json; NULL: made by us */
    gboolean
        host_network; /* its first container asked for the host's network, and got one of its own */
    guint64 netns_id; /* the kernel's number of that namespace in this boot, 0: not known yet */
    guint next_link; /* number of the next link that is taken */
    char *title, *hostname;
    guint next_handle, next_index, next_disk;
    gboolean started; /* virDomainCreateXML was (about to be) called */
    gboolean suspended; /* by virsh */
    gboolean ended; /* the machine is gone; only deletes remain */
    SvCause cause; /* of the end */
    guint exits[SV_N_CAUSES]; /* of the containers that have been deleted, by cause */
    guint monitor_restarts; /* monitors that took over from a dead one */
    guint vcpus; /* as they are now */
    guint64 memory_mib;
    /* of the running machine: what it was started with, and how far it can grow */
    guint64 boot_memory_mib, max_memory_mib;
    guint max_vcpus;
    gint64 pod_cpu, pod_memory; /* the pod's sizing annotations, as demand_*; 0: none */
    int uid; /* QEMU's, -1 */
    char *cgroup, *cgroup_made; /* on the host; nullable. See core/pod-cgroup.h */
    char *partition; /* libvirt puts the machine there; nullable */
    char *machine_places; /* cgroups that libvirt has put QEMU into; nullable */
    GPtrArray *shms; /* SvShmRecord */
    GPtrArray *links; /* SvLinkRecord */
    GPtrArray *warnings; /* char*: what is still held (busy binds) */
    GPtrArray *held_disks; /* SvDiskRecord: kept by the guest when their containers had ended */
} SvSandboxRecord;
/* Only id, boot_id (this boot's), next_handle (1) and uid (-1) are set. @root must be set before saving. */
SvSandboxRecord *sv_sandbox_record_new(const char *id);
void sv_sandbox_record_free(SvSandboxRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvSandboxRecord, sv_sandbox_record_free)
SvSandboxRecord *sv_sandbox_record_load(const SvPaths *paths, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
SvSandboxRecord *sv_sandbox_record_parse(const char *text, gsize len, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
char *sv_sandbox_record_text(const SvSandboxRecord *record) G_GNUC_WARN_UNUSED_RESULT;
/* Missing: SV_ERR_NOT_FOUND; damaged: SV_ERR_INVALID. Save makes the folder. */
gboolean sv_sandbox_record_save(const SvSandboxRecord *record, const SvPaths *paths, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
