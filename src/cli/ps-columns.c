/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/ps-columns.h"
#include "base/error.h"
#include <string.h>

#define ARGS_SHOWN 4096
#define PAGE_KIB 4 /* of x86 */

typedef const Sandvirt__V1__PsRow Row;
typedef const Sandvirt__V1__PsResponse All;

static char *number(gint64 value)
{
    return g_strdup_printf("%" G_GINT64_FORMAT, value);
}

#define NUMBER_CELL(name, expression)                                                              \
    static char *cell_##name(Row *row, All *all)                                                   \
    {                                                                                              \
        return number((gint64)(expression));                                                       \
    }

NUMBER_CELL(pid, row->pid)
NUMBER_CELL(ppid, row->ppid)
NUMBER_CELL(pgid, row->pgid)
NUMBER_CELL(sid, row->sid)
NUMBER_CELL(tpgid, row->tpgid)
NUMBER_CELL(uid, row->uid)
NUMBER_CELL(gid, row->gid)
NUMBER_CELL(vsz, row->vsz_kib)
NUMBER_CELL(rss, row->rss_kib)
NUMBER_CELL(sz, row->vsz_kib / PAGE_KIB)
NUMBER_CELL(nice, row->nice)
NUMBER_CELL(priority, row->priority)
NUMBER_CELL(pri, 39 - row->priority)
NUMBER_CELL(old_pri, 60 + row->priority)
NUMBER_CELL(threads, row->threads)
NUMBER_CELL(processor, row->processor)
NUMBER_CELL(flags, row->flags >> 6 & 7)
NUMBER_CELL(etimes, MAX(all->now - row->start_time, 0))
NUMBER_CELL(cputimes, row->cpu_ms / 1000)

/* Tenths of a percent of a processor, over its whole life. */
static gint64 cpu_share(Row *row, All *all)
{
    gint64 seconds = all->now - row->start_time;

    return seconds > 0 ? (gint64)row->cpu_ms / seconds : 0;
}

static char *tenths(gint64 value)
{
    return g_strdup_printf("%" G_GINT64_FORMAT ".%d", value / 10, (int)(value % 10));
}

NUMBER_CELL(share, MIN(cpu_share(row, all) / 10, 99))

static char *cell_cpu(Row *row, All *all)
{
    return tenths(cpu_share(row, all));
}

static char *cell_memory(Row *row, All *all)
{
    return tenths(all->memory_kib ? (gint64)(row->rss_kib * 1000 / all->memory_kib) : 0);
}

static char *cell_user(Row *row, All *all)
{
    return *row->user ? sv_printable(row->user, 32) : cell_uid(row, all);
}

static char *cell_group(Row *row, All *all)
{
    return row->gid == 0 ? g_strdup("root") : cell_gid(row, all);
}

/* "01:02:03", "1-02:03:04"; without hours when @short_form. */
static char *clock_text(gint64 seconds, gboolean short_form)
{
    int s = (int)(seconds % 60), m = (int)(seconds / 60 % 60), h = (int)(seconds / 3600 % 24);
    gint64 days = seconds / 86400;

    if (days > 0)
        return g_strdup_printf("%" G_GINT64_FORMAT "-%02d:%02d:%02d", days, h, m, s);
    if (short_form && h == 0)
        return g_strdup_printf("%02d:%02d", m, s);
    return g_strdup_printf("%02d:%02d:%02d", h, m, s);
}

static char *cell_time(Row *row, All *all)
{
    return clock_text((gint64)(row->cpu_ms / 1000), FALSE);
}

static char *cell_bsd_time(Row *row, All *all)
{
    gint64 seconds = (gint64)(row->cpu_ms / 1000);

    return g_strdup_printf("%" G_GINT64_FORMAT ":%02d", seconds / 60, (int)(seconds % 60));
}

static char *cell_elapsed(Row *row, All *all)
{
    return clock_text(MAX(all->now - row->start_time, 0), TRUE);
}

static char *start_text(Row *row, All *all, const char *today, const char *before)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(row->start_time);
    gboolean recent = all->now - row->start_time < 24 * 3600;
    char *text = time ? g_date_time_format(time, recent ? today : before) : NULL;

    return text ? text : g_strdup("?");
}

static char *cell_start(Row *row, All *all)
{
    return start_text(row, all, "%H:%M:%S", "%b %d");
}

static char *cell_start_short(Row *row, All *all)
{
    return start_text(row, all, "%H:%M", "%b%d");
}

static char *cell_start_long(Row *row, All *all)
{
    return start_text(row, all, "%a %b %e %H:%M:%S %Y", "%a %b %e %H:%M:%S %Y");
}

