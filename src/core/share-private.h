/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What share.c, share-bind.c and share-volume.c have in common. */
#pragma once

#include "core/paths.h"

G_BEGIN_DECLS

/* A folder (0755) or an empty file; fine when it is there. */
gboolean sv_share_make_dir(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
gboolean sv_share_make_file(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The path as mountinfo has it (transfer full). */
char *sv_share_real_path(const char *path) G_GNUC_WARN_UNUSED_RESULT;
/* Mounts at @top and below, children before their parents; GPtrArray of SvMountInfo (transfer full). */
GPtrArray *sv_share_mounts(const char *top, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Unmounts them in that order, each tried. @busy: (nullable) "TARGET (SOURCE)" of those that could not be
 * unmounted at once, whether detached lazily then or not. */
gboolean sv_share_umount_all(GPtrArray *mounts, gboolean lazy, GPtrArray *busy, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Takes @error; keeps the first. */
void sv_share_keep_error(GError **first, GError *error);

/* As mount(8) finds the source of a bind: symlinks followed, automounts of a folder triggered. O_PATH, never
 * blocks; -1 + error. */
int sv_share_open_source(const char *source, gboolean *is_dir, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* A clone of what @source names on @target, which exists. */
gboolean sv_share_attach(int source, const char *target, gboolean recursive, gboolean read_only,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Checks "NAME" or "FOLDER/NAME" and makes what it lies in, below base/c/INDEX. */
gboolean sv_share_prepare_name(const SvPaths *paths, guint index, const char *name, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Takes away the volumes that no container but @index links to; as sv_share_release. @busy: added to. */
gboolean sv_share_release_volumes(const SvPaths *paths, guint index, gboolean lazy, GPtrArray *busy,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
