/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/netns.h"
#include "base/fd.h"
#include "base/process.h"
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

int sv_netns_of_container(const SvRecord *record)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/ns/net", (int)record->shim_pid);
    g_auto(SvFd) fd = record->shim_pid > 1 ? sv_netns_open(path, NULL) : -1;

    if (fd >= 0 && sv_process_is(record->shim_pid, record->shim_start, record->boot_id))
        return sv_fd_steal(&fd);
    return -1;
}

int sv_netns_of_sandbox(const char *root, const char *sandbox)
{
    g_autoptr(GPtrArray) records = sv_record_list(root, NULL, NULL);
    int fd = -1;

    for (guint i = 0; records && fd < 0 && i < records->len; i++) {
        const SvRecord *record = records->pdata[i];

        if (g_strcmp0(record->sandbox, sandbox) == 0)
            fd = sv_netns_of_container(record);
    }
    return fd;
}
