/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/stats-files.h"

#include "base/names.h"
#include <string.h>

const char *sv_stats_file(const Sandvirt__V1__StatsResponse *stats, const char *name)
{
    for (size_t i = 0; i < stats->n_files; i++)
        if (g_str_equal(stats->files[i]->key, name))
            return stats->files[i]->value;
    return "";
}

gint64 sv_stats_number(const Sandvirt__V1__StatsResponse *stats, const char *name, gint64 missing)
{
    g_autofree char *text = g_strstrip(g_strdup(sv_stats_file(stats, name)));
    gint64 value = missing;

    if (g_str_equal(text, "max"))
        return SV_STATS_UNLIMITED;
    return sv_parse_int64(text, 0, G_MAXINT64, &value, NULL) ? value : missing;
}

gint64 sv_stats_keyed(const char *text, const char *key)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gsize len = strlen(key);

    for (char **line = lines; *line; line++) {
        gint64 value = 0;

        if (strncmp(*line, key, len) == 0 && (*line)[len] == ' ' &&
            sv_parse_int64(g_strstrip(*line + len + 1), 0, G_MAXINT64, &value, NULL))
            return value;
    }
    return 0;
}
