/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Init of a bare domain: loads the modules that /modules names, then does what comes through the first
 * virtio-serial port, line by line:
 *   block SERIAL   waits for the disk and prints its node
 *   copy BYTES     so many bytes out of a pipe into the port, as they are
 *   plain BYTES    the same, written by a process that is in no cgroup
 *   anything else  by a shell, its output
 * (processes are in a cgroup, as every process of a container: the kernel counts their memory, which costs time)
 * and ends every answer with a line "#done STATUS". */
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIPE_SIZE (1024 * 1024)
#define CHUNK (256 * 1024)
#define CGROUP "/cg/container"

static int port;

static void put(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(port, data, len);

        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

static void done(int status)
{
    char text[32];
    int n = snprintf(text, sizeof text, "#done %d\n", status);

    put(text, (size_t)n);
}

/* Name of the disk with that serial. */
static int find_disk(const char *serial, char *name, size_t size)
{
    DIR *dir = opendir("/sys/block");
    struct dirent *entry;
    int found = 0;

    while (dir && !found && (entry = readdir(dir))) {
        char path[512], text[64] = "";
        int fd;

        snprintf(path, sizeof path, "/sys/block/%s/serial", entry->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (read(fd, text, sizeof text - 1) > 0 && strcmp(text, serial) == 0) {
            snprintf(name, size, "/dev/%s\n", entry->d_name);
            found = 1;
        }
        close(fd);
    }
    if (dir)
        closedir(dir);
    return found;
}

static int wait_for_disk(const char *serial)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
    char event[8192], name[512];

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
        return 1;
    while (!find_disk(serial, name, sizeof name))
        if (recv(fd, event, sizeof event, 0) < 0)
            return 1;
    close(fd);
    put(name, strlen(name));
    return 0;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        fprintf(stderr, "cannot write to %s\n", path);
    if (fd >= 0)
        close(fd);
}

static void make_cgroup(void)
{
    mount("cgroup2", "/cg", "cgroup2", 0, NULL);
    write_file("/cg/cgroup.subtree_control", "+cpu +memory +pids");
    mkdir(CGROUP, 0755);
}

/* Runs @argv, in the cgroup or not, with its output in a pipe, which is copied to the port. */
static int run(const char *const argv[], int in_cgroup)
{
    static char buffer[CHUNK];
    int ends[2], status = 0;
    ssize_t n;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return 1;
    fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE);
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        if (in_cgroup)
            write_file(CGROUP "/cgroup.procs", "0");
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(ends[1]);
    while ((n = read(ends[0], buffer, sizeof buffer)) > 0)
        put(buffer, (size_t)n);
    close(ends[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void serve(char *line)
{
    if (strncmp(line, "block ", 6) == 0) {
        done(wait_for_disk(line + 6));
    } else if (strncmp(line, "copy ", 5) == 0 || strncmp(line, "plain ", 6) == 0) {
        const char *argv[] = {"/bin/payload", "line", strchr(line, ' ') + 1, NULL};

        done(run(argv, *line == 'c'));
    } else {
        const char *argv[] = {"/bin/busybox", "sh", "-c", line, NULL};

        done(run(argv, 1));
    }
}

int main(void)
{
    const struct timespec nap = {.tv_nsec = 500000};
    static char line[65536];
    size_t len = 0;

    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sysfs", "/sys", "sysfs", 0, NULL);
    make_cgroup();
    setenv("PATH", "/bin", 1);
    load_modules();
    while ((port = open_port()) < 0)
        nanosleep(&nap, NULL);
    done(0);
    for (;;) {
        ssize_t n = read(port, line + len, sizeof line - 1 - len);
        char *end;

        if (n <= 0) { /* nobody there */
            nanosleep(&nap, NULL);
            continue;
        }
        len += (size_t)n;
        while ((end = memchr(line, '\n', len))) {
            *end = '\0';
            serve(line);
            len -= (size_t)(end + 1 - line);
            memmove(line, end + 1, len);
        }
    }
}
