/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose a box is: its folder's name is a hash, and gc must know the root before it touches anything. */
#include <config.h>

#include "core/share.h"

#include "base/file.h"
#include "core/share-private.h"
#include <string.h>

#define OWNER_FILE "owner"
#define OWNER_MAX 16384

gboolean sv_share_write_owner(const SvPaths *paths, const char *folder, GError **error)
{
    g_autofree char *path = g_build_filename(folder, OWNER_FILE, NULL);
    g_autofree char *text = g_strdup_printf("%s\n%s\n", paths->sandbox, paths->root);
    return sv_file_write_atomic(path, text, strlen(text), 0600, FALSE, error);
}

gboolean sv_share_owner(const char *folder, char **root, char **sandbox)
{
    g_autofree char *path = g_build_filename(folder, OWNER_FILE, NULL);
    g_autofree char *text = NULL;
    if (!sv_file_read(path, OWNER_MAX, &text, NULL, NULL))
        return FALSE;
    /* an id has no newline, so the first one ends it; a root may have some */
    char *line = strchr(text, '\n');
    gsize len = line ? strlen(line + 1) : 0;
    if (!line || len < 2 || line[len] != '\n')
        return FALSE;
    *line = line[len] = '\0';
    *sandbox = g_strdup(text);
    *root = g_strdup(line + 1);
    return TRUE;
}
