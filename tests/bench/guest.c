/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void load_modules(void)
{
    FILE *list = fopen("/modules", "re");
    char path[512];

    while (list && fgets(path, sizeof path, list)) {
        path[strcspn(path, "\n")] = '\0';
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            syscall(SYS_finit_module, fd, "", 0);
            close(fd);
        }
    }
}

int open_port(void)
{
    DIR *dev = opendir("/dev");
    struct dirent *entry;
    int fd = -1;

    while (dev && fd < 0 && (entry = readdir(dev)))
        if (strncmp(entry->d_name, "vport", 5) == 0)
            fd = openat(dirfd(dev), entry->d_name, O_RDWR | O_CLOEXEC);
    if (dev)
        closedir(dev);
    return fd;
}
