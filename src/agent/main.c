/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PID 1 of the guest. It never ends: what cannot be mended is told on the console and the machine
 * powers off. */
#include <config.h>

#include "agent/block-table.h"
#include "agent/boot.h"
#include "agent/container.h"
#include "agent/late.h"
#include "agent/port.h"
#include "agent/power.h"
#include "agent/process.h"
#include "agent/service.h"
#include "base/log.h"
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MODULE_LIST "/etc/sandvirt/modules"
#define DEFAULT_GRACE_MS 10000
#define NO_HOST_MS 3000

static gint64 boot_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * G_GINT64_CONSTANT(1000000000) + now.tv_nsec;
}

static void die(const GError *error)
{
    g_warning("fatal: %s", error ? error->message : "unknown");
    sv_power_off();
    for (;;)
        pause();
}

static gboolean on_no_host(gpointer user_data)
{
    sv_late_begin(user_data);
    return G_SOURCE_REMOVE;
}

static void on_port(int fd, gpointer user_data)
{
    SvAgent *agent = user_data;
    g_autoptr(GError) error = NULL;

    agent->ready_ns = boot_clock_ns();
    agent->channel = sv_channel_new(fd, &sv_service_funcs, agent, &error);
    if (!agent->channel)
        die(error);
    /* The rest of the start follows the first Hello; a power button must work without one. */
    g_timeout_add(NO_HOST_MS, on_no_host, agent);
    g_message("ready");
}

static void set_up(SvAgent *agent)
{
    g_autoptr(GError) error = NULL;

    agent->grace_ms = DEFAULT_GRACE_MS;
    agent->loop = g_main_loop_new(NULL, FALSE);
    agent->processes = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)sv_process_free);
    agent->containers =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)sv_container_free);
    agent->reaper = sv_reaper_new();
    if (!sv_reaper_attach(agent->reaper, &error))
        die(error);
    /* Before any module is loaded, so that no event is missed. */
    agent->uevents = sv_uevents_new(&error);
    if (!agent->uevents)
        die(error);
    agent->blocks = sv_block_table_new("/sys/block");
    sv_uevents_listen(agent->uevents, "block", sv_block_table_event, agent->blocks);
    agent->modules = sv_modules_load(MODULE_LIST, &error);
    if (!agent->modules) {
        g_warning("ignoring: %s", error->message);
        agent->modules = sv_modules_parse("");
    }
}

int main(int argc, char **argv)
{
    SvAgent agent = {.start_ns = boot_clock_ns()};
    g_autoptr(GError) error = NULL;

    if (getpid() != 1 && g_str_has_suffix(argv[0], "/modprobe"))
        return sv_modules_probe(MODULE_LIST, argc, argv);
    if (getpid() != 1) {
        fprintf(stderr, "sandvirt-agent %s runs as PID 1 of a guest only\n", PACKAGE_VERSION);
        return 1;
    }
    if (!sv_boot_mount_first(&error))
        die(error);
    sv_boot_console();
    signal(SIGPIPE, SIG_IGN);
    if (!sv_log_init("sandvirt-agent", sv_boot_wants_debug(), NULL, SV_LOG_TEXT, TRUE, &error))
        die(error);
    set_up(&agent);
    sv_modules_insert(agent.modules, "channel");
    sv_port_wait(agent.uevents, on_port, &agent);
    g_main_loop_run(agent.loop);
    die(NULL);
    return 1;
}
