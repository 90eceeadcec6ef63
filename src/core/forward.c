/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guest is hostile: what it sends for a connection that is unknown is dropped, and more than the window, or with a gap,
 * resets the connection. */
#include "core/forward.h"

#include "base/fd.h"

#include <errno.h>
#include <glib-unix.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_STREAMS 256
#define CHUNK (64u * 1024)
#define TO_GUEST_WINDOW (256u * 1024) /* unacknowledged bytes towards the guest */
#define CONNECT_MS 10000
#define REST_MS 1000 /* when there are no descriptors for more */

struct SvForwarding {
    int fds[2];
    guint sources[2]; /* 0: more connections wait in the kernel */
    guint rest_timer;
    GHashTable *streams; /* handle -> Stream, owned */
    guint32 last_handle;
    SvForwardingAgent agent;
    gpointer user_data;
    GHashTable *waits; /* Wait, owned */
};

typedef struct {
    SvForwarding *owner;
    guint32 handle;
    int fd;
    gboolean connected; /* in the guest */
    guint in_source, out_source;
    guint reset_source; /* while nothing is read: has the client gone? */
    /* towards the guest */
    guint64 sent, acked;
    gboolean in_done; /* the end was sent, or the guest wants no more */
    /* from the guest */
    GByteArray *pending; /* not yet written */
    guint64 received, written;
    gboolean eof, out_done; /* the end has come, and was passed on, or the client is gone */
    gboolean reset; /* the end was one */
} Stream;

/* An answer of the agent that is due. */
typedef struct {
    SvForwarding *owner;
    guint32 handle;
} Wait;

static gboolean on_readable(gint fd, GIOCondition condition, gpointer user_data);
static gboolean on_writable(gint fd, GIOCondition condition, gpointer user_data);
static void update_listeners(SvForwarding *forwarding);

static void stream_free(gpointer data)
{
    Stream *stream = data;
    if (stream->in_source)
        g_source_remove(stream->in_source);
    if (stream->out_source)
        g_source_remove(stream->out_source);
    if (stream->reset_source)
        g_source_remove(stream->reset_source);
    sv_fd_close(stream->fd);
    g_byte_array_unref(stream->pending);
    g_free(stream);
}

static void drop(Stream *stream)
{
    SvForwarding *forwarding = stream->owner;
    g_hash_table_remove(forwarding->streams, GUINT_TO_POINTER(stream->handle));
    update_listeners(forwarding);
}

/* The client gets a reset instead of an end. */
static void set_reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void send_frame(SvForwarding *forwarding, GBytes *frame)
{
    SvAgent *agent = forwarding->agent(forwarding->user_data);
    if (agent)
        sv_agent_send(agent, frame);
    else
        g_bytes_unref(frame);
}

/* Nothing more comes, and nothing more is wanted. Said twice it does no harm. */
static void send_end(SvForwarding *forwarding, guint32 handle, guint64 sent, guint64 received)
{
    guint8 flags = SV_STREAM_STDOUT | SV_FLAG_BROKEN;
    send_frame(forwarding, sv_message_data(handle, SV_STREAM_STDIN | SV_FLAG_EOF, sent, NULL, 0));
    send_frame(forwarding, sv_message_ack(handle, flags, received));
}

/* Both directions end at once. */
static void abort_stream(Stream *stream)
{
    if (stream->connected)
        send_end(stream->owner, stream->handle, stream->sent, stream->received);
    set_reset(stream->fd);
    drop(stream);
}

/* ---- towards the guest */

static gboolean on_reset(gint fd, GIOCondition condition, gpointer user_data)
{
    Stream *stream = user_data;
    stream->reset_source = 0;
    /* A hang-up alone: both ends were said, and what is on the way still goes. */
    if (condition & G_IO_ERR)
        abort_stream(stream);
    return G_SOURCE_REMOVE;
}

static void set_source(
    Stream *stream, guint *source, gboolean want, GIOCondition condition, GUnixFDSourceFunc func)
{
    if (want && !*source) {
        *source = g_unix_fd_add(stream->fd, condition, func, stream);
    } else if (!want && *source) {
        g_source_remove(*source);
        *source = 0;
    }
}

static void update_input(Stream *stream)
{
    gboolean want =
        stream->connected && !stream->in_done && stream->sent - stream->acked < TO_GUEST_WINDOW;
    set_source(stream, &stream->in_source, want, G_IO_IN, on_readable);
    set_source(stream, &stream->reset_source, !want, G_IO_ERR, on_reset);
}

