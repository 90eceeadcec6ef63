/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/owner.h"

#include "base/file.h"
#include <string.h>

#define OWNER_MAX 16384

char *sv_owner_text(const SvPaths *paths)
{
    return g_strdup_printf("%s\n%s\n", paths->sandbox, paths->root);
}

gboolean sv_owner_parse(const char *text, char **root, char **sandbox)
{
    /* an id has no newline, so the first one ends it; a root may have some */
    const char *line = strchr(text, '\n');
    gsize len = line ? strlen(line + 1) : 0;
    if (!line || len < 2 || line[len] != '\n')
        return FALSE;
    *sandbox = g_strndup(text, (gsize)(line - text));
    *root = g_strndup(line + 1, len - 1);
    return TRUE;
}

gboolean sv_owner_write(const SvPaths *paths, const char *file, GError **error)
{
    g_autofree char *text = sv_owner_text(paths);
    return sv_file_write_atomic(file, text, strlen(text), 0600, FALSE, error);
}

gboolean sv_owner_read(const char *file, char **root, char **sandbox)
{
    g_autofree char *text = NULL;
    return sv_file_read(file, OWNER_MAX, &text, NULL, NULL) && sv_owner_parse(text, root, sandbox);
}
