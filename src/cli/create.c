/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "cli/create.h"
#include "base/fd.h"
#include "base/names.h"
#include "base/process.h"
#include "cli/netns.h"
#include "core/guestspec.h"
#include "oci/pod.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void sv_created_clear(SvCreated *created)
{
    sv_shim_child_clear(&created->shim);
    sv_target_clear(&created->target);
    g_clear_pointer(&created->spec, sv_spec_free);
    g_clear_pointer(&created->bundle, g_free);
}

/* ---- checks: nothing is made before all of them */

static char *find_bundle(const char *given, GError **error)
{
    char *bundle = realpath(given ? given : ".", NULL);

    if (!bundle)
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "bundle %s", given ? given : ".");
    return bundle;
}

static gboolean check_rootfs(const SvSpec *spec, GError **error)
{
    struct stat st;

    if (stat(spec->root_path, &st) < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "root file system %s", spec->root_path);
        return FALSE;
    }
    if (S_ISDIR(st.st_mode))
        return TRUE;
    g_set_error(
        error, SV_CLI_ERROR, SV_ERR_INVALID, "root file system %s is no folder", spec->root_path);
    return FALSE;
}

/* Of a hook that runs before the mounts it may be the task to make a source. */
static gboolean check_sources(const SvSpec *spec, GError **error)
{
    struct stat st;

    if (spec->hooks[SV_HOOK_PRESTART]->len > 0 || spec->hooks[SV_HOOK_CREATE_RUNTIME]->len > 0)
        return TRUE;
    for (guint i = 0; i < spec->mounts->len; i++) {
        const SvSpecMount *mount = spec->mounts->pdata[i];

        if (!sv_spec_mount_is_bind(mount) || !g_path_is_absolute(mount->source) ||
            stat(mount->source, &st) == 0 || errno != ENOENT)
            continue;
        sv_error_set_errno(error, SV_CLI_ERROR, ENOENT, "mounts[%u]: source \"%s\" of \"%s\"", i,
            mount->source, mount->destination);
        return FALSE;
    }
    return TRUE;
}

static gboolean check_console(
    const SvSpec *spec, const char *socket, gboolean foreground, GError **error)
{
    struct stat st;

    if (!spec->terminal && socket)
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
            "a console socket is given, but process.terminal is false");
    else if (spec->terminal && !socket && !foreground)
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
            "process.terminal is true, but no console socket is given (--console-socket)");
    else if (spec->terminal && !socket)
        return sv_terminal_check(error);
    else if (socket && stat(socket, &st) < 0)
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "console socket %s", socket);
    else if (socket && !S_ISSOCK(st.st_mode))
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "console socket %s is no socket", socket);
    else
        return TRUE;
    return FALSE;
}

static gboolean check_id_is_free(const SvCli *cli, const char *id, GError **error)
{
    g_autofree char *folder = NULL;
    struct stat st;

    if (!sv_id_check(id, "container id", error))
        return FALSE;
    folder = sv_paths_container_dir(cli->root, id);
    if (lstat(folder, &st) < 0)
        return TRUE;
    g_set_error(
        error, SV_CLI_ERROR, SV_ERR_EXISTS, "container with given ID already exists: \"%s\"", id);
    return FALSE;
}

static gboolean find_netns(const SvSpec *spec, SvShimArgs *args, GError **error)
{
    const SvSpecNamespace *entry = sv_spec_namespace(spec, "network");

    args->netns_fd = -1;
    args->new_netns = entry && !entry->path;
    if (!entry || !entry->path)
        return TRUE;
    args->netns_fd = sv_netns_open(entry->path, error);
    return args->netns_fd >= 0;
}

static gboolean is_callers_netns(int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == sv_process_ns_inode(0, "net");
}

