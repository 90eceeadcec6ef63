/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/client.h"
#include "base/command.h"
#include "base/fd.h"
#include "core/cgroup-root.h"
#include "core/lifecycle.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

/* How often a monitor that ended between "it listens" and our connect is asked for again. */
#define ENSURE_ATTEMPTS 20
#define ENSURE_WAIT_MS 100

static int remaining_ms(gint64 deadline)
{
    gint64 left = (deadline - g_get_monotonic_time() + 999) / 1000;

    return (int)CLAMP(left, 0, G_MAXINT);
}

int sv_client_connect(const SvPaths *paths, GError **error)
{
    g_autoptr(GError) cause = NULL;
    int fd = sv_unix_connect(paths->monitor_socket, &cause);

    if (fd < 0)
        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "no monitor of sandbox \"%s\": %s",
            paths->sandbox, cause->message);
    return fd;
}

ProtobufCMessage *sv_client_call(int fd, guint32 *stream, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, int timeout_ms,
    GError **error)
{
    guint32 id = *stream;

    *stream += 2;
    return sv_rpc_call(fd, id, SV_SERVICE_MONITOR, method, message, type, timeout_ms, error);
}

/* ---- a call that also looks at another descriptor */

/* 1: the answer is in *@done with @error or not; 0: more is needed; -1: @error. */
static int read_answer(
    int fd, SvFrameReader *reader, guint32 stream, const char *method, GError **error)
{
    gsize room = 0;
    guint8 *space = sv_frame_reader_space(reader, &room);
    ssize_t n = recv(fd, space, room, MSG_DONTWAIT);
    SvFrame frame;
    int r;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_CLOSED, "%s: the monitor has gone", method);
        return -1;
    }
    if (n < 0) {
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "%s: receive", method);
        return -1;
    }
    sv_frame_reader_added(reader, (gsize)n);
    while ((r = sv_frame_reader_next(reader, &frame, error)) > 0) {
        GError *local = NULL;

        if (frame.type != SV_FRAME_RESPONSE || frame.stream != stream)
            continue;
        sv_response_parse(&frame, NULL, &local);
        if (local) {
            g_propagate_error(error, local);
            return -1;
        }
        return 1;
    }
    return r;
}

static gboolean send_request(int fd, guint32 stream, const char *method,
    const ProtobufCMessage *message, int timeout_ms, GError **error)
{
    g_autoptr(GBytes) request = sv_message_request(
        stream, SV_SERVICE_MONITOR, method, message, timeout_ms * G_GINT64_CONSTANT(1000000));
    gsize len = 0;
    const void *data = g_bytes_get_data(request, &len);

    return sv_fd_write_all(fd, data, len, error);
}

gboolean sv_client_call_watching(int fd, guint32 *stream, const char *method,
    const ProtobufCMessage *message, int timeout_ms, int watch_fd, int grace_ms, gboolean *watched,
    GError **error)
{
    gint64 deadline = g_get_monotonic_time() + timeout_ms * (gint64)1000;
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    guint32 id = *stream;

    *watched = FALSE;
    *stream += 2;
    if (!send_request(fd, id, method, message, timeout_ms, error))
        return FALSE;
    for (;;) {
        struct pollfd fds[] = {{fd, POLLIN, 0}, {*watched ? -1 : watch_fd, POLLIN, 0}};
        int left = remaining_ms(deadline);
        int r = poll(fds, 2, left);

        if (r < 0 && errno != EINTR) {
            sv_error_set_errno(error, SV_CORE_ERROR, errno, "%s: poll", method);
            return FALSE;
        }
        if (r > 0 && fds[0].revents) {
            int answer = read_answer(fd, reader, id, method, error);

            if (answer != 0)
                return answer > 0;
        } else if (r > 0 && fds[1].revents) {
            *watched = TRUE;
            deadline = MIN(deadline, g_get_monotonic_time() + grace_ms * (gint64)1000);
        } else if (r == 0 && left == 0) {
            g_set_error(error, SV_CORE_ERROR, *watched ? SV_ERR_CANCELLED : SV_ERR_TIMEOUT,
                "%s: no answer in time", method);
            return FALSE;
        }
    }
}

/* ---- starting a monitor */

/* Waits until the monitor's socket appears, which another caller's monitor makes. */
static gboolean wait_for_socket(const SvPaths *paths, gint64 deadline, GError **error)
{
    g_auto(SvFd) watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (watch < 0 || inotify_add_watch(watch, paths->sock_dir, IN_CREATE | IN_MOVED_TO) < 0) {
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "watch %s", paths->sock_dir);
        return FALSE;
    }
    for (;;) {
        char events[4096];
        g_auto(SvFd) fd = sv_client_connect(paths, NULL);
        int r;

        if (fd >= 0)
            return TRUE;
        r = sv_fd_wait(watch, POLLIN, deadline);
        if (r <= 0) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_TIMEOUT,
                "the monitor of sandbox \"%s\" does not listen", paths->sandbox);
            return FALSE;
        }
        while (read(watch, events, sizeof(events)) > 0)
            ;
    }
}

