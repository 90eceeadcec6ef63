/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Workloads for the integration tests that busybox cannot play: payload VERB [ARG...]. Static, runs in
 * the guest. Exit status 0: as it should be; 1 with one line on stderr: not. */
#include "disk.h"
#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failed(const char *what)
{
    fprintf(stderr, "payload: %s: %s\n", what, strerror(errno));
    return 1;
}

static int wrong(const char *what)
{
    fprintf(stderr, "payload: %s\n", what);
    return 1;
}

/* mmap FILE: a shared mapping is writable, reaches read(2), and what write(2) writes is seen in it. */
static int verb_mmap(int argc, char **argv)
{
    char buffer[8] = "";
    int fd = open(argv[0], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return failed(argv[0]);
    if (ftruncate(fd, 8192) < 0)
        return failed("ftruncate");
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return failed("mmap");
    memcpy(map + 5000, "mapped", 6);
    if (msync(map, 8192, MS_SYNC) < 0)
        return failed("msync");
    if (pread(fd, buffer, 6, 5000) != 6 || memcmp(buffer, "mapped", 6) != 0)
        return wrong("read does not see what the mapping wrote");
    if (pwrite(fd, "written", 7, 100) != 7 || memcmp(map + 100, "written", 7) != 0)
        return wrong("the mapping does not see what write wrote");
    return 0;
}

/* flock FILE: an exclusive lock keeps another process out, and ends with its holder. */
static int verb_flock(int argc, char **argv)
{
    int pipes[2], status;
    int fd = open(argv[0], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || pipe(pipes) < 0)
        return failed(argv[0]);
    pid_t pid = fork();
    if (pid < 0)
        return failed("fork");
    if (pid == 0) {
        int mine = open(argv[0], O_RDWR);
        if (mine < 0 || flock(mine, LOCK_EX) < 0 || write(pipes[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    close(pipes[1]);
    char byte;
    if (read(pipes[0], &byte, 1) != 1)
        return wrong("the child could not lock");
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return wrong("locked twice");
    if (errno != EWOULDBLOCK)
        return failed("flock");
    struct flock posix = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &posix) < 0)
        return failed("fcntl(F_SETLK)");
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return failed("flock after the holder's end");
    return 0;
}

/* hold-lock FILE MARK: locks FILE, makes MARK, stays. */
static int verb_hold_lock(int argc, char **argv)
{
    int fd = open(argv[0], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return failed(argv[0]);
    int mark = open(argv[1], O_WRONLY | O_CREAT, 0600);
    if (mark < 0 || write(mark, "held\n", 5) != 5)
        return failed(argv[1]);
    close(mark);
    sleep(3600);
    return 0;
}

/* try-lock FILE: says whether somebody else holds it. */
static int verb_try_lock(int argc, char **argv)
{
    int fd = open(argv[0], O_RDWR);
    if (fd < 0)
        return failed(argv[0]);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        puts("locked twice");
    else if (errno == EWOULDBLOCK)
        puts("kept out");
    else
        return failed("flock");
    return 0;
}

/* rename DIR: a file that is open keeps its content when another is renamed over it. */
static int verb_rename(int argc, char **argv)
{
    char buffer[8] = "";
    if (chdir(argv[0]) < 0)
        return failed(argv[0]);
    int fd = open("victim", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int fresh = open("fresh", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || fresh < 0 || write(fd, "old", 3) != 3 || write(fresh, "new", 3) != 3)
        return failed("write");
    close(fresh);
    if (rename("fresh", "victim") < 0)
        return failed("rename");
    if (pread(fd, buffer, 3, 0) != 3 || memcmp(buffer, "old", 3) != 0)
        return wrong("the open file changed");
    if (pwrite(fd, "OLD", 3, 0) != 3)
        return failed("write to the file renamed over");
    int again = open("victim", O_RDONLY);
    if (again < 0 || read(again, buffer, 8) != 3 || memcmp(buffer, "new", 3) != 0)
        return wrong("the name does not show the new file");
    if (unlink("victim") < 0 || pread(again, buffer, 3, 0) != 3)
        return failed("read after unlink");
    return 0;
}

/* line BYTES: that many bytes and no newline. */
static int verb_line(int argc, char **argv)
{
    static char block[65536];
    unsigned long long left = strtoull(argv[0], NULL, 10);
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)('a' + i % 23);
    while (left > 0) {
        size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);
        ssize_t done = write(1, block, n);
        if (done < 0)
            return failed("write");
        left -= (unsigned long long)done;
    }
    return 0;
}

/* stream BYTES SEED: that many bytes of a generator that the host can run too (busybox has none). */
static int verb_stream(int argc, char **argv)
{
    static unsigned char block[65536];
    unsigned long long left = strtoull(argv[0], NULL, 10);
    unsigned long long state = strtoull(argc > 1 ? argv[1] : "1", NULL, 10) * 2654435761u + 1;
    while (left > 0) {
        size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);
        for (size_t i = 0; i < n; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            block[i] = (unsigned char)state;
        }
        for (size_t at = 0; at < n;) {
            ssize_t done = write(1, block + at, n - at);
            if (done < 0)
                return failed("write");
            at += (size_t)done;
        }
        left -= n;
    }
    return 0;
}

/* epipe: writes to stdout until that fails; prints "EPIPE" on stderr when that was the reason. */
static int verb_epipe(int argc, char **argv)
{
    static char block[65536];
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 100000; i++)
        if (write(1, block, sizeof(block)) < 0) {
            if (errno != EPIPE)
                return failed("write");
            fprintf(stderr, "EPIPE\n");
            return 0;
        }
    return wrong("never told that nobody reads");
}

/* closing N: closes stdout (1) or stderr (2), then stays for an hour. */
static int verb_closing(int argc, char **argv)
{
    close(atoi(argv[0]));
    sleep(3600);
    return 0;
}

static void on_signal(int signo)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%d\n", signo);
    if (write(1, text, (size_t)n) != n)
        _exit(1);
}

