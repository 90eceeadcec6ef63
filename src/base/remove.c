/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sv_file_remove_tree. A tree may have been written by a guest: it may be of any depth. So no more
 * than MAX_OPEN folders are open at once; what lies deeper is first moved up to the top. */
#include <config.h>

#include "base/file.h"

#include "base/error.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_OPEN 64

typedef struct {
    int top_fd;
    guint depth;
    guint moved; /* number of folders moved to the top, for their names */
    gboolean again; /* the top has new entries */
    char *name; /* what failed first */
    int errsv;
} Removal;

static void removal_failed(Removal *rm, const char *name, int errsv)
{
    if (rm->errsv != 0)
        return;
    rm->errsv = errsv;
    rm->name = g_strdup(name);
}

static gboolean is_mount_root(int dir_fd, const char *name)
{
    struct statx sx;

    return statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &sx) == 0 &&
        (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static void move_to_top(Removal *rm, int parent_fd, const char *name)
{
    char temp[32];
    int r;

    do {
        snprintf(temp, sizeof(temp), ".rm-%u", rm->moved++);
        r = renameat2(parent_fd, name, rm->top_fd, temp, RENAME_NOREPLACE);
    } while (r < 0 && errno == EEXIST);
    if (r < 0)
        removal_failed(rm, name, errno);
    else
        rm->again = TRUE;
}

static void remove_entries(Removal *rm, int fd);

static void remove_folder(Removal *rm, int parent_fd, const char *name)
{
    int fd;

    if (rm->depth >= MAX_OPEN) {
        if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
            move_to_top(rm, parent_fd, name);
        return;
    }
    fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        removal_failed(rm, name, errno);
        return;
    }
    rm->depth++;
    remove_entries(rm, fd); /* closes it */
    rm->depth--;
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        removal_failed(rm, name, errno);
}

static void remove_entries(Removal *rm, int fd)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;

    if (dir == NULL) {
        removal_failed(rm, ".", errno);
        sv_fd_close(fd);
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (is_mount_root(dirfd(dir), name)) {
            removal_failed(rm, name, EBUSY);
            continue;
        }
        if (unlinkat(dirfd(dir), name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno == EISDIR || errno == EPERM)
            remove_folder(rm, dirfd(dir), name);
        else
            removal_failed(rm, name, errno);
    }
    closedir(dir);
}

static void remove_top(Removal *rm, const char *path)
{
    g_auto(SvFd) top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (top < 0) {
        removal_failed(rm, path, errno);
        return;
    }
    rm->top_fd = top;
    do {
        int fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        rm->again = FALSE;
        if (fd < 0) {
            removal_failed(rm, path, errno);
            return;
        }
        remove_entries(rm, fd);
    } while (rm->again && rm->errsv == 0);
    if (rmdir(path) < 0 && errno != ENOENT)
        removal_failed(rm, path, errno);
}

gboolean sv_file_remove_tree(const char *path, GError **error)
{
    Removal rm = {.top_fd = -1};

    if (is_mount_root(AT_FDCWD, path))
        removal_failed(&rm, path, EBUSY);
    else if (unlink(path) < 0 && errno != ENOENT) {
        if (errno == EISDIR || errno == EPERM)
            remove_top(&rm, path);
        else
            removal_failed(&rm, path, errno);
    }
    if (rm.errsv == 0)
        return TRUE;
    sv_error_set_errno(error, SV_BASE_ERROR, rm.errsv, "remove %s: %s", path, rm.name);
    g_free(rm.name);
    return FALSE;
}
