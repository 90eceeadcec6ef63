/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libnl with GError, and sockets in other network namespaces. Blocking, but the kernel answers at once; any thread,
 * one at a time for each socket. A socket stays in the network namespace it was made in, whoever uses it. */
#pragma once

#include "base/error.h"
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

G_BEGIN_DECLS

#define SV_NET_ERROR (sv_net_error_quark())
GQuark sv_net_error_quark(void);

typedef struct SvNetlink SvNetlink;

/* @protocol: NETLINK_ROUTE and so on; in the calling thread's namespace. */
SvNetlink *sv_netlink_new(int protocol, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* In the namespace of @netns_fd, which a thread of its own enters for that. */
SvNetlink *sv_netlink_new_in(int netns_fd, int protocol, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* A socket in that namespace, close-on-exec. -1 + @error. */
int sv_netns_socket(int netns_fd, int domain, int type, int protocol, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;
/* A new network namespace, as long as the descriptor. -1 + @error. */
int sv_netns_make(GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_netlink_free(SvNetlink *nl);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvNetlink, sv_netlink_free)
/* For the functions of libnl, whose results go to sv_netlink_check. */
struct nl_sock *sv_netlink_socket(SvNetlink *nl);
/* @result: what the last call of libnl with that socket has returned; FALSE when it is negative. @error has the code
 * of errno and the kernel's own text; *errsv (nullable) is that errno. */
gboolean sv_netlink_check(SvNetlink *nl, int result, int *errsv, GError **error);
/* Number of the namespace that no other one gets before the next boot; 0: the kernel does not tell. */
guint64 sv_netlink_cookie(const SvNetlink *nl);
/* Reads and drops what there is; FALSE when there was nothing. Overruns count as something. */
gboolean sv_netlink_drain(SvNetlink *nl);

/* Begins a message: @header is what the family has in front of its attributes. */
struct nl_msg *sv_nl_new(guint16 type, guint16 flags, const void *header, gsize len)
    G_GNUC_WARN_UNUSED_RESULT;
/* Sends @msg (taken) and waits for the kernel's word, which is told as sv_netlink_check tells it. */
gboolean sv_netlink_request(SvNetlink *nl, struct nl_msg *msg, int *errsv, GError **error);
/* The answers to a request for all that there is. @func returns FALSE to stop the whole with @error set. When the
 * kernel's tables changed meanwhile @restart is called and everything comes again. */
typedef gboolean (*SvNetlinkFunc)(struct nlmsghdr *message, gpointer user_data, GError **error);
gboolean sv_netlink_dump(SvNetlink *nl, guint16 type, const void *header, gsize len,
    SvNetlinkFunc func, void (*restart)(gpointer user_data), gpointer user_data, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
