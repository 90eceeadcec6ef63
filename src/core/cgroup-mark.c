/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/cgroup-mark.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAME "trusted.sandvirt.owner"
#define MARK_MAX 8192
#define MAX_DEPTH 64

void sv_cgroup_mark(const char *folder, const char *text)
{
    if (setxattr(folder, NAME, text, strlen(text), 0) < 0)
        g_debug("ignoring: mark %s: %s", folder, g_strerror(errno));
}

static void mark_free(gpointer data)
{
    SvCgroupMark *mark = data;
    g_free(mark->folder);
    g_free(mark->root);
    g_free(mark->sandbox);
    g_free(mark);
}

static gboolean has_processes(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, "cgroup.procs", NULL);
    g_auto(SvFd) fd = open(path, O_RDONLY | O_CLOEXEC);
    char byte;
    /* not to be read: as if there were some */
    return fd < 0 || read(fd, &byte, 1) != 0;
}

static void look(GPtrArray *marks, const char *folder, gboolean has_folders)
{
    char text[MARK_MAX];
    g_autofree char *root = NULL, *sandbox = NULL;
    ssize_t n = lgetxattr(folder, NAME, text, sizeof text - 1);
    if (n < 0)
        return;
    text[n] = '\0';
    if (!sv_owner_parse(text, &root, &sandbox))
        return;
    SvCgroupMark *mark = g_new0(SvCgroupMark, 1);
    mark->folder = g_strdup(folder);
    mark->empty = !has_folders && !has_processes(folder);
    mark->root = g_steal_pointer(&root);
    mark->sandbox = g_steal_pointer(&sandbox);
    g_ptr_array_add(marks, mark);
}

static void walk(GPtrArray *marks, const char *folder, guint depth)
{
    g_autoptr(GDir) dir = depth < MAX_DEPTH ? g_dir_open(folder, 0, NULL) : NULL;
    gboolean has_folders = FALSE;
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        /* "cpu,cpuacct" has links beside it */
        if (g_file_test(path, G_FILE_TEST_IS_SYMLINK) || !g_file_test(path, G_FILE_TEST_IS_DIR))
            continue;
        has_folders = TRUE;
        walk(marks, path, depth + 1);
    }
    look(marks, folder, has_folders);
}

GPtrArray *sv_cgroup_marks(const char *top)
{
    GPtrArray *marks = g_ptr_array_new_with_free_func(mark_free);
    walk(marks, top, 0);
    return marks;
}
