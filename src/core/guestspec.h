/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the bundle's config.json to what the guest's crun gets, and the list of host work it needs.
 * Pure: no side effects; looks at the host only through the callbacks' results passed in. */
#pragma once

#include "oci/pod.h"
#include "oci/spec.h"

G_BEGIN_DECLS

#define SV_GUEST_SHARE "/run/sandvirt/share" /* where the agent mounts the share */
#define SV_GUEST_SHM "/run/sandvirt/shm" /* its tmpfs of the engine's /dev/shm */

typedef enum {
    SV_SOURCE_BIND, /* bind into the share */
    SV_SOURCE_SHM, /* engine's tmpfs for /dev/shm: a tmpfs in the guest */
    SV_SOURCE_BLOCK, /* a disk: bound from guest_path, where the agent mounts it, or its node */
    SV_SOURCE_GUEST, /* the guest's own thing: proc, sys, /dev/null, cgroup */
} SvSourceKind;

/* What the caller found out about the source of a bind mount (index = position in spec->mounts). */
typedef struct {
    SvSourceKind kind;
    gboolean is_dir;
    char *shm_name; /* SHM: name below /run/sandvirt/shm */
    char *guest_path; /* GUEST, BLOCK: path in the guest */
} SvSourceInfo;

typedef struct {
    guint mount_index; /* in spec->mounts */
    char *name; /* below share/c/INDEX */
    char *source;
    gboolean recursive, read_only;
} SvBindPlan;

typedef struct {
    JsonNode *config; /* for the guest */
    GPtrArray *binds; /* SvBindPlan (rootfs not included) */
    /* char* "net/ipv4/ip_forward=1", the key as a path: what is of the machine (network, kernel-wide, and
     * namespaces that the container shares with it), to be set by the agent */
    GPtrArray *net_sysctls;
    GPtrArray *warnings; /* char*, printable: fields ignored */
} SvGuestSpec;

typedef struct {
    const char *container_id;
    guint index;
    /* In the guest: "/run/sandvirt/share/c/3/rootfs" or "/run/sandvirt/c/ID/rootfs". */
    const char *root_path;
    /* one per spec->mounts entry; only those of type bind, or of kind BLOCK, are looked at */
    SvSourceInfo *sources;
    guint cpus; /* of the guest, for clamping cpuset; 0: not clamped */
    /* (nullable: none is joined) Guest path of a namespace to join for a spec namespace with a path, NULL: leave out (share the
     * machine's own; not for "user": SV_ERR_UNSUPPORTED). Never called for "network", which is always the
     * machine's. For pid: "/proc/<guest pid>/ns/pid". The result is copied at once. */
    const char *(*join_namespace)(
        const char *type, const char *path, gpointer user_data, GError **error);
    gpointer user_data;
    gboolean check; /* only looking: which disks the machine will have is not known */
    GHashTable *guest_devices; /* nullable: "b:8:0" -> "b:253:16" major:minor in the guest */
} SvGuestSpecParams;

SvGuestSpec *sv_guest_spec_build(
    const SvSpec *spec, const SvGuestSpecParams *params, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Before anything is made: FALSE for what cannot be honoured; @warnings (char*): what will be ignored. */
gboolean sv_guest_spec_check(const SvSpec *spec, GPtrArray *warnings, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* What mounts understand, NULL-terminated: with "bind", and for the whole tree. */
extern const char *const sv_guest_bind_options[];
extern const char *const sv_guest_recursive_options[];
/* Names of the capabilities that the machine's kernel has, NULL-terminated. */
extern const char *const sv_guest_capabilities[];
gboolean sv_guest_knows_capability(const char *name);
void sv_guest_spec_free(SvGuestSpec *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvGuestSpec, sv_guest_spec_free)
/* process.json of exec for the guest: labels stripped, unknown members left out. (transfer full) */
char *sv_guest_process(JsonNode *process, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* linux.resources of an update for the guest, by the same rules as in config.json but without device rules.
 * @warnings: (nullable) char*. (transfer full) */
char *sv_guest_resources(JsonNode *resources, guint cpus, GHashTable *guest_devices,
    GPtrArray *warnings, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