static char *cell_tty(Row *row, All *all)
{
    return *row->tty ? sv_printable(row->tty, 16) : g_strdup("?");
}

static char *cell_state(Row *row, All *all)
{
    return sv_printable(row->state, 8);
}

static char *cell_state_long(Row *row, All *all)
{
    g_autofree char *state = sv_printable(row->state, 8);
    const char *nice = row->nice < 0 ? "<" : row->nice > 0 ? "N" : "";

    return g_strconcat(state, nice, row->sid == (gint32)row->pid ? "s" : "",
        row->threads > 1 ? "l" : "", row->tpgid > 0 && row->tpgid == row->pgid ? "+" : "", NULL);
}

static char *with_end(Row *row, const char *text)
{
    g_autofree char *shown = sv_printable(text, ARGS_SHOWN);

    return g_strconcat(shown, g_str_equal(row->state, "Z") ? " <defunct>" : "", NULL);
}

static char *cell_comm(Row *row, All *all)
{
    return with_end(row, row->comm);
}

static char *cell_args(Row *row, All *all)
{
    return with_end(row, *row->args ? row->args : row->comm);
}

static char *cell_unknown(Row *row, All *all)
{
    return g_strdup("-");
}

static char *cell_class(Row *row, All *all)
{
    return g_strdup(row->priority < 0 ? "RR" : "TS");
}

static const SvPsColumn columns[] = {
    {"pid,tgid", "PID", cell_pid, TRUE},
    {"ppid", "PPID", cell_ppid, TRUE},
    {"pgid,pgrp", "PGID", cell_pgid, TRUE},
    {"sid,sess,session", "SID", cell_sid, TRUE},
    {"tpgid", "TPGID", cell_tpgid, TRUE},
    {"uid,euid,ruid", "UID", cell_uid, TRUE},
    {"gid,egid,rgid", "GID", cell_gid, TRUE},
    {"user,uname,euser", "USER", cell_user, FALSE},
    {"ruser", "RUSER", cell_user, FALSE},
    {"group,egroup", "GROUP", cell_group, FALSE},
    {"rgroup", "RGROUP", cell_group, FALSE},
    {"c", "C", cell_share, TRUE},
    {"pcpu,%cpu", "%CPU", cell_cpu, TRUE},
    {"pmem,%mem", "%MEM", cell_memory, TRUE},
    {"vsz,vsize", "VSZ", cell_vsz, TRUE},
    {"rss,rssize,rsz", "RSS", cell_rss, TRUE},
    {"sz", "SZ", cell_sz, TRUE},
    {"nice,ni", "NI", cell_nice, TRUE},
    {"pri", "PRI", cell_pri, TRUE},
    {"opri", "PRI", cell_old_pri, TRUE},
    {"priority", "PRI", cell_priority, TRUE},
    {"class,cls", "CLS", cell_class, FALSE},
    {"nlwp,thcount", "NLWP", cell_threads, TRUE},
    {"psr", "PSR", cell_processor, TRUE},
    {"f,flag,flags", "F", cell_flags, TRUE},
    {"stime,start_time", "STIME", cell_start_short, TRUE},
    {"bsdstart", "START", cell_start_short, TRUE},
    {"start", "STARTED", cell_start, TRUE},
    {"lstart", "STARTED", cell_start_long, TRUE},
    {"etime", "ELAPSED", cell_elapsed, TRUE},
    {"etimes", "ELAPSED", cell_etimes, TRUE},
    {"time,cputime", "TIME", cell_time, TRUE},
    {"cputimes,times", "TIME", cell_cputimes, TRUE},
    {"bsdtime", "TIME", cell_bsd_time, TRUE},
    {"tty,tt", "TT", cell_tty, FALSE},
    {"tname", "TTY", cell_tty, FALSE},
    {"s,state", "S", cell_state, FALSE},
    {"stat", "STAT", cell_state_long, FALSE},
    {"wchan", "WCHAN", cell_unknown, FALSE},
    {"addr", "ADDR", cell_unknown, FALSE},
    {"comm,ucomm", "COMMAND", cell_comm, FALSE},
    {"ucmd", "CMD", cell_comm, FALSE},
    {"args,command", "COMMAND", cell_args, FALSE},
    {"cmd", "CMD", cell_args, FALSE},
};

const SvPsColumn *sv_ps_column(const char *name)
{
    gsize len = strlen(name);

    for (gsize i = 0; len > 0 && !strchr(name, ',') && i < G_N_ELEMENTS(columns); i++)
        for (const char *p = columns[i].names; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
            if (strncmp(p, name, len) == 0 && (p[len] == ',' || p[len] == '\0'))
                return &columns[i];
    return NULL;
}
