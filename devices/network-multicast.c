/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/network-multicast.h"

#include "netns/netlink.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

int sv_multicast_open(int netns_fd, GError **error)
{
    /* Without a protocol it gets no frames itself. */
    return sv_netns_socket(netns_fd, AF_PACKET, SOCK_RAW, 0, error);
}

static void change(int fd, int index, int option)
{
    const struct packet_mreq request = {.mr_ifindex = index, .mr_type = PACKET_MR_ALLMULTI};
    if (fd >= 0 && setsockopt(fd, SOL_PACKET, option, &request, sizeof request) < 0)
        g_debug("groups of link %d: %s", index, g_strerror(errno));
}

void sv_multicast_add(int fd, int index)
{
    change(fd, index, PACKET_ADD_MEMBERSHIP);
}

void sv_multicast_remove(int fd, int index)
{
    change(fd, index, PACKET_DROP_MEMBERSHIP);
}
