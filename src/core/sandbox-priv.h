/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The structs behind sandbox.h, for core's own files and its tests. All fields: main loop only. */
#pragma once

#include "core/agent.h"
#include "core/hooks.h"
#include "core/sandbox.h"
#include "core/sequence.h"
#include "core/share.h"
#include "core/turns.h"
#include "oci/pod.h"

G_BEGIN_DECLS

typedef enum {
    SV_MACHINE_NONE, /* not started; left by the first create */
    SV_MACHINE_STARTING, /* the "up" sequence runs */
    SV_MACHINE_UP, /* agent ready and set up */
    SV_MACHINE_ENDING, /* the "down" sequence runs */
    SV_MACHINE_ENDED, /* the domain is gone; containers are being stopped, then only deletes remain */
} SvMachineState;

typedef struct SvUnplug SvUnplug;

typedef struct {
    SvDone done;
    gpointer user_data;
} SvWaiter;

/* A process on the host's side: the shim of a container's init or of an exec. */
typedef struct {
    SvContainer *container;
    guint32 handle;
    gboolean exec;
    pid_t shim_pid;
    guint64 shim_start;
    int shim_pidfd; /* -1: none or gone */
    guint shim_watch;
    SvConn *shim; /* nullable: not attached */
    guint32 attach_stream; /* Attach not yet answered; 0: none */
    guint64 offsets[3]; /* acknowledged by the shim (stdout, stderr), by index of stream */
    guint32 *descriptors; /* modes of those beside the three, as the shim has told; nullable */
    guint64 *descriptor_offsets; /* as offsets, of what comes from the guest */
    guint n_descriptors;
    gboolean terminal, has_root;
    guint rows, cols;
    guint64 attach_ticket; /* step that waits for the shim */
    guint64 gone_ticket; /* step that waits for the shim's end */
    guint64 exit_ticket; /* step that waits for the exit in the guest */
    gboolean in_guest; /* the agent knows this handle */
    int status; /* exit status, -1: not known */
    gboolean exit_wanted; /* tell the shim to exit as soon as it is attached */
    gboolean exit_sent;
    guint32 event_stream; /* agent's Exit event to be acknowledged; 0: none */
    /* exec only */
    char *process_json; /* for the guest */
    char *cgroup; /* of an exec, below the container's; nullable */
    gint32 oom_score_adj; /* of an exec */
    char *program; /* of an exec: its args[0] */
    gboolean no_stdin;
    SvSequence *starting;
    SvWaiter started; /* exec: answer of ExecStart */
    gboolean ended_early; /* exited before its start was answered */
} SvProcess;

struct SvContainer {
    SvSandbox *sandbox;
    SvRecord *record;
    SvSpec *spec; /* nullable after a recovery when config.json is gone */
    SvPod *pod;
    SvProcess *init;
    gboolean no_stdin;
    SvSequence *create, *stop, *removal;
    SvWaiter created; /* answer of Create */
    GArray *stop_waiters; /* SvWaiter: STOPPED and released, or gone */
    GArray *delete_waiters;
    int forced_status; /* status that is recorded whatever the guest says, -1 */
    int default_status; /* recorded when the guest says nothing */
    gboolean guest_silent; /* the guest did not answer while stopping */
    gboolean in_guest; /* the agent has (or may have) it */
    gboolean deleting; /* a delete waits for the stop */
    gboolean changing_devices; /* an update adds or removes some */
    guint64 oom_kills; /* told of */
    gint64 release_deadline;
    guint release_timer, stop_timer;
    char *guest_ns[3]; /* "/proc/PID/ns/TYPE" of its init in the guest; nullable */
};

typedef struct SvPodNetwork SvPodNetwork;

