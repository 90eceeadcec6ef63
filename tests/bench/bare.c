/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* bare XML SOCKET: a bare libvirt client that holds a domain whose init is bareinit. Each line of its input is a
 * command, each answer ends with "#done STATUS":
 *   attach FILE [SERIAL]  the device in the file; with SERIAL: ms of the call, ms until the guest has the disk
 *   detach FILE           the device, until it is gone
 *   meter BYTES [plain]   the guest's copy of so many bytes: MiB/s from the first to the last of them
 *   anything else         for the guest */
#include <errno.h>
#include <glib.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int guest = -1;
static char ahead[256 * 1024]; /* read from the guest and not used yet */
static size_t ahead_at, ahead_len;

static int failed(const char *what)
{
    virErrorPtr error = virGetLastError();

    printf("bare: %s: %s\n", what, error && error->message ? error->message : g_strerror(errno));
    fflush(stdout);
    return 1;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 120};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

static gboolean fill(void)
{
    ssize_t n = read(guest, ahead, sizeof ahead);

    ahead_at = 0;
    ahead_len = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* One line of the guest, with its newline; FALSE when it says no more. */
static gboolean get_line(GString *line)
{
    g_string_truncate(line, 0);
    for (;;) {
        if (ahead_at == ahead_len && !fill())
            return FALSE;
        g_string_append_c(line, ahead[ahead_at]);
        if (ahead[ahead_at++] == '\n')
            return TRUE;
    }
}

static gboolean tell(const char *line)
{
    g_autofree char *text = g_strconcat(line, "\n", NULL);

    return write(guest, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Hands on what the guest answers. */
static int answer(void)
{
    g_autoptr(GString) line = g_string_new(NULL);

    do {
        if (!get_line(line))
            return failed("the guest");
        fputs(line->str, stdout);
    } while (!g_str_has_prefix(line->str, "#done "));
    fflush(stdout);
    return 0;
}

static double ms_since(gint64 begin)
{
    return (double)(g_get_monotonic_time() - begin) / 1000;
}

static int attach(virDomainPtr domain, const char *file, const char *serial)
{
    g_autofree char *xml = NULL;
    g_autofree char *wait = serial ? g_strconcat("block ", serial, NULL) : NULL;
    g_autoptr(GString) line = g_string_new(NULL);
    gint64 begin;

    if (!g_file_get_contents(file, &xml, NULL, NULL) || (wait && !tell(wait)))
        return failed(file);
    begin = g_get_monotonic_time();
    if (virDomainAttachDeviceFlags(domain, xml, VIR_DOMAIN_AFFECT_LIVE) < 0)
        return failed("attach");
    double called = ms_since(begin);
    if (wait && !get_line(line))
        return failed("the guest");
    if (wait)
        printf("%.2f %.2f %s", called, ms_since(begin), line->str);
    if (wait)
        return answer();
    puts("#done 0");
    fflush(stdout);
    return 0;
}

static int detach(virDomainPtr domain, const char *file)
{
    g_autofree char *xml = NULL;

    if (!g_file_get_contents(file, &xml, NULL, NULL) ||
        virDomainDetachDeviceFlags(domain, xml, VIR_DOMAIN_AFFECT_LIVE) < 0)
        return failed("detach");
    puts("#done 0");
    fflush(stdout);
    return 0;
}

static int meter(const char *bytes, const char *verb)
{
    guint64 left = g_ascii_strtoull(bytes, NULL, 10), total = left;
    g_autofree char *order = g_strconcat(verb, " ", bytes, NULL);
    gint64 begin = 0;

    if (!tell(order))
        return failed("the guest");
    while (left > 0) {
        if (ahead_at == ahead_len && !fill())
            return failed("the guest");
        if (!begin)
            begin = g_get_monotonic_time();
        size_t n = MIN(ahead_len - ahead_at, left);
        ahead_at += n;
        left -= n;
    }
    printf("%.1f\n", (double)total / (1024 * 1024) / (ms_since(begin) / 1000));
    return answer();
}

static int serve(virDomainPtr domain, char *line)
{
    g_auto(GStrv) words = g_strsplit(g_strchomp(line), " ", 3);

    if (g_strcmp0(words[0], "attach") == 0 && words[1])
        return attach(domain, words[1], words[2]);
    if (g_strcmp0(words[0], "detach") == 0 && words[1])
        return detach(domain, words[1]);
    if (g_strcmp0(words[0], "meter") == 0 && words[1])
        return meter(words[1], words[2] ? words[2] : "copy");
    return tell(line) ? answer() : failed("the guest");
}

int main(int argc, char **argv)
{
    g_autofree char *xml = NULL;
    virConnectPtr connection;
    virDomainPtr domain;
    static char line[65536];
    int status;

    if (argc != 3) {
        fprintf(stderr, "usage: bare XML SOCKET\n");
        return 2;
    }
    if (!g_file_get_contents(argv[1], &xml, NULL, NULL))
        return failed(argv[1]);
    connection = virConnectOpen("qemu:///system");
    domain = connection ? virDomainCreateXML(connection, xml, VIR_DOMAIN_START_VALIDATE) : NULL;
    if (!domain)
        return failed("start");
    guest = connect_to(argv[2]);
    status = guest < 0 ? failed("connect") : answer();
    while (status == 0 && fgets(line, sizeof line, stdin))
        status = serve(domain, line);
    virDomainDestroy(domain);
    virDomainFree(domain);
    virConnectClose(connection);
    return status;
}
