/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connections to a pod's localhost, made in its namespace on the host: to ports on which nobody there listens, they come to
 * a listener of ours. An nf_tables table of our own in that namespace sees to it. Blocking, any thread. */
#pragma once

#include "netns/netlink.h"

G_BEGIN_DECLS

/* fds[0]: IPv4, fds[1]: IPv6 (-1: the namespace has none); non-blocking listeners. An accepted connection has the address
 * and port as its own that the client asked for. The table goes when *table is closed, which the caller owns, or the process
 * ends; SV_ERR_PERMISSION when another process has one there. */
gboolean sv_localhost_catch(int netns_fd, int fds[2], int *table, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* Takes away a table that nobody owns; none is fine, and so is one of a process that lives. */
gboolean sv_localhost_release(int netns_fd, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
