/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/top-table.h"

#include <string.h>

#define MIB (1024.0 * 1024.0)
#define NAME_MIN 12u
#define AROUND 3u /* lines that are no rows: summary, names of the columns, what was cut */

static const char *name_of(const SvMachineStats *stats)
{
    return stats->title && *stats->title ? stats->title : stats->metadata->sandbox;
}

/* The busiest first; those alike by name, so that they keep their places. */
static gint compare(gconstpointer a, gconstpointer b)
{
    const SvTopRow *one = a, *two = b;
    int left = (int)(one->cpu_percent * 10), right = (int)(two->cpu_percent * 10);
    return left != right ? (left < right ? 1 : -1)
                         : strcmp(name_of(one->stats), name_of(two->stats));
}

/* In @width columns. What tells pods apart is mostly at the end of their names. */
static void append_name(GString *text, const char *name, guint width)
{
    glong len = g_utf8_strlen(name, -1);
    if (len > (glong)width) {
        glong tail = (width - 2) * 2 / 3, head = width - 2 - tail;
        g_autofree char *first = g_utf8_substring(name, 0, head);
        g_autofree char *last = g_utf8_substring(name, len - tail, len);
        g_string_append_printf(text, "%s..%s", first, last);
        return;
    }
    g_string_append_printf(text, "%s%*s", name, (int)(width - len), "");
}

/* "0", "812", "1.4K", "23M": four characters at most, five from 1000 units on. */
static void append_size(GString *text, double bytes)
{
    static const char units[] = " KMGT";
    char size[16];
    guint unit = 0;
    for (; bytes >= 1000 && unit + 2 < sizeof units; unit++)
        bytes /= 1024;
    g_snprintf(
        size, sizeof size, unit > 0 && bytes < 9.95 ? "%.1f%c" : "%.0f%c", bytes, units[unit]);
    g_string_append_printf(text, " %6s", g_strchomp(size));
}

static guint running(const SvMachineStats *stats)
{
    guint n = 0;
    for (guint i = 0; i < stats->metadata->containers->len; i++)
        n += g_strcmp0(((const SvMetadataContainer *)stats->metadata->containers->pdata[i])->state,
                 "running") == 0;
    return n;
}

static void append_summary(GString *text, const GArray *rows)
{
    guint suspended = 0, containers = 0, run = 0, vcpus = 0;
    double cpu = 0, host = 0;
    for (guint i = 0; i < rows->len; i++) {
        const SvTopRow *row = &g_array_index(rows, SvTopRow, i);
        suspended += row->stats->state == SV_MACHINE_SUSPENDED;
        containers += row->stats->metadata->containers->len;
        run += running(row->stats);
        vcpus += row->stats->vcpus;
        cpu += row->cpu_percent;
        host += (double)row->stats->memory_used;
    }
    g_string_append_printf(text, "%u pod%s", rows->len, rows->len == 1 ? "" : "s");
    if (suspended > 0)
        g_string_append_printf(text, " (%u suspended)", suspended);
    g_string_append_printf(text,
        ", %u of %u containers run, %u vCPUs at %.0f %%, %.0f MiB of the host\n", run, containers,
        vcpus, cpu, host / MIB);
}

static void append_row(GString *text, const SvTopRow *row, guint width)
{
    const SvMachineStats *stats = row->stats;
    append_name(text, name_of(stats), width);
    g_string_append_printf(text, " %3u/%-2u %5u %6.1f %6.0f %6.0f", running(stats),
        stats->metadata->containers->len, stats->vcpus, row->cpu_percent,
        (double)stats->memory / MIB, (double)stats->memory_used / MIB);
    append_size(text, row->read);
    append_size(text, row->written);
    append_size(text, row->received);
    append_size(text, row->sent);
    g_string_append(text, stats->state == SV_MACHINE_SUSPENDED ? " suspended\n" : "\n");
}

char *sv_top_table(GArray *rows, guint columns, guint lines)
{
    GString *text = g_string_new(NULL), *names = g_string_new(NULL);
    guint width = NAME_MIN, shown = rows->len;
    for (guint i = 0; i < rows->len; i++)
        width =
            MAX(width, (guint)g_utf8_strlen(name_of(g_array_index(rows, SvTopRow, i).stats), -1));
    g_string_append_printf(names, " %6s %5s %6s %6s %6s %6s %6s %6s %6s", "RUN", "VCPUS", "CPU%",
        "MEM", "HOST", "READ/s", "WRIT/s", "RECV/s", "SENT/s");
    if (columns > 0)
        width =
            MIN(width, columns > names->len + NAME_MIN ? columns - (guint)names->len : NAME_MIN);
    if (lines > AROUND && rows->len > lines - AROUND - 1)
        shown = lines - AROUND - 1;
    g_array_sort(rows, compare);
    append_summary(text, rows);
    g_string_append_printf(text, "%-*s%s\n", (int)width, "POD", names->str);
    for (guint i = 0; i < shown; i++)
        append_row(text, &g_array_index(rows, SvTopRow, i), width);
    if (shown < rows->len)
        g_string_append_printf(text, "and %u more\n", rows->len - shown);
    g_string_free(names, TRUE);
    return g_string_free(text, FALSE);
}
