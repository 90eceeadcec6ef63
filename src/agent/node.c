/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/node.h"
#include "agent/container.h"
#include "base/fd.h"
#include "base/thread.h"
#include "rpc/sandvirt.pb-c.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static gboolean fail(const char *path, GError **error)
{
    sv_error_set_errno(error, SV_AGENT_ERROR, errno, "device node %s", path);
    return FALSE;
}

static int open_in_root(int root_fd, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

    return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

/* The folder of @path, made when @make; *name is its last part, (transfer full). */
static int open_folder(int root_fd, const char *path, gboolean make, char **name)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    GString *folder = g_string_new("/");
    int fd = open_in_root(root_fd, "/");
    char **last = parts;

    for (char **part = parts; *part; part++)
        if (**part)
            last = part;
    for (char **part = parts; fd >= 0 && part < last; part++) {
        int next;

        if (!**part)
            continue;
        g_string_append_printf(folder, "/%s", *part);
        next = open_in_root(root_fd, folder->str);
        if (next < 0 && errno == ENOENT && make && mkdirat(fd, *part, 0755) == 0)
            next = open_in_root(root_fd, folder->str);
        sv_fd_close(fd);
        fd = next;
    }
    g_string_free(folder, TRUE);
    *name = g_strdup(*last);
    return fd;
}

gboolean sv_node_make(
    int root_fd, const char *path, dev_t device, mode_t mode, uid_t uid, gid_t gid, GError **error)
{
    g_autofree char *name = NULL;
    g_auto(SvFd) folder = open_folder(root_fd, path, TRUE, &name);

    if (folder < 0 || mknodat(folder, name, S_IFBLK | 0600, device) < 0)
        return fail(path, error);
    /* the umask had a say */
    if (fchownat(folder, name, uid, gid, AT_SYMLINK_NOFOLLOW) == 0 &&
        fchmodat(folder, name, mode & 07777, 0) == 0)
        return TRUE;
    fail(path, error);
    unlinkat(folder, name, 0);
    return FALSE;
}

gboolean sv_node_remove(int root_fd, const char *path, dev_t device, GError **error)
{
    g_autofree char *name = NULL;
    g_auto(SvFd) folder = open_folder(root_fd, path, FALSE, &name);
    struct stat st;

    if (folder < 0 || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || fail(path, error);
    if (!S_ISBLK(st.st_mode) || st.st_rdev != device)
        return TRUE;
    return unlinkat(folder, name, 0) == 0 || errno == ENOENT || fail(path, error);
}

/* ---- methods */

static int open_root(SvCall *call, const char *id, GError **error)
{
    SvContainer *container = sv_container_find(call->agent, id, error);
    SvProcess *init = container ? sv_container_init(container) : NULL;
    g_autofree char *path = NULL;
    int fd;

    if (!container)
        return -1;
    if (!init || init->state == SV_PROCESS_EXITED) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_NOT_RUNNING, "container not running");
        return -1;
    }
    path = g_strdup_printf("/proc/%d/root", (int)init->pid);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "root of container %s", id);
    return fd;
}

void sv_node_add_call(SvCall *call)
{
    const Sandvirt__V1__NodeRequest *request = (Sandvirt__V1__NodeRequest *)call->message;
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) root = open_root(call, request->container_id, &error);

    if (root >= 0 &&
        sv_node_make(root, request->path, makedev(request->major, request->minor), request->mode,
            request->uid, request->gid, &error))
        sv_call_reply(call, NULL);
    else
        sv_call_fail(call, error);
}

typedef struct {
    SvCall *call;
    char *node; /* the guest's own */
    int errsv;
} Flush;

/* In a thread. What is written through the node lies in the guest's cache until now. */
static void flush_work(gpointer data)
{
    Flush *flush = data;
    g_auto(SvFd) fd = open(flush->node, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        flush->errsv = errno;
    else if (fsync(fd) < 0 || ioctl(fd, BLKFLSBUF, 0) < 0)
        flush->errsv = errno;
}

static void flush_done(gpointer data)
{
    Flush *flush = data;
    const Sandvirt__V1__NodeRequest *request = (Sandvirt__V1__NodeRequest *)flush->call->message;
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) root = -1;

    if (flush->errsv == EBUSY)
        g_set_error(&error, SV_AGENT_ERROR, SV_ERR_BUSY, "the container has mounted it");
    else if (flush->errsv && flush->errsv != ENOENT)
        sv_error_set_errno(&error, SV_AGENT_ERROR, flush->errsv, "write back %s", flush->node);
    else
        root = open_root(flush->call, request->container_id, &error);
    if (root >= 0 &&
        sv_node_remove(root, request->path, makedev(request->major, request->minor), &error))
        sv_call_reply(flush->call, NULL);
    else
        sv_call_fail(flush->call, error);
    g_free(flush->node);
    g_free(flush);
}

void sv_node_remove_call(SvCall *call)
{
    const Sandvirt__V1__NodeRequest *request = (Sandvirt__V1__NodeRequest *)call->message;
    Flush *flush = g_new0(Flush, 1);

    flush->call = call;
    flush->node = g_strdup(request->node);
    sv_thread_run(flush_work, flush_done, flush);
}
