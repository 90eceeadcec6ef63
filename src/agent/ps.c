/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ps: the processes of a container's cgroup, from /proc. */
#include "agent/container.h"
#include "agent/ps.h"
#include "base/fd.h"
#include "rpc/sandvirt.pb-c.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ROWS_MAX 4096
#define TEXT_MAX 4096

gboolean sv_ps_parse_stat(const char *text, SvPsStat *stat)
{
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    unsigned long long utime = 0, stime = 0, start = 0, vsize = 0;
    long long rss = 0;

    memset(stat, 0, sizeof(*stat));
    if (!open || !close || close < open)
        return FALSE;
    g_strlcpy(stat->comm, open + 1, MIN(sizeof(stat->comm), (gsize)(close - open)));
    if (sscanf(close + 1,
            " %c %d %d %d %d %d %u %*u %*u %*u %*u %llu %llu %*d %*d %d %d %d %*d %llu %llu %lld "
            "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %d",
            &stat->state, &stat->ppid, &stat->pgid, &stat->sid, &stat->tty, &stat->tpgid,
            &stat->flags, &utime, &stime, &stat->priority, &stat->nice, &stat->threads, &start,
            &vsize, &rss, &stat->processor) < 15)
        return FALSE;
    stat->cpu_ticks = utime + stime;
    stat->start_ticks = start;
    stat->vsize = vsize;
    stat->rss = rss;
    return TRUE;
}

static gint64 boot_time(void)
{
    g_autofree char *text = NULL;
    const char *line;

    if (!g_file_get_contents("/proc/stat", &text, NULL, NULL) || !(line = strstr(text, "btime ")))
        return 0;
    return g_ascii_strtoll(line + strlen("btime "), NULL, 10);
}

static char *read_file(pid_t pid, const char *name, gsize *len)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", pid, name);
    g_auto(SvFd) fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = g_malloc0(TEXT_MAX + 1);
    ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_MAX);

    *len = n > 0 ? (gsize)n : 0;
    return text;
}

static char *read_args(pid_t pid, const char *comm)
{
    gsize len = 0;
    g_autofree char *text = read_file(pid, "cmdline", &len);
    char *valid;

    while (len > 0 && text[len - 1] == '\0')
        len--;
    if (len == 0)
        return g_strdup_printf("[%s]", comm);
    for (gsize i = 0; i < len; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    valid = g_utf8_make_valid(text, (gssize)len);
    return valid;
}

static char *tty_name(int tty)
{
    guint number = (guint)tty;

    if (number == 0)
        return g_strdup("?");
    if (major(number) >= 136 && major(number) <= 143)
        return g_strdup_printf("pts/%u", (major(number) - 136) * 256 + minor(number));
    return g_strdup_printf("tty%u", minor(number));
}

static void fill_numbers(Sandvirt__V1__PsRow *row, const SvPsStat *info)
{
    row->pgid = info->pgid;
    row->sid = info->sid;
    row->tpgid = info->tpgid;
    row->flags = info->flags;
    row->priority = info->priority;
    row->nice = info->nice;
    row->threads = (guint32)info->threads;
    row->vsz_kib = info->vsize / 1024;
    row->rss_kib = (guint64)MAX(info->rss, 0) * (guint64)sysconf(_SC_PAGESIZE) / 1024;
    row->processor = (guint32)info->processor;
}

static Sandvirt__V1__PsRow *make_row(pid_t pid, gint64 boot)
{
    long hz = sysconf(_SC_CLK_TCK);
    g_autofree char *dir = g_strdup_printf("/proc/%d", pid);
    gsize len = 0;
    g_autofree char *text = read_file(pid, "stat", &len);
    Sandvirt__V1__PsRow *row;
    SvPsStat info;
    struct stat st;

    if (!sv_ps_parse_stat(text, &info) || stat(dir, &st) < 0)
        return NULL;
    row = g_new0(Sandvirt__V1__PsRow, 1);
    sandvirt__v1__ps_row__init(row);
    row->pid = (guint32)pid;
    row->ppid = (guint32)info.ppid;
    row->uid = st.st_uid;
    row->gid = st.st_gid;
    fill_numbers(row, &info);
    row->user = st.st_uid == 0 ? g_strdup("root") : g_strdup_printf("%u", st.st_uid);
    row->cpu_ms = info.cpu_ticks * 1000 / (guint64)hz;
    row->start_time = boot + (gint64)(info.start_ticks / (guint64)hz);
    row->tty = tty_name(info.tty);
    row->comm = g_utf8_make_valid(info.comm, -1);
    row->args = read_args(pid, row->comm);
    row->state = g_strdup_printf("%c", info.state);
    return row;
}

static void row_free(gpointer data)
{
    Sandvirt__V1__PsRow *row = data;

    g_free(row->user);
    g_free(row->tty);
    g_free(row->args);
    g_free(row->comm);
    g_free(row->state);
    g_free(row);
}

void sv_container_ps(SvCall *call)
{
    const Sandvirt__V1__PsRequest *request = (Sandvirt__V1__PsRequest *)call->message;
    Sandvirt__V1__PsResponse response = SANDVIRT__V1__PS_RESPONSE__INIT;
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(row_free);
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_container_find(call->agent, request->container_id, &error);
    g_autoptr(GArray) pids = NULL;
    gint64 boot = boot_time();

    if (!container) {
        sv_call_fail(call, error);
        return;
    }
    pids = sv_cgroup_pids(container->cgroup);
    for (guint i = 0; i < pids->len && rows->len < ROWS_MAX; i++) {
        Sandvirt__V1__PsRow *row = make_row(g_array_index(pids, pid_t, i), boot);

        if (row)
            g_ptr_array_add(rows, row);
    }
    response.n_rows = rows->len;
    response.rows = (Sandvirt__V1__PsRow **)rows->pdata;
    response.memory_kib = (guint64)sysconf(_SC_PHYS_PAGES) * (guint64)sysconf(_SC_PAGESIZE) / 1024;
    response.now = g_get_real_time() / G_USEC_PER_SEC;
    sv_call_reply(call, &response.base);
}
