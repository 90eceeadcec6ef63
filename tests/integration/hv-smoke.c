/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* By hand: takes a real domain through the libvirt driver and prints how long each step took.
 *
 *   [HOLD=seconds] [SAY=line] [FREEZE=1] hv-smoke KERNEL INITRD FOLDER [kvm]
 *
 * FOLDER must be reachable by QEMU's user and becomes the machine's socket and share. The guest counts
 * as up when its end of the agent channel says anything. HOLD: waits before the end; SAY: writes a line
 * to the agent that makes the guest end; FREEZE: stops QEMU before destroy, which then must be killed. */
#include <config.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "hypervisor/driver.h"

#define UUID "6f0ad4a4-9c1c-5d3c-8d0c-6a3b52f4aaaa"
#define NAME "sandvirt-hv-smoke"

typedef struct {
    SvHv *hv;
    SvMachine *machine;
    GMainLoop *loop;
    gboolean finished, failed;
    guint events[SV_HV_EVENT_CONNECTED + 1];
    SvHvEnd end;
    gint64 begun;
    int agent;
} Smoke;

static void begin(Smoke *smoke)
{
    smoke->begun = g_get_monotonic_time();
    smoke->finished = FALSE;
    smoke->failed = FALSE;
}

static void report(Smoke *smoke, const char *what)
{
    double ms = (double)(g_get_monotonic_time() - smoke->begun) / 1000.0;
    printf("%-28s %8.1f ms%s\n", what, ms, smoke->failed ? "  FAILED" : "");
    fflush(stdout);
}

static void on_event(SvHv *hv, const SvHvEvent *event, gpointer user_data)
{
    Smoke *smoke = user_data;
    smoke->events[event->type]++;
    if (event->type == SV_HV_EVENT_STOPPED)
        smoke->end = event->end;
    printf("    event %d end %d alias %s\n", event->type, event->end,
        event->alias != NULL ? event->alias : "-");
    g_main_loop_quit(smoke->loop);
}

static void on_done(SvHv *hv, const GError *error, gpointer user_data)
{
    Smoke *smoke = user_data;
    smoke->finished = TRUE;
    smoke->failed = error != NULL;
    if (error != NULL)
        printf("    code %d: %s\n", error->code, error->message);
    g_main_loop_quit(smoke->loop);
}

static void on_status(SvHv *hv, const SvHvStatus *status, const GError *error, gpointer user_data)
{
    if (status != NULL)
        printf("    exists %d running %d suspended %d id %d aliases %u\n", status->exists,
            status->running, status->suspended, status->id,
            status->aliases != NULL ? status->aliases->len : 0);
    on_done(hv, error, user_data);
}

static void wait_done(Smoke *smoke, const char *what)
{
    while (!smoke->finished)
        g_main_loop_run(smoke->loop);
    report(smoke, what);
}

static gboolean on_tick(gpointer user_data)
{
    g_main_loop_quit(user_data);
    return G_SOURCE_CONTINUE;
}

static void wait_event(Smoke *smoke, SvHvEventType type, guint count, const char *what)
{
    gint64 limit = g_get_monotonic_time() + 15 * G_USEC_PER_SEC;
    guint timer = g_timeout_add(100, on_tick, smoke->loop);
    while (smoke->events[type] < count && g_get_monotonic_time() < limit)
        g_main_loop_run(smoke->loop);
    g_source_remove(timer);
    smoke->failed = smoke->events[type] < count;
    report(smoke, what);
}

