/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* config.json as checked structs. No side effects; nothing is opened but the file itself. Reference:
 * OCI runtime specification 1.1. The raw JSON tree is kept: what only the guest needs is passed on. */
#pragma once

#include "base/error.h"
#include "base/json.h"

G_BEGIN_DECLS

#define SV_OCI_ERROR (sv_oci_error_quark())
GQuark sv_oci_error_quark(void);
#define SV_SPEC_MAX (16u * 1024 * 1024) /* bytes of config.json */
#define SV_OCI_VERSION "1.0.2" /* what state prints */

typedef struct {
    char *destination, *type, *source; /* type, source nullable */
    char **options; /* never NULL */
} SvSpecMount;
typedef struct {
    char *type; /* "pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time" */
    char *path; /* nullable */
} SvSpecNamespace;
typedef struct {
    char *path, *type; /* type "b", "c", "u", "p" */
    gint64 major, minor;
    gint64 mode; /* -1: not given */
    gint64 uid, gid; /* -1: not given */
} SvSpecDevice;
typedef struct {
    char *path;
    char **args, **env; /* never NULL; args { path } when not given */
    gint64 timeout_s; /* 0: none */
} SvSpecHook;

typedef struct {
    JsonNode *json; /* whole tree, immutable */
    char *oci_version;
    char *root_path; /* absolute: bundle + root.path; not resolved */
    gboolean root_readonly;
    gboolean has_process, terminal;
    guint console_rows, console_cols; /* 0: not given */
    char **args; /* NULL without process */
    char *hostname, *domainname; /* nullable */
    GPtrArray *mounts; /* SvSpecMount */
    GPtrArray *namespaces; /* SvSpecNamespace */
    GPtrArray *devices; /* SvSpecDevice */
    GPtrArray *hooks[6]; /* SvSpecHook; index SvHookKind; never NULL */
    char *cgroups_path; /* nullable */
    GHashTable *annotations; /* char* -> char*, never NULL */
} SvSpec;
typedef enum {
    SV_HOOK_PRESTART,
    SV_HOOK_CREATE_RUNTIME,
    SV_HOOK_CREATE_CONTAINER,
    SV_HOOK_START_CONTAINER,
    SV_HOOK_POSTSTART,
    SV_HOOK_POSTSTOP
} SvHookKind;

/* @bundle: absolute. Loads BUNDLE/config.json and checks it. Messages carry the JSON path. */
SvSpec *sv_spec_load(const char *bundle, GError **error) G_GNUC_WARN_UNUSED_RESULT;
SvSpec *sv_spec_parse(const char *text, gsize len, const char *bundle, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_spec_free(SvSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvSpec, sv_spec_free)
void sv_spec_mount_free(SvSpecMount *mount);
void sv_spec_namespace_free(SvSpecNamespace *ns);
void sv_spec_device_free(SvSpecDevice *device);
void sv_spec_hook_free(SvSpecHook *hook);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvSpecMount, sv_spec_mount_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvSpecNamespace, sv_spec_namespace_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvSpecDevice, sv_spec_device_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvSpecHook, sv_spec_hook_free)

/* What a mount asks for: type "bind", or option bind or rbind. */
gboolean sv_spec_mount_is_bind(const SvSpecMount *mount);
gboolean sv_spec_mount_is_recursive(const SvSpecMount *mount); /* rbind */
gboolean sv_spec_mount_is_read_only(const SvSpecMount *mount); /* the last of ro, rro, rw, rrw */
gboolean sv_spec_mount_has_option(const SvSpecMount *mount, const char *option);
/* NULL when there is none of that type. (transfer none) */
const SvSpecNamespace *sv_spec_namespace(const SvSpec *spec, const char *type);
/* A process.json (exec --process): checked (args, cwd, types); (transfer full) */
JsonNode *sv_process_parse(const char *text, gsize len, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* linux.resources of an update: checked; (transfer full) */
JsonNode *sv_resources_parse(const char *text, gsize len, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The default spec that `sandvirt spec` writes (runc's shape). (transfer full) */
JsonNode *sv_spec_default(void) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
