/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/netns.h"
#include "base/fd.h"
#include "cli/options.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#define NSFS_MAGIC 0x6e736673

int sv_netns_open(const char *path, GError **error)
{
    g_auto(SvFd) fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct statfs fs;

    if (fd < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "network namespace %s", path);
        return -1;
    }
    /* The ioctl only on such a file: its number may mean something to a device. */
    if (fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC &&
        ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET)
        return sv_fd_steal(&fd);
    g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "%s is no network namespace", path);
    return -1;
}
