/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/netlink.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <netlink/errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#define MAX_RESTARTS 10

SV_DEFINE_ERROR_QUARK(net)

struct SvNetlink {
    struct nl_sock *socket;
    /* of the request at work */
    int errsv;
    char *text; /* the kernel's own words; nullable */
};

/* ---- errors: libnl keeps a class of them, and no texts */

static void note_error(SvNetlink *nl, struct nlmsghdr *message, int code, gsize skip)
{
    const int with_text = NLM_F_ACK_TLVS | NLM_F_CAPPED;
    struct nlattr *table[NLMSGERR_ATTR_MAX + 1] = {NULL};

    nl->errsv = -code;
    g_clear_pointer(&nl->text, g_free);
    if ((message->nlmsg_flags & with_text) == with_text &&
        nlmsg_parse(message, (int)skip, table, NLMSGERR_ATTR_MAX, NULL) == 0 &&
        table[NLMSGERR_ATTR_MSG])
        nl->text =
            g_strndup(nla_data(table[NLMSGERR_ATTR_MSG]), (gsize)nla_len(table[NLMSGERR_ATTR_MSG]));
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *answer, gpointer user_data)
{
    struct nlmsghdr *message = (gpointer)((char *)answer - NLMSG_HDRLEN);

    note_error(user_data, message, answer->error, sizeof(*answer));
    return NL_STOP;
}

/* A dump that broke off; libnl takes it for a whole one. */
static int on_finish(struct nl_msg *msg, gpointer user_data)
{
    struct nlmsghdr *message = nlmsg_hdr(msg);
    int code = 0;

    if (nlmsg_datalen(message) >= (int)sizeof(code))
        memcpy(&code, nlmsg_data(message), sizeof(code));
    if (code >= 0)
        return NL_OK;
    note_error(user_data, message, code, sizeof(code));
    return -NLE_FAILURE;
}

gboolean sv_netlink_check(SvNetlink *nl, int result, int *errsv, GError **error)
{
    int code = result < 0 ? nl->errsv : 0;
    g_autofree char *text = g_steal_pointer(&nl->text);

    nl->errsv = 0;
    if (errsv)
        *errsv = result < 0 && code == 0 ? EIO : code;
    if (result >= 0)
        return TRUE;
    g_set_error(error, SV_NET_ERROR, code ? sv_error_code_from_errno(code) : SV_ERR_IO, "%s%s%s",
        code ? g_strerror(code) : nl_geterror(result), text ? ": " : "", text ? text : "");
    return FALSE;
}

/* ---- sockets */

