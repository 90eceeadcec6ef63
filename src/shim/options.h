/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim's command line: --NAME=VALUE and --NAME only, written by the command line program. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Descriptors that the shim is started with, beside the caller's 0, 1 and 2. */
#define SV_SHIM_CALLER_FD 3 /* SOCK_SEQPACKET to the program that started it */
#define SV_SHIM_SOCK_FD 4 /* detached clone of the mount of RUN/.sock */

/* Messages on SV_SHIM_CALLER_FD. Shim: */
#define SV_SHIM_READY 'R' /* it holds the streams or the terminal, and has left the host's mounts */
#define SV_SHIM_ERROR_TEXT 'E' /* followed by one line; it ends */
/* and its starter; closing before that makes the shim end */
#define SV_SHIM_GO 'G' /* the container is created: go on alone */

typedef struct {
    const char *container; /* id */
    const char *monitor; /* name of the monitor's socket */
    const char *launcher; /* name of the launcher's socket, "" : none */
    const char *root, *sandbox; /* for the launcher */
    const char *config, *monitor_path; /* "" : none */
    const char *console_socket; /* "" : none */
    guint32 handle;
    guint rows, cols;
    gboolean debug, terminal, no_stdin;
} SvShimOptions;

/* Strings are borrowed from @argv. */
gboolean sv_shim_options_parse(SvShimOptions *options, int argc, char **argv, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
