/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What share.c and share-bind.c have in common. */
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

/* RUN/.box/HASH/owner, for sv_share_owner. */
gboolean sv_share_write_owner(const SvPaths *paths, GError **error);

G_END_DECLS