struct SvSandbox {
    const SvConfig *config;
    SvPaths *paths;
    const SvDriver *driver;
    const SvSandboxHandlers *handlers;
    gpointer user_data;
    SvHv *hv;
    gboolean hv_connected; /* connect was answered well at least once */
    SvSandboxRecord *record; /* NULL: nothing registered */
    SvAccel accel;
    SvAgent *agent;
    SvTurns *guest_turns; /* of what starts a process in the guest */
    SvMachineState machine;
    GHashTable *containers; /* id -> SvContainer, owned */
    GHashTable *processes; /* handle -> SvProcess, owned */
    SvSequence *up, *down;
    GArray *up_tickets; /* guint64: steps that wait for the machine */
    GArray *down_waiters; /* SvWaiter: deletes that wait for the machine's end */
    GError *down_error; /* why the domain could not be destroyed; NULL */
    guint64 domain_ticket; /* step that waits for the end of the domain */
    guint64 agent_ticket; /* step that waits for the agent */
    guint64 share_ticket; /* step that waits for virtiofsd's end */
    int qemu_pidfd, share_pidfd;
    guint qemu_watch, share_watch, end_timer, boot_timer, share_timer;
    gboolean qemu_gone; /* its process is dead; libvirt may not have noticed yet */
    gboolean domain_gone; /* known for sure */
    gboolean share_seen; /* its virtiofsd was known */
    gboolean start_pending; /* virDomainCreateXML is out */
    guint64 undo_ticket; /* undoing of the domain that waits for its start to end */
    gboolean down_again; /* asked for while another sequence ran */
    gboolean end_guessed; /* end_cause comes from QEMU's death alone */
    SvCause end_cause; /* NONE: not known yet */
    guint64 netns; /* inode of the pod's network namespace, 0 */
    SvPodNetwork *network; /* owned */
    guint metadata_idle, idle_source;
    guint hooks_running;
    GArray *settle_waiters; /* SvWaiter */
    char *cgroup_home; /* where this monitor was before it went into the pod's cgroup; nullable */
    /* of the start of the machine, for the timeline */
    GArray *machine_times; /* SvStepTime; empty once the first container has it */
    gint64 agent_heard_us, agent_start_ns, agent_ready_ns;
    gboolean recovering;
    gboolean record_lost; /* by a fault of the disk: only an end is possible */
    gboolean word_wanted; /* the agent of a former monitor's machine has not spoken yet */
    SvWaiter recovered;
    GHashTable *disk_holds; /* alias -> descriptor: disks that nobody on the host may take */
    int claims_fd; /* valid while there is a source: see sv_disks_watch_claims */
    guint claims_source;
    GPtrArray *unplugs; /* SvUnplug under way */
    GHashTable *detaching; /* set of aliases for which libvirt's answer is out */
};

/* ---- sandbox.c */
SvContainer *sv_sandbox_find(SvSandbox *sandbox, const char *id, GError **error);
/* Of SvContainer, as they are now: for loops in which some may go. (transfer full) */
GPtrArray *sv_sandbox_containers(SvSandbox *sandbox);
/* A new record with a token of its own. */
gboolean sv_sandbox_make_record(SvSandbox *sandbox, GError **error);
gboolean sv_sandbox_save(SvSandbox *sandbox, GError **error);
guint sv_sandbox_guest_turns(const SvSandbox *sandbox); /* how many of them at once */
void sv_sandbox_touch(SvSandbox *sandbox); /* metadata of the domain, coalesced */
void sv_sandbox_check_idle(SvSandbox *sandbox);
guint sv_sandbox_live_containers(const SvSandbox *sandbox); /* not STOPPED */
/* done(error) from the loop's next turn; takes nothing, copies @error. */
void sv_answer_later(SvDone done, const GError *error, gpointer user_data);
void sv_waiters_answer(GArray *waiters, const GError *error); /* and empties */
void sv_waiters_add(GArray *waiters, SvDone done, gpointer user_data);

