/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the verbs of the command line share. */
#pragma once

#include "cli/options.h"
#include "conf/config.h"

G_BEGIN_DECLS

/* The global options and what belongs to one call. */
typedef struct {
    const char *root, *log, *log_format, *config_path;
    gboolean debug, systemd_cgroup, version;
    const char *ignored;
    const SvConfig *config; /* owned; loaded at first use by sv_cli_config */
    char *config_file; /* owned: config_path, absolute */
} SvCli;

typedef enum {
    SV_VERB_ANYBODY = 1 << 0, /* does not need root */
    SV_VERB_FIRST_ONLY = 1 << 1, /* what follows the first argument is a command of its own */
    SV_VERB_EXEC_STATUS = 1 << 2, /* its own failures are 255 */
    SV_VERB_RAW = 1 << 3, /* options are not looked at, --help included: engines probe with it */
} SvVerbFlags;

typedef struct {
    const char *name;
    const char *synopsis; /* of the arguments */
    const char *help; /* one line */
    const SvOption *options;
    gsize values_size;
    guint min_args, max_args;
    guint flags; /* SvVerbFlags */
    /* Returns the exit status, or -1 with @error. @values: the parsed options. @args: at least
     * min_args, NULL-terminated. */
    int (*run)(SvCli *cli, gconstpointer values, char **args, GError **error);
} SvVerb;

/* One file each: cmd-NAME.c */
extern const SvVerb sv_verb_create, sv_verb_start, sv_verb_state, sv_verb_kill, sv_verb_delete,
    sv_verb_run, sv_verb_exec, sv_verb_list, sv_verb_ps, sv_verb_pause, sv_verb_resume,
    sv_verb_update, sv_verb_events, sv_verb_spec, sv_verb_features, sv_verb_stop, sv_verb_gc,
    sv_verb_check, sv_verb_timeline, sv_verb_top, sv_verb_metrics, sv_verb_checkpoint,
    sv_verb_restore;

/* All of them in the order of help, NULL-terminated. */
extern const SvVerb *const sv_verbs[];
extern const SvOption sv_global_options[]; /* into an SvCli */

/* (transfer none) The configuration of this call; NULL + @error. */
const SvConfig *sv_cli_config(SvCli *cli, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Writes @text to stdout; FALSE + @error. */
gboolean sv_cli_print(const char *text, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The pid file, by rename. NULL @path: nothing to do. */
gboolean sv_cli_write_pid(const char *path, int pid, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* A file that the caller names, "-" is stdin: one of any kind (a shell's <(...) is a pipe), of at most @max bytes. */
gboolean sv_cli_read_file(const char *path, gsize max, char **text, gsize *len, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Refuses, before anything is made, a pid file whose folder is not there. */
gboolean sv_cli_check_pid_file(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
