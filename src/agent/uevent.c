/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/uevent.h"
#include "agent/agent-error.h"
#include "base/fd.h"
#include <errno.h>
#include <glib-unix.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

typedef struct {
    guint id;
    char *subsystem;
    SvUeventFunc func;
    gpointer user_data;
} Listener;

struct SvUevents {
    int fd;
    guint source;
    guint last_id;
    GList *listeners;
};

gboolean sv_uevent_parse(const char *data, gsize len, SvUevent *event)
{
    const char *end = data + len;
    const char *p;

    event->action = event->devpath = event->subsystem = event->devname = "";
    if (len == 0 || data[len - 1] != '\0' || !memchr(data, '@', strlen(data)))
        return FALSE;
    for (p = data + strlen(data) + 1; p < end; p += strlen(p) + 1) {
        if (g_str_has_prefix(p, "ACTION="))
            event->action = p + strlen("ACTION=");
        else if (g_str_has_prefix(p, "DEVPATH="))
            event->devpath = p + strlen("DEVPATH=");
        else if (g_str_has_prefix(p, "SUBSYSTEM="))
            event->subsystem = p + strlen("SUBSYSTEM=");
        else if (g_str_has_prefix(p, "DEVNAME="))
            event->devname = p + strlen("DEVNAME=");
    }
    return *event->action != '\0' && *event->devpath != '\0';
}

/* A listener may go, and others may come, while it is called. */
static void tell(SvUevents *uevents, const SvUevent *event)
{
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(guint));

    for (GList *l = uevents->listeners; l; l = l->next) {
        Listener *listener = l->data;

        if (!event || !listener->subsystem || g_str_equal(listener->subsystem, event->subsystem))
            g_array_append_val(ids, listener->id);
    }
    for (guint i = 0; i < ids->len; i++)
        for (GList *l = uevents->listeners; l; l = l->next) {
            Listener *listener = l->data;

            if (listener->id == g_array_index(ids, guint, i)) {
                listener->func(event, listener->user_data);
                break;
            }
        }
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer user_data)
{
    SvUevents *uevents = user_data;
    char data[8192];

    for (;;) {
        ssize_t n = recv(fd, data, sizeof(data) - 1, MSG_DONTWAIT);
        SvUevent event;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOBUFS) {
            g_warning("device events were lost");
            tell(uevents, NULL);
            continue;
        }
        if (n <= 0)
            return G_SOURCE_CONTINUE;
        if (!sv_uevent_parse(data, (gsize)n, &event))
            continue;
        g_debug("uevent %s %s %s", event.action, event.subsystem, event.devpath);
        tell(uevents, &event);
    }
}

SvUevents *sv_uevents_new(GError **error)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    int size = 4 * 1024 * 1024;
    SvUevents *uevents;
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "listen for device events");
        sv_fd_close(fd);
        return NULL;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
    uevents = g_new0(SvUevents, 1);
    uevents->fd = fd;
    uevents->source = g_unix_fd_add(fd, G_IO_IN, on_readable, uevents);
    return uevents;
}

static void listener_free(gpointer data)
{
    Listener *listener = data;

    g_free(listener->subsystem);
    g_free(listener);
}

void sv_uevents_free(SvUevents *uevents)
{
    if (!uevents)
        return;
    g_source_remove(uevents->source);
    sv_fd_close(uevents->fd);
    g_list_free_full(uevents->listeners, listener_free);
    g_free(uevents);
}

guint sv_uevents_listen(
    SvUevents *uevents, const char *subsystem, SvUeventFunc func, gpointer user_data)
{
    Listener *listener = g_new0(Listener, 1);

    listener->id = ++uevents->last_id;
    listener->subsystem = g_strdup(subsystem);
    listener->func = func;
    listener->user_data = user_data;
    uevents->listeners = g_list_append(uevents->listeners, listener);
    return listener->id;
}

void sv_uevents_unlisten(SvUevents *uevents, guint id)
{
    for (GList *l = uevents->listeners; l; l = l->next) {
        Listener *listener = l->data;

        if (listener->id == id) {
            uevents->listeners = g_list_delete_link(uevents->listeners, l);
            listener_free(listener);
            return;
        }
    }
}