/* ---- machine-up.c, machine-down.c, machine-events.c, machine-spec.c */
/* Ends by ticket: next when the machine is UP, fail else. Starts it when NONE. */
void sv_machine_want(SvSandbox *sandbox, guint64 ticket);
/* What an answer to a step of the machine's row comes back with. */
typedef struct {
    SvSandbox *sandbox;
    guint64 ticket;
} SvMachineStep;
SvMachineStep *sv_machine_step(SvSandbox *sandbox, SvSequence *seq); /* (transfer full, g_free) */
void sv_machine_up_done(SvSandbox *sandbox, const GError *error); /* answers those that wait */
SvMachine *sv_machine_build(SvSandbox *sandbox, GError **error);
SvMetadata *sv_metadata_build(SvSandbox *sandbox);
gboolean sv_machine_open_hv(SvSandbox *sandbox);
gboolean sv_machine_connect_agent(SvSandbox *sandbox, GError **error);
void sv_machine_watch_processes(SvSandbox *sandbox); /* pidfds of QEMU and virtiofsd */
void sv_machine_on_event(SvHv *hv, const SvHvEvent *event, gpointer user_data);
/* The domain is gone (whoever says so, first): containers are stopped with @cause. */
void sv_machine_ended(SvSandbox *sandbox, SvCause cause);
/* Ends the machine because of @cause; sv_machine_ended follows. */
void sv_machine_kill(SvSandbox *sandbox, SvCause cause);
/* Shutdown, destroy, release of the host's side; the state folder too when no container is left. */
void sv_machine_down(SvSandbox *sandbox);
/* After the end of a machine and of all its containers: the record of a sandbox that may have another one. */
gboolean sv_machine_renew(SvSandbox *sandbox, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The last container is gone, and its machine has not ended yet, or could not be ended (tried again then):
 * @done when it has. FALSE: there is nothing to wait for. */
gboolean sv_machine_wait_for_end(SvSandbox *sandbox, SvDone done, gpointer user_data);
void sv_machine_resume(SvSandbox *sandbox); /* of a suspended machine */
gboolean sv_machine_lives(const SvHvStatus *status);
void sv_machine_compare(SvSandbox *sandbox); /* with what libvirt says, after a reconnection */
gboolean sv_machine_on_boot_timeout(gpointer user_data);
gboolean sv_machine_on_share_lost(gpointer user_data);
/* The machine @what; with the end of its console. (transfer full) */
GError *sv_machine_boot_error(SvSandbox *sandbox, const char *what);
extern const SvAgentHandlers sv_machine_agent_handlers;

/* ---- machine-grow.c: how big the machine is (rule: core/sizing.h) */
/* At register: what the container asks for goes into the records; before the machine's start its size too. */
void sv_machine_note_demand(SvContainer *container);
/* Makes the running machine as big as its containers need by now; it never shrinks. Limits are no
 * promises: what cannot be had is a warning. */
void sv_machine_grow(SvSandbox *sandbox, SvDone done, gpointer user_data);
/* An update's resources (the object of linux.resources) change what @container asks for. */
void sv_machine_change_demand(SvContainer *container, JsonNode *resources);

/* ---- container.c */
SvContainer *sv_container_new(SvSandbox *sandbox, SvRecord *record); /* takes record */
void sv_container_free(SvContainer *container);
gboolean sv_container_move(SvContainer *container, SvEvent event, GError **error); /* the setter */
gboolean sv_container_save(SvContainer *container, GError **error);
SvContainer *sv_container_load_spec(SvContainer *container);
/* Everything in memory is gone afterwards; of one that has no record. */
void sv_container_drop(SvContainer *container);
/* The record, if there is one still, and everything in memory are gone afterwards. */
void sv_container_forget(SvContainer *container);
void sv_container_set_guest_pid(SvContainer *container, guint32 pid);
/* "/proc/PID/ns/TYPE" in the guest ("pid", "ipc", "uts"), owned by @container; NULL before it is created
 * there. */
const char *sv_container_guest_ns(SvContainer *container, const char *type);
/* frozen and suspended flags -> FREEZE/THAW */
void sv_container_update_paused(SvContainer *container);

/* The kernel's OOM killer took a process of it, @kills so far. */
void sv_container_note_oom(SvContainer *container, guint64 kills);

/* ---- recovery.c */
void sv_recovery_agent_ready(SvSandbox *sandbox, const Sandvirt__V1__HelloResponse *hello);
void sv_recovery_finish(SvSandbox *sandbox);
/* While recovering: the machine has ended; the agent is lost or silent (the caller ends the machine). */
void sv_recovery_machine_ended(SvSandbox *sandbox, SvCause cause);
void sv_recovery_agent_lost(SvSandbox *sandbox);

/* ---- network.c */
SvPodNetwork *sv_pod_network_new(SvSandbox *sandbox);
void sv_pod_network_free(SvPodNetwork *network);
/* The namespace of the first shim is the pod's. */
gboolean sv_pod_network_enter(SvSandbox *sandbox, const SvContainer *container, GError **error);
/* Ends by ticket: the machine has the links of the namespace. */
void sv_pod_network_want(SvSandbox *sandbox, guint64 ticket);
/* Looks whether anything has changed: the machine was suspended. */
void sv_pod_network_look(SvSandbox *sandbox);
/* After the monitor was restarted: the namespace again, when it is still the same. A shim may be the only way to it, as
 * long as it lives. */
void sv_pod_network_find(SvSandbox *sandbox);
/* Of a former monitor; the machine is up. */
void sv_pod_network_recover(SvSandbox *sandbox);
/* From the guest, of a forwarded connection. */
void sv_pod_network_frame(SvSandbox *sandbox, const SvFrame *frame);
/* Ends by ticket: the namespace is as it was found, or gone. The machine has ended. */
void sv_pod_network_release(SvSandbox *sandbox, guint64 ticket);

/* The record's kill_at_us: the container is killed then, unless it ends before. */
void sv_container_arm_kill(SvContainer *container);

/* ---- container-stop.c */
/* The order to the agent to end and forget the container, which has stop_ms for it; @done (nullable) and
 * @timeout_ms (0: none) as in sv_agent_call. */
void sv_container_call_remove(
    SvContainer *container, guint timeout_ms, SvCallDone done, gpointer user_data);
/* Begins the stop unless it has begun; @status -1: what the guest says, else 137. @forced: record
 * @status whatever the guest says. */
void sv_container_begin_stop(SvContainer *container, SvCause cause, int status, gboolean forced);
/* The exit of the init process came from the agent. */
void sv_container_init_exited(SvContainer *container, int status, gboolean oom);

/* ---- process.c */
SvProcess *sv_process_new(SvContainer *container, guint32 handle, gboolean exec);
void sv_process_free(SvProcess *process);
/* Opens the pidfd of the shim and watches it; gone already: as if it died now. */
void sv_process_watch(SvProcess *process, pid_t pid, guint64 start);
/* The shim shall exit with @status once its output is written, however long its reader takes: it is killed
 * when the container is deleted. */
void sv_process_finish(SvProcess *process, int status);
void sv_process_kill_shim(SvProcess *process);
/* Nobody takes its output any more: the guest shall not keep its exit back for it. */
void sv_process_discard_output(SvProcess *process);
/* Answers Attach and lets the streams flow from the shim's offsets. */
void sv_process_resume_streams(SvProcess *process, guint64 ticket);
void sv_process_agent_frame(SvAgent *agent, const SvFrame *frame, gpointer user_data);

/* ---- container-create.c */
void sv_container_cancel_create(SvContainer *container, GError *error); /* takes error */
/* ---- container-devices.c */
typedef struct {
    char *const *add,
        *const *remove; /* see sv_disks_plan_device; names in the container or on the host */
    gsize n_add, n_remove;
} SvDeviceList;
typedef struct SvDeviceChange SvDeviceChange;
/* Everything of it that can be refused. @done: with an error nothing of it is left, and the result (NULL when
 * it was refused at once) is no more; without one keep or undo has to follow. */
SvDeviceChange *sv_container_change_devices(
    SvContainer *container, const SvDeviceList *list, SvDone done, gpointer user_data);
/* Carries it out; frees @change. */
void sv_device_change_keep(SvDeviceChange *change, SvDone done, gpointer user_data);
/* As if it had never been; @done gets a copy of @why. Frees @change. */
void sv_device_change_undo(
    SvDeviceChange *change, const GError *why, SvDone done, gpointer user_data);
/* Takes away what a former monitor was about to add. */
void sv_container_undo_cut_devices(SvContainer *container);
/* ---- rollback.c */
/* Undoes what a former monitor had begun, once; the container is gone afterwards. */
void sv_container_roll_back(SvContainer *container);
/* Everything of the create is undone: tells all who wait; the container is gone afterwards. */
void sv_container_create_failed(SvContainer *container, const GError *error);
/* ---- container-mounts.c */
/* On the host, what the guest's runtime could not make in a root that is read-only for it. */
gboolean sv_container_make_mount_points(SvContainer *container, GError **error);
gboolean sv_container_bind_mounts(SvContainer *container, GError **error);
void sv_container_step_unshare(
    SvSequence *seq, gpointer container); /* takes them out, busy or not */
JsonNode *sv_container_guest_config(
    SvContainer *container, GPtrArray **net_sysctls, GError **error);
/* ---- container-verbs.c */
/* The container in a state in which @verb may be carried out, its guest reachable. A stop that has begun
 * counts as stopped. */
SvContainer *sv_container_find_for(
    SvSandbox *sandbox, const char *id, const char *verb, GError **error);
/* TRUE with @error set: an administrator has suspended the machine. */
gboolean sv_sandbox_refuse_suspended(SvSandbox *sandbox, const char *verb, GError **error);
/* ---- exec.c */
void sv_exec_exited(SvProcess *process, int status);
void sv_exec_shim_gone(SvProcess *process);
void sv_exec_container_gone(SvProcess *process);

#define SV_AGENT_SILENT_MS 1000 /* a guest that lets KILL wait so long hangs */

G_END_DECLS
