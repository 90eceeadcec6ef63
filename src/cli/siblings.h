/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* The absolute path of another program of this build or installation: "monitor" or "shim". The build
 * folder's when this program lies there, the installed one else. (transfer full), NULL + @error. */
char *sv_sibling(const char *name, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
