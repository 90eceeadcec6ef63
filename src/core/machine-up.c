/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From nothing to an agent that answers: the share, the domain, the channel. One start for all
 * containers that want the machine meanwhile. */
#include "core/console-shell.h"
#include "core/pod-cgroup.h"
#include "core/sandbox-priv.h"
#include "core/timeline-write.h"
#include "core/uids.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"

#include <string.h>

#define CONSOLE_TAIL 1200 /* bytes of the guest's console in an error */

/* ---- those that wait */

void sv_machine_up_done(SvSandbox *sandbox, const GError *error)
{
    sv_tickets_end(&sandbox->up_tickets, error);
}

SvMachineStep *sv_machine_step(SvSandbox *sandbox, SvSequence *seq)
{
    SvMachineStep *step = g_new0(SvMachineStep, 1);
    step->sandbox = sandbox;
    step->ticket = sv_sequence_ticket(seq);
    return step;
}

/* ---- acceleration */

static void on_accel(SvAccel accel, const char *reason, const GError *error, gpointer user_data)
{
    g_autofree SvMachineStep *step = user_data;
    if (error) {
        sv_ticket_fail(step->ticket, g_error_copy(error));
        return;
    }
    step->sandbox->accel = accel;
    if (reason)
        g_info("sandbox %s: software emulation: %s", step->sandbox->paths->sandbox, reason);
    sv_ticket_next(step->ticket);
}

static void step_accel(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->driver->resolve_accel(sandbox->config, on_accel, sv_machine_step(sandbox, seq));
}

/* ---- share */

/* What we mount must be what libvirt's processes see. */
static gboolean check_mount_namespace(GError **error)
{
    g_autofree char *text = NULL;
    guint64 other;
    if (!sv_file_read("/run/libvirtd.pid", 64, &text, NULL, NULL))
        return TRUE; /* modular daemons or another place: proven with virtiofsd later */
    pid_t pid = (pid_t)g_ascii_strtoll(text, NULL, 10);
    other = pid > 1 ? sv_process_ns_inode(pid, "mnt") : 0;
    if (!other || other == sv_process_ns_inode(0, "mnt"))
        return TRUE;
    g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
        "libvirtd (pid %d) runs in another mount namespace: start sandvirt-launcher in libvirtd's",
        (int)pid);
    return FALSE;
}

static void step_share(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    GError *error = NULL;
    g_autofree char *kernel = NULL, *image = NULL;
    if (check_mount_namespace(&error) &&
        sv_config_guest_image(sandbox->config, &kernel, &image, &error) &&
        sv_share_make(sandbox->paths, kernel, image, &error)) {
        if (sandbox->config->console_shell)
            sv_console_shell_offer(sandbox->paths);
        sv_sequence_next(seq);
    } else {
        sv_sequence_fail(seq, error);
    }
}

