/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (128 * 1024)
#define MAX_PINGS 10000

typedef struct {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } u;
    socklen_t len;
} Address;

static int failed(const char *what)
{
    fprintf(stderr, "payload: %s: %s\n", what, strerror(errno));
    return 1;
}

static int open_socket(char **argv, int type, Address *address)
{
    uint16_t port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    memset(address, 0, sizeof(*address));
    if (inet_pton(AF_INET, argv[0], &address->u.in.sin_addr) == 1) {
        address->u.in.sin_family = AF_INET;
        address->u.in.sin_port = port;
        address->len = sizeof(address->u.in);
    } else if (inet_pton(AF_INET6, argv[0], &address->u.in6.sin6_addr) == 1) {
        address->u.in6.sin6_family = AF_INET6;
        address->u.in6.sin6_port = port;
        address->len = sizeof(address->u.in6);
    } else {
        errno = EINVAL;
        return -1;
    }
    return socket(address->u.any.sa_family, type | SOCK_CLOEXEC, 0);
}

static int listen_at(char **argv, int type)
{
    Address address;
    int on = 1;
    int fd = open_socket(argv, type, &address);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &address.u.any, address.len) < 0 || (type == SOCK_STREAM && listen(fd, 64) < 0)) {
        close(fd);
        return -1;
    }
    /* for whoever waits for it */
    puts("listening");
    fflush(stdout);
    return fd;
}

static int connect_to(char **argv, int type)
{
    Address address;
    int fd = open_socket(argv, type, &address);
    if (fd >= 0 && connect(fd, &address.u.any, address.len) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int write_all(int fd, const char *data, ssize_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, (size_t)len);
        if (n < 0)
            return -1;
        data += n;
        len -= n;
    }
    return 0;
}

static void echo(int fd)
{
    static char buffer[CHUNK];
    ssize_t n;
    while ((n = read(fd, buffer, sizeof(buffer))) > 0)
        if (write_all(fd, buffer, n) < 0)
            return;
}

int verb_tcp_serve(int argc, char **argv)
{
    int listener = listen_at(argv, SOCK_STREAM);
    if (listener < 0)
        return failed("listen");
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return failed("accept");
        pid_t pid = fork();
        if (pid == 0) {
            echo(fd);
            _exit(0);
        }
        close(fd);
    }
}

int verb_tcp(int argc, char **argv)
{
    static char buffer[CHUNK];
    int fd = connect_to(argv, SOCK_STREAM);
    if (fd < 0)
        return failed("connect");
    struct pollfd fds[2] = {{0, POLLIN, 0}, {fd, POLLIN, 0}};
    for (;;) {
        if (poll(fds, 2, -1) < 0)
            return failed("poll");
        if (fds[1].revents) {
            ssize_t n = read(fd, buffer, sizeof(buffer));
            if (n <= 0)
                return n < 0 ? failed("read") : 0;
            if (write_all(1, buffer, n) < 0)
                return failed("write");
        } else if (fds[0].revents) {
            ssize_t n = read(0, buffer, sizeof(buffer));
            if (n > 0 && write_all(fd, buffer, n) < 0)
                return failed("send");
            if (n > 0)
                continue;
            shutdown(fd, SHUT_WR);
            fds[0].fd = -1;
        }
    }
}