static SvMachine *make_machine(char **argv, gboolean kvm)
{
    SvMachine *machine = sv_machine_new();
    machine->name = g_strdup(NAME);
    machine->uuid = g_strdup(UUID);
    machine->title = g_strdup("smoke/test");
    machine->metadata = sv_metadata_new();
    machine->metadata->root = g_strdup("/nowhere");
    machine->metadata->sandbox = g_strdup("smoke");
    machine->accel = kvm ? SV_ACCEL_KVM : SV_ACCEL_TCG;
    machine->max_vcpus = 2;
    machine->memory_mib = 256;
    machine->max_extra_memory_mib = g_getenv("NO_MEM") != NULL ? 0 : 256;
    machine->kernel = g_strdup(argv[1]);
    machine->initrd = g_strdup(argv[2]);
    machine->cmdline =
        g_strdup(g_getenv("CMDLINE") != NULL ? g_getenv("CMDLINE")
                                             : "panic=-1 reboot=t quiet console=ttyS0 "
                                               "cryptomgr.notests tsc=reliable no_timer_check");
    machine->firmware = g_strdup("/usr/share/qemu/qboot.rom");
    machine->skip_cpu_probe = TRUE;
    machine->tcg_cache_mib = 32;
    machine->agent_socket = g_build_filename(argv[3], "agent", NULL);
    machine->console_log = g_build_filename(argv[3], "console.log", NULL);
    machine->share_dir = g_build_filename(argv[3], "share", NULL);
    return machine;
}

static SvDevice *make_disk(const char *folder, SvBlockBus bus)
{
    const char *target = bus == SV_BUS_SCSI ? "sdb" : "vda";
    SvBlock *block = g_new0(SvBlock, 1);
    block->kind = SV_BLOCK_FILE;
    block->source = g_strdup_printf("%s/%s.img", folder, target);
    block->format = g_strdup("raw");
    block->serial = sv_block_serial("smoke", target, 0);
    block->bus = bus;
    block->target = g_strdup(target);
    g_autofree char *zero = g_malloc0(1 << 20);
    g_file_set_contents(block->source, zero, 1 << 20, NULL);
    g_autofree char *alias = g_strdup_printf("ua-sv-%s", target);
    return sv_device_new_block(alias, block);
}

static void devices(Smoke *smoke, const char *folder)
{
    SvHv *hv = smoke->hv;
    g_autoptr(SvDevice) disk = make_disk(folder, SV_BUS_VIRTIO);
    g_autoptr(SvDevice) scsi = make_disk(folder, SV_BUS_SCSI);
    SvNetwork *network = g_new0(SvNetwork, 1);
    network->tap = g_strdup("svsmoke0");
    network->mac = g_strdup("52:54:00:11:22:33");
    g_autoptr(SvDevice) card = sv_device_new_network("ua-sv-net", network);
    const SvDevice *all[] = {disk, scsi, card};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        begin(smoke);
        hv->ops->attach(hv, all[i], on_done, smoke);
        wait_done(smoke, all[i]->alias);
    }
    begin(smoke);
    hv->ops->attach(hv, disk, on_done, smoke);
    wait_done(smoke, "again (must fail)");
    begin(smoke);
    hv->ops->status(hv, on_status, smoke);
    wait_done(smoke, "status");
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        guint removed = smoke->events[SV_HV_EVENT_DEVICE_REMOVED];
        begin(smoke);
        hv->ops->detach(hv, all[i]->alias, on_done, smoke);
        wait_done(smoke, "detach: call");
        wait_event(smoke, SV_HV_EVENT_DEVICE_REMOVED, removed + 1, "detach: removed");
    }
    begin(smoke);
    hv->ops->detach(hv, "ua-sv-none", on_done, smoke);
    wait_done(smoke, "unknown alias (must fail)");
}

static void changes(Smoke *smoke)
{
    SvHv *hv = smoke->hv;
    SvMetadataContainer *container = sv_metadata_container_new();
    container->id = g_strdup("ctr");
    container->state = g_strdup("running");
    g_ptr_array_add(smoke->machine->metadata->containers, container);
    begin(smoke);
    hv->ops->set_metadata(hv, smoke->machine->metadata, on_done, smoke);
    wait_done(smoke, "metadata");
    begin(smoke);
    hv->ops->set_vcpus(hv, 2, on_done, smoke);
    wait_done(smoke, "vcpus");
    begin(smoke);
    hv->ops->set_memory(hv, 128 << 20, on_done, smoke);
    wait_done(smoke, "memory");
    begin(smoke);
    hv->ops->status(hv, on_status, smoke);
    wait_done(smoke, "status");
}

