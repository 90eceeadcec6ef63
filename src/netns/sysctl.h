/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The settings of a network namespace as a whole (net.*, but for those of single links). */
#pragma once

#include "netns/state.h"

G_BEGIN_DECLS

/* Those that matter for another kernel: what is true of all links and of new ones, and what somebody has changed (it
 * differs from a new namespace's). Of "net/ipv4/ip_forward=1" (char *), in the order in which they are to be set; (transfer
 * full). */
GPtrArray *sv_net_sysctls_read(int netns_fd, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* @request gets copies of them. */
void sv_net_request_set_sysctls(SvNetRequest *request, const GPtrArray *sysctls);

G_END_DECLS