/* TRUE: it is over and freed. */
static gboolean check_end(Stream *stream)
{
    if (!stream->in_done || !stream->out_done)
        return FALSE;
    drop(stream);
    return TRUE;
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer user_data)
{
    Stream *stream = user_data;
    guint8 data[CHUNK];
    gsize room = MIN(sizeof data, TO_GUEST_WINDOW - (gsize)(stream->sent - stream->acked));
    ssize_t n = read(fd, data, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (n < 0) {
        stream->in_source = 0;
        abort_stream(stream);
        return G_SOURCE_REMOVE;
    }
    guint8 flags = SV_STREAM_STDIN | (n == 0 ? SV_FLAG_EOF : 0);
    send_frame(stream->owner, sv_message_data(stream->handle, flags, stream->sent, data, (gsize)n));
    stream->sent += (guint64)n;
    stream->in_done = n == 0;
    if (n > 0 && stream->sent - stream->acked < TO_GUEST_WINDOW)
        return G_SOURCE_CONTINUE;
    stream->in_source = 0;
    if (!check_end(stream))
        update_input(stream);
    return G_SOURCE_REMOVE;
}

static void take_ack(Stream *stream, const SvFrame *frame, guint64 offset)
{
    if (offset > stream->sent || offset < stream->acked) {
        abort_stream(stream);
        return;
    }
    stream->acked = offset;
    if (frame->flags & SV_FLAG_BROKEN)
        stream->in_done =
            TRUE; /* what the client still sends is answered with a reset in the end */
    if (!check_end(stream))
        update_input(stream);
}

/* ---- from the guest */

/* FALSE: it is over and freed. */
static gboolean flush(Stream *stream)
{
    guint64 before = stream->written;
    gsize done = 0;
    while (done < stream->pending->len) {
        ssize_t n = send(stream->fd, stream->pending->data + done, stream->pending->len - done,
            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            abort_stream(stream);
            return FALSE;
        }
        done += (gsize)n;
    }
    if (done > 0)
        g_byte_array_remove_range(stream->pending, 0, (guint)done);
    stream->written += done;
    if (stream->written != before)
        send_frame(
            stream->owner, sv_message_ack(stream->handle, SV_STREAM_STDOUT, stream->written));
    if (stream->reset && stream->pending->len == 0) {
        abort_stream(stream);
        return FALSE;
    }
    if (stream->eof && stream->pending->len == 0) {
        shutdown(stream->fd, SHUT_WR);
        stream->out_done = TRUE;
    }
    return !check_end(stream);
}

static void update_output(Stream *stream)
{
    gboolean want = stream->pending->len > 0;
    if (want && !stream->out_source)
        stream->out_source = g_unix_fd_add(stream->fd, G_IO_OUT, on_writable, stream);
}

static gboolean on_writable(gint fd, GIOCondition condition, gpointer user_data)
{
    Stream *stream = user_data;
    stream->out_source = 0;
    if (flush(stream))
        update_output(stream);
    return G_SOURCE_REMOVE;
}

static void take_data(
    Stream *stream, const SvFrame *frame, guint64 offset, const guint8 *data, gsize len)
{
    if (stream->out_done)
        return; /* the agent has been told */
    if (stream->eof || offset != stream->received ||
        len > SV_STREAM_WINDOW - (stream->received - stream->written)) {
        g_info("the guest broke the protocol of a forwarded connection");
        abort_stream(stream);
        return;
    }
    g_byte_array_append(stream->pending, data, (guint)len);
    stream->received += len;
    stream->eof = (frame->flags & SV_FLAG_EOF) != 0;
    stream->reset = stream->eof && (frame->flags & SV_FLAG_BROKEN);
    if (flush(stream))
        update_output(stream);
}

void sv_forwarding_frame(SvForwarding *forwarding, const SvFrame *frame)
{
    Stream *stream = g_hash_table_lookup(forwarding->streams, GUINT_TO_POINTER(frame->stream));
    guint number = frame->flags & SV_STREAM_MASK;
    const guint8 *data = NULL;
    guint64 offset = 0;
    gsize len = 0;
    if (!stream || !sv_frame_parse_offset(frame, &offset, &data, &len))
        return;
    if (frame->type == SV_FRAME_DATA && number == SV_STREAM_STDOUT)
        take_data(stream, frame, offset, data, len);
    else if (frame->type == SV_FRAME_ACK && number == SV_STREAM_STDIN)
        take_ack(stream, frame, offset);
}

/* ---- new connections */

static void on_forwarded(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    Wait *wait = user_data;
    SvForwarding *forwarding = wait->owner;
    guint32 handle = wait->handle;
    Stream *stream = g_hash_table_lookup(forwarding->streams, GUINT_TO_POINTER(handle));
    g_hash_table_remove(forwarding->waits, wait);
    /* The client left meanwhile; or a guest that stood still will yet make the connection. */
    if (!stream || error)
        send_end(forwarding, handle, 0, 0);
    if (stream && error) {
        g_debug("forward: %s", error->message);
        set_reset(stream->fd);
        drop(stream);
    }
    if (!stream || error)
        return;
    stream->connected = TRUE;
    update_input(stream);
}

static guint16 wanted_port(int fd, gboolean *ipv6)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } u;
    socklen_t len = sizeof u;
    memset(&u, 0, sizeof u);
    if (getsockname(fd, &u.any, &len) < 0)
        return 0;
    *ipv6 = u.any.sa_family == AF_INET6;
    return ntohs(*ipv6 ? u.in6.sin6_port : u.in.sin_port);
}

