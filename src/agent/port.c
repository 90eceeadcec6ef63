/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/port.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define SYS_CLASS "/sys/class/virtio-ports"

typedef struct {
    SvUevents *uevents;
    guint listener;
    SvPortFunc func;
    gpointer user_data;
} Wait;

char *sv_port_find(const char *sys_class, const char *name)
{
    GDir *dir = g_dir_open(sys_class, 0, NULL);
    const char *entry;
    char *found = NULL;

    while (dir && !found && (entry = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(sys_class, entry, "name", NULL);
        g_autofree char *text = NULL;

        if (g_file_get_contents(path, &text, NULL, NULL) && g_str_equal(g_strchomp(text), name))
            found = g_strdup(entry);
    }
    if (dir)
        g_dir_close(dir);
    return found;
}

static gboolean try_open(Wait *wait)
{
    g_autofree char *name = sv_port_find(SYS_CLASS, SV_PORT_NAME);
    g_autofree char *path = name ? g_build_filename("/dev", name, NULL) : NULL;
    int fd = path ? open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;

    if (path && fd < 0)
        g_warning("open %s: %s", path, g_strerror(errno));
    if (fd < 0)
        return FALSE;
    if (wait->listener)
        sv_uevents_unlisten(wait->uevents, wait->listener);
    wait->func(fd, wait->user_data);
    g_free(wait);
    return TRUE;
}

/* A port is added first and gets its name later, which is a change. */
static void on_event(const SvUevent *event, gpointer user_data)
{
    try_open(user_data);
}

void sv_port_wait(SvUevents *uevents, SvPortFunc func, gpointer user_data)
{
    Wait *wait = g_new0(Wait, 1);

    wait->uevents = uevents;
    wait->func = func;
    wait->user_data = user_data;
    if (!try_open(wait))
        wait->listener = sv_uevents_listen(uevents, "virtio-ports", on_event, wait);
}
