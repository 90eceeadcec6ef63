/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim, from its parent's side. */
#pragma once

#include "cli/target.h"
#include <sys/types.h>

G_BEGIN_DECLS

typedef struct {
    pid_t pid; /* 0: none */
    guint64 start;
    int pidfd, sock; /* -1: none */
} SvShimChild;
#define SV_SHIM_CHILD_INIT                                                                         \
    {                                                                                              \
        0, 0, -1, -1                                                                               \
    }
/* Lets go of it: it ends by itself when it was not told to go on. */
void sv_shim_child_clear(SvShimChild *child);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SvShimChild, sv_shim_child_clear)

typedef struct {
    const char *container;
    guint32 handle;
    gboolean terminal;
    guint rows, cols;
    const char *console_socket; /* nullable */
    int netns_fd; /* -1: the caller's */
    gboolean new_netns;
    guint preserve_fds; /* of the caller's, from 3 on */
} SvShimArgs;

/* Starts it with the caller's 0, 1 and 2 and waits until it holds them and its terminal. */
gboolean sv_shim_child_start(SvShimChild *child, const SvCli *cli, const SvPaths *paths,
    const SvConfig *config, const SvShimArgs *args, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Its pidfd to who listens on the unix socket @path (nullable: nothing is done). */
gboolean sv_shim_child_send_pidfd(const SvShimChild *child, const char *path, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* The process is there: the shim goes on without us. @may_have_ended: what it served may be over already, and
 * its status is the answer then. */
gboolean sv_shim_child_release(SvShimChild *child, gboolean may_have_ended, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Asks the monitor for what takes long, and for which the shim must live. */
gboolean sv_shim_child_call(SvShimChild *child, SvTarget *target, const char *method,
    const ProtobufCMessage *message, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The value of --preserve-fds; FALSE: too many, or one is not open. */
gboolean sv_preserve_fds_check(gint64 n, guint *count, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Whether the caller's stdin is /dev/null. */
gboolean sv_stdin_is_null(void);
/* For a process with a terminal, in the foreground and without a console socket. FALSE: the caller has none, and nothing
 * to read, so that its input could never end. */
gboolean sv_terminal_check(GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