static guint32 next_handle(SvForwarding *forwarding)
{
    do
        forwarding->last_handle = (forwarding->last_handle + 1) | SV_FORWARD_HANDLE;
    while (g_hash_table_contains(forwarding->streams, GUINT_TO_POINTER(forwarding->last_handle)));
    return forwarding->last_handle;
}

/* Takes @fd. */
static void forward(SvForwarding *forwarding, int fd)
{
    SvAgent *agent = forwarding->agent(forwarding->user_data);
    Sandvirt__V1__ForwardRequest request = SANDVIRT__V1__FORWARD_REQUEST__INIT;
    gboolean ipv6 = FALSE;
    const int on = 1;
    guint16 port = wanted_port(fd, &ipv6);
    if (!agent || !port) {
        set_reset(fd);
        sv_fd_close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Stream *stream = g_new0(Stream, 1);
    stream->owner = forwarding;
    stream->handle = next_handle(forwarding);
    stream->fd = fd;
    stream->pending = g_byte_array_new();
    g_hash_table_insert(forwarding->streams, GUINT_TO_POINTER(stream->handle), stream);
    update_input(stream);
    Wait *wait = g_new0(Wait, 1);
    wait->owner = forwarding;
    wait->handle = stream->handle;
    g_hash_table_add(forwarding->waits, wait);
    request.handle = stream->handle;
    request.ipv6 = ipv6;
    request.port = port;
    sv_agent_call(agent, "Forward", &request.base, NULL, CONNECT_MS, on_forwarded, wait);
}

static gboolean on_rested(gpointer user_data)
{
    SvForwarding *forwarding = user_data;
    forwarding->rest_timer = 0;
    update_listeners(forwarding);
    return G_SOURCE_REMOVE;
}

static gboolean on_connection(gint listener, GIOCondition condition, gpointer user_data)
{
    SvForwarding *forwarding = user_data;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        forward(forwarding, fd);
    else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && !forwarding->rest_timer)
        forwarding->rest_timer = g_timeout_add(REST_MS, on_rested, forwarding);
    update_listeners(forwarding);
    return G_SOURCE_CONTINUE;
}

static void update_listeners(SvForwarding *forwarding)
{
    gboolean want = !forwarding->rest_timer && g_hash_table_size(forwarding->streams) < MAX_STREAMS;
    for (guint i = 0; i < 2; i++) {
        guint *source = &forwarding->sources[i];
        if (want && !*source && forwarding->fds[i] >= 0)
            *source = g_unix_fd_add(forwarding->fds[i], G_IO_IN, on_connection, forwarding);
        else if (!want && *source)
            g_source_remove(*source);
        if (!want)
            *source = 0;
    }
}

SvForwarding *sv_forwarding_new(const int fds[2], SvForwardingAgent agent, gpointer user_data)
{
    SvForwarding *forwarding = g_new0(SvForwarding, 1);
    forwarding->agent = agent;
    forwarding->user_data = user_data;
    /* not those of a monitor before us, whose last frames may still come */
    forwarding->last_handle = g_random_int() | SV_FORWARD_HANDLE;
    forwarding->streams = g_hash_table_new_full(NULL, NULL, NULL, stream_free);
    forwarding->waits = g_hash_table_new_full(NULL, NULL, g_free, NULL);
    for (guint i = 0; i < 2; i++)
        forwarding->fds[i] = fds[i];
    update_listeners(forwarding);
    return forwarding;
}

static gboolean reset_each(gpointer key, gpointer value, gpointer unused)
{
    set_reset(((Stream *)value)->fd);
    return TRUE;
}

void sv_forwarding_free(SvForwarding *forwarding)
{
    if (!forwarding)
        return;
    if (forwarding->rest_timer)
        g_source_remove(forwarding->rest_timer);
    for (guint i = 0; i < 2; i++) {
        if (forwarding->sources[i])
            g_source_remove(forwarding->sources[i]);
        sv_fd_close(forwarding->fds[i]);
    }
    g_hash_table_foreach_remove(forwarding->streams, reset_each, NULL);
    g_hash_table_unref(forwarding->streams);
    g_hash_table_unref(forwarding->waits);
    g_free(forwarding);
}

guint sv_forwarding_count(const SvForwarding *forwarding)
{
    return g_hash_table_size(forwarding->streams);
}
