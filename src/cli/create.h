/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `create` and `run` have in common: a container up to READY. */
#pragma once

#include "cli/shim-child.h"
#include "cli/target.h"
#include "oci/spec.h"

G_BEGIN_DECLS

/* Options of both; the table's first rows. */
typedef struct {
    const char *bundle, *console_socket, *pid_file, *pidfd_socket;
    gboolean no_pivot, no_new_keyring, no_subreaper;
    gint64 preserve_fds;
} SvCreateOptions;
#define SV_CREATE_OPTION_ROWS(type, field)                                                         \
    {"bundle", 'b', SV_OPT_STRING, G_STRUCT_OFFSET(type, field.bundle), "DIR",                     \
        "bundle (the current folder)"},                                                            \
        {"console-socket", 0, SV_OPT_STRING, G_STRUCT_OFFSET(type, field.console_socket), "PATH",  \
            "unix socket that receives the terminal"},                                             \
        {"pid-file", 0, SV_OPT_STRING, G_STRUCT_OFFSET(type, field.pid_file), "FILE",              \
            "where to write the container's pid"},                                                 \
        {"pidfd-socket", 0, SV_OPT_STRING, G_STRUCT_OFFSET(type, field.pidfd_socket), "PATH",      \
            "unix socket that receives its pidfd"},                                                \
        {"no-pivot", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(type, field.no_pivot), NULL,                  \
            "no pivot_root in the machine"},                                                       \
        {"no-new-keyring", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(type, field.no_new_keyring), NULL,      \
            "keep the session keyring"},                                                           \
        {"no-subreaper", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(type, field.no_subreaper), NULL, NULL},   \
    {                                                                                              \
        "preserve-fds", 0, SV_OPT_INT, G_STRUCT_OFFSET(type, field.preserve_fds), "N",             \
            "further descriptors of the caller that it gets, as streams"                           \
    }

typedef struct {
    SvTarget target;
    SvShimChild shim;
    SvSpec *spec; /* owned */
    char *bundle; /* owned, absolute */
} SvCreated;
#define SV_CREATED_INIT                                                                            \
    {                                                                                              \
        SV_TARGET_INIT, SV_SHIM_CHILD_INIT, NULL, NULL                                             \
    }
void sv_created_clear(SvCreated *created);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SvCreated, sv_created_clear)

/* @foreground: the caller stays and its own terminal may be used. On return the container is READY, its
 * pid is written and the shim goes on alone. On failure nothing of it is left. */
gboolean sv_create(SvCli *cli, const SvCreateOptions *options, const char *id, gboolean foreground,
    SvCreated *created, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
