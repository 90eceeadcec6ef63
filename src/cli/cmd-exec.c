/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
#include "cli/foreground.h"
#include "cli/netns.h"
#include "cli/process-json.h"
#include "cli/shim-child.h"
#include "cli/target.h"
#include "core/guestspec.h"
#include <string.h>

typedef struct {
    SvExecProcess process;
    const char *process_file, *pid_file, *console_socket, *cgroup, *pidfd_socket;
    gboolean detach, ignored_flag;
    gint64 preserve_fds;
} Options;
#define FIELD(name) G_STRUCT_OFFSET(Options, name)
static const SvOption options[] = {
    {"process", 'p', SV_OPT_STRING, FIELD(process_file), "FILE", "process.json to run"},
    {"detach", 'd', SV_OPT_FLAG, FIELD(detach), NULL, "do not wait for its end"},
    {"tty", 't', SV_OPT_FLAG, FIELD(process.tty), NULL, "with a terminal"},
    {"env", 'e', SV_OPT_LIST, FIELD(process.env), "NAME=VALUE", "environment variable to add"},
    {"cwd", 0, SV_OPT_STRING, FIELD(process.cwd), "DIR", "current folder"},
    {"user", 'u', SV_OPT_STRING, FIELD(process.user), "UID[:GID]", "user to run as"},
    {"additional-gids", 'g', SV_OPT_LIST, FIELD(process.groups), "GID", "supplementary group"},
    {"cap", 'c', SV_OPT_LIST, FIELD(process.caps), "CAP", "capability to add"},
    {"no-new-privs", 0, SV_OPT_FLAG, FIELD(process.no_new_privs), NULL, "no privileges by execve"},
    {"apparmor", 0, SV_OPT_STRING, FIELD(process.apparmor), "PROFILE", "AppArmor profile"},
    {"process-label", 0, SV_OPT_STRING, FIELD(process.process_label), "LABEL", "SELinux label"},
    {"pid-file", 0, SV_OPT_STRING, FIELD(pid_file), "FILE", "where to write its pid"},
    {"console-socket", 0, SV_OPT_STRING, FIELD(console_socket), "PATH",
        "unix socket that receives the terminal"},
    {"preserve-fds", 0, SV_OPT_INT, FIELD(preserve_fds), "N",
        "further descriptors of the caller that it gets, as streams"},
    {"pidfd-socket", 0, SV_OPT_STRING, FIELD(pidfd_socket), "PATH",
        "unix socket that receives its pidfd"},
    {"cgroup", 0, SV_OPT_STRING, FIELD(cgroup), "PATH", "cgroup below the container's to run in"},
    {"no-subreaper", 0, SV_OPT_FLAG, FIELD(ignored_flag), NULL, NULL},
    {"ignore-paused", 0, SV_OPT_FLAG, FIELD(ignored_flag), NULL, NULL},
    {NULL},
};

typedef struct {
    SvTarget target;
    SvShimChild shim;
    SvShimArgs args;
    gboolean stdin_null;
    gboolean own_terminal; /* of the caller, for the process's */
    SvForeground fg;
} Exec;

/* Of what was asked for here. What an engine's process.json has always is not told each time. */
static void warn_of_ignored(const SvExecProcess *process)
{
    if (process->apparmor && *process->apparmor)
        g_warning("exec: --apparmor: the machine has no AppArmor, ignored");
    if (process->process_label && *process->process_label)
        g_warning("exec: --process-label: the machine has no SELinux, ignored");
    for (guint i = 0; process->caps && i < process->caps->len; i++)
        if (!sv_guest_knows_capability(process->caps->pdata[i]))
            g_warning("exec: unknown capability \"%s\", ignored", (char *)process->caps->pdata[i]);
}

static JsonNode *make_process(
    const SvRecord *record, const Options *opts, char **args, GError **error)
{
    if (opts->process_file)
        return sv_process_from_file(opts->process_file, error);
    warn_of_ignored(&opts->process);
    if (args[1])
        return sv_process_from_container(record, &opts->process, args + 1, error);
    g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "exec: no command is given");
    return NULL;
}

