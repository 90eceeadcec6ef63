/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/process.h"

#include "base/fd.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define CMDLINE_MAX (64 * 1024)

char *sv_process_boot_id(void)
{
    char *text = NULL;

    if (!sv_file_read("/proc/sys/kernel/random/boot_id", 128, &text, NULL, NULL))
        return g_strdup("");
    return g_strchomp(text);
}

/* State letter and start time out of /proc/PID/stat. The name of the process is its own choice and may
 * hold parentheses and spaces: what follows the last ')' counts. */
static gboolean read_stat(pid_t pid, char *state, guint64 *ticks)
{
    g_autofree char *text = NULL;
    char path[32];
    const char *p;
    char *end = NULL;

    if (pid <= 0)
        return FALSE;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (!sv_file_read(path, 8192, &text, NULL, NULL))
        return FALSE;
    p = strrchr(text, ')');
    if (p == NULL || p[1] != ' ' || p[2] == '\0')
        return FALSE;
    *state = p[2];
    p += 1;
    for (int field = 3; field <= 22; field++) { /* p: the space in front of the field */
        p = strchr(p, ' ');
        if (p == NULL)
            return FALSE;
        p++;
    }
    *ticks = g_ascii_strtoull(p, &end, 10);
    return end != p;
}

gboolean sv_process_start_time(pid_t pid, guint64 *ticks)
{
    char state;

    return read_stat(pid, &state, ticks);
}

gboolean sv_process_is_stopped(pid_t pid)
{
    guint64 ticks;
    char state;

    return read_stat(pid, &state, &ticks) && state == 'T';
}

gboolean sv_process_is(pid_t pid, guint64 start_ticks, const char *boot_id)
{
    g_autofree char *boot = NULL;
    guint64 ticks;
    char state;

    if (pid <= 1)
        return FALSE;
    if (boot_id != NULL) {
        boot = sv_process_boot_id();
        if (strcmp(boot, boot_id) != 0)
            return FALSE;
    }
    if (!read_stat(pid, &state, &ticks))
        return FALSE;
    return ticks == start_ticks && state != 'Z' && state != 'X' && state != 'x';
}

int sv_process_open(pid_t pid, guint64 start_ticks)
{
    g_auto(SvFd) fd = -1;

    if (pid <= 1) {
        errno = ESRCH;
        return -1;
    }
    fd = pidfd_open(pid, 0);
    if (fd < 0)
        return -1;
    if (!sv_process_is(pid, start_ticks, NULL)) {
        errno = ESRCH;
        return -1;
    }
    return sv_fd_steal(&fd);
}

gboolean sv_process_signal(int pidfd, int signo)
{
    return pidfd_send_signal(pidfd, signo, NULL, 0) == 0;
}

char *sv_process_cmdline(pid_t pid)
{
    g_autofree char *text = g_malloc(CMDLINE_MAX + 1);
    g_auto(SvFd) fd = -1;
    char path[32];
    gsize len = 0;
    ssize_t n;

    if (pid <= 0)
        return NULL;
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    while ((n = TEMP_FAILURE_RETRY(read(fd, text + len, CMDLINE_MAX - len))) > 0)
        len += (gsize)n;
    if (n < 0)
        return NULL;
    while (len > 0 && text[len - 1] == '\0')
        len--;
    for (gsize i = 0; i < len; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
    text[len] = '\0';
    return g_steal_pointer(&text);
}

guint64 sv_process_ns_inode(pid_t pid, const char *name)
{
    g_autofree char *path = NULL;
    struct stat st;

    if (pid < 0 || strchr(name, '/') != NULL)
        return 0;
    path = pid == 0 ? g_strdup_printf("/proc/self/ns/%s", name)
                    : g_strdup_printf("/proc/%d/ns/%s", (int)pid, name);
    return stat(path, &st) == 0 ? (guint64)st.st_ino : 0;
}

pid_t sv_process_pid(int pidfd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fdinfo/%d", pidfd);
    g_autofree char *text = NULL;

    if (pidfd < 0 || !sv_file_read(path, 4096, &text, NULL, NULL))
        return 0;
    const char *line = strstr(text, "\nPid:");
    gint64 pid = line ? g_ascii_strtoll(line + strlen("\nPid:"), NULL, 10) : 0;
    return (pid_t)MAX(pid, 0);
}
