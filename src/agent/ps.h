/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
    char comm[64];
    char state;
    int ppid, pgid, sid;
    int tty, tpgid;
    guint flags;
    int priority, nice, threads, processor;
    guint64 vsize; /* bytes */
    gint64 rss; /* pages */
    guint64 cpu_ticks;
    guint64 start_ticks;
} SvPsStat;

/* /proc/PID/stat; the name in it may hold anything. */
gboolean sv_ps_parse_stat(const char *text, SvPsStat *stat);

G_END_DECLS
