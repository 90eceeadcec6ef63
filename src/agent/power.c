/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/power.h"
#include "agent/container.h"
#include "agent/event.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <linux/input.h>
#include <signal.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#define INPUT_DIR "/dev/input"
/* How long the last exits may take to be acknowledged. */
#define LINGER_MS 1000

void sv_power_off(void)
{
    sync();
    if (getpid() == 1)
        reboot(RB_POWER_OFF);
    g_warning("power off: %s", g_strerror(errno));
}

static gboolean all_ended(SvAgent *agent, gboolean acked)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, agent->processes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        SvProcess *process = value;

        if (process->state != SV_PROCESS_EXITED || (acked && !process->exit_acked))
            return FALSE;
    }
    return TRUE;
}

static gboolean on_linger(gpointer user_data)
{
    sv_power_off();
    return G_SOURCE_REMOVE;
}

static void signal_all(SvAgent *agent, int signo)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, agent->containers);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        SvContainer *container = value;
        SvProcess *init = sv_container_init(container);

        if (signo == SIGKILL)
            sv_cgroup_kill(container->cgroup);
        else if (init && init->state != SV_PROCESS_CREATING)
            sv_process_send_signal(init, signo, NULL);
        sv_cgroup_write(container->cgroup, "cgroup.freeze", "0", NULL);
    }
}

static gboolean on_grace(gpointer user_data)
{
    SvAgent *agent = user_data;

    signal_all(agent, SIGKILL);
    g_timeout_add(LINGER_MS, on_linger, agent);
    return G_SOURCE_REMOVE;
}

void sv_power_shut_down(SvAgent *agent, const char *reason, guint grace_ms)
{
    if (agent->shutting_down)
        return;
    agent->shutting_down = TRUE;
    g_message("shutting down: %s", reason);
    sv_event_shutting_down(agent, reason);
    signal_all(agent, SIGTERM);
    g_timeout_add(grace_ms, on_grace, agent);
    sv_power_check(agent);
}

void sv_power_check(SvAgent *agent)
{
    if (agent->shutting_down && all_ended(agent, TRUE))
        sv_power_off();
}

/* ---- the button */

static gboolean on_input(gint fd, GIOCondition condition, gpointer user_data)
{
    SvAgent *agent = user_data;
    struct input_event events[16];
    ssize_t n = read(fd, events, sizeof(events));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (n <= 0) {
        close(fd);
        return G_SOURCE_REMOVE;
    }
    for (gsize i = 0; i < (gsize)n / sizeof(events[0]); i++)
        if (events[i].type == EV_KEY && events[i].code == KEY_POWER && events[i].value == 1)
            sv_power_shut_down(agent, "power button", agent->grace_ms);
    return G_SOURCE_CONTINUE;
}

static void open_input(SvAgent *agent, const char *name)
{
    g_autofree char *path = g_build_filename("/dev", name, NULL);
    int fd;

    if (!g_str_has_prefix(name, "input/event"))
        return;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        g_info("ignoring %s: %s", path, g_strerror(errno));
        return;
    }
    g_unix_fd_add(fd, G_IO_IN, on_input, agent);
}

static void on_input_device(const SvUevent *event, gpointer user_data)
{
    if (event && g_str_equal(event->action, "add") && *event->devname)
        open_input(user_data, event->devname);
}

void sv_power_watch_button(SvAgent *agent)
{
    GDir *dir = g_dir_open(INPUT_DIR, 0, NULL);
    const char *name;

    sv_uevents_listen(agent->uevents, "input", on_input_device, agent);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *below = g_build_filename("input", name, NULL);

        open_input(agent, below);
    }
    if (dir)
        g_dir_close(dir);
}
