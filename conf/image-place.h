/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Working in place: a program that runs from its build folder uses the guest image built there. */
#pragma once

#include "conf/config.h"

G_BEGIN_DECLS

/* The kernel and image of this build (BUILD/guest), put below IMAGE_DIR under the names that carry their hash, where
 * QEMU's user can read them. FALSE without @error: this program is installed, or its build has no image. FALSE with
 * @error: they could not be put there. Out (transfer full). */
gboolean sv_image_in_place(const SvConfig *config, char **kernel, char **image, GError **error);

G_END_DECLS
