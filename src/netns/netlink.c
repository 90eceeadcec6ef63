/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/netlink.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#define BUFFER_SIZE (64u * 1024)
#define MAX_RESTARTS 10

SV_DEFINE_ERROR_QUARK(net)

struct SvNetlink {
    int fd;
    guint32 sequence;
    guint8 *buffer;
};

/* ---- sockets */

SvNetlink *sv_netlink_new(int protocol, GError **error)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    const int on = 1;
    SvNetlink *nl = g_new0(SvNetlink, 1);

    nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (nl->fd < 0 || bind(nl->fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        sv_error_set_errno(error, SV_NET_ERROR, errno, "netlink socket");
        sv_netlink_free(nl);
        return NULL;
    }
    /* Older kernels: texts are missing, nothing else. */
    setsockopt(nl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    setsockopt(nl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
    nl->buffer = g_malloc(BUFFER_SIZE);
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
    sv_fd_close(nl->fd);
    g_free(nl->buffer);
    g_free(nl);
}

int sv_netlink_fd(const SvNetlink *nl)
{
    return nl->fd;
}

guint64 sv_netlink_cookie(const SvNetlink *nl)
{
    guint64 cookie = 0;
    socklen_t len = sizeof(cookie);

    return getsockopt(nl->fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

gboolean sv_netlink_join(SvNetlink *nl, guint group, GError **error)
{
    if (setsockopt(nl->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_NET_ERROR, errno, "netlink group %u", group);
    return FALSE;
}

gboolean sv_netlink_drain(SvNetlink *nl)
{
    gboolean any = FALSE;
    ssize_t n;

    while ((n = recv(nl->fd, nl->buffer, BUFFER_SIZE, MSG_DONTWAIT)) > 0 ||
        (n < 0 && (errno == ENOBUFS || errno == EINTR)))
        any = any || n > 0 || errno == ENOBUFS;
    return any;
}

/* ---- building */

static void pad(GByteArray *msg)
{
    static const guint8 zeros[NLMSG_ALIGNTO];

    g_byte_array_append(msg, zeros, NLMSG_ALIGN(msg->len) - msg->len);
}

GByteArray *sv_nl_new(guint16 type, guint16 flags, const void *header, gsize len)
{
    const struct nlmsghdr start = {
        .nlmsg_type = type, .nlmsg_flags = flags | NLM_F_REQUEST | NLM_F_ACK};
    GByteArray *msg = g_byte_array_new();

    g_byte_array_append(msg, (const guint8 *)&start, sizeof(start));
    g_byte_array_append(msg, header, (guint)len);
    pad(msg);
    return msg;
}

void sv_nl_put(GByteArray *msg, guint16 attr, const void *data, gsize len)
{
    const struct rtattr head = {.rta_len = (guint16)RTA_LENGTH(len), .rta_type = attr};

    g_byte_array_append(msg, (const guint8 *)&head, sizeof(head));
    if (len)
        g_byte_array_append(msg, data, (guint)len);
    pad(msg);
}

void sv_nl_put_u8(GByteArray *msg, guint16 attr, guint8 value)
{
    sv_nl_put(msg, attr, &value, sizeof(value));
}

void sv_nl_put_u16(GByteArray *msg, guint16 attr, guint16 value)
{
    sv_nl_put(msg, attr, &value, sizeof(value));
}

void sv_nl_put_u32(GByteArray *msg, guint16 attr, guint32 value)
{
    sv_nl_put(msg, attr, &value, sizeof(value));
}

void sv_nl_put_string(GByteArray *msg, guint16 attr, const char *text)
{
    sv_nl_put(msg, attr, text, strlen(text) + 1);
}

gsize sv_nl_begin(GByteArray *msg, guint16 attr)
{
    gsize begun = msg->len;

    sv_nl_put(msg, attr, NULL, 0);
    return begun;
}

void sv_nl_end(GByteArray *msg, gsize begun)
{
    struct rtattr *head = (struct rtattr *)(gpointer)(msg->data + begun);

    head->rta_len = (guint16)(msg->len - begun);
}

/* ---- asking */

static gboolean send_bytes(SvNetlink *nl, const GByteArray *msg, GError **error)
{
    while (send(nl->fd, msg->data, msg->len, 0) < 0) {
        if (errno == EINTR)
            continue;
        sv_error_set_errno(error, SV_NET_ERROR, errno, "send to the kernel");
        return FALSE;
    }
    return TRUE;
}

static gboolean send_message(SvNetlink *nl, GByteArray *msg, GError **error)
{
    struct nlmsghdr *head = (struct nlmsghdr *)(gpointer)msg->data;

    head->nlmsg_len = msg->len;
    head->nlmsg_seq = ++nl->sequence;
    return send_bytes(nl, msg, error);
}

/* The kernel's own words, NULL when it has none. */
static const char *text_of(const struct nlmsghdr *message)
{
    const struct nlmsgerr *err = sv_nl_header(message, sizeof(*err));
    gsize skip = sizeof(*err);
    const struct rtattr *table[NLMSGERR_ATTR_MAX + 1];

    if (!err || !(message->nlmsg_flags & NLM_F_ACK_TLVS))
        return NULL;
    if (!(message->nlmsg_flags & NLM_F_CAPPED))
        skip += err->msg.nlmsg_len - sizeof(err->msg);
    sv_nl_parse(message, skip, table, NLMSGERR_ATTR_MAX);
    const struct rtattr *text = table[NLMSGERR_ATTR_MSG];
    if (!text || RTA_PAYLOAD(text) < 1 || memchr(RTA_DATA(text), '\0', RTA_PAYLOAD(text)) == NULL)
        return NULL;
    return RTA_DATA(text);
}

/* TRUE when the answer is an ACK. */
static gboolean check_answer(const struct nlmsghdr *message, int *errsv, GError **error)
{
    /* NLMSG_DONE has nothing but the number. */
    const struct nlmsgerr *err = sv_nl_header(message, sizeof(err->error));
    int code = err ? -err->error : EPROTO;

    *errsv = code;
    if (code == 0)
        return TRUE;
    const char *text = message->nlmsg_type == NLMSG_ERROR ? text_of(message) : NULL;
    g_set_error(error, SV_NET_ERROR, sv_error_code_from_errno(code), "%s%s%s", g_strerror(code),
        text ? ": " : "", text ? text : "");
    return FALSE;
}

static ssize_t receive(SvNetlink *nl, GError **error)
{
    ssize_t n;

    do
        n = recv(nl->fd, nl->buffer, BUFFER_SIZE, 0);
    while (n < 0 && (errno == EINTR || errno == ENOBUFS));
    if (n < 0)
        sv_error_set_errno(error, SV_NET_ERROR, errno, "read from the kernel");
    return n;
}

typedef struct {
    SvNetlinkFunc func;
    gpointer user_data;
    gboolean dump, interrupted, done;
    int errsv;
    GError *error;
} Reading;

static void take_message(Reading *reading, const struct nlmsghdr *message, guint32 last)
{
    if (message->nlmsg_flags & NLM_F_DUMP_INTR)
        reading->interrupted = TRUE;
    if (message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE) {
        gboolean ok =
            check_answer(message, &reading->errsv, reading->error ? NULL : &reading->error);
        reading->done = !ok || message->nlmsg_seq == last;
    } else if (message->nlmsg_type >= NLMSG_MIN_TYPE && reading->func && !reading->error) {
        /* The rest is read and dropped after a failure. */
        reading->func(message, reading->user_data, &reading->error);
    }
}

/* To requests from number @first to the one sent last, whose answer, or an error, is the end. */
static gboolean read_answers(SvNetlink *nl, Reading *reading, guint32 first, GError **error)
{
    while (!reading->done) {
        ssize_t n = receive(nl, error);
        int left = (int)n;

        if (n < 0) {
            g_clear_error(&reading->error);
            return FALSE;
        }
        for (const struct nlmsghdr *message = (gpointer)nl->buffer; NLMSG_OK(message, left);
             message = NLMSG_NEXT(message, left))
            if (message->nlmsg_seq - first <= nl->sequence - first && !reading->done)
                take_message(reading, message, nl->sequence);
    }
    if (!reading->error)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&reading->error));
    return FALSE;
}

gboolean sv_netlink_request(SvNetlink *nl, GByteArray *msg, int *errsv, GError **error)
{
    Reading reading = {.func = NULL};
    gboolean ok = send_message(nl, msg, error) && read_answers(nl, &reading, nl->sequence, error);

    if (errsv)
        *errsv = ok ? 0 : reading.errsv ? reading.errsv : EIO;
    return ok;
}

gboolean sv_netlink_batch(SvNetlink *nl, const GPtrArray *msgs, int *errsv, GError **error)
{
    g_autoptr(GByteArray) all = g_byte_array_new();
    guint32 first = nl->sequence + 1;
    Reading reading = {.func = NULL};

    for (guint i = 0; i < msgs->len; i++) {
        GByteArray *msg = msgs->pdata[i];
        struct nlmsghdr *head = (struct nlmsghdr *)(gpointer)msg->data;

        head->nlmsg_len = msg->len;
        head->nlmsg_seq = first + i;
        if (i == 0 || i + 1 == msgs->len)
            head->nlmsg_flags &= (guint16)~NLM_F_ACK;
        g_byte_array_append(all, msg->data, msg->len);
    }
    nl->sequence = first + msgs->len - 2; /* whose answer comes last */
    gboolean ok = send_bytes(nl, all, error) && read_answers(nl, &reading, first, error);
    nl->sequence = first + msgs->len;
    if (errsv)
        *errsv = ok ? 0 : reading.errsv ? reading.errsv : EIO;
    return ok;
}

gboolean sv_netlink_dump(SvNetlink *nl, GByteArray *msg, SvNetlinkFunc func,
    void (*restart)(gpointer user_data), gpointer user_data, GError **error)
{
    for (guint i = 0; i < MAX_RESTARTS; i++) {
        Reading reading = {.func = func, .user_data = user_data};

        if (!send_message(nl, msg, error) || !read_answers(nl, &reading, nl->sequence, error))
            return FALSE;
        if (!reading.interrupted || !restart)
            return TRUE;
        restart(user_data);
    }
    g_set_error(error, SV_NET_ERROR, SV_ERR_BUSY, "the kernel's tables change all the time");
    return FALSE;
}

/* ---- attributes */

const void *sv_nl_header(const struct nlmsghdr *message, gsize header_len)
{
    return message->nlmsg_len >= NLMSG_LENGTH(header_len) ? NLMSG_DATA(message) : NULL;
}

static void parse(const void *start, gsize len, const struct rtattr **table, guint max)
{
    gssize left = (gssize)len;

    memset(table, 0, (max + 1) * sizeof(*table));
    for (const struct rtattr *attr = start; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
        guint16 type = attr->rta_type & NLA_TYPE_MASK;

        if (type <= max)
            table[type] = attr;
    }
}

void sv_nl_parse(
    const struct nlmsghdr *message, gsize header_len, const struct rtattr **table, guint max)
{
    gsize skip = NLMSG_SPACE(header_len);

    if (message->nlmsg_len > skip)
        parse((const guint8 *)message + skip, message->nlmsg_len - skip, table, max);
    else
        parse(message, 0, table, max);
}

void sv_nl_parse_nested(const struct rtattr *attr, const struct rtattr **table, guint max)
{
    parse(attr ? RTA_DATA(attr) : NULL, attr ? RTA_PAYLOAD(attr) : 0, table, max);
}

guint32 sv_nl_u32(const struct rtattr *attr)
{
    guint32 value = 0;

    if (attr && RTA_PAYLOAD(attr) >= sizeof(value))
        memcpy(&value, RTA_DATA(attr), sizeof(value));
    return value;
}

guint16 sv_nl_u16(const struct rtattr *attr)
{
    guint16 value = 0;

    if (attr && RTA_PAYLOAD(attr) >= sizeof(value))
        memcpy(&value, RTA_DATA(attr), sizeof(value));
    return value;
}

guint8 sv_nl_u8(const struct rtattr *attr)
{
    return attr && RTA_PAYLOAD(attr) >= 1 ? *(const guint8 *)RTA_DATA(attr) : 0;
}

char *sv_nl_string(const struct rtattr *attr)
{
    return attr ? g_strndup(RTA_DATA(attr), RTA_PAYLOAD(attr)) : NULL;
}
