/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The least that an init can do: loads the modules that /modules names, one path a line, and writes one
 * byte into the first virtio-serial port that shows up. For comparing with the real agent. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void load_modules(void)
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

static int open_port(void)
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

int main(void)
{
    const struct timespec nap = {.tv_nsec = 500000};
    int fd;

    mkdir("/dev", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    load_modules();
    while ((fd = open_port()) < 0)
        nanosleep(&nap, NULL);
    if (write(fd, "!", 1) != 1)
        return 1;
    for (;;)
        pause();
}
