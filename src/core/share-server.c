/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes that serve a share and that nobody knows: libvirt's daemon, killed in the start of a machine, forgets the
 * virtiofsd that it has started. Its command line names the folder. */
#include "core/share.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/names.h"
#include "base/process.h"

#include <signal.h>
#include <string.h>

#define NAME_LEN 15 /* the kernel keeps no more of a name */

typedef struct {
    char *name; /* as the kernel has it */
    char *source; /* part of its command line */
} Mark;

/* The name first: reading the command line of some process waits for its memory's lock. */
static gboolean serves(pid_t pid, const Mark *mark)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/comm", (int)pid);
    g_autofree char *name = NULL;
    if (!sv_file_read(path, 64, &name, NULL, NULL) || strcmp(g_strchomp(name), mark->name) != 0)
        return FALSE;
    g_autofree char *cmdline = sv_process_cmdline(pid);
    const char *at = cmdline ? strstr(cmdline, mark->source) : NULL;
    return at && strchr(", ", at[strlen(mark->source)]); /* '\0' too */
}

static void end_server(pid_t pid, const Mark *mark)
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

void sv_share_end_servers(const SvPaths *paths, const SvConfig *config)
{
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    g_autofree char *base = g_path_get_basename(
        config->virtiofsd && *config->virtiofsd ? config->virtiofsd : "virtiofsd");
    g_autofree char *name = g_strndup(base, NAME_LEN);
    g_autofree char *source = g_strdup_printf("source=%s", paths->share_dir);
    const Mark mark = {name, source};
    const char *entry;
    gint64 pid;
    while (dir && (entry = g_dir_read_name(dir)))
        if (sv_parse_int64(entry, 2, G_MAXINT, &pid, NULL))
            end_server((pid_t)pid, &mark);
}
