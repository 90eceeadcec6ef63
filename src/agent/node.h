/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Nodes of devices in a container that runs. */
#pragma once

#include "agent/service.h"
#include <sys/types.h>

G_BEGIN_DECLS

/* Makes the node @path (absolute) of a block device inside the root that @root_fd names, with the folders
 * above it; symbolic links are resolved in there. There already: SV_ERR_EXISTS. */
gboolean sv_node_make(int root_fd, const char *path, dev_t device, mode_t mode, uid_t uid,
    gid_t gid, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* Takes it away when it is that device's. Missing, or another's: TRUE. */
gboolean sv_node_remove(int root_fd, const char *path, dev_t device, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* Methods */
void sv_node_add_call(SvCall *call);
void sv_node_remove_call(SvCall *call);

G_END_DECLS
