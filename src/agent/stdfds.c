/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/stdfds.h"
#include "agent/console.h"
#include "base/fd.h"
#include <fcntl.h>

#define PIPE_SIZE (1024 * 1024)

struct SvStdio {
    SvConsole *console; /* NULL: pipes */
    char *console_path;
    int ours[3];
    int theirs[3];
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
    sv_console_free(self->console);
    g_free(self->console_path);
    g_free(self);
}

const char *sv_stdio_console(const SvStdio *self)
{
    return self->console_path;
}

void sv_stdio_child_fds(const SvStdio *self, int fds[3])
{
    for (int i = 0; i < 3; i++)
        fds[i] = self->theirs[i];
}

void sv_stdio_close_child(SvStdio *self)
{
    for (int i = 0; i < 3; i++)
        sv_fd_clear(&self->theirs[i]);
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
    return TRUE;
}
