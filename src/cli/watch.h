/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What monitors tell to those who watch (method Watch), and all of it for a root: its monitors come and go. */
#pragma once

#include "cli/target.h"

G_BEGIN_DECLS

typedef struct {
    /* One event as a line of JSON without its end. @current: nothing has happened, the container is so.
     * FALSE + @error ends the reading. */
    gboolean (*event)(const char *json, gboolean current, gpointer user_data, GError **error);
    /* Watch is answered: from here on every change is told; "current" was told of each container. (nullable) */
    gboolean (*answered)(gpointer user_data, GError **error);
} SvWatchFuncs;

/* Sends Watch on the connection of @target. */
gboolean sv_watch_begin(SvTarget *target, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Reads once and hands on what is complete. 1: go on; 0: the monitor has gone; -1: @error. */
int sv_watch_read(SvFrameReader *reader, int fd, const SvWatchFuncs *funcs, gpointer user_data,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* Prints every change of state of the root's containers, those made later included, until nobody reads
 * stdout; of @only (nullable) until it is gone. Starts no monitor. */
gboolean sv_watch_states(SvCli *cli, const char *only, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
