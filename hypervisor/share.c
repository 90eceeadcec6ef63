/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which process serves the share. No API of libvirt tells, its pid file does. */
#include <config.h>

#include "hypervisor/libvirt-priv.h"

#include <string.h>

#include "base/file.h"
#include "base/names.h"
#include "base/process.h"

#define SUFFIX "-fs0-fs.pid"

/* -1: the file is stale; one may name anything. */
static int read_pid(const char *name)
{
    g_autofree char *path = g_build_filename(SV_LIBVIRT_RUN_DIR, name, NULL);
    g_autofree char *text = NULL;
    gint64 pid = 0;
    if (!sv_file_read(path, 64, &text, NULL, NULL) ||
        !sv_parse_int64(g_strstrip(text), 2, G_MAXINT, &pid, NULL))
        return -1;
    g_autofree char *cmdline = sv_process_cmdline((pid_t)pid);
    return cmdline != NULL && strstr(cmdline, "virtiofsd") != NULL ? (int)pid : -1;
}

/* "<domain id>-<part of its name>-fs0-fs.pid"; the daemon gives the number again when it was killed. */
int sv_libvirt_share_pid_of(int domain_id)
{
    g_autoptr(GDir) dir = domain_id >= 0 ? g_dir_open(SV_LIBVIRT_RUN_DIR, 0, NULL) : NULL;
    g_autofree char *prefix = g_strdup_printf("%d-", domain_id);
    const char *name = NULL;
    int pid = -1;
    while (pid < 0 && dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        if (g_str_has_prefix(name, prefix) && g_str_has_suffix(name, SUFFIX))
            pid = read_pid(name);
    return pid;
}

int sv_libvirt_share_pid(SvHv *hv)
{
    return sv_libvirt_share_pid_of(((SvLibvirt *)hv)->domain_id);
}

/* "rchar: NUMBER" and "wchar: NUMBER" of /proc/PID/io. */
static guint64 number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at != NULL ? g_ascii_strtoull(at + strlen(key), NULL, 10) : 0;
}

void sv_libvirt_share_count(int domain_id, guint64 *read, guint64 *written)
{
    int pid = sv_libvirt_share_pid_of(domain_id);
    g_autofree char *children = NULL;
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", pid, pid);
    if (pid < 2 || !sv_file_read(path, 4096, &children, NULL, NULL))
        return;
    g_auto(GStrv) pids = g_strsplit(g_strstrip(children), " ", -1);
    for (char **child = pids; *child != NULL && **child != '\0'; child++) {
        g_autofree char *io = g_strdup_printf("/proc/%s/io", *child);
        g_autofree char *text = NULL;
        if (!sv_file_read(io, 4096, &text, NULL, NULL))
            continue;
        *read += number_after(text, "rchar: ");
        *written += number_after(text, "wchar: ");
    }
}
