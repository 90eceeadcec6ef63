/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/shim-child.h"
#include "base/command.h"
#include "base/fd.h"
#include "base/mount.h"
#include "base/process.h"
#include "cli/siblings.h"
#include "core/shim-start.h"
#include "rpc/frame.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define READY_MS 30000

void sv_shim_child_clear(SvShimChild *child)
{
    sv_fd_clear(&child->sock);
    sv_fd_clear(&child->pidfd);
    child->pid = 0;
}

gboolean sv_stdin_is_null(void)
{
    struct stat st;

    return fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

gboolean sv_terminal_check(GError **error)
{
    g_auto(SvFd) tty = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (!sv_stdin_is_null() || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO) || tty >= 0)
        return TRUE;
    g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
        "a terminal is asked for, but there is none: no console socket is given "
        "(--console-socket), stdin is /dev/null");
    return FALSE;
}

gboolean sv_preserve_fds_check(gint64 n, guint *count, GError **error)
{
    if (n < 0 || n > SV_DESCRIPTORS_MAX) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
            "--preserve-fds: %" G_GINT64_FORMAT " is not within 0 to %d", n, SV_DESCRIPTORS_MAX);
        return FALSE;
    }
    for (int fd = STDERR_FILENO + 1; fd <= STDERR_FILENO + n; fd++) {
        int flags = fcntl(fd, F_GETFD);

        /* Those that we opened ourselves are closed by exec. */
        if (flags >= 0 && !(flags & FD_CLOEXEC))
            continue;
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID,
            "--preserve-fds: descriptor %d of the caller is not open", fd);
        return FALSE;
    }
    *count = (guint)n;
    return TRUE;
}

static void add(SvCommand *cmd, const char *name, const char *value)
{
    g_autofree char *arg = g_strdup_printf("--%s=%s", name, value);

    sv_command_add_arg(cmd, arg);
}

static void add_number(SvCommand *cmd, const char *name, guint value)
{
    g_autofree char *arg = g_strdup_printf("--%s=%u", name, value);

    sv_command_add_arg(cmd, arg);
}

/* The launcher can be asked by the shim when its socket lies where the shim can see it. */
static const char *launcher_name(const SvPaths *paths)
{
    const char *name = strrchr(paths->launcher_socket, '/');
    gsize len = strlen(paths->sock_dir);

    if (name && (gsize)(name - paths->launcher_socket) == len &&
        strncmp(paths->launcher_socket, paths->sock_dir, len) == 0)
        return name + 1;
    return "";
}

static void add_args(SvCommand *cmd, const SvCli *cli, const SvPaths *paths, const SvConfig *config,
    const char *monitor, const SvShimArgs *args)
{
    add(cmd, "container", args->container);
    add(cmd, "sandbox", paths->sandbox);
    add_number(cmd, "handle", args->handle);
    add(cmd, "root", paths->root);
    add(cmd, "monitor", paths->monitor_name);
    add(cmd, "launcher", launcher_name(paths));
    add(cmd, "monitor-path", monitor);
    if (config->path)
        add(cmd, "config", config->path);
    if (cli->debug)
        sv_command_add_arg(cmd, "--debug");
    if (args->terminal) {
        sv_command_add_arg(cmd, "--terminal");
        add_number(cmd, "rows", args->rows);
        add_number(cmd, "cols", args->cols);
    }
    if (args->preserve_fds > 0)
        add_number(cmd, "descriptors", args->preserve_fds);
    if (args->console_socket)
        add(cmd, "console-socket", args->console_socket);
    else if (sv_stdin_is_null())
        sv_command_add_arg(cmd, "--no-stdin");
}

/* Its last word, "" when it said none. -1: end of the connection; 0: deadline. */
static int receive(int sock, char *text, gsize size, gint64 deadline)
{
    ssize_t n;

    if (sv_fd_wait(sock, POLLIN, deadline) <= 0)
        return 0;
    n = recv(sock, text, size - 1, 0);
    text[MAX(n, 0)] = '\0';
    return n > 0 ? 1 : -1;
}

/* It has ended before its time: its own last word, if it said one, takes the place of *@error. */
static void explain(SvShimChild *child, GError **error)
{
    char text[4097] = "";

    if (child->sock < 0 || receive(child->sock, text, sizeof(text), 0) <= 0 ||
        text[0] != SV_SHIM_ERROR_TEXT)
        return;
    g_clear_error(error);
    g_set_error(error, SV_CLI_ERROR, SV_ERR_FAILED, "%s", text + 1);
}

static gboolean has_ended(SvShimChild *child, GError **error)
{
    GError *local = NULL;

    g_set_error(&local, SV_CLI_ERROR, SV_ERR_FAILED, "the container's shim has ended");
    explain(child, &local);
    g_propagate_error(error, local);
    return FALSE;
}

