/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process.json of an exec. */
#pragma once

#include "base/json.h"
#include "core/record.h"

G_BEGIN_DECLS

/* What the options of exec say. */
typedef struct {
    const char *cwd, *user, *apparmor, *process_label;
    GPtrArray *env, *groups, *caps; /* nullable */
    gboolean tty, no_new_privs;
} SvExecProcess;

/* The container's process with @args instead of its own, and what @wanted changes. (transfer full) */
JsonNode *sv_process_from_container(const SvRecord *record, const SvExecProcess *wanted,
    char **args, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* From a file ("-": stdin), checked. (transfer full) */
JsonNode *sv_process_from_file(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_process_terminal(JsonNode *process, gboolean *terminal, guint *rows, guint *cols);

G_END_DECLS
