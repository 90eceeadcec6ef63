/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/hotplug.h"
#include "base/fd.h"
#include "rpc/sandvirt.pb-c.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Memory that fills up a block which is there already comes without an event: looked at while waited for. */
#define CHECK_MS 10

/* EINVAL, EBUSY: it is online already. */
static void write_file(const char *devpath, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename("/sys", devpath, name, NULL);
    g_auto(SvFd) fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || (write(fd, text, strlen(text)) < 0 && errno != EINVAL && errno != EBUSY))
        g_info("%s: %s", path, g_strerror(errno));
}

static void on_cpu(const SvUevent *event, gpointer user_data)
{
    if (event && g_str_equal(event->action, "add"))
        write_file(event->devpath, "online", "1");
}

/* Not movable: the machine never shrinks, and a small one needs the new memory for its kernel too (page
 * tables, caches of inodes, the map of still more memory). */
static void on_memory(const SvUevent *event, gpointer user_data)
{
    if (event && g_str_equal(event->action, "add"))
        write_file(event->devpath, "state", "online");
}

static guint64 total_memory(void)
{
    struct sysinfo info;

    return sysinfo(&info) == 0 ? (guint64)info.totalram * info.mem_unit : 0;
}

void sv_hotplug_watch(SvAgent *agent)
{
    agent->boot_memory = total_memory();
    sv_uevents_listen(agent->uevents, "cpu", on_cpu, NULL);
    sv_uevents_listen(agent->uevents, "memory", on_memory, NULL);
}

/* ---- Online */

typedef struct {
    SvCall *call;
    guint cpu_listener, memory_listener, timer;
    gint64 end_us; /* monotonic */
} Online;

static gboolean check(Online *online, gboolean last)
{
    SvAgent *agent = online->call->agent;
    const Sandvirt__V1__OnlineRequest *request =
        (Sandvirt__V1__OnlineRequest *)online->call->message;
    Sandvirt__V1__OnlineResponse response = SANDVIRT__V1__ONLINE_RESPONSE__INIT;
    guint64 total = total_memory();

    response.cpus = (guint32)sysconf(_SC_NPROCESSORS_ONLN);
    response.extra_memory = total > agent->boot_memory ? total - agent->boot_memory : 0;
    if (!last && (response.cpus < request->cpus || response.extra_memory < request->extra_memory))
        return FALSE;
    sv_uevents_unlisten(agent->uevents, online->cpu_listener);
    sv_uevents_unlisten(agent->uevents, online->memory_listener);
    if (online->timer)
        g_source_remove(online->timer);
    sv_call_reply(online->call, &response.base);
    g_free(online);
    return TRUE;
}

static void on_event(const SvUevent *event, gpointer user_data)
{
    check(user_data, FALSE);
}

static gboolean on_timer(gpointer user_data)
{
    Online *online = user_data;
    guint timer = online->timer;

    online->timer = 0;
    if (check(online, g_get_monotonic_time() >= online->end_us))
        return G_SOURCE_REMOVE;
    online->timer = timer;
    return G_SOURCE_CONTINUE;
}

void sv_hotplug_online(SvCall *call)
{
    const Sandvirt__V1__OnlineRequest *request = (Sandvirt__V1__OnlineRequest *)call->message;
    Online *online = g_new0(Online, 1);

    online->call = call;
    /* These come behind those that put things to use: what they see is online. */
    online->cpu_listener = sv_uevents_listen(call->agent->uevents, "cpu", on_event, online);
    online->memory_listener = sv_uevents_listen(call->agent->uevents, "memory", on_event, online);
    online->timer = g_timeout_add(CHECK_MS, on_timer, online);
    online->end_us = g_get_monotonic_time() + MIN(request->timeout_ms, 60000) * 1000;
    check(online, FALSE);
}
