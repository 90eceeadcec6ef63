/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/network-localhost.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define TABLE "sandvirt"
#define CHAIN "localhost"
#define PRIORITY_MANGLE (-150)
#define LOOPBACK_INDEX 1
#define BACKLOG 128

/* ---- messages of nf_tables: numbers are in network order, but for what is compared with the kernel's own. All are short:
 * there is room. */

static struct nl_msg *message_new(guint16 type, guint16 flags, guint8 family)
{
    const struct nfgenmsg info = {.nfgen_family = family, .version = NFNETLINK_V0};
    return sv_nl_new((NFNL_SUBSYS_NFTABLES << 8) | type, flags | NLM_F_ACK, &info, sizeof info);
}

static struct nl_msg *batch_new(guint16 type)
{
    const struct nfgenmsg info = {
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    return sv_nl_new(type, 0, &info, sizeof info);
}

static void put_be32(struct nl_msg *msg, int attr, guint32 value)
{
    nla_put_u32(msg, attr, htonl(value));
}

static struct nl_msg *table_new(guint16 type, guint16 flags)
{
    struct nl_msg *msg = message_new(type, flags, NFPROTO_INET);
    nla_put_string(msg, NFTA_TABLE_NAME, TABLE);
    return msg;
}

/* One that nobody else can change, and that goes with its socket: whatever is killed, it is not left behind. */
static struct nl_msg *owned_table_new(void)
{
    struct nl_msg *msg = table_new(NFT_MSG_NEWTABLE, NLM_F_CREATE);
    put_be32(msg, NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
    return msg;
}

static struct nl_msg *chain_new(void)
{
    struct nl_msg *msg = message_new(NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFPROTO_INET);
    nla_put_string(msg, NFTA_CHAIN_TABLE, TABLE);
    nla_put_string(msg, NFTA_CHAIN_NAME, CHAIN);
    nla_put_string(msg, NFTA_CHAIN_TYPE, "filter");
    struct nlattr *hook = nla_nest_start(msg, NFTA_CHAIN_HOOK);
    put_be32(msg, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
    put_be32(msg, NFTA_HOOK_PRIORITY, (guint32)PRIORITY_MANGLE);
    nla_nest_end(msg, hook);
    return msg;
}

/* ---- a rule: expressions, one after the other, over registers */

typedef struct {
    struct nl_msg *msg;
    struct nlattr *list, *element, *data;
} Rule;

static Rule rule_new(void)
{
    Rule rule = {.msg = message_new(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, NFPROTO_INET)};
    nla_put_string(rule.msg, NFTA_RULE_TABLE, TABLE);
    nla_put_string(rule.msg, NFTA_RULE_CHAIN, CHAIN);
    rule.list = nla_nest_start(rule.msg, NFTA_RULE_EXPRESSIONS);
    return rule;
}

static void begin(Rule *rule, const char *name)
{
    rule->element = nla_nest_start(rule->msg, NFTA_LIST_ELEM);
    nla_put_string(rule->msg, NFTA_EXPR_NAME, name);
    rule->data = nla_nest_start(rule->msg, NFTA_EXPR_DATA);
}

static void end(Rule *rule)
{
    nla_nest_end(rule->msg, rule->data);
    nla_nest_end(rule->msg, rule->element);
}

static void load_meta(Rule *rule, guint32 key)
{
    begin(rule, "meta");
    put_be32(rule->msg, NFTA_META_DREG, NFT_REG_1);
    put_be32(rule->msg, NFTA_META_KEY, key);
    end(rule);
}

/* Ends the rule when there is no socket that takes the packet, listening or connected. */
static void load_socket(Rule *rule)
{
    begin(rule, "socket");
    put_be32(rule->msg, NFTA_SOCKET_KEY, NFT_SOCKET_TRANSPARENT);
    put_be32(rule->msg, NFTA_SOCKET_DREG, NFT_REG_1);
    end(rule);
}

static void load_destination(Rule *rule, guint32 offset, guint32 len)
{
    begin(rule, "payload");
    put_be32(rule->msg, NFTA_PAYLOAD_DREG, NFT_REG_1);
    put_be32(rule->msg, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    put_be32(rule->msg, NFTA_PAYLOAD_OFFSET, offset);
    put_be32(rule->msg, NFTA_PAYLOAD_LEN, len);
    end(rule);
}

static void put_value(struct nl_msg *msg, int attr, const void *value, gsize len)
{
    struct nlattr *data = nla_nest_start(msg, attr);
    nla_put(msg, NFTA_DATA_VALUE, (int)len, value);
    nla_nest_end(msg, data);
}

static void compare(Rule *rule, guint32 op, const void *value, gsize len)
{
    begin(rule, "cmp");
    put_be32(rule->msg, NFTA_CMP_SREG, NFT_REG_1);
    put_be32(rule->msg, NFTA_CMP_OP, op);
    put_value(rule->msg, NFTA_CMP_DATA, value, len);
    end(rule);
}

static void tproxy(Rule *rule, guint8 family, const void *address, gsize len, guint16 port)
{
    begin(rule, "immediate");
    put_be32(rule->msg, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    put_value(rule->msg, NFTA_IMMEDIATE_DATA, address, len);
    end(rule);
    begin(rule, "immediate");
    put_be32(rule->msg, NFTA_IMMEDIATE_DREG, NFT_REG_2);
    put_value(rule->msg, NFTA_IMMEDIATE_DATA, &port, sizeof port);
    end(rule);
    begin(rule, "tproxy");
    put_be32(rule->msg, NFTA_TPROXY_FAMILY, family);
    put_be32(rule->msg, NFTA_TPROXY_REG_ADDR, NFT_REG_1);
    put_be32(rule->msg, NFTA_TPROXY_REG_PORT, NFT_REG_2);
    end(rule);
}

static void accept_packet(Rule *rule)
{
    begin(rule, "immediate");
    put_be32(rule->msg, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    struct nlattr *data = nla_nest_start(rule->msg, NFTA_IMMEDIATE_DATA);
    struct nlattr *verdict = nla_nest_start(rule->msg, NFTA_DATA_VERDICT);
    put_be32(rule->msg, NFTA_VERDICT_CODE, NF_ACCEPT);
    nla_nest_end(rule->msg, verdict);
    nla_nest_end(rule->msg, data);
    end(rule);
}

static struct nl_msg *rule_end(Rule *rule)
{
    nla_nest_end(rule->msg, rule->list);
    return rule->msg;
}

/* What did not come through the loopback, or is no TCP, is of no concern. */
static struct nl_msg *rule_pass_others(void)
{
    const guint32 loopback = LOOPBACK_INDEX;
    Rule rule = rule_new();
    load_meta(&rule, NFT_META_IIF);
    compare(&rule, NFT_CMP_NEQ, &loopback, sizeof loopback);
    accept_packet(&rule);
    return rule_end(&rule);
}

static struct nl_msg *rule_pass_no_tcp(void)
{
    const guint8 tcp = IPPROTO_TCP;
    Rule rule = rule_new();
    load_meta(&rule, NFT_META_L4PROTO);
    compare(&rule, NFT_CMP_NEQ, &tcp, sizeof tcp);
    accept_packet(&rule);
    return rule_end(&rule);
}

static struct nl_msg *rule_pass_taken(void)
{
    const guint8 any = 1;
    Rule rule = rule_new();
    load_socket(&rule);
    compare(&rule, NFT_CMP_LTE, &any, sizeof any);
    accept_packet(&rule);
    return rule_end(&rule);
}

static struct nl_msg *rule_catch(gboolean ipv6, guint16 port)
{
    const guint8 family = ipv6 ? NFPROTO_IPV6 : NFPROTO_IPV4;
    const struct in_addr loopback4 = {.s_addr = htonl(INADDR_LOOPBACK)};
    gconstpointer address = ipv6 ? (gconstpointer)&in6addr_loopback : (gconstpointer)&loopback4;
    gsize len = ipv6 ? sizeof in6addr_loopback : sizeof loopback4;
    Rule rule = rule_new();
    load_meta(&rule, NFT_META_NFPROTO);
    compare(&rule, NFT_CMP_EQ, &family, sizeof family);
    load_destination(&rule, ipv6 ? 24 : 16, (guint32)len);
    compare(&rule, NFT_CMP_EQ, address, len);
    tproxy(&rule, family, address, len, port);
    accept_packet(&rule);
    return rule_end(&rule);
}

/* All are done, or none is. */
static gboolean send_batch(SvNetlink *nl, GPtrArray *msgs, int *errsv, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    guint answers = msgs->len;
    struct nl_sock *sock = sv_netlink_socket(nl);
    /* What begins and ends it is not answered. */
    nl_socket_disable_auto_ack(sock);
    g_ptr_array_insert(msgs, 0, batch_new(NFNL_MSG_BATCH_BEGIN));
    g_ptr_array_add(msgs, batch_new(NFNL_MSG_BATCH_END));
    for (guint i = 0; i < msgs->len; i++) {
        nl_complete_msg(sock, msgs->pdata[i]);
        struct nlmsghdr *message = nlmsg_hdr(msgs->pdata[i]);
        g_byte_array_append(bytes, (gpointer)message, message->nlmsg_len);
    }
    int result = nl_sendto(sock, bytes->data, bytes->len);
    for (guint i = 0; i < answers && result >= 0; i++)
        result = nl_recvmsgs_default(sock);
    return sv_netlink_check(nl, result, errsv, error);
}

static GPtrArray *batch_messages(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)nlmsg_free);
}

/* The descriptor of the socket that owns it, or -1. */
static int make_table(int netns_fd, const guint16 ports[2], GError **error)
{
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(netns_fd, NETLINK_NETFILTER, error);
    g_autoptr(GPtrArray) msgs = batch_messages();
    /* Made, removed and made: whatever nobody owns. */
    g_ptr_array_add(msgs, table_new(NFT_MSG_NEWTABLE, NLM_F_CREATE));
    g_ptr_array_add(msgs, table_new(NFT_MSG_DELTABLE, 0));
    g_ptr_array_add(msgs, owned_table_new());
    g_ptr_array_add(msgs, chain_new());
    g_ptr_array_add(msgs, rule_pass_others());
    g_ptr_array_add(msgs, rule_pass_no_tcp());
    g_ptr_array_add(msgs, rule_pass_taken());
    for (guint i = 0; i < 2; i++)
        if (ports[i] != 0)
            g_ptr_array_add(msgs, rule_catch(i == 1, ports[i]));
    if (!nl || !send_batch(nl, msgs, NULL, error)) {
        g_prefix_error(error, "nf_tables: ");
        return -1;
    }
    int fd = fcntl(nl_socket_get_fd(sv_netlink_socket(nl)), F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        sv_error_set_errno(error, SV_NET_ERROR, errno, "keep the socket of nf_tables");
    return fd;
}

/* ---- listeners */

static gboolean set_up(int fd, gboolean ipv6)
{
    const int on = 1;
    struct sockaddr_in address4 = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 address6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    if (ipv6)
        return setsockopt(fd, SOL_IPV6, IPV6_TRANSPARENT, &on, sizeof on) == 0 &&
            setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0 &&
            bind(fd, (struct sockaddr *)&address6, sizeof address6) == 0 &&
            listen(fd, BACKLOG) == 0;
    return setsockopt(fd, SOL_IP, IP_TRANSPARENT, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&address4, sizeof address4) == 0 && listen(fd, BACKLOG) == 0;
}

static gboolean listen_in(int netns_fd, gboolean ipv6, int *result, GError **error)
{
    g_autoptr(GError) local = NULL;
    const int domain = ipv6 ? AF_INET6 : AF_INET;
    g_auto(SvFd) fd = sv_netns_socket(netns_fd, domain, SOCK_STREAM | SOCK_NONBLOCK, 0, &local);
    gboolean ok = fd >= 0 && set_up(fd, ipv6);
    if (ok)
        *result = sv_fd_steal(&fd);
    /* No IPv6, or no ::1 */
    if (ok || (ipv6 && (fd >= 0 ? errno == EADDRNOTAVAIL : sv_error_is(local, SV_ERR_UNSUPPORTED))))
        return TRUE;
    if (fd >= 0)
        sv_error_set_errno(error, SV_NET_ERROR, errno, "listen at the localhost");
    else
        g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

/* In network order; 0: none. */
static guint16 port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } u;
    socklen_t len = sizeof u;
    memset(&u, 0, sizeof u);
    if (fd < 0 || getsockname(fd, &u.any, &len) < 0)
        return 0;
    return u.any.sa_family == AF_INET6 ? u.in6.sin6_port : u.in.sin_port;
}

gboolean sv_localhost_catch(int netns_fd, int fds[2], int *table, GError **error)
{
    g_auto(SvFd) fd4 = -1;
    g_auto(SvFd) fd6 = -1;
    if (!listen_in(netns_fd, FALSE, &fd4, error) || !listen_in(netns_fd, TRUE, &fd6, error))
        return FALSE;
    const guint16 ports[2] = {port_of(fd4), port_of(fd6)};
    int owner = make_table(netns_fd, ports, error);
    if (owner < 0)
        return FALSE;
    *table = owner;
    fds[0] = sv_fd_steal(&fd4);
    fds[1] = sv_fd_steal(&fd6);
    return TRUE;
}

gboolean sv_localhost_release(int netns_fd, GError **error)
{
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(netns_fd, NETLINK_NETFILTER, error);
    g_autoptr(GPtrArray) msgs = batch_messages();
    g_autoptr(GError) local = NULL;
    int errsv = 0;
    if (!nl)
        return FALSE;
    g_ptr_array_add(msgs, table_new(NFT_MSG_DELTABLE, 0));
    if (send_batch(nl, msgs, &errsv, &local) || errsv == ENOENT || errsv == EPERM ||
        errsv == EOPNOTSUPP || errsv == EPROTONOSUPPORT)
        return TRUE;
    g_propagate_prefixed_error(error, g_steal_pointer(&local), "nf_tables: ");
    return FALSE;
}
