/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/shell.h"

#include "agent/boot.h"
#include "base/command.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define TERMINAL "/dev/ttyS0"
#define PROGRAM SV_AGENT_SHARE "/busybox" /* its name chooses the applet */
#define SHORTEST_US G_USEC_PER_SEC /* from one shell to the next */

typedef struct {
    SvAgent *agent;
    gint64 start_us;
} Shell;

static void start(SvAgent *agent);

static gboolean on_again(gpointer user_data)
{
    start(user_data);
    return G_SOURCE_REMOVE;
}

/* An exit may be quick too. */
static void on_end(pid_t pid, int status, gint64 time_ns, gpointer user_data)
{
    g_autofree Shell *shell = user_data;
    gint64 left_us = shell->start_us + SHORTEST_US - g_get_monotonic_time();

    if (left_us <= 0 || status == 0)
        g_timeout_add((guint)(MAX(left_us, 0) / 1000), on_again, shell->agent);
    else
        g_warning("no shell on the console: it ended with %d at once", status);
}

static void start(SvAgent *agent)
{
    g_auto(SvFd) fd = open(TERMINAL, O_RDWR | O_NOCTTY | O_CLOEXEC);
    g_autoptr(SvCommand) cmd = sv_command_new(PROGRAM);
    g_autoptr(GError) error = NULL;
    pid_t pid = 0;
    Shell *shell;

    if (fd < 0) {
        g_warning("no shell on the console: open %s: %s", TERMINAL, g_strerror(errno));
        return;
    }
    /* The program makes the terminal its own: nothing of ours may run between fork and exec. */
    sv_command_add_args(cmd, "setsid", "-c", PROGRAM, "sh", NULL);
    sv_command_set_env(cmd, "PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    sv_command_set_env(cmd, "TERM", "vt100");
    sv_command_set_env(cmd, "HOME", "/");
    sv_command_set_env(cmd, "PS1", "guest:\\w# ");
    sv_command_set_cwd(cmd, "/");
    for (int i = 0; i < 3; i++)
        sv_command_map_fd(cmd, fd, i);
    sv_reaper_hold(agent->reaper);
    if (sv_command_spawn(cmd, &pid, NULL, &error)) {
        shell = g_new0(Shell, 1);
        shell->agent = agent;
        shell->start_us = g_get_monotonic_time();
        sv_reaper_watch(agent->reaper, pid, on_end, shell);
    } else {
        g_warning("no shell on the console: %s", error->message);
    }
    sv_reaper_release(agent->reaper);
}

void sv_shell_begin(SvAgent *agent)
{
    if (sv_boot_has_word("sandvirt.shell"))
        start(agent);
}
