/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/record.h"
#include "hypervisor/stats.h"

G_BEGIN_DECLS

/* Of the machines of this root (a real path; NULL: of all roots), by sandbox. (transfer full) */
GPtrArray *sv_root_stats(const SvConfig *config, const char *root, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* What a root holds: records of containers (SvRecord) and of sandboxes (SvSandboxRecord), by id. */
typedef struct {
    char *path;
    GPtrArray *records, *sandboxes;
} SvRoot;
/* This root, or, for NULL, all that @machines (SvMachineStats) are of: SvRoot, by path (transfer full). Records that
 * cannot be read are left out. */
GPtrArray *sv_roots_load(const SvConfig *config, const char *root, const GPtrArray *machines,
    GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The sandbox of a container's record; NULL when it has none. */
const SvSandboxRecord *sv_root_sandbox(const SvRoot *root, const char *id);

G_END_DECLS