/* signals: prints the number of every signal that arrives; ends at TERM the second time. */
static int verb_signals(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    int terms = 0;
    sigset_t set;
    sigfillset(&action.sa_mask);
    for (int i = 1; i <= 64; i++)
        if (i != SIGKILL && i != SIGSTOP && i != 32 && i != 33)
            sigaction(i, &action, NULL);
    if (write(1, "ready\n", 6) != 6)
        return 1;
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    while (terms < 2) {
        int signo;
        if (sigwait(&set, &signo) != 0)
            continue;
        on_signal(signo);
        terms += signo == SIGTERM;
    }
    return 0;
}

/* die SIGNAL: by that signal, whatever its disposition was. */
static int verb_die(int argc, char **argv)
{
    int signo = atoi(argv[0]);
    sigset_t set;
    signal(signo, SIG_DFL);
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    kill(getpid(), signo);
    return wrong("still alive");
}

/* descriptors: the numbers of all open ones. */
static int verb_descriptors(int argc, char **argv)
{
    int n = 0;
    char text[4096] = "";
    for (int fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%d", n ? " " : "", fd);
    puts(text);
    return 0;
}

/* remount-write DIR: what a process of the container that has every capability can do to write to a
 * read-only volume; success of any of it is status 1. */
static int verb_remount_write(int argc, char **argv)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/written-by-guest", argv[0]);
    if (unshare(CLONE_NEWNS) < 0)
        return failed("unshare");
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    mount(NULL, argv[0], NULL, MS_REMOUNT | MS_BIND, NULL);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) {
        mount(NULL, argv[0], NULL, MS_REMOUNT, NULL);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
    }
    if (fd >= 0)
        return wrong("wrote to a read-only volume");
    printf("%s\n", strerror(errno));
    return errno == EROFS || errno == EPERM || errno == EACCES ? 0 : failed("open");
}

/* pages BYTES: touches that much memory and says so. */
static int verb_pages(int argc, char **argv)
{
    size_t n = (size_t)strtoull(argv[0], NULL, 10);
    char *memory = malloc(n);
    if (memory == NULL)
        return failed("malloc");
    memset(memory, 1, n);
    puts("touched");
    return 0;
}

/* zombies COUNT: leaves that many orphans behind, which end a little later. */
static int verb_zombies(int argc, char **argv)
{
    int count = atoi(argv[0]);
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return failed("fork");
        if (pid == 0) {
            struct timespec nap = {.tv_nsec = 50000000};
            nanosleep(&nap, NULL);
            _exit(0);
        }
    }
    return 0;
}

/* code DIR COUNT: the files 1 to COUNT in DIR are pages of code, each a function that returns the number of the file. They
 * are run one after the other at the same address, and removed, so that the next one gets the same memory. */
static int verb_code(int argc, char **argv)
{
    const size_t page = 4096;
    void *const place = (void *)0x40000000;
    for (unsigned number = 1; number <= (unsigned)atoi(argv[1]); number++) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s/%u", argv[0], number);
        int fd = open(path, O_RDONLY);
        if (fd < 0 || fstat(fd, &st) < 0)
            return failed(path);
        size_t size = (size_t)st.st_size;
        char *map =
            mmap(place, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
        if (map == MAP_FAILED)
            return failed("mmap");
        for (size_t at = 0; at < size; at += page) {
            unsigned got = ((unsigned (*)(void))(uintptr_t)(map + at))();
            if (got != number) {
                fprintf(stderr, "payload: page %zu of file %u runs as that of file %u\n", at / page,
                    number, got);
                return 1;
            }
        }
        if (munmap(map, size) < 0 || close(fd) < 0 || unlink(path) < 0)
            return failed(path);
    }
    return 0;
}

/* now: the clock, in milliseconds. */
static int verb_now(int argc, char **argv)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    printf("%lld\n", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int args;
        int (*run)(int argc, char **argv);
    } verbs[] = {
        {"now", 0, verb_now},
        {"code", 2, verb_code},
        {"mmap", 1, verb_mmap},
        {"flock", 1, verb_flock},
        {"hold-lock", 2, verb_hold_lock},
        {"try-lock", 1, verb_try_lock},
        {"rename", 1, verb_rename},
        {"line", 1, verb_line},
        {"stream", 1, verb_stream},
        {"epipe", 0, verb_epipe},
        {"closing", 1, verb_closing},
        {"signals", 0, verb_signals},
        {"die", 1, verb_die},
        {"descriptors", 0, verb_descriptors},
        {"remount-write", 1, verb_remount_write},
        {"pages", 1, verb_pages},
        {"zombies", 1, verb_zombies},
        {"tcp-serve", 2, verb_tcp_serve},
        {"tcp", 2, verb_tcp},
        {"tcp-sink", 2, verb_tcp_sink},
        {"tcp-blast", 3, verb_tcp_blast},
        {"tcp-ping", 3, verb_tcp_ping},
        {"udp-serve", 2, verb_udp_serve},
        {"udp", 3, verb_udp},
        {"disk", 3, verb_disk},
        {"nf-tables", 0, verb_nf_tables},
        {"unix-serve", 2, verb_unix_serve},
        {"unix", 1, verb_unix},
    };
    for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(argv[1], verbs[i].name) == 0 && argc - 2 >= verbs[i].args)
            return verbs[i].run(argc - 2, argv + 2);
    return wrong("unknown verb or missing argument");
}
