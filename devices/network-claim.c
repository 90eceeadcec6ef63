/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The claim is a name among the abstract sockets of the namespace: the kernel gives each of them once, and takes it back
 * when the process that has it ends, however that comes. (A lock of the namespace's file would be in the way of those who
 * sweep, see network-sweep.h.) */
#include <config.h>

#include "devices/network-claim.h"

#include "base/fd.h"
#include "netns/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NAME "sandvirt/machine"

int sv_network_claim(int netns_fd, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const socklen_t len = offsetof(struct sockaddr_un, sun_path) + sizeof NAME;
    g_auto(SvFd) fd = sv_netns_socket(netns_fd, AF_UNIX, SOCK_DGRAM, 0, error);
    if (fd < 0)
        return -1;
    /* The first byte of an abstract name is none. */
    memcpy(address.sun_path + 1, NAME, sizeof NAME - 1);
    if (bind(fd, (struct sockaddr *)&address, len) == 0)
        return sv_fd_steal(&fd);
    if (errno == EADDRINUSE)
        g_set_error_literal(error, SV_NET_ERROR, SV_ERR_BUSY,
            "the network namespace is in use by another machine already");
    else
        sv_error_set_errno(error, SV_NET_ERROR, errno, "claim the network namespace");
    return -1;
}
