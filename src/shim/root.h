/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim's mount namespace, which holds nothing of the host: engines join it (cp, top), and a copied
 * mount keeps devices busy. */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* The caller is alone in a mount namespace copied from the host's and pid 1 of a pid namespace. Its root
 * becomes a tiny read-only tmpfs with /proc. */
gboolean sv_root_empty(GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* From there: the detached mount @mount_fd becomes the root, with a /proc when it has that folder. */
gboolean sv_root_enter(int mount_fd, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
