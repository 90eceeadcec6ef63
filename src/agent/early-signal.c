/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/early-signal.h"
#include "base/file.h"
#include <signal.h>
#include <string.h>

#define EARLY_US (5 * 1000 * 1000) /* that long behind its start a program is new */
#define LOOK_MS 20 /* nothing tells when a handler is there */
#define STATUS_MAX (64 * 1024)

typedef struct {
    SvAgent *agent;
    guint32 handle;
    int signo;
    gint64 until_us;
} Early;

static const char *find_line(const char *status, const char *name)
{
    gsize len = strlen(name);

    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0)
            return line + len;
    }
    return NULL;
}

static gboolean has_signal(const char *status, const char *name, int signo)
{
    const char *mask = find_line(status, name);

    return mask && (g_ascii_strtoull(mask, NULL, 16) >> (signo - 1) & 1) != 0;
}

/* In a namespace below ours: "NSpid:\t123\t1" */
static gboolean is_first_process(const char *status)
{
    const char *pids = find_line(status, "NSpid:\t");
    g_autofree char *line = pids ? g_strndup(pids, strcspn(pids, "\n")) : NULL;
    const char *last = line ? strrchr(line, '\t') : NULL;

    return last && strcmp(last, "\t1") == 0;
}

gboolean sv_early_signal_is_lost(const char *status, int signo)
{
    return signo > 0 && signo <= 64 && signo != SIGKILL && signo != SIGSTOP &&
        is_first_process(status) && !has_signal(status, "SigCgt:\t", signo) &&
        !has_signal(status, "SigIgn:\t", signo) && !has_signal(status, "SigBlk:\t", signo);
}

static gboolean would_be_lost(const SvProcess *process, int signo)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", process->pid);
    g_autofree char *status = NULL;

    return sv_file_read(path, STATUS_MAX, &status, NULL, NULL) &&
        sv_early_signal_is_lost(status, signo);
}

static gboolean on_look(gpointer user_data)
{
    Early *early = user_data;
    SvProcess *process = sv_process_lookup(early->agent, early->handle);
    g_autoptr(GError) error = NULL;

    if (process && process->state == SV_PROCESS_RUNNING && would_be_lost(process, early->signo) &&
        g_get_monotonic_time() < early->until_us)
        return G_SOURCE_CONTINUE;
    if (process && !sv_process_send_signal(process, early->signo, &error))
        g_debug("signal %d of %u: %s", early->signo, early->handle, error->message);
    g_free(early);
    return G_SOURCE_REMOVE;
}

gboolean sv_early_signal(SvProcess *process, int signo)
{
    gint64 until_us = process->started_us + EARLY_US;
    Early *early;

    if (process->exec || process->state != SV_PROCESS_RUNNING ||
        g_get_monotonic_time() >= until_us || !would_be_lost(process, signo))
        return FALSE;
    early = g_new0(Early, 1);
    early->agent = process->agent;
    early->handle = process->handle;
    early->signo = signo;
    early->until_us = until_us;
    g_timeout_add(LOOK_MS, on_look, early);
    return TRUE;
}
