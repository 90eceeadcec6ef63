/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The settings of a network namespace as a whole (net.*, but for those of single links). */
#pragma once

#include "netns/state.h"

G_BEGIN_DECLS

/* Those that somebody has changed: they differ from a new namespace's. Of "net/ipv4/ip_forward=1" (char *), (transfer
 * full). */
GPtrArray *sv_net_sysctls_changed(int netns_fd, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* @request gets copies of them. */
void sv_net_request_set_sysctls(SvNetRequest *request, const GPtrArray *sysctls);

G_END_DECLS
