/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/cgroup-root.h"

#include "base/file.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_FS "/sys/fs/cgroup"

/* "CONTROLLERS" of a line of /proc/PID/cgroup: the folder of its hierarchy. */
static char *procs_file(const char *controllers)
{
    g_autofree char *path = NULL;

    if (g_str_has_prefix(controllers, "name="))
        controllers += strlen("name=");
    if (!*controllers && access(CGROUP_FS "/unified/cgroup.procs", F_OK) == 0)
        controllers = "unified";
    path = g_build_filename(CGROUP_FS, controllers, "cgroup.procs", NULL);
    return access(path, W_OK) == 0 ? g_steal_pointer(&path) : NULL;
}

char **sv_cgroup_roots(void)
{
    g_autoptr(GPtrArray) roots = g_ptr_array_new();
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (sv_file_read("/proc/self/cgroup", 64 * 1024, &text, NULL, NULL))
        lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; line && *line; line++) {
        g_auto(GStrv) fields = g_strsplit(*line, ":", 3);
        char *path;

        if (g_strv_length(fields) < 3 || g_str_equal(fields[2], "/"))
            continue;
        path = procs_file(fields[1]);
        if (path)
            g_ptr_array_add(roots, path);
    }
    g_ptr_array_add(roots, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&roots), FALSE);
}

int sv_cgroup_enter_roots(gpointer roots)
{
    for (char **path = roots; *path; path++) {
        int fd = open(*path, O_WRONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
            continue;
        n = write(fd, "0", 1);
        (void)n;
        close(fd);
    }
    return 0;
}
