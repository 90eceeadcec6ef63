/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shared folder of a sandbox on the host: base/ behind, share/ in front (read-only, shared mount,
 * virtiofs source). Containers' trees are bound below share/c/INDEX/, volumes below share/v/. Blocking but quick calls. */
#pragma once

#include "core/paths.h"

G_BEGIN_DECLS

/* Makes base/, share/ as a read-only MS_SHARED mount of it, boot/ with read-only binds of kernel and
 * image. Idempotent (a recovering monitor calls it again). */
gboolean sv_share_make(const SvPaths *paths, const char *kernel, const char *image, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Unmounts everything below (lazily what is busy) and removes box and boot folders; each step tried;
 * first error. Nothing there: TRUE. */
gboolean sv_share_destroy(const SvPaths *paths, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Kills what serves the share (virtiofsd) of a machine that is gone for sure. */
void sv_share_end_servers(const SvPaths *paths, const SvConfig *config);
/* Binds the file that @fd stands for at boot/NAME, where QEMU finds it. */
gboolean sv_share_bind_file(const SvPaths *paths, const char *name, int fd, gboolean read_only,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Takes it away (lazily); what goes wrong is left to sv_share_destroy. */
void sv_share_unbind_file(const SvPaths *paths, const char *name);

/* Binds @source (symlinks followed as in a bind mount; folder, file, fifo, socket, device node; opened
 * O_PATH, never blocks) at share/c/INDEX/NAME. @recursive: with submounts. @read_only: on the host's
 * side too, recursively. Nothing propagates back to the source, and mounts made below the source later
 * do not appear. NAME is ours: "rootfs". Mounted already: SV_ERR_EXISTS. */
gboolean sv_share_bind(const SvPaths *paths, guint index, const char *name, const char *source,
    gboolean recursive, gboolean read_only, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The same for what containers of the sandbox may have in common: bound once for the same @source (inode,
 * flags, mounts below), @recursive and @read_only, with a symlink at share/c/INDEX/NAME. */
gboolean sv_share_bind_volume(const SvPaths *paths, guint index, const char *name,
    const char *source, gboolean recursive, gboolean read_only, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* FALSE + SV_ERR_INVALID when process @pid, whose root is the share (virtiofsd's is), does not find there what is
 * bound at share/c/INDEX/NAME: the mount has not come to its namespace. A root of another kind tells nothing:
 * TRUE. */
gboolean sv_share_check_seen(const SvPaths *paths, pid_t pid, guint index, const char *name,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Detached private recursive clone of share/c/INDEX/NAME, for the shim; -1 + error. */
int sv_share_clone(const SvPaths *paths, guint index, const char *name, GError **error);
/* Takes everything of share/c/INDEX away, and the volumes that no other container has. @lazy FALSE: SV_ERR_BUSY when something is busy (what could be
 * unmounted is); TRUE: what is busy is detached lazily. Missing: TRUE. *busy (nullable out, transfer
 * full, also on failure; char* "TARGET (SOURCE)"): what could not be unmounted at once: still held. */
gboolean sv_share_release(const SvPaths *paths, guint index, gboolean lazy, GPtrArray **busy,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* "INDEX/NAME" of all that is bound below share/c (for recovery, tests, gc); (transfer full). */
GPtrArray *sv_share_list(const SvPaths *paths, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
