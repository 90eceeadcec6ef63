/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A loop device for a test; for one source file each. */
#pragma once

#include "base/command.h"
#include "base/fd.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

/* It lives as long as the descriptor is open or it is mounted. -1: there are none here. */
static inline int loop_device_attach(const char *file, char **node)
{
    g_auto(SvFd) control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    g_auto(SvFd) backing = open(file, O_RDWR | O_CLOEXEC);
    struct loop_config config = {.fd = (guint32)backing, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
    for (guint i = 0; i < 50 && control >= 0; i++) {
        g_autofree char *path = g_strdup_printf("/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
        g_auto(SvFd) fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
            *node = g_steal_pointer(&path);
            return sv_fd_steal(&fd);
        }
    }
    return -1;
}

/* With ext4. */
static inline gboolean loop_device_format(const char *file)
{
    g_autoptr(SvCommand) command = sv_command_new("/usr/sbin/mkfs.ext4");
    int status = -1;
    sv_command_add_args(command, "-q", "-F", file, NULL);
    return sv_command_run(command, NULL, 0, 30000, 4096, NULL, NULL, &status, NULL) && status == 0;
}
