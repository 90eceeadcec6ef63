/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files: atomic replacement, bounded reads, folders. */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

/* Opens the folder that holds @path (O_RDONLY | O_DIRECTORY | O_CLOEXEC) and gives the last component
 * in @name (transfer full). -1 + SV_ERR_INVALID when @path has none ("", "/", "a/", "..", "."). */
int sv_file_open_parent(const char *path, char **name, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Writes @data to a temporary name in the same folder and renames it. @durable: fsync file and
 * folder. Never leaves the temporary behind on error. */
gboolean sv_file_write_atomic(const char *path, const void *data, gsize len, mode_t mode,
    gboolean durable, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Whole regular file, at most @max bytes (bigger: SV_ERR_LIMIT), NUL-terminated. Never blocks on a
 * fifo (opened O_NONBLOCK and refused with SV_ERR_INVALID when it is not a regular file). */
gboolean sv_file_read(const char *path, gsize max, char **data, gsize *len, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* mkdir -p; existing folders are fine. */
gboolean sv_file_mkdirs(const char *path, mode_t mode, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Removes a tree without following symlinks and without crossing into another mount. Missing is
 * success. Tries everything, returns the first error. */
gboolean sv_file_remove_tree(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* flock(LOCK_EX | LOCK_NB) on @path (created 0600, O_CLOEXEC). fd, or -1: SV_ERR_BUSY when held. */
int sv_file_lock(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The last @max bytes of a file, made printable line by line (transfer full); "" when unreadable. */
char *sv_file_tail(const char *path, gsize max) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