/* Reads "R" or "E<text>" to the end of file or a complete "R". */
static gboolean read_ready(int fd, gint64 deadline, gboolean *locked, GError **error)
{
    char text[SV_READY_MAX] = "";
    gsize len = 0;

    *locked = FALSE;
    for (;;) {
        int r = sv_fd_wait(fd, POLLIN, deadline);
        ssize_t n;

        if (r == 0) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_TIMEOUT, "the monitor did not start in time");
            return FALSE;
        }
        n = read(fd, text + len, sizeof(text) - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (gsize)n;
        text[len] = '\0';
        if (text[0] == SV_READY_OK)
            return TRUE;
        if (len == sizeof(text) - 1)
            break;
    }
    g_strchomp(text);
    *locked = text[0] == SV_READY_ERROR && strstr(text, SV_READY_LOCKED);
    if (*locked)
        return TRUE;
    g_set_error(error, SV_CORE_ERROR, SV_ERR_FAILED, "cannot start the monitor: %s",
        text[0] == SV_READY_ERROR && text[1] ? text + 1 : "it ended without a word");
    return FALSE;
}

static gboolean start_by_fork(const SvPaths *paths, const char *monitor_path,
    const char *config_path, gboolean debug, gint64 deadline, GError **error)
{
    g_autoptr(SvCommand) cmd = sv_command_new(monitor_path);
    g_auto(GStrv) cgroups = sv_cgroup_roots();
    int fds[2] = {-1, -1};
    g_auto(SvFd) reader = -1;
    g_auto(SvFd) writer = -1;
    gboolean locked = FALSE;

    if (!sv_fd_pipe(fds, 0, error))
        return FALSE;
    reader = fds[0];
    writer = fds[1];
    sv_command_add_args(cmd, "--root", paths->root, "--sandbox", paths->sandbox, NULL);
    if (config_path)
        sv_command_add_args(cmd, "--config", config_path, NULL);
    if (debug)
        sv_command_add_arg(cmd, "--debug");
    sv_command_add_args(cmd, "--ready-fd", "3", NULL);
    sv_command_map_fd(cmd, writer, 3);
    sv_command_set_pre_exec(cmd, sv_cgroup_enter_roots, cgroups);
    if (!sv_command_spawn_orphan(cmd, error))
        return FALSE;
    sv_fd_clear(&writer);
    if (!read_ready(reader, deadline, &locked, error))
        return FALSE;
    return !locked || wait_for_socket(paths, deadline, error);
}

static gboolean start_by_launcher(int launcher, const SvPaths *paths, const char *monitor_path,
    const char *config_path, gboolean debug, gint64 deadline, GError **error)
{
    Sandvirt__V1__EnsureRequest request = SANDVIRT__V1__ENSURE_REQUEST__INIT;
    GError *local = NULL;

    request.root = paths->root;
    request.sandbox = paths->sandbox;
    request.config = (char *)(config_path ? config_path : "");
    request.debug = debug;
    request.monitor = (char *)monitor_path;
    sv_rpc_call(launcher, 1, SV_SERVICE_LAUNCHER, "Ensure", &request.base, NULL,
        remaining_ms(deadline), &local);
    if (local) {
        g_propagate_error(error, local);
        return FALSE;
    }
    return TRUE;
}

static gboolean start_monitor(const SvPaths *paths, const char *monitor_path,
    const char *config_path, gboolean debug, gint64 deadline, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_auto(SvFd) launcher = sv_unix_connect(paths->launcher_socket, &cause);

    if (launcher >= 0)
        return start_by_launcher(
            launcher, paths, monitor_path, config_path, debug, deadline, error);
    g_warning("no sandvirt-launcher (%s): starting the monitor from here", cause->message);
    return start_by_fork(paths, monitor_path, config_path, debug, deadline, error);
}

int sv_client_ensure(const SvPaths *paths, const char *monitor_path, const char *config_path,
    gboolean debug, int timeout_ms, GError **error)
{
    gint64 deadline = g_get_monotonic_time() + timeout_ms * (gint64)1000;
    int fd = sv_client_connect(paths, NULL);

    for (int i = 0; fd < 0 && i < ENSURE_ATTEMPTS; i++) {
        gint64 next = g_get_monotonic_time() + ENSURE_WAIT_MS * (gint64)1000;

        if (!start_monitor(paths, monitor_path, config_path, debug, deadline, error))
            return -1;
        fd = sv_client_connect(paths, i + 1 < ENSURE_ATTEMPTS ? NULL : error);
        /* The one that was meant is ending; the launcher has not seen that yet. */
        if (fd < 0 && i + 1 < ENSURE_ATTEMPTS && wait_for_socket(paths, MIN(next, deadline), NULL))
            fd = sv_client_connect(paths, NULL);
    }
    return fd;
}