/* A machine has a network of its own, whatever is asked for. */
static gboolean check_host_network(
    const SvSpec *spec, const SvConfig *config, SvShimArgs *args, GError **error)
{
    if (sv_spec_namespace(spec, "network") && !is_callers_netns(args->netns_fd))
        return TRUE;
    if (!config->host_network_substitute) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_UNSUPPORTED,
            "a machine cannot use the host's network: config.json has no network namespace of the "
            "container's own ([network] host_network_substitute of the configuration gives it "
            "one)");
        return FALSE;
    }
    sv_fd_clear(&args->netns_fd);
    args->new_netns = TRUE;
    return TRUE;
}

/* An absolute console socket: the shim's current folder is another one. */
static char *absolute(const char *path)
{
    return path ? g_canonicalize_filename(path, NULL) : NULL;
}

/* ---- the sandbox */

/* Where there is only the pod's id, which an engine that knows no pods passes on from anybody, the namespace must
 * be named: then it is compared. An entry without a path is a new one. None at all is the host's network, which
 * in a pod all containers have or none. */
static gboolean check_joins(
    const SvSpec *spec, const SvPaths *paths, const char *id, GError **error)
{
    const SvSpecNamespace *entry = sv_spec_namespace(spec, "network");
    g_autoptr(SvSandboxRecord) record = NULL;

    if (entry && entry->path)
        return TRUE;
    record = entry ? NULL : sv_sandbox_record_load(paths, NULL);
    if (record && record->host_network)
        return TRUE;
    g_set_error(error, SV_CLI_ERROR, SV_ERR_PERMISSION,
        "container \"%s\" cannot join sandbox \"%s\": it %s", id, paths->sandbox,
        entry ? "has a network namespace of its own" : "asks for the host's network");
    return FALSE;
}

static gboolean find_sandbox(
    SvTarget *target, SvCli *cli, const SvSpec *spec, const char *id, GError **error)
{
    g_autoptr(SvPod) pod = sv_pod_from_spec(spec, id, error);

    if (!pod || !sv_target_locate(target, cli, pod->sandbox_id, TRUE, error))
        return FALSE;
    /* podman names a pod, but not whether there is one. */
    if (!pod->maybe)
        return TRUE;
    if (access(target->paths->sandbox_file, F_OK) == 0)
        return check_joins(spec, target->paths, id, error);
    sv_target_clear(target);
    return sv_target_locate(target, cli, id, TRUE, error);
}

static gboolean register_container(SvCreated *created, const SvCli *cli,
    const SvCreateOptions *options, const char *id, const char *bundle, guint32 *handle,
    GError **error)
{
    Sandvirt__V1__RegisterRequest request = SANDVIRT__V1__REGISTER_REQUEST__INIT;
    SvTarget *target = &created->target;
    Sandvirt__V1__RegisterResponse *response;

    request.container_id = (char *)id;
    request.bundle = (char *)bundle;
    request.mount_ns = sv_process_ns_inode(0, "mnt");
    request.no_pivot = options->no_pivot;
    request.no_new_keyring = options->no_new_keyring;
    request.systemd_cgroup = cli->systemd_cgroup;
    request.version = (char *)PACKAGE_VERSION;
    request.console_socket = (char *)(options->console_socket ? options->console_socket : "");
    request.pid_file = (char *)(options->pid_file ? options->pid_file : "");
    request.preserve_fds = (guint32)options->preserve_fds;
    response = (Sandvirt__V1__RegisterResponse *)sv_client_call(target->fd, &target->stream,
        "Register", &request.base, &sandvirt__v1__register_response__descriptor,
        sv_target_stop_ms(target), error); /* of the sandbox's former machine, perhaps */
    if (!response)
        return FALSE;
    *handle = response->handle;
    sv_message_free(response);
    return TRUE;
}

/* ---- from the record to READY */

