/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes that serve a share and that nobody knows: libvirt's daemon, killed in the start of a machine, forgets the
 * virtiofsd that it has started. Its command line names the folder. */
#include "core/share.h"

#include "base/fd.h"
#include "base/names.h"
#include "base/process.h"

#include <signal.h>
#include <string.h>

static gboolean serves(pid_t pid, const char *mark)
{
    g_autofree char *cmdline = sv_process_cmdline(pid);
    const char *at = cmdline ? strstr(cmdline, mark) : NULL;
    return at && strchr(", ", at[strlen(mark)]); /* '\0' too */
}

static void end_server(pid_t pid, const char *mark)
{
    guint64 start;
    if (!serves(pid, mark) || !sv_process_start_time(pid, &start))
        return;
    g_auto(SvFd) pidfd = sv_process_open(pid, start);
    if (pidfd < 0 || !serves(pid, mark))
        return;
    g_message("process %d has served a machine that has ended: killed", (int)pid);
    sv_process_signal(pidfd, SIGKILL);
}

void sv_share_end_servers(const SvPaths *paths)
{
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    g_autofree char *mark = g_strdup_printf("source=%s", paths->share_dir);
    const char *name;
    gint64 pid;
    while (dir && (name = g_dir_read_name(dir)))
        if (sv_parse_int64(name, 2, G_MAXINT, &pid, NULL))
            end_server((pid_t)pid, mark);
}
