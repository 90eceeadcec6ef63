/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/hotplug.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

static void on_memory(const SvUevent *event, gpointer user_data)
{
    if (event && g_str_equal(event->action, "add"))
        write_file(event->devpath, "state", "online_movable");
}

void sv_hotplug_watch(SvAgent *agent)
{
    sv_uevents_listen(agent->uevents, "cpu", on_cpu, NULL);
    sv_uevents_listen(agent->uevents, "memory", on_memory, NULL);
}
