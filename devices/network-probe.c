/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/network-probe.h"

#include "base/fd.h"
#include "devices/network-localhost.h"
#include "devices/network-tc.h"

#define LOOPBACK_INDEX 1

gboolean sv_network_probe_take(GError **error)
{
    gboolean made = FALSE;
    g_auto(SvFd) fd = sv_netns_make(error);
    g_autoptr(SvNetlink) nl = fd >= 0 ? sv_netlink_new_in(fd, NETLINK_ROUTE, error) : NULL;
    return nl != NULL && sv_tc_redirect(nl, LOOPBACK_INDEX, LOOPBACK_INDEX, 0, &made, error);
}

gboolean sv_network_probe_localhost(GError **error)
{
    int fds[2] = {-1, -1}, table = -1;
    g_auto(SvFd) fd = sv_netns_make(error);
    if (fd < 0 || !sv_localhost_catch(fd, fds, &table, error))
        return FALSE;
    sv_fd_close(fds[0]);
    sv_fd_close(fds[1]);
    sv_fd_close(table);
    return TRUE;
}