static gboolean wait_ready(SvShimChild *child, GError **error)
{
    char text[4097] = "";
    int r = receive(child->sock, text, sizeof(text),
        g_get_monotonic_time() + READY_MS * G_TIME_SPAN_MILLISECOND);

    if (r > 0 && text[0] == SV_SHIM_READY)
        return TRUE;
    if (r > 0 && text[0] == SV_SHIM_ERROR_TEXT)
        g_set_error(error, SV_CLI_ERROR, SV_ERR_FAILED, "%s", text + 1);
    else
        g_set_error(error, SV_CLI_ERROR, r == 0 ? SV_ERR_TIMEOUT : SV_ERR_FAILED, "%s",
            r == 0 ? "the container's shim is not ready in time"
                   : "the container's shim has ended");
    return FALSE;
}

/* RUN/.sock as a detached mount: the shim has no other way to its sockets. */
static int clone_sock_dir(const SvPaths *paths, GError **error)
{
    g_auto(SvFd) dir = open(paths->sock_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "open %s", paths->sock_dir);
        return -1;
    }
    return sv_mount_clone(dir, "", FALSE, error);
}

gboolean sv_shim_child_start(SvShimChild *child, const SvCli *cli, const SvPaths *paths,
    const SvConfig *config, const SvShimArgs *args, GError **error)
{
    g_autofree char *path = sv_sibling("shim", error);
    g_autofree char *monitor = path ? sv_sibling("monitor", error) : NULL;
    g_auto(SvFd) dir = monitor ? clone_sock_dir(paths, error) : -1;
    g_auto(SvFd) theirs = -1;
    g_autoptr(SvCommand) cmd = NULL;
    int socks[2];

    if (dir < 0)
        return FALSE;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "socketpair");
        return FALSE;
    }
    child->sock = socks[0];
    theirs = socks[1];
    cmd = sv_command_new(path);
    add_args(cmd, cli, paths, config, monitor, args);
    for (int fd = 0; fd <= 2; fd++)
        sv_command_map_fd(cmd, fd, fd);
    sv_command_map_fd(cmd, theirs, SV_SHIM_CALLER_FD);
    sv_command_map_fd(cmd, dir, SV_SHIM_SOCK_FD);
    for (guint i = 0; i < args->preserve_fds; i++)
        sv_command_map_fd(cmd, STDERR_FILENO + 1 + (int)i, SV_SHIM_FIRST_DESCRIPTOR + (int)i);
    sv_command_set_clone_flags(
        cmd, CLONE_NEWPID | CLONE_NEWNS | (args->new_netns ? CLONE_NEWNET : 0));
    sv_command_set_netns(cmd, args->netns_fd);
    if (!sv_command_spawn(cmd, &child->pid, &child->pidfd, error))
        return FALSE;
    sv_fd_clear(&theirs);
    if (!wait_ready(child, error))
        return FALSE;
    if (sv_process_start_time(child->pid, &child->start))
        return TRUE;
    return has_ended(child, error);
}

gboolean sv_shim_child_call(SvShimChild *child, SvTarget *target, const char *method,
    const ProtobufCMessage *message, GError **error)
{
    gboolean ended = FALSE;
    GError *local = NULL;

    if (sv_client_call_watching(target->fd, &target->stream, method, message,
            (int)target->config->create_ms, child->pidfd, sv_target_short_ms(target), &ended,
            &local))
        return TRUE;
    if (ended)
        explain(child, &local);
    g_propagate_error(error, local);
    return FALSE;
}

gboolean sv_shim_child_send_pidfd(const SvShimChild *child, const char *path, GError **error)
{
    static const char name[] = "pidfd";
    g_auto(SvFd) sock = path ? sv_unix_connect(path, error) : -1;

    if (!path)
        return TRUE;
    if (sock < 0) {
        g_prefix_error(error, "pidfd socket: ");
        return FALSE;
    }
    if (sv_fd_send(sock, name, strlen(name), &child->pidfd, 1) >= 0)
        return TRUE;
    sv_error_set_errno(error, SV_CLI_ERROR, errno, "send a pidfd to socket %s", path);
    return FALSE;
}

gboolean sv_shim_child_release(SvShimChild *child, gboolean may_have_ended, GError **error)
{
    const char go = SV_SHIM_GO;
    GError *local = NULL;

    if (sv_fd_send(child->sock, &go, 1, NULL, 0) == 1) {
        sv_fd_clear(&child->sock);
        return TRUE;
    }
    explain(child, &local);
    if (!local && may_have_ended)
        return TRUE;
    if (!local)
        return has_ended(child, error);
    g_propagate_error(error, local);
    return FALSE;
}
