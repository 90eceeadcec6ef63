/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/table.h"
#include <string.h>

char *sv_table_text(const GPtrArray *rows, gsize least)
{
    guint n = rows->len > 0 ? g_strv_length(rows->pdata[0]) : 0;
    g_autofree gsize *width = g_new0(gsize, n + 1);
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < rows->len; i++)
        for (guint c = 0; c < n; c++)
            width[c] = MAX(MAX(width[c], least), strlen(((char **)rows->pdata[i])[c]));
    for (guint i = 0; i < rows->len; i++) {
        char **row = rows->pdata[i];

        for (guint c = 0; c + 1 < n; c++)
            g_string_append_printf(text, "%-*s", (int)width[c] + 3, row[c]);
        g_string_append_printf(text, "%s\n", row[n - 1]);
    }
    return g_string_free(text, FALSE);
}