static gboolean call_create(SvCreated *created, const char *id, GError **error)
{
    Sandvirt__V1__CreateContainerRequest request = SANDVIRT__V1__CREATE_CONTAINER_REQUEST__INIT;

    request.container_id = (char *)id;
    request.shim_pid = (guint32)created->shim.pid;
    request.shim_start = created->shim.start;
    request.stdin_null = !created->spec->terminal && sv_stdin_is_null();
    return sv_shim_child_call(&created->shim, &created->target, "Create", &request.base, error);
}

/* What would be refused by the monitor anyway, before it starts a machine. */
static gboolean check_fields(const SvSpec *spec, GError **error)
{
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);

    if (!sv_guest_spec_check(spec, warnings, error))
        return FALSE;
    for (guint i = 0; i < warnings->len; i++)
        g_warning("config.json: %s", (const char *)warnings->pdata[i]);
    return TRUE;
}

/* Takes back what was registered. Create has done so when it failed by itself; asking twice is fine. */
static void roll_back(SvCreated *created, SvCli *cli, const char *id)
{
    Sandvirt__V1__DeleteRequest request = SANDVIRT__V1__DELETE_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    gboolean again = FALSE;

    sv_shim_child_clear(&created->shim);
    request.container_id = (char *)id;
    request.force = TRUE;
    if (!sv_target_call_again(&created->target, cli, "Delete", &request.base,
            sv_target_stop_ms(&created->target), &again, &error) &&
        !sv_error_is(error, SV_ERR_NOT_FOUND))
        g_warning("ignoring: roll back of container %s: %s", id, error->message);
}

static gboolean make_ready(SvCreated *created, SvCli *cli, const SvCreateOptions *options,
    const SvShimArgs *args, GError **error)
{
    SvTarget *target = &created->target;

    return sv_shim_child_start(&created->shim, cli, target->paths, target->config, args, error) &&
        call_create(created, args->container, error) &&
        sv_shim_child_send_pidfd(&created->shim, options->pidfd_socket, error) &&
        sv_cli_write_pid(options->pid_file, created->shim.pid, error) &&
        sv_shim_child_release(&created->shim, FALSE, error);
}

gboolean sv_create(SvCli *cli, const SvCreateOptions *options, const char *id, gboolean foreground,
    SvCreated *created, GError **error)
{
    g_autofree char *console = absolute(options->console_socket);
    g_auto(SvFd) netns = -1;
    SvShimArgs args = {.container = id, .console_socket = console, .netns_fd = -1};

    if (!check_id_is_free(cli, id, error))
        return FALSE;
    created->bundle = find_bundle(options->bundle, error);
    created->spec = created->bundle ? sv_spec_load(created->bundle, error) : NULL;
    if (!created->spec || !check_rootfs(created->spec, error) ||
        !check_sources(created->spec, error) ||
        !check_console(created->spec, console, foreground, error) ||
        !check_fields(created->spec, error) || !sv_cli_check_pid_file(options->pid_file, error) ||
        !sv_preserve_fds_check(options->preserve_fds, &args.preserve_fds, error))
        return FALSE;
    if (!find_netns(created->spec, &args, error) ||
        !find_sandbox(&created->target, cli, created->spec, id, error) ||
        !check_host_network(created->spec, created->target.config, &args, error)) {
        sv_fd_clear(&args.netns_fd);
        return FALSE;
    }
    netns = args.netns_fd;
    args.terminal = created->spec->terminal;
    args.rows = created->spec->console_rows;
    args.cols = created->spec->console_cols;
    if (!sv_target_connect(&created->target, cli, error) ||
        !register_container(created, cli, options, id, created->bundle, &args.handle, error))
        return FALSE;
    /* An entry without a path is a new namespace for the first container of a pod, the pod's for others. */
    if (args.new_netns)
        args.netns_fd = netns = sv_netns_of_sandbox(cli->root, created->target.paths->sandbox);
    args.new_netns = args.new_netns && netns < 0;
    if (make_ready(created, cli, options, &args, error))
        return TRUE;
    roll_back(created, cli, id);
    return FALSE;
}
