/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose a thing is whose name does not tell: gc must know the root before it touches anything. */
#pragma once

#include "core/paths.h"

G_BEGIN_DECLS

/* Written into box and boot folder; beside sockets stands SvPaths.owner_file. */
#define SV_OWNER_FILE "owner"

/* Sandbox and root as text (transfer full), and back. */
char *sv_owner_text(const SvPaths *paths);
gboolean sv_owner_parse(const char *text, char **root, char **sandbox) G_GNUC_WARN_UNUSED_RESULT;

gboolean sv_owner_write(const SvPaths *paths, const char *file, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Out (transfer full). FALSE: not known. */
gboolean sv_owner_read(const char *file, char **root, char **sandbox) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
