/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shared folder of a sandbox on the host: base/ behind, share/ in front (read-only, shared mount,
 * virtiofs source). Containers' trees are bound below share/c/INDEX/. Blocking but quick calls. */
#pragma once

#include "core/paths.h"

G_BEGIN_DECLS

/* Makes base/, share/ as a read-only MS_SHARED self mount, boot/ with read-only binds of kernel and
 * image. Idempotent (a recovering monitor calls it again). */
gboolean sv_share_make(const SvPaths *paths, const char *kernel, const char *image, GError **error);
/* Unmounts everything below and removes box and boot folders; each step tried; first error. */
gboolean sv_share_destroy(const SvPaths *paths, GError **error);

/* Binds @source (followed by the kernel as in a bind mount; folder, file, fifo, socket, device node; opened
 * O_PATH, never blocks) at share/c/INDEX/NAME. @recursive: with submounts. @read_only: on the host's side too,
 * recursively. NAME is ours: "rootfs", "m0", ... */
gboolean sv_share_bind(const SvPaths *paths, guint index, const char *name, const char *source,
    gboolean recursive, gboolean read_only, GError **error);
/* Detached private recursive clone of share/c/INDEX/NAME, for the shim; -1 + error. */
int sv_share_clone(const SvPaths *paths, guint index, const char *name, GError **error);
/* Takes everything of share/c/INDEX away. @lazy FALSE: SV_ERR_BUSY when something is busy (what could be
 * unmounted is); TRUE: detaches lazily. Missing: TRUE. *busy_sources (nullable out, transfer full): sources still held. */
gboolean sv_share_release(
    const SvPaths *paths, guint index, gboolean lazy, GPtrArray **busy, GError **error);
/* Names bound below share/c/INDEX (for tests, gc). */
GPtrArray *sv_share_list(const SvPaths *paths, GError **error);

G_END_DECLS
