/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cgroup.h"
#include "base/fd.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_CAP (64u * 1024)

gboolean sv_cgroup_write(const char *dir, const char *file, const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    g_auto(SvFd) fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "write %s to %s", text, path);
        return FALSE;
    }
    return TRUE;
}

char *sv_cgroup_read(const char *dir, const char *file)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    g_auto(SvFd) fd = open(path, O_RDONLY | O_CLOEXEC);
    g_autofree char *text = g_malloc(FILE_CAP + 1);
    gsize len = 0;
    ssize_t n;

    if (fd < 0)
        return NULL;
    while (len < FILE_CAP && (n = read(fd, text + len, FILE_CAP - len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return NULL;
        len += (gsize)n;
    }
    text[len] = '\0';
    return g_strdup(text);
}

guint64 sv_cgroup_value(const char *text, const char *key)
{
    gsize len = strlen(key);

    for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
        if (strncmp(p, key, len) == 0 && p[len] == ' ')
            return g_ascii_strtoull(p + len + 1, NULL, 10);
    return 0;
}

void sv_cgroup_delegate(const char *dir)
{
    g_autofree char *text = sv_cgroup_read(dir, "cgroup.controllers");
    g_auto(GStrv) names = g_strsplit(text ? g_strchomp(text) : "", " ", -1);

    for (char **name = names; *name; name++) {
        g_autofree char *add = g_strdup_printf("+%s", *name);
        g_autoptr(GError) error = NULL;

        if (**name && !sv_cgroup_write(dir, "cgroup.subtree_control", add, &error))
            g_info("ignoring: %s", error->message);
    }
}

typedef void (*DirFunc)(const char *dir, gpointer user_data);

/* @func for every cgroup below @dir and @dir itself, the deepest first. */
static void walk(const char *dir, DirFunc func, gpointer user_data)
{
    DIR *stream = opendir(dir);
    struct dirent *entry;

    if (!stream)
        return;
    while ((entry = readdir(stream))) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            g_autofree char *below = g_build_filename(dir, entry->d_name, NULL);

            walk(below, func, user_data);
        }
    }
    closedir(stream);
    func(dir, user_data);
}

static void add_pids(const char *dir, gpointer user_data)
{
    GArray *pids = user_data;
    g_autofree char *text = sv_cgroup_read(dir, "cgroup.procs");
    char *p = text;

    while (p && *p) {
        char *end = NULL;
        pid_t pid = (pid_t)strtol(p, &end, 10);

        if (end == p)
            break;
        if (pid > 1)
            g_array_append_val(pids, pid);
        p = *end ? end + 1 : end;
    }
}

GArray *sv_cgroup_pids(const char *dir)
{
    GArray *pids = g_array_new(FALSE, FALSE, sizeof(pid_t));

    walk(dir, add_pids, pids);
    return pids;
}

void sv_cgroup_signal(const char *dir, int signo)
{
    g_autoptr(GArray) pids = sv_cgroup_pids(dir);

    for (guint i = 0; i < pids->len; i++) {
        int fd = (int)syscall(SYS_pidfd_open, g_array_index(pids, pid_t, i), 0);

        if (fd >= 0)
            syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
        sv_fd_close(fd);
    }
}

void sv_cgroup_kill(const char *dir)
{
    g_autoptr(GError) error = NULL;

    if (!sv_cgroup_write(dir, "cgroup.kill", "1", &error)) {
        if (sv_error_is(error, SV_ERR_NOT_FOUND) && access(dir, F_OK) < 0)
            return;
        g_debug("%s", error->message);
        sv_cgroup_signal(dir, SIGKILL);
    }
    sv_cgroup_write(dir, "cgroup.freeze", "0", NULL);
}

static void remove_one(const char *dir, gpointer user_data)
{
    int *errsv = user_data;

    if (rmdir(dir) < 0 && errno != ENOENT)
        *errsv = errno;
}

gboolean sv_cgroup_remove(const char *dir, GError **error)
{
    int errsv = 0;

    walk(dir, remove_one, &errsv);
    if (errsv) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errsv, "remove %s", dir);
        return FALSE;
    }
    return TRUE;
}
