/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim's command line: --NAME=VALUE and --NAME only, written by the command line program. */
#pragma once

#include "base/error.h"
#include "core/shim-start.h"

G_BEGIN_DECLS

typedef struct {
    const char *container; /* id */
    const char *monitor; /* name of the monitor's socket */
    const char *launcher; /* name of the launcher's socket, "" : none */
    const char *root, *sandbox; /* for the launcher */
    const char *config, *monitor_path; /* "" : none */
    const char *console_socket; /* "" : none */
    guint32 handle;
    guint rows, cols;
    guint32 descriptors; /* how many beside 0, 1 and 2 */
    gboolean debug, terminal, no_stdin;
} SvShimOptions;

/* Strings are borrowed from @argv. */
gboolean sv_shim_options_parse(SvShimOptions *options, int argc, char **argv, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
