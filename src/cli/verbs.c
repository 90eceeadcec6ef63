/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All verbs and global options: for the command line, its help and the manual page. */
#include "cli/cli.h"

const SvVerb *const sv_verbs[] = {&sv_verb_create, &sv_verb_start, &sv_verb_state, &sv_verb_kill,
    &sv_verb_delete, &sv_verb_run, &sv_verb_exec, &sv_verb_list, &sv_verb_ps, &sv_verb_pause,
    &sv_verb_resume, &sv_verb_stop, &sv_verb_gc, &sv_verb_check, &sv_verb_timeline, &sv_verb_top,
    &sv_verb_metrics, &sv_verb_update, &sv_verb_events, &sv_verb_spec, &sv_verb_features,
    &sv_verb_checkpoint, &sv_verb_restore, NULL};

#define FIELD(name) G_STRUCT_OFFSET(SvCli, name)
const SvOption sv_global_options[] = {
    {"root", 0, SV_OPT_STRING, FIELD(root), "DIR", "where state is kept (/run/sandvirt)"},
    {"log", 0, SV_OPT_STRING, FIELD(log), "FILE", "append warnings and errors to this file"},
    {"log-format", 0, SV_OPT_STRING, FIELD(log_format), "FORMAT", "of that file: text or json"},
    {"debug", 0, SV_OPT_FLAG, FIELD(debug), NULL, "log more"},
    {"config", 0, SV_OPT_STRING, FIELD(config_path), "FILE", "configuration to use"},
    {"systemd-cgroup", 0, SV_OPT_FLAG, FIELD(systemd_cgroup), NULL,
        "cgroupsPath is SLICE:PREFIX:NAME"},
    {"version", 'v', SV_OPT_FLAG, FIELD(version), NULL, "print the version"},
    {"criu", 0, SV_OPT_STRING, FIELD(ignored), "PATH", NULL},
    {"cgroup-manager", 0, SV_OPT_STRING, FIELD(ignored), "NAME", NULL},
    {"rootless", 0, SV_OPT_STRING, FIELD(ignored), "WHEN", NULL},
    {NULL},
};
