/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/stdfds.h"
#include "agent/console.h"
#include "agent/forward.h"
#include "base/fd.h"
#include "rpc/frame.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define PIPE_SIZE (1024 * 1024)

struct SvStdio {
    SvConsole *console; /* NULL: pipes */
    char *console_path;
    int ours[3];
    int theirs[3];
    int more_ours[SV_DESCRIPTORS_MAX];
    int more_theirs[SV_DESCRIPTORS_MAX];
    guint n_more;
};

static gboolean make_pipe(int *read_end, int *write_end, GError **error)
{
    int fds[2];

    if (!sv_fd_pipe(fds, 0, error))
        return FALSE;
    fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE);
    *read_end = fds[0];
    *write_end = fds[1];
    return TRUE;
}

SvStdio *sv_stdio_new(const char *dir, guint32 handle, gboolean terminal, gboolean with_stdin,
    guint rows, guint cols, GError **error)
{
    SvStdio *self = g_new0(SvStdio, 1);
    gboolean ok;

    for (int i = 0; i < 3; i++)
        self->ours[i] = self->theirs[i] = -1;
    if (terminal) {
        self->console_path = g_strdup_printf("%s/console-%u", dir, handle);
        self->console = sv_console_new(self->console_path, rows, cols, error);
        ok = self->console != NULL;
    } else {
        ok = (!with_stdin || make_pipe(&self->theirs[0], &self->ours[0], error)) &&
            make_pipe(&self->ours[1], &self->theirs[1], error) &&
            make_pipe(&self->ours[2], &self->theirs[2], error);
    }
    if (!ok) {
        sv_stdio_free(self);
        return NULL;
    }
    return self;
}

void sv_stdio_free(SvStdio *self)
{
    if (!self)
        return;
    sv_stdio_close_child(self);
    for (int i = 0; i < 3; i++)
        sv_fd_clear(&self->ours[i]);
    for (guint i = 0; i < self->n_more; i++)
        sv_fd_clear(&self->more_ours[i]);
    sv_console_free(self->console);
    g_free(self->console_path);
    g_free(self);
}

/* A direction that the caller's descriptor does not have ends at once. */
static int half_closed(guint32 mode)
{
    if (mode == O_RDONLY)
        return SHUT_RD;
    return mode == O_WRONLY ? SHUT_WR : -1;
}

gboolean sv_stdio_add(SvStdio *self, const guint32 *modes, gsize n, GError **error)
{
    if (n > SV_DESCRIPTORS_MAX) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_LIMIT, "too many descriptors");
        return FALSE;
    }
    for (gsize i = 0; i < n; i++) {
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
            sv_error_set_errno(error, SV_AGENT_ERROR, errno, "socketpair");
            return FALSE;
        }
        self->more_ours[i] = fds[0];
        self->more_theirs[i] = fds[1];
        self->n_more++;
        if (half_closed(modes[i]) >= 0)
            shutdown(fds[0], half_closed(modes[i]));
    }
    return TRUE;
}

const char *sv_stdio_console(const SvStdio *self)
{
    return self->console_path;
}

void sv_stdio_child_fds(const SvStdio *self, SvCrunCall *call)
{
    for (int i = 0; i < 3; i++)
        call->stdio[i] = self->theirs[i];
    call->more_fds = self->more_theirs;
    call->n_more_fds = self->n_more;
}

void sv_stdio_close_child(SvStdio *self)
{
    for (int i = 0; i < 3; i++)
        sv_fd_clear(&self->theirs[i]);
    for (guint i = 0; i < self->n_more; i++)
        sv_fd_clear(&self->more_theirs[i]);
}

gboolean sv_stdio_hand_over(SvStdio *self, SvProcess *process, GError **error)
{
    if (self->console) {
        int master = sv_console_take(self->console, error);

        if (master < 0)
            return FALSE;
        sv_process_set_terminal(process, master);
    } else {
        sv_process_set_pipes(process, sv_fd_steal(&self->ours[0]), sv_fd_steal(&self->ours[1]),
            sv_fd_steal(&self->ours[2]));
    }
    for (guint i = 0; i < self->n_more; i++)
        sv_forward_adopt(process, i, sv_fd_steal(&self->more_ours[i]));
    process->n_descriptors = self->n_more;
    return TRUE;
}
