/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections to localhost, where nobody listens, come to us; nothing else does. */
#include <config.h>

#include "devices/network-localhost.h"
#include "devices/network-probe.h"
#include "in-netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
} Address;

static socklen_t address_at(Address *address, gboolean ipv6, guint16 port)
{
    memset(address, 0, sizeof *address);
    if (ipv6) {
        address->in6.sin6_family = AF_INET6;
        address->in6.sin6_addr = in6addr_loopback;
        address->in6.sin6_port = htons(port);
        return sizeof address->in6;
    }
    address->in.sin_family = AF_INET;
    address->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address->in.sin_port = htons(port);
    return sizeof address->in;
}

static int connect_at(gboolean ipv6, guint16 port)
{
    Address address;
    socklen_t len = address_at(&address, ipv6, port);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(fd, >=, 0);
    if (connect(fd, &address.any, len) == 0)
        return fd;
    int errsv = errno;
    close(fd);
    errno = errsv;
    return -1;
}

static int listen_at(gboolean ipv6, guint16 port)
{
    Address address;
    socklen_t len = address_at(&address, ipv6, port);
    int on = 1;
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    g_assert_cmpint(bind(fd, &address.any, len), ==, 0);
    g_assert_cmpint(listen(fd, 5), ==, 0);
    return fd;
}

/* The port that the other side wanted; 0: nobody came. */
static guint16 accepted(int listener, int *fd)
{
    Address address;
    socklen_t len = sizeof address;

    if (sv_fd_wait(listener, POLLIN, g_get_monotonic_time() + 300000) <= 0)
        return 0;
    *fd = accept(listener, NULL, NULL);
    g_assert_cmpint(*fd, >=, 0);
    g_assert_cmpint(getsockname(*fd, &address.any, &len), ==, 0);
    return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port);
}

static void exchange(int a, int b)
{
    char text[6] = "";

    g_assert_cmpint(write(a, "hello", 5), ==, 5);
    g_assert_cmpint(read(b, text, 5), ==, 5);
    g_assert_cmpint(write(b, "world", 5), ==, 5);
    g_assert_cmpint(read(a, text, 5), ==, 5);
    g_assert_cmpstr(text, ==, "world");
}

static void test_catch(gconstpointer data)
{
    gboolean ipv6 = GPOINTER_TO_INT(data);
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) fd4 = -1;
    g_auto(SvFd) fd6 = -1;
    g_auto(SvFd) peer = -1;
    g_auto(SvFd) table = -1;
    int fds[2] = {-1, -1}, none[2] = {-1, -1}, no_table = -1;

    if (!enter_new())
        return;
    ip("link set lo up\n");
    g_auto(SvFd) here = keep_current();
    gboolean ok = sv_localhost_catch(here, fds, &table, &error);
    fd4 = fds[0];
    fd6 = fds[1];
    if (!ok && (sv_error_is(error, SV_ERR_UNSUPPORTED) || sv_error_is(error, SV_ERR_NOT_FOUND))) {
        g_test_skip(error->message);
        return;
    }
    g_assert_no_error(error);
    int ours = ipv6 ? fd6 : fd4;

    /* nobody listens */
    g_auto(SvFd) client = connect_at(ipv6, 6000);
    g_assert_cmpint(client, >=, 0);
    g_assert_cmpuint(accepted(ours, &peer), ==, 6000);
    exchange(client, peer);

    /* somebody does, at an address or at all of them */
    g_auto(SvFd) other = listen_at(ipv6, 5000);
    g_auto(SvFd) second = connect_at(ipv6, 5000);
    g_assert_cmpint(second, >=, 0);
    sv_fd_clear(&peer);
    g_assert_cmpuint(accepted(other, &peer), ==, 5000);
    exchange(second, peer);
    sv_fd_clear(&peer);
    g_assert_cmpuint(accepted(ours, &peer), ==, 0);

    /* somebody else may neither replace it nor take it away */
    g_assert_false(sv_localhost_catch(here, none, &no_table, &error));
    g_assert_true(sv_error_is(error, SV_ERR_PERMISSION));
    g_clear_error(&error);
    g_assert_cmpint(no_table, ==, -1);
    g_assert_true(sv_localhost_release(here, &error));
    g_auto(SvFd) still = connect_at(ipv6, 6002);
    g_assert_cmpuint(accepted(ours, &peer), ==, 6002);
    sv_fd_clear(&peer);

    /* it goes with who made it; then again, as a new monitor does */
    sv_fd_clear(&fd4);
    sv_fd_clear(&fd6);
    sv_fd_clear(&table);
    g_assert_cmpint(connect_at(ipv6, 6001), ==, -1);
    g_assert_cmpint(errno, ==, ECONNREFUSED);
    g_assert_true(sv_localhost_catch(here, fds, &table, &error));
    fd4 = fds[0];
    fd6 = fds[1];
    g_auto(SvFd) third = connect_at(ipv6, 1);
    g_assert_cmpuint(accepted(ipv6 ? fd6 : fd4, &peer), ==, 1);

    /* none is fine */
    sv_fd_clear(&table);
    g_assert_true(sv_localhost_release(here, &error));
    g_assert_no_error(error);
}

/* What `sandvirt check` tries says the same. */
static void test_probe(void)
{
    g_autoptr(GError) error = NULL;

    if (!enter_new())
        return;
    if (!sv_network_probe_localhost(&error) || !sv_network_probe_take(&error))
        g_test_skip(error->message);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/network-localhost/ipv4", GINT_TO_POINTER(FALSE), test_catch);
    g_test_add_data_func("/network-localhost/ipv6", GINT_TO_POINTER(TRUE), test_catch);
    g_test_add_func("/network-localhost/probe", test_probe);
    return g_test_run();
}
