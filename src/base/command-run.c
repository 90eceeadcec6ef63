/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sv_command_run: a child run to its end, fed and listened to by one poll loop. */
#include <config.h>

#include "base/command-private.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* How long a child may take to die of SIGKILL before it is left alone. */
#define KILL_MS 5000

typedef struct {
    int in; /* our ends of the pipes; -1: none */
    int out[2];
    GString *text[2];
    const char *input;
    gsize input_len;
    gsize max;
    int pidfd;
} Run;

/* write(2) that never raises SIGPIPE: the disposition of the process is not ours to change. */
static ssize_t write_no_signal(int fd, const void *data, gsize len)
{
    static const struct timespec now = {0};
    sigset_t pipe_set, old, pending;
    gboolean was_pending;
    ssize_t n;
    int saved;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
    n = write(fd, data, len);
    saved = errno;
    if (n < 0 && saved == EPIPE && !was_pending)
        while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    return n;
}

static void feed(Run *run)
{
    ssize_t n = write_no_signal(run->in, run->input, run->input_len);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        run->input += n;
        run->input_len -= (gsize)n;
    }
    /* A child that does not read its input is not an error. */
    if (n < 0 || run->input_len == 0)
        sv_fd_clear(&run->in);
}

/* Reads what is there (not blocking); what is beyond the limit is read and dropped. */
static void drain(Run *run, int i)
{
    char chunk[16384];
    ssize_t n;

    if (run->out[i] < 0)
        return;
    n = read(run->out[i], chunk, sizeof(chunk));
    if (n > 0)
        g_string_append_len(
            run->text[i], chunk, (gssize)MIN((gsize)n, run->max - run->text[i]->len));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        sv_fd_clear(&run->out[i]);
}

/* The child has ended: what it wrote is in the pipe, of a bounded size. */
static void drain_rest(Run *run, int i)
{
    for (int round = 0; round < 256 && run->out[i] >= 0; round++) {
        if (sv_fd_wait(run->out[i], POLLIN, 0) <= 0)
            break;
        drain(run, i);
    }
}

/* TRUE: the child has ended; FALSE: the deadline (-1: none) has passed. */
static gboolean pump(Run *run, gint64 deadline_us)
{
    for (;;) {
        struct pollfd p[4] = {{.fd = run->pidfd, .events = POLLIN},
            {.fd = run->in, .events = POLLOUT}, {.fd = run->out[0], .events = POLLIN},
            {.fd = run->out[1], .events = POLLIN}};
        int timeout = -1;

        if (deadline_us >= 0) {
            gint64 left = deadline_us - g_get_monotonic_time();

            if (left <= 0)
                return FALSE;
            timeout = (int)MIN(left / 1000 + 1, G_MAXINT);
        }
        if (poll(p, G_N_ELEMENTS(p), timeout) <= 0)
            continue;
        if (p[1].revents != 0)
            feed(run);
        if (p[2].revents != 0)
            drain(run, 0);
        if (p[3].revents != 0)
            drain(run, 1);
        if (p[0].revents != 0)
            return TRUE;
    }
}

/* A pipe between us and @child_fd of the child, unless the caller has mapped that one. */
static gboolean add_pipe(GArray *maps, int child_fd, int *ours, int *theirs, GError **error)
{
    int fds[2];

    if (sv_command_maps_find(maps, child_fd) != NULL)
        return TRUE;
    if (!sv_fd_pipe(fds, 0, error))
        return FALSE;
    *ours = fds[child_fd == 0 ? 1 : 0];
    *theirs = fds[child_fd == 0 ? 0 : 1];
    sv_fd_set_nonblock(*ours, TRUE);
    sv_command_maps_set(maps, *theirs, child_fd);
    return TRUE;
}

static gboolean run_start(
    Run *run, SvCommand *cmd, const gboolean wanted[3], pid_t *pid, GError **error)
{
    g_autoptr(GArray) maps = g_array_copy(cmd->maps);
    int theirs[3] = {-1, -1, -1};
    gboolean ok = (!wanted[0] || add_pipe(maps, 0, &run->in, &theirs[0], error)) &&
        (!wanted[1] || add_pipe(maps, 1, &run->out[0], &theirs[1], error)) &&
        (!wanted[2] || add_pipe(maps, 2, &run->out[1], &theirs[2], error)) &&
        sv_command_spawn_with(cmd, maps, FALSE, pid, &run->pidfd, error);

    for (int i = 0; i < 3; i++)
        sv_fd_clear(&theirs[i]);
    return ok;
}

static void kill_child(Run *run, const SvCommand *cmd, pid_t pid)
{
    /* Not reaped yet: the pid, and with it the number of the group, is still the child's. */
    if (cmd->new_session && pid > 1)
        kill(-pid, SIGKILL);
    sv_process_signal(run->pidfd, SIGKILL);
}

gboolean sv_command_run(SvCommand *cmd, const void *input, gsize input_len, int timeout_ms,
    gsize max_output, char **stdout_text, char **stderr_text, int *exit_status, GError **error)
{
    const gboolean wanted[3] = {
        input != NULL && input_len > 0, stdout_text != NULL, stderr_text != NULL};
    Run run = {.in = -1,
        .out = {-1, -1},
        .input = input,
        .input_len = input_len,
        .max = max_output,
        .pidfd = -1};
    gint64 deadline = timeout_ms > 0 ? g_get_monotonic_time() + (gint64)timeout_ms * 1000 : -1;
    gboolean ended = FALSE;
    gboolean ok;
    int status = -1;
    pid_t pid = 0;

    run.text[0] = g_string_new(NULL);
    run.text[1] = g_string_new(NULL);
    ok = run_start(&run, cmd, wanted, &pid, error);
    if (ok) {
        ended = pump(&run, deadline);
        if (!ended) {
            kill_child(&run, cmd, pid);
            ok = FALSE;
            g_set_error(error, SV_BASE_ERROR, SV_ERR_TIMEOUT, "%s: not finished after %d ms",
                cmd->path, timeout_ms);
            ended = sv_fd_wait(run.pidfd, POLLIN, g_get_monotonic_time() + KILL_MS * 1000) > 0;
        }
        if (ended)
            status = sv_command_wait(pid);
        drain_rest(&run, 0);
        drain_rest(&run, 1);
    }
    if (ok && status < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "wait for %s", cmd->path);
        ok = FALSE;
    }
    sv_fd_clear(&run.in);
    sv_fd_clear(&run.out[0]);
    sv_fd_clear(&run.out[1]);
    sv_fd_clear(&run.pidfd);
    if (ok && stdout_text != NULL)
        *stdout_text = g_strdup(run.text[0]->str);
    if (ok && stderr_text != NULL)
        *stderr_text = g_strdup(run.text[1]->str);
    if (ok && exit_status != NULL)
        *exit_status = status;
    g_string_free(run.text[0], TRUE);
    g_string_free(run.text[1], TRUE);
    return ok;
}
