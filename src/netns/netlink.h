/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Netlink: sockets, messages and attributes. Blocking, but the kernel answers at once; any thread, one at a
 * time for each socket. A socket stays in the network namespace it was made in, whoever uses it. */
#pragma once

#include "base/error.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

G_BEGIN_DECLS

#define SV_NET_ERROR (sv_net_error_quark())
GQuark sv_net_error_quark(void);

typedef struct SvNetlink SvNetlink;

/* @protocol: NETLINK_ROUTE and so on; in the calling thread's namespace. */
SvNetlink *sv_netlink_new(int protocol, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* In the namespace of @netns_fd, which a thread of its own enters for that. */
SvNetlink *sv_netlink_new_in(int netns_fd, int protocol, GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* A new network namespace, as long as the descriptor. -1 + @error. */
int sv_netns_make(GError **error) G_GNUC_WARN_UNUSED_RESULT;
void sv_netlink_free(SvNetlink *nl);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SvNetlink, sv_netlink_free)
int sv_netlink_fd(const SvNetlink *nl);
/* Number of the namespace that no other one gets before the next boot; 0: the kernel does not tell. */
guint64 sv_netlink_cookie(const SvNetlink *nl);
/* Joins a multicast group (RTNLGRP_...). What comes is read by sv_netlink_drain. */
gboolean sv_netlink_join(SvNetlink *nl, guint group, GError **error);
/* Reads and drops what there is; FALSE when there was nothing. Overruns count as something. */
gboolean sv_netlink_drain(SvNetlink *nl);

/* ---- messages: a GByteArray that grows */

/* Begins a message: @header is what the family has in front of its attributes. */
GByteArray *sv_nl_new(guint16 type, guint16 flags, const void *header, gsize len)
    G_GNUC_WARN_UNUSED_RESULT;
void sv_nl_put(GByteArray *msg, guint16 attr, const void *data, gsize len);
void sv_nl_put_u8(GByteArray *msg, guint16 attr, guint8 value);
void sv_nl_put_u16(GByteArray *msg, guint16 attr, guint16 value);
void sv_nl_put_u32(GByteArray *msg, guint16 attr, guint32 value);
void sv_nl_put_string(GByteArray *msg, guint16 attr, const char *text);
/* Attributes inside of one: everything put between the two. */
gsize sv_nl_begin(GByteArray *msg, guint16 attr);
void sv_nl_end(GByteArray *msg, gsize begun);

/* Sends and waits for the kernel's word. @error has the code of errno and the kernel's own text;
 * *errsv (nullable) is that errno. Does not free @msg. */
gboolean sv_netlink_request(SvNetlink *nl, GByteArray *msg, int *errsv, GError **error);
/* Several at once, of which all or none are done (nfnetlink); the first and the last, which begin and end the batch,
 * get no answer. */
gboolean sv_netlink_batch(SvNetlink *nl, const GPtrArray *msgs, int *errsv, GError **error);
/* The answers to a request with NLM_F_DUMP, or one answer without. @func returns FALSE to stop the whole
 * with @error set. When the kernel's tables changed meanwhile @restart (nullable) is called and
 * everything comes again. */
typedef gboolean (*SvNetlinkFunc)(
    const struct nlmsghdr *message, gpointer user_data, GError **error);
gboolean sv_netlink_dump(SvNetlink *nl, GByteArray *msg, SvNetlinkFunc func,
    void (*restart)(gpointer user_data), gpointer user_data, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

/* ---- attributes of a received message */

/* What follows the family's header of @header_len bytes; NULL when the message is too short. */
const void *sv_nl_header(const struct nlmsghdr *message, gsize header_len);
/* table[0..max] point to the attributes, the last of a kind counts; others are NULL. */
void sv_nl_parse(
    const struct nlmsghdr *message, gsize header_len, const struct rtattr **table, guint max);
void sv_nl_parse_nested(const struct rtattr *attr, const struct rtattr **table, guint max);
/* 0 when @attr is NULL or short. */
guint32 sv_nl_u32(const struct rtattr *attr);
guint16 sv_nl_u16(const struct rtattr *attr);
guint8 sv_nl_u8(const struct rtattr *attr);
/* (transfer full) NULL when @attr is NULL. */
char *sv_nl_string(const struct rtattr *attr);

G_END_DECLS
