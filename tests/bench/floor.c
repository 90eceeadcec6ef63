/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What nothing can beat: a bare libvirt client.
 *   floor boot XML SOCKET ROUNDS: starts the domain in the file XML and reads one byte from its channel;
 *     a line per round: ms of virDomainCreateXML, ms from its begin to the byte.
 *   floor hold XML SOCKET: the same once; prints "ready", ends the domain when its input ends.
 *   floor idle: a connection with one event registered; prints "ready", ends when its input ends.
 * And floor meter: MiB/s of its input, from the first to the last byte. */
#include "rpc/frame.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define URI "qemu:///system"

static int failed(const char *what)
{
    virErrorPtr error = virGetLastError();

    fprintf(stderr, "floor: %s: %s\n", what,
        error && error->message ? error->message : g_strerror(errno));
    return 1;
}

/* The agent answers a greeting, with any token when it has none yet; the minimal init speaks unasked. */
static gboolean greet(int fd)
{
    guint8 greeting[SV_SYNC_MAGIC_LEN + 2 * SV_SYNC_ID_LEN] = {0};

    memcpy(greeting, sv_sync_magic, SV_SYNC_MAGIC_LEN);
    return write(fd, greeting, sizeof greeting) == sizeof greeting;
}

/* One byte of the guest; -1 when none comes. */
static int first_byte(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 120};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte;
    ssize_t n = -1;

    if (fd < 0 ||
        g_strlcpy(address.sun_path, path, sizeof address.sun_path) >= sizeof address.sun_path)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && greet(fd))
        n = read(fd, &byte, 1);
    close(fd);
    return n == 1 ? 0 : -1;
}

static void wait_for_end_of_input(void)
{
    char buffer[64];

    puts("ready");
    fflush(stdout);
    while (read(0, buffer, sizeof buffer) > 0)
        continue;
}

static int boot(virConnectPtr connection, const char *xml, const char *socket_path, int rounds)
{
    for (int i = 0; i < (rounds ? rounds : 1); i++) {
        gint64 begin = g_get_monotonic_time();
        virDomainPtr domain = virDomainCreateXML(connection, xml, VIR_DOMAIN_START_VALIDATE);
        gint64 created = g_get_monotonic_time();
        int heard;

        if (!domain)
            return failed("start");
        heard = first_byte(socket_path);
        if (heard == 0 && rounds)
            printf("%.1f %.1f\n", (double)(created - begin) / 1000,
                (double)(g_get_monotonic_time() - begin) / 1000);
        else if (heard == 0)
            wait_for_end_of_input();
        fflush(stdout);
        virDomainDestroy(domain);
        virDomainFree(domain);
        if (heard != 0)
            return failed("no byte of the guest");
    }
    return 0;
}

static int on_event(
    virConnectPtr connection, virDomainPtr domain, int event, int detail, void *data)
{
    return 0;
}

static gboolean on_input(int fd, GIOCondition condition, gpointer loop)
{
    char buffer[64];

    if (read(fd, buffer, sizeof buffer) > 0)
        return G_SOURCE_CONTINUE;
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

static int idle(void)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    virConnectPtr connection;

    if (virEventRegisterDefaultImpl() < 0 || !(connection = virConnectOpen(URI)))
        return failed("connect");
    if (virConnectDomainEventRegisterAny(connection, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
            VIR_DOMAIN_EVENT_CALLBACK(on_event), NULL, NULL) < 0)
        return failed("register");
    g_unix_fd_add(0, G_IO_IN | G_IO_HUP, on_input, loop);
    puts("ready");
    fflush(stdout);
    /* libvirt's implementation of events sits on GLib's default context. */
    g_main_loop_run(loop);
    virConnectClose(connection);
    return 0;
}

static int meter(void)
{
    static char buffer[256 * 1024];
    gint64 begin = 0, total = 0;
    ssize_t n;

    while ((n = read(0, buffer, sizeof buffer)) > 0) {
        if (!begin)
            begin = g_get_monotonic_time();
        total += n;
    }
    printf(
        "%.1f\n", (double)total / (1024 * 1024) / ((double)(g_get_monotonic_time() - begin) / 1e6));
    return n < 0 || total == 0;
}

int main(int argc, char **argv)
{
    g_autofree char *xml = NULL;
    virConnectPtr connection;
    int status;

    if (argc == 2 && strcmp(argv[1], "idle") == 0)
        return idle();
    if (argc == 2 && strcmp(argv[1], "meter") == 0)
        return meter();
    if ((argc != 5 || strcmp(argv[1], "boot") != 0) &&
        (argc != 4 || strcmp(argv[1], "hold") != 0)) {
        fprintf(stderr, "usage: floor boot XML SOCKET ROUNDS | hold XML SOCKET | idle | meter\n");
        return 2;
    }
    if (!g_file_get_contents(argv[2], &xml, NULL, NULL))
        return failed(argv[2]);
    connection = virConnectOpen(URI);
    if (!connection)
        return failed("connect");
    status =
        boot(connection, xml, argv[3], argc == 5 ? (int)g_ascii_strtoll(argv[4], NULL, 10) : 0);
    virConnectClose(connection);
    return status;
}
