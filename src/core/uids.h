/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A system user for each machine's QEMU, from the configured range: so that a QEMU that a guest has
 * broken into cannot reach the others. Who has which stands in RUN/.uid/UID. Blocking but quick. */
#pragma once

#include "core/paths.h"

G_BEGIN_DECLS

/* A free one for @paths' sandbox, whose record must name it before others may see the claim as stale:
 * @save is called with it while the claim is locked. -1 in *@uid when no range is configured. */
typedef gboolean (*SvUidSave)(int uid, gpointer user_data, GError **error);
gboolean sv_uids_take(const SvConfig *config, const SvPaths *paths, SvUidSave save,
    gpointer user_data, int *uid, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Of another sandbox, or nobody's: nothing happens. -1 is fine. */
void sv_uids_release(const SvConfig *config, const SvPaths *paths, int uid);
typedef struct {
    int uid;
    char *root, *sandbox;
} SvUidClaim;
/* All claims, of all roots: SvUidClaim (transfer full). */
GPtrArray *sv_uids_list(const SvConfig *config) G_GNUC_WARN_UNUSED_RESULT;
/* Its primary group, -1 when there is no such user. */
int sv_uids_group(int uid);
/* Whether every user of the range is there and may use what QEMU needs. */
gboolean sv_uids_check(const SvConfig *config, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
