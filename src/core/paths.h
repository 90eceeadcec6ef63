/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every path that core uses, in one place; none depends in length on id or root where a socket is
 * meant.
 *
 *   ROOT/ID/state.json                container record (ROOT 0700, default /run/sandvirt)
 *   ROOT/.sandbox/SANDBOX/sandbox.json, lock
 *   ROOT/.sandbox/SANDBOX/entry/      a container's folder on its way in or out: ROOT/ID comes and goes in one step
 *   RUN/.sock/                        0700: launcher, HASH.monitor, HASH.agent, HASH.owner
 *   RUN/.box/HASH/base/               folder behind the share (host writes mount points here)
 *   RUN/.box/HASH/share/              the share: read-only shared bind of base/, virtiofs source
 *   RUN/.box/HASH/console.log
 *   IMAGES/../boot/HASH/{kernel,image} read-only binds that QEMU's user can read
 * Domain: "sandvirt-SANDBOX"; of another root, or when that is too long, "sandvirt-SANDBOX@HASH" with the id cut.
 * RUN is [paths] run_dir of the configuration; HASH = 16 hex digits of sha256(real root, NUL, sandbox). */
#pragma once

#include "base/error.h"
#include "conf/config.h"

G_BEGIN_DECLS

typedef struct {
    char *root; /* real path */
    char *sandbox; /* id */
    char *hash;
    char *state_dir; /* ROOT/.sandbox/SANDBOX */
    char *sandbox_file, *lock_file;
    char *sock_dir; /* RUN/.sock */
    char *monitor_name; /* "HASH.monitor" below sock_dir */
    char *monitor_socket, *agent_socket, *launcher_socket;
    char *owner_file; /* HASH.owner below sock_dir, see core/owner.h */
    char *box_dir, *base_dir, *share_dir, *console_log;
    char *boot_dir, *boot_kernel, *boot_image;
    char *domain_name, *domain_uuid;
} SvPaths;
/* @root: NULL: SV_DEFAULT_ROOT. Resolved as far as it exists, so the derived names are the same before
 * and after it is made; made (0700) when @make. */
SvPaths *sv_paths_new(const SvConfig *config, const char *root, const char *sandbox, gboolean make,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_paths_free(SvPaths *paths);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvPaths, sv_paths_free)
/* Tells the root from others where there is room for no more; never 0. */
guint32 sv_paths_mark(const SvPaths *paths);
/* ROOT/ID and ROOT/ID/state.json; (transfer full) */
char *sv_paths_container_dir(const char *root, const char *id);
char *sv_paths_container_file(const char *root, const char *id);
#define SV_PATHS_RECORD "state.json"
/* ROOT/.sandbox/SANDBOX/entry; (transfer full) */
char *sv_paths_entry_dir(const char *root, const char *sandbox);
#define SV_DEFAULT_ROOT "/run/sandvirt"

G_END_DECLS