/* Blocking: this program has nothing else to do. */
static int wait_agent(Smoke *smoke)
{
    char text[64] = "";
    begin(smoke);
    smoke->agent = sv_unix_connect(smoke->machine->agent_socket, NULL);
    gint64 limit = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    smoke->failed = smoke->agent < 0 || sv_fd_wait(smoke->agent, POLLIN, limit) <= 0 ||
        read(smoke->agent, text, sizeof text - 1) <= 0;
    report(smoke, "agent speaks");
    pid_t pid = -1;
    sv_unix_peer(smoke->agent, &pid, NULL, NULL);
    printf("    said \"%s\", peer %d, virtiofsd %d\n", g_strchomp(text), pid,
        smoke->hv->ops->share_pid(smoke->hv));
    return pid;
}

/* For looking at the machine, or at what the driver does when the daemon is restarted. */
static void hold(Smoke *smoke, int seconds)
{
    gint64 until = g_get_monotonic_time() + seconds * G_USEC_PER_SEC;
    guint timer = g_timeout_add(100, on_tick, smoke->loop);
    while (g_get_monotonic_time() < until)
        g_main_loop_run(smoke->loop);
    g_source_remove(timer);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: hv-smoke KERNEL INITRD FOLDER [kvm]\n");
        return 2;
    }
    const SvConfig *config = sv_config_load(NULL, &error);
    if (config == NULL)
        return 2;
    Smoke smoke = {.loop = g_main_loop_new(NULL, FALSE), .agent = -1};
    smoke.machine = make_machine(argv, argc > 4 && strcmp(argv[4], "kvm") == 0);
    smoke.hv = sv_libvirt_new(config, UUID, NAME, on_event, &smoke);
    SvHv *hv = smoke.hv;

    begin(&smoke);
    hv->ops->connect(hv, on_done, &smoke);
    wait_done(&smoke, "connect");
    begin(&smoke);
    hv->ops->start(hv, smoke.machine, on_done, &smoke);
    wait_done(&smoke, "start");
    if (!smoke.failed) {
        int pid = wait_agent(&smoke);
        begin(&smoke);
        hv->ops->start(hv, smoke.machine, on_done, &smoke);
        wait_done(&smoke, "start again (must fail)");
        devices(&smoke, argv[3]);
        changes(&smoke);
        if (g_getenv("HOLD") != NULL)
            hold(&smoke, atoi(g_getenv("HOLD")));
        if (g_getenv("SAY") != NULL) {
            g_autofree char *line = g_strconcat(g_getenv("SAY"), "\n", NULL);
            begin(&smoke);
            smoke.failed = !sv_fd_write_all(smoke.agent, line, strlen(line), NULL);
            wait_event(&smoke, SV_HV_EVENT_STOPPED, 1, "stopped by the guest");
        }
        int pidfd = -1;
        guint64 ticks = 0;
        if (g_getenv("FREEZE") != NULL) {
            kill(pid, SIGSTOP);
            if (sv_process_start_time(pid, &ticks))
                pidfd = sv_process_open(pid, ticks);
        }
        begin(&smoke);
        hv->ops->destroy(hv, pidfd, 1000, on_done, &smoke);
        wait_done(&smoke, "destroy");
        wait_event(&smoke, SV_HV_EVENT_STOPPED, 1, "stopped event");
        begin(&smoke);
        hv->ops->destroy(hv, -1, 1000, on_done, &smoke);
        wait_done(&smoke, "destroy again");
    }
    hv->ops->free(hv);
    sv_fd_close(smoke.agent);
    sv_machine_free(smoke.machine);
    g_main_loop_unref(smoke.loop);
    sv_config_unref(config);
    return 0;
}