static void undo_share(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    GError *error = NULL;
    if (sv_share_destroy(sandbox->paths, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

/* ---- cgroup */

static void step_cgroup(SvSequence *seq, gpointer user_data)
{
    sv_pod_cgroup_begin(user_data);
    sv_sequence_next(seq);
}

static void undo_cgroup(SvSequence *seq, gpointer user_data)
{
    sv_pod_cgroup_end(user_data);
    sv_sequence_next(seq);
}

/* ---- user of QEMU */

static gboolean save_user(int uid, gpointer user_data, GError **error)
{
    SvSandbox *sandbox = user_data;
    sandbox->record->uid = uid;
    return sv_sandbox_save(sandbox, error);
}

static void step_user(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    GError *error = NULL;
    int uid;
    if (sv_uids_take(sandbox->config, sandbox->paths, save_user, sandbox, &uid, &error))
        sv_sequence_next(seq);
    else
        sv_sequence_fail(seq, error);
}

static void undo_user(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sv_uids_release(sandbox->config, sandbox->paths, sandbox->record->uid);
    sandbox->record->uid = -1;
    sv_sequence_next(seq);
}

/* ---- connection to libvirt */

gboolean sv_machine_open_hv(SvSandbox *sandbox)
{
    if (!sandbox->hv)
        sandbox->hv = sandbox->driver->open(sandbox->config, sandbox->paths->domain_uuid,
            sandbox->paths->domain_name, sv_machine_on_event, sandbox);
    return sandbox->hv != NULL;
}

static void on_hv_step(SvHv *hv, const GError *error, gpointer user_data)
{
    g_autofree SvMachineStep *step = user_data;
    if (error)
        sv_ticket_fail(step->ticket, g_error_copy(error));
    else
        sv_ticket_next(step->ticket);
}

static void on_connected(SvHv *hv, const GError *error, gpointer user_data)
{
    SvMachineStep *step = user_data;
    if (!error)
        step->sandbox->hv_connected = TRUE;
    on_hv_step(hv, error, user_data);
}

static void step_connect(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    /* For the sandbox's former machine; what is lost of it the driver opens anew by itself. */
    if (sandbox->hv_connected) {
        sv_sequence_next(seq);
        return;
    }
    /* An attempt that was given up. */
    if (sandbox->hv)
        sandbox->hv->ops->free(sandbox->hv);
    sandbox->hv = NULL;
    sv_machine_open_hv(sandbox);
    sandbox->hv->ops->connect(sandbox->hv, on_connected, sv_machine_step(sandbox, seq));
}

/* ---- domain */

/* A start that was given up is waited for before it is undone: else it would come behind the destroy. */
static void on_domain(SvHv *hv, const GError *error, gpointer user_data)
{
    SvMachineStep *step = user_data;
    SvSandbox *sandbox = step->sandbox;
    sandbox->start_pending = FALSE;
    if (sandbox->undo_ticket) {
        step->ticket = sandbox->undo_ticket;
        sandbox->undo_ticket = 0;
        hv->ops->destroy(hv, sandbox->qemu_pidfd, 1000, on_hv_step, step);
        return;
    }
    on_hv_step(hv, error, step);
}

static void step_domain(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    GError *error = NULL;
    g_autoptr(SvMachine) machine = sv_machine_build(sandbox, &error);
    if (!machine) {
        sv_sequence_fail(seq, error);
        return;
    }
    sandbox->record->started = TRUE;
    if (!sv_sandbox_save(sandbox, &error)) {
        sv_sequence_fail(seq, error);
        return;
    }
    sandbox->start_pending = TRUE;
    sandbox->hv->ops->start(sandbox->hv, machine, on_domain, sv_machine_step(sandbox, seq));
}

static void undo_domain(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (sandbox->start_pending) {
        sandbox->undo_ticket = sv_sequence_ticket(seq);
        return;
    }
    sandbox->hv->ops->destroy(
        sandbox->hv, sandbox->qemu_pidfd, 1000, on_hv_step, sv_machine_step(sandbox, seq));
}

/* ---- agent */

gboolean sv_machine_connect_agent(SvSandbox *sandbox, GError **error)
{
    guint8 token[SV_SYNC_ID_LEN] = {0};
    const char *hex = sandbox->record->token ? sandbox->record->token : "";
    for (guint i = 0; i < sizeof token && hex[2 * i] && hex[2 * i + 1]; i++)
        token[i] = (guint8)(g_ascii_xdigit_value(hex[2 * i]) << 4 |
            (g_ascii_xdigit_value(hex[2 * i + 1]) & 0xf));
    g_clear_pointer(&sandbox->agent, sv_agent_free);
    sandbox->agent = sv_agent_connect(
        sandbox->paths->agent_socket, token, &sv_machine_agent_handlers, sandbox, error);
    return sandbox->agent != NULL;
}

static void step_agent(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    GError *error = NULL;
    sandbox->agent_ticket = sv_sequence_ticket(seq);
    if (!sv_machine_connect_agent(sandbox, &error)) {
        sv_sequence_fail(seq, error);
        return;
    }
    sv_machine_watch_processes(sandbox);
    sandbox->boot_timer =
        g_timeout_add(sandbox->config->boot_ms, sv_machine_on_boot_timeout, sandbox);
}

gboolean sv_machine_on_boot_timeout(gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->boot_timer = 0;
    sv_ticket_fail(sandbox->agent_ticket, sv_machine_boot_error(sandbox, "did not answer in time"));
    sandbox->agent_ticket = 0;
    return G_SOURCE_REMOVE;
}

GError *sv_machine_boot_error(SvSandbox *sandbox, const char *what)
{
    g_autofree char *tail = sv_file_tail(sandbox->paths->console_log, CONSOLE_TAIL);
    g_autofree char *line = sv_printable(g_strstrip(g_strdelimit(tail, "\r\n", '|')), CONSOLE_TAIL);
    return g_error_new(SV_CORE_ERROR, SV_ERR_TIMEOUT,
        "the machine of sandbox \"%s\" %s; its console ends: %s", sandbox->paths->sandbox, what,
        *line ? line : "(nothing)");
}

static void undo_agent(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (sandbox->boot_timer)
        g_source_remove(sandbox->boot_timer);
    sandbox->boot_timer = 0;
    g_clear_pointer(&sandbox->agent, sv_agent_free);
    sv_sequence_next(seq);
}

/* ---- set up */

static void on_set_up(const ProtobufCMessage *reply, const GError *error, gpointer user_data)
{
    g_autofree SvMachineStep *step = user_data;
    if (error)
        sv_ticket_fail(step->ticket, g_error_copy(error));
    else
        sv_ticket_next(step->ticket);
}

static void step_setup(SvSequence *seq, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    if (sandbox->boot_timer)
        g_source_remove(sandbox->boot_timer);
    sandbox->boot_timer = 0;
    sv_machine_watch_processes(sandbox);
    Sandvirt__V1__SetupRequest message = SANDVIRT__V1__SETUP_REQUEST__INIT;
    message.hostname = sandbox->record->hostname ? sandbox->record->hostname : (char *)"";
    message.share_tag = (char *)SV_SHARE_TAG;
    message.shutdown_grace_ms = sandbox->config->grace_ms;
    sv_agent_call(sandbox->agent, "Setup", &message.base, NULL, sandbox->config->agent_ms,
        on_set_up, sv_machine_step(sandbox, seq));
}

static const SvStep up_steps[] = {
    {"acceleration", step_accel, NULL, 0},
    {"share", step_share, undo_share, 0},
    {"cgroup", step_cgroup, undo_cgroup, 0},
    {"user", step_user, undo_user, 0},
    {"connect", step_connect, NULL, 0},
    {"domain", step_domain, undo_domain, 0},
    {"agent", step_agent, undo_agent, 0},
    {"setup", step_setup, NULL, 0},
    {NULL, NULL, NULL, 0},
};

static void on_up(SvSequence *seq, const GError *error, gpointer user_data)
{
    SvSandbox *sandbox = user_data;
    sandbox->up = NULL;
    if (!error) {
        sandbox->machine = SV_MACHINE_UP;
        sv_timeline_note_machine(sandbox, seq);
        sv_sandbox_touch(sandbox);
    } else {
        /* undone already; nobody else can use this sandbox any more */
        sandbox->machine = SV_MACHINE_ENDED;
        sandbox->record->ended = TRUE;
        if (sandbox->end_cause == SV_CAUSE_NONE)
            sandbox->end_cause = SV_CAUSE_ROLLED_BACK;
    }
    sv_machine_up_done(sandbox, error);
    if (sandbox->down_again || (error && g_hash_table_size(sandbox->containers) == 0))
        sv_machine_down(sandbox);
    sv_sandbox_check_idle(sandbox);
}

void sv_machine_want(SvSandbox *sandbox, guint64 ticket)
{
    if (sandbox->machine == SV_MACHINE_UP) {
        sv_ticket_next(ticket);
        return;
    }
    if (sandbox->machine == SV_MACHINE_ENDING || sandbox->machine == SV_MACHINE_ENDED) {
        sv_ticket_fail(ticket,
            g_error_new(SV_CORE_ERROR, SV_ERR_NOT_RUNNING,
                "the machine of sandbox \"%s\" has ended", sandbox->paths->sandbox));
        return;
    }
    g_array_append_val(sandbox->up_tickets, ticket);
    if (sandbox->machine == SV_MACHINE_STARTING)
        return;
    sandbox->machine = SV_MACHINE_STARTING;
    sandbox->up =
        sv_sequence_start("start the machine", up_steps, SV_SEQUENCE_UNDO, on_up, sandbox);
}
