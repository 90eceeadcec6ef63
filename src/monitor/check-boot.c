/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A machine as a pod gets it, up to the word of its agent. */
#include "monitor/check.h"

#include "base/file.h"
#include "core/agent.h"
#include "core/share.h"

#include <string.h>
#include <unistd.h>

#define CONSOLE_TAIL 600
#define NAME_FORMAT "check.%d"

typedef struct {
    GMainLoop *loop;
    gboolean ready;
    char *kernel, *version, *failure;
} Wait;

static void on_ready(SvAgent *agent, const Sandvirt__V1__HelloResponse *hello, gpointer user_data)
{
    Wait *wait = user_data;
    wait->ready = TRUE;
    wait->kernel = g_strdup(hello->kernel);
    wait->version = g_strdup(hello->version);
    g_main_loop_quit(wait->loop);
}

static void on_lost(SvAgent *agent, const GError *error, gpointer user_data)
{
    Wait *wait = user_data;
    wait->failure = g_strdup(error->message);
    g_main_loop_quit(wait->loop);
}

static gboolean on_timeout(gpointer user_data)
{
    Wait *wait = user_data;
    wait->failure = g_strdup("its agent did not answer in time");
    g_main_loop_quit(wait->loop);
    return G_SOURCE_CONTINUE;
}

static void on_nothing(SvAgent *agent, const SvFrame *frame, gpointer user_data)
{
}

static const SvAgentHandlers handlers = {
    .ready = on_ready,
    .frame = on_nothing,
    .lost = on_lost,
};

static void wait_for_agent(SvCheck *check, const SvPaths *paths, Wait *wait)
{
    guint8 token[SV_SYNC_ID_LEN];
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < sizeof token; i++)
        token[i] = (guint8)g_random_int();
    SvAgent *agent = sv_agent_connect(paths->agent_socket, token, &handlers, wait, &error);
    if (!agent) {
        wait->failure = g_strdup(error->message);
        return;
    }
    guint timer = g_timeout_add(check->config->boot_ms, on_timeout, wait);
    g_main_loop_run(wait->loop);
    g_source_remove(timer);
    sv_agent_free(agent);
}

static SvMachine *build(const SvCheck *check, const SvPaths *paths)
{
    const SvConfig *config = check->config;
    SvMachine *machine = sv_machine_new();
    machine->name = g_strdup_printf("sandvirt-" NAME_FORMAT, (int)getpid());
    machine->uuid = g_uuid_string_random();
    machine->title = g_strdup("sandvirt: does a machine come up?");
    machine->accel = check->accel;
    machine->memory_mib = config->memory_mib;
    machine->kernel = g_strdup(paths->boot_kernel);
    machine->initrd = g_strdup(paths->boot_image);
    machine->cmdline = g_strdup_printf("panic=-1 reboot=t quiet console=ttyS0 %s %s",
        check->accel == SV_ACCEL_TCG ? "tsc=reliable no_timer_check" : "", config->kernel_args);
    machine->firmware = *config->firmware ? g_strdup(config->firmware) : NULL;
    machine->skip_cpu_probe = config->skip_cpu_probe;
    machine->tcg_cache_mib = config->tcg_cache_mib;
    machine->agent_socket = g_strdup(paths->agent_socket);
    machine->console_log = g_strdup(paths->console_log);
    machine->share_dir = g_strdup(paths->share_dir);
    machine->virtiofsd = *config->virtiofsd ? g_strdup(config->virtiofsd) : NULL;
    machine->root_ports = config->root_ports;
    machine->uid = config->uid_first ? (int)config->uid_first : -1;
    return machine;
}

static void try_boot(SvCheck *check, const SvPaths *paths)
{
    g_autofree char *kernel = NULL, *image = NULL;
    g_autoptr(GError) error = NULL;
    gint64 from = g_get_monotonic_time();
    if (!sv_config_guest_image(check->config, &kernel, &image, &error) ||
        !sv_file_mkdirs(paths->sock_dir, 0700, &error) ||
        !sv_share_make(paths, kernel, image, &error)) {
        sv_check_add(check, "boot", SV_CHECK_FAIL, "see above", "%s", error->message);
        return;
    }
    g_autoptr(SvMachine) machine = build(check, paths);
    g_autoptr(SvTrial) trial = sv_trial_start(check->config, machine, &error);
    if (!trial) {
        sv_check_add(check, "boot", SV_CHECK_FAIL, "see libvirt's log", "%s", error->message);
        return;
    }
    Wait wait = {.loop = g_main_loop_new(NULL, FALSE)};
    wait_for_agent(check, paths, &wait);
    double seconds = (double)(g_get_monotonic_time() - from) / G_USEC_PER_SEC;
    if (wait.ready) {
        g_autofree char *version = sv_printable(wait.version, 40);
        sv_check_add(check, "boot", SV_CHECK_PASS, NULL,
            "a machine is ready after %.1f s: Linux %s, agent %s", seconds, wait.kernel, version);
    } else {
        g_autofree char *tail = sv_file_tail(paths->console_log, CONSOLE_TAIL);
        g_strdelimit(tail, "\r\n", '|');
        sv_check_add(check, "boot", SV_CHECK_FAIL, "build the guest image anew",
            "no machine comes up: %s; its console ends: %s", wait.failure,
            *tail ? tail : "(nothing)");
    }
    g_main_loop_unref(wait.loop);
    g_free(wait.kernel);
    g_free(wait.version);
    g_free(wait.failure);
}

void sv_check_boot(SvCheck *check)
{
    g_autofree char *name = g_strdup_printf(NAME_FORMAT, (int)getpid());
    g_autoptr(GError) error = NULL;
    if (check->quick || !check->host)
        return;
    g_autoptr(SvPaths) paths = sv_paths_new(check->config, check->root, name, FALSE, &error);
    if (!paths) {
        sv_check_add(check, "boot", SV_CHECK_FAIL, "see above", "%s", error->message);
        return;
    }
    try_boot(check, paths);
    unlink(paths->agent_socket);
    if (!sv_share_destroy(paths, &error))
        g_warning("ignoring: %s", error->message);
    g_autofree char *log =
        g_strdup_printf("/var/log/libvirt/qemu/sandvirt-" NAME_FORMAT ".log", (int)getpid());
    unlink(log);
}