/* Nothing has begun yet: when the monitor dies here, the next one is asked. */
static gboolean prepare(
    Exec *exec, SvCli *cli, JsonNode *process, const char *cgroup, GError **error)
{
    Sandvirt__V1__ExecPrepareRequest request = SANDVIRT__V1__EXEC_PREPARE_REQUEST__INIT;
    SvTarget *target = &exec->target;
    g_autofree char *text = sv_json_text(process, FALSE);
    Sandvirt__V1__ExecPrepareResponse *response;

    request.container_id = target->record->id;
    request.process.data = (guint8 *)text;
    request.process.len = strlen(text);
    request.cgroup = (char *)(cgroup ? cgroup : "");
    response = (Sandvirt__V1__ExecPrepareResponse *)sv_target_ask(target, cli, "ExecPrepare",
        &request.base, &sandvirt__v1__exec_prepare_response__descriptor, error);
    if (!response)
        return FALSE;
    exec->args.handle = response->handle;
    sv_message_free(response);
    return TRUE;
}

static gboolean start(Exec *exec, GError **error)
{
    Sandvirt__V1__ExecStartRequest request = SANDVIRT__V1__EXEC_START_REQUEST__INIT;

    request.container_id = exec->target.record->id;
    request.handle = exec->args.handle;
    request.shim_pid = (guint32)exec->shim.pid;
    request.shim_start = exec->shim.start;
    request.stdin_null = exec->stdin_null;
    return sv_shim_child_call(&exec->shim, &exec->target, "ExecStart", &request.base, error);
}

static int container_netns(const SvRecord *record, GError **error)
{
    int fd = sv_netns_of_container(record);

    if (fd < 0)
        g_set_error(error, SV_CLI_ERROR, SV_ERR_STATE, "cannot exec in a stopped container");
    return fd;
}

static gboolean run(Exec *exec, SvCli *cli, const Options *opts, JsonNode *process, GError **error)
{
    SvTarget *target = &exec->target;
    g_auto(SvFd) netns = container_netns(target->record, error);

    if (netns < 0 || !prepare(exec, cli, process, opts->cgroup, error))
        return FALSE;
    exec->args.netns_fd = netns;
    if (!sv_shim_child_start(&exec->shim, cli, target->paths, target->config, &exec->args, error))
        return FALSE;
    /* Before the process runs: what is typed at its first word is for it. */
    if (!opts->detach)
        sv_foreground_begin(&exec->fg, exec->own_terminal);
    return start(exec, error) && sv_shim_child_send_pidfd(&exec->shim, opts->pidfd_socket, error) &&
        sv_cli_write_pid(opts->pid_file, exec->shim.pid, error) &&
        sv_shim_child_release(&exec->shim, TRUE, error);
}

static gboolean check_console(const Options *opts, gboolean terminal, GError **error)
{
    if (terminal && opts->detach && !opts->console_socket) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
            "a terminal is asked for, but no console socket is given (--console-socket)");
        return FALSE;
    }
    if (terminal && !opts->console_socket && !sv_terminal_check(error))
        return FALSE;
    return sv_cli_check_pid_file(opts->pid_file, error);
}

static int exec_in(Exec *exec, SvCli *cli, const Options *opts, char **args, GError **error)
{
    g_autofree char *console =
        opts->console_socket ? g_canonicalize_filename(opts->console_socket, NULL) : NULL;
    g_autoptr(JsonNode) process = NULL;

    if (!sv_target_load(&exec->target, cli, args[0], "exec", error))
        return -1;
    process = make_process(exec->target.record, opts, args, error);
    if (!process)
        return -1;
    sv_process_terminal(process, &exec->args.terminal, &exec->args.rows, &exec->args.cols);
    exec->args.container = args[0];
    exec->args.console_socket = exec->args.terminal ? console : NULL;
    exec->own_terminal = exec->args.terminal && !console;
    exec->stdin_null = !exec->args.console_socket && sv_stdin_is_null();
    if (!check_console(opts, exec->args.terminal, error) ||
        !sv_preserve_fds_check(opts->preserve_fds, &exec->args.preserve_fds, error) ||
        !run(exec, cli, opts, process, error))
        return -1;
    if (opts->detach)
        return 0;
    return sv_foreground_wait(&exec->fg, exec->shim.pid, exec->shim.pidfd, error);
}

static int cmd_exec(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    Exec exec = {SV_TARGET_INIT, SV_SHIM_CHILD_INIT, {.netns_fd = -1}, FALSE, FALSE, {FALSE}};
    int status = exec_in(&exec, cli, values, args, error);

    sv_foreground_end(&exec.fg);
    sv_shim_child_clear(&exec.shim);
    sv_target_clear(&exec.target);
    return status;
}

const SvVerb sv_verb_exec = {"exec", "CONTAINER [COMMAND [ARGUMENT...]]",
    "Run a further process in a container", options, sizeof(Options), 1, G_MAXUINT,
    SV_VERB_FIRST_ONLY | SV_VERB_EXEC_STATUS, cmd_exec};