int verb_tcp_sink(int argc, char **argv)
{
    static char buffer[CHUNK];
    unsigned long long total = 0;
    int listener = listen_at(argv, SOCK_STREAM);
    int fd = listener < 0 ? -1 : accept(listener, NULL, NULL);
    ssize_t n;
    if (fd < 0)
        return failed("accept");
    while ((n = read(fd, buffer, sizeof(buffer))) > 0)
        total += (unsigned long long)n;
    printf("%llu\n", total);
    return 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int verb_tcp_blast(int argc, char **argv)
{
    static char buffer[CHUNK];
    int fd = connect_to(argv, SOCK_STREAM);
    double begin = now(), end = begin + strtod(argv[2], NULL), total = 0;
    if (fd < 0)
        return failed("connect");
    while (now() < end) {
        ssize_t n = write(fd, buffer, sizeof(buffer));
        if (n < 0)
            return failed("send");
        total += (double)n;
    }
    printf("%.1f\n", total / (now() - begin) / (1024 * 1024));
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int verb_tcp_ping(int argc, char **argv)
{
    static double times[MAX_PINGS];
    int fd = connect_to(argv, SOCK_STREAM), on = 1;
    int count = (int)strtol(argv[2], NULL, 10);
    char byte = 1;
    if (fd < 0)
        return failed("connect");
    if (count < 1 || count > MAX_PINGS)
        count = MAX_PINGS;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (int i = 0; i < count; i++) {
        double begin = now();
        if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
            return failed("round trip");
        times[i] = now() - begin;
    }
    qsort(times, (size_t)count, sizeof(times[0]), by_value);
    printf("%.0f\n", times[count / 2] * 1e6);
    return 0;
}

int verb_udp_serve(int argc, char **argv)
{
    char buffer[2048];
    int fd = listen_at(argv, SOCK_DGRAM);
    if (fd < 0)
        return failed("bind");
    for (;;) {
        Address from;
        from.len = sizeof(from.u);
        ssize_t n = recvfrom(fd, buffer, sizeof(buffer), 0, &from.u.any, &from.len);
        if (n < 0)
            return failed("receive");
        sendto(fd, buffer, (size_t)n, 0, &from.u.any, from.len);
    }
}

int verb_udp(int argc, char **argv)
{
    char buffer[2048];
    struct timeval limit = {.tv_sec = 5};
    int fd = connect_to(argv, SOCK_DGRAM);
    if (fd < 0)
        return failed("connect");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (write(fd, argv[2], strlen(argv[2])) < 0)
        return failed("send");
    ssize_t n = read(fd, buffer, sizeof(buffer) - 1);
    if (n < 0)
        return failed("receive");
    buffer[n] = '\0';
    puts(buffer);
    return 0;
}

static void print_table(const struct nlmsghdr *message)
{
    const char *at = (const char *)NLMSG_DATA(message) + NLMSG_ALIGN(sizeof(struct nfgenmsg));
    const char *end = (const char *)message + message->nlmsg_len;
    while (at + sizeof(struct nlattr) <= end) {
        struct nlattr attr;
        memcpy(&attr, at, sizeof(attr));
        if (attr.nla_type == NFTA_TABLE_NAME)
            printf("table %s\n", at + NLA_HDRLEN);
        if (attr.nla_len < NLA_HDRLEN)
            return;
        at += NLA_ALIGN(attr.nla_len);
    }
}

/* FALSE: that was the last. */
static int print_tables(const char *buffer, ssize_t n)
{
    const struct nlmsghdr *message = (const struct nlmsghdr *)buffer;
    for (; NLMSG_OK(message, (size_t)n); message = NLMSG_NEXT(message, n)) {
        if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR)
            return 0;
        print_table(message);
    }
    return 1;
}

int verb_nf_tables(int argc, char **argv)
{
    static char buffer[CHUNK] __attribute__((aligned(8)));
    struct {
        struct nlmsghdr head;
        struct nfgenmsg info;
    } ask = {.head = {.nlmsg_len = sizeof(ask),
                 .nlmsg_type = (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETTABLE,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .info = {.version = NFNETLINK_V0}};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    ssize_t n;
    if (fd < 0)
        return 0; /* a kernel without it has none */
    if (send(fd, &ask, sizeof(ask), 0) < 0)
        return failed("send");
    do
        n = recv(fd, buffer, sizeof(buffer), 0);
    while (n > 0 && print_tables(buffer, n));
    return n < 0 ? failed("receive") : 0;
}

static int unix_socket(const char *path, struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    strncpy(address->sun_path, path, sizeof(address->sun_path) - 1);
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int verb_unix_serve(int argc, char **argv)
{
    struct sockaddr_un address;
    int fd = unix_socket(argv[0], &address);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
        return failed(argv[0]);
    int client = accept(fd, NULL, NULL);
    if (client < 0 || write(client, argv[1], strlen(argv[1])) < 0)
        return failed("serve");
    return 0;
}

int verb_unix(int argc, char **argv)
{
    struct sockaddr_un address;
    char text[256];
    ssize_t n;
    int fd = unix_socket(argv[0], &address);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return failed(argv[0]);
    while ((n = read(fd, text, sizeof(text))) > 0)
        fwrite(text, 1, (size_t)n, stdout);
    putchar('\n');
    return n < 0 ? failed("read") : 0;
}
