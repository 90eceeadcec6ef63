/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LARGE (1024u * 1024)
#define SMALL 4096u

static int failed(const char *what)
{
    fprintf(stderr, "payload: %s: %s\n", what, strerror(errno));
    return 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Where the next block is; @state of a generator for random places. */
static off_t next_place(off_t at, off_t size, size_t block, int random, unsigned long long *state)
{
    if (!random)
        return at + 2 * (off_t)block <= size ? at + (off_t)block : 0;
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (off_t)(*state % (unsigned long long)(size / (off_t)block)) * (off_t)block;
}

int verb_disk(int argc, char **argv)
{
    int writes = strstr(argv[2], "write") != NULL, random = strncmp(argv[2], "random", 6) == 0;
    size_t block = random ? SMALL : LARGE;
    int fd = open(argv[0], (writes ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END), at = 0;
    unsigned long long state = 88172645463325252ull;
    char *buffer = aligned_alloc(SMALL, block);
    double begin = now(), end = begin + strtod(argv[1], NULL), total = 0;
    if (size < (off_t)block || buffer == NULL)
        return failed(argv[0]);
    memset(buffer, 'x', block);
    while (now() < end) {
        ssize_t n = writes ? pwrite(fd, buffer, block, at) : pread(fd, buffer, block, at);
        if (n != (ssize_t)block)
            return failed(argv[2]);
        total += (double)n;
        at = next_place(at, size, block, random, &state);
    }
    if (writes && fdatasync(fd) < 0)
        return failed("fdatasync");
    printf("%.2f\n", total / (now() - begin) / (1024 * 1024));
    return 0;
}