SvNetlink *sv_netlink_new(int protocol, GError **error)
{
    const int on = 1;
    SvNetlink *nl = g_new0(SvNetlink, 1);

    nl->socket = nl_socket_alloc();
    int result = nl->socket ? nl_connect(nl->socket, protocol) : -NLE_NOMEM;
    if (result < 0) {
        sv_error_set_errno(error, SV_NET_ERROR, errno, "netlink socket");
        sv_netlink_free(nl);
        return NULL;
    }
    nl_socket_modify_err_cb(nl->socket, NL_CB_CUSTOM, on_error, nl);
    nl_socket_modify_cb(nl->socket, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, nl);
    /* Older kernels: texts are missing, nothing else. */
    setsockopt(nl_socket_get_fd(nl->socket), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    setsockopt(nl_socket_get_fd(nl->socket), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
    return nl;
}

typedef struct {
    int netns_fd, protocol;
    GError *error;
} Making;

static gpointer make_inside(gpointer user_data)
{
    Making *making = user_data;

    if (setns(making->netns_fd, CLONE_NEWNET) == 0)
        return sv_netlink_new(making->protocol, &making->error);
    sv_error_set_errno(&making->error, SV_NET_ERROR, errno, "enter the network namespace");
    return NULL;
}

SvNetlink *sv_netlink_new_in(int netns_fd, int protocol, GError **error)
{
    Making making = {netns_fd, protocol, NULL};
    GThread *thread = g_thread_try_new("sv-netns", make_inside, &making, error);
    SvNetlink *nl = thread ? g_thread_join(thread) : NULL;

    if (making.error)
        g_propagate_error(error, making.error);
    return nl;
}

typedef struct {
    int netns_fd, domain, type, protocol;
    int fd; /* result */
    GError *error;
} Opening;

static gpointer open_inside(gpointer user_data)
{
    Opening *opening = user_data;

    if (setns(opening->netns_fd, CLONE_NEWNET) < 0) {
        sv_error_set_errno(&opening->error, SV_NET_ERROR, errno, "enter the network namespace");
        return NULL;
    }
    opening->fd = socket(opening->domain, opening->type | SOCK_CLOEXEC, opening->protocol);
    if (opening->fd < 0)
        sv_error_set_errno(&opening->error, SV_NET_ERROR, errno, "socket");
    return NULL;
}

int sv_netns_socket(int netns_fd, int domain, int type, int protocol, GError **error)
{
    Opening opening = {netns_fd, domain, type, protocol, -1, NULL};
    GThread *thread = g_thread_try_new("sv-netns", open_inside, &opening, error);

    if (thread)
        g_thread_join(thread);
    if (opening.error)
        g_propagate_error(error, opening.error);
    return opening.fd;
}

static gpointer make_namespace(gpointer user_data)
{
    Making *making = user_data;

    if (unshare(CLONE_NEWNET) == 0)
        making->netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (making->netns_fd < 0)
        sv_error_set_errno(&making->error, SV_NET_ERROR, errno, "make a network namespace");
    return NULL;
}

int sv_netns_make(GError **error)
{
    Making making = {.netns_fd = -1};
    GThread *thread = g_thread_try_new("sv-netns", make_namespace, &making, error);

    if (thread)
        g_thread_join(thread);
    if (making.error)
        g_propagate_error(error, making.error);
    return making.netns_fd;
}

void sv_netlink_free(SvNetlink *nl)
{
    if (!nl)
        return;
    nl_socket_free(nl->socket);
    g_free(nl->text);
    g_free(nl);
}

struct nl_sock *sv_netlink_socket(SvNetlink *nl)
{
    return nl->socket;
}

guint64 sv_netlink_cookie(const SvNetlink *nl)
{
    guint64 cookie = 0;
    socklen_t len = sizeof(cookie);
    int fd = nl_socket_get_fd(nl->socket);

    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

gboolean sv_netlink_drain(SvNetlink *nl)
{
    gboolean any = FALSE;
    char byte;
    ssize_t n;

    while ((n = recv(nl_socket_get_fd(nl->socket), &byte, 1, MSG_DONTWAIT)) > 0 ||
        (n < 0 && (errno == ENOBUFS || errno == EINTR)))
        any = any || n > 0 || errno == ENOBUFS;
    return any;
}

/* ---- asking */

struct nl_msg *sv_nl_new(guint16 type, guint16 flags, const void *header, gsize len)
{
    struct nl_msg *msg = nlmsg_alloc_simple(type, flags);

    memcpy(nlmsg_reserve(msg, len, NLMSG_ALIGNTO), header, len);
    return msg;
}

gboolean sv_netlink_request(SvNetlink *nl, struct nl_msg *msg, int *errsv, GError **error)
{
    return sv_netlink_check(nl, nl_send_sync(nl->socket, msg), errsv, error);
}

typedef struct {
    SvNetlinkFunc func;
    gpointer user_data;
    GError *error;
} Reading;

/* The rest is read and dropped after a failure. */
static int on_message(struct nl_msg *msg, gpointer user_data)
{
    Reading *reading = user_data;

    if (!reading->error)
        reading->func(nlmsg_hdr(msg), reading->user_data, &reading->error);
    return NL_OK;
}

gboolean sv_netlink_dump(SvNetlink *nl, guint16 type, const void *header, gsize len,
    SvNetlinkFunc func, void (*restart)(gpointer user_data), gpointer user_data, GError **error)
{
    Reading reading = {func, user_data, NULL};
    int result = -NLE_DUMP_INTR;

    nl_socket_modify_cb(nl->socket, NL_CB_VALID, NL_CB_CUSTOM, on_message, &reading);
    for (guint i = 0; i < MAX_RESTARTS && result == -NLE_DUMP_INTR && !reading.error; i++) {
        if (i > 0)
            restart(user_data);
        result = nl_send_simple(nl->socket, type, NLM_F_DUMP, (gpointer)header, len);
        if (result >= 0)
            result = nl_recvmsgs_default(nl->socket);
    }
    nl_socket_modify_cb(nl->socket, NL_CB_VALID, NL_CB_DEFAULT, NULL, NULL);
    gboolean ok = sv_netlink_check(nl, result, NULL, reading.error ? NULL : error);
    if (!reading.error)
        return ok;
    g_propagate_error(error, reading.error);
    return FALSE;
}
