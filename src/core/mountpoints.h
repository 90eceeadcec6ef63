/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mount points inside a rootfs. The guest's runtime makes what is missing itself, but not in a rootfs that
 * the share gives it read-only on the host's side: many images, pause among them, have no /proc. */
#pragma once

#include "core/guestspec.h"

G_BEGIN_DECLS

/* Makes the missing destinations of @spec's mounts and its working directory inside spec->root_path. Symlinks
 * are resolved as in a chroot; nothing outside is ever touched. @sources: as in SvGuestSpecParams.
 * A destination that cannot be made is an error, the working directory is only tried. Blocking but quick. */
gboolean sv_mountpoints_make(const SvSpec *spec, const SvSourceInfo *sources, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
