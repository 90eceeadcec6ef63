/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/console.h"
#include "agent/agent-error.h"
#include "base/fd.h"
#include <errno.h>
#include <glib-unix.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct SvConsole {
    char *path;
    int listener;
    int conn;
    guint source;
    int master;
    struct winsize size;
};

static void stop_watching(SvConsole *console)
{
    if (console->source)
        g_source_remove(console->source);
    console->source = 0;
}

/* What is there now. TRUE when the master came. */
static gboolean receive(SvConsole *console)
{
    int fds[SV_FD_MAX_PASS];
    guint n_fds = 0;
    char waste[1024];

    if (sv_fd_recv(console->conn, waste, sizeof(waste), fds, &n_fds) < 0)
        return FALSE;
    for (guint i = 0; i < n_fds; i++) {
        if (console->master < 0)
            console->master = fds[i];
        else
            sv_fd_close(fds[i]);
    }
    if (console->master >= 0 && (console->size.ws_row || console->size.ws_col))
        ioctl(console->master, TIOCSWINSZ, &console->size);
    return console->master >= 0;
}

static gboolean on_master(gint fd, GIOCondition condition, gpointer user_data)
{
    SvConsole *console = user_data;

    if (!receive(console) && !(condition & (G_IO_HUP | G_IO_ERR)))
        return G_SOURCE_CONTINUE;
    console->source = 0;
    return G_SOURCE_REMOVE;
}

static gboolean accept_one(SvConsole *console)
{
    if (console->conn < 0)
        console->conn = accept4(console->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return console->conn >= 0;
}

/* crun connects early and sends the master when it has made the terminal. */
static gboolean on_connection(gint fd, GIOCondition condition, gpointer user_data)
{
    SvConsole *console = user_data;

    if (!accept_one(console))
        return G_SOURCE_CONTINUE;
    console->source = g_unix_fd_add(console->conn, G_IO_IN, on_master, console);
    return G_SOURCE_REMOVE;
}

SvConsole *sv_console_new(const char *path, guint rows, guint cols, GError **error)
{
    SvConsole *console = g_new0(SvConsole, 1);

    console->path = g_strdup(path);
    console->master = console->conn = -1;
    console->size.ws_row = (gushort)rows;
    console->size.ws_col = (gushort)cols;
    console->listener = sv_unix_listen(path, 0600, 1, error);
    if (console->listener < 0) {
        sv_console_free(console);
        return NULL;
    }
    sv_fd_set_nonblock(console->listener, TRUE);
    console->source = g_unix_fd_add(console->listener, G_IO_IN, on_connection, console);
    return console;
}

void sv_console_free(SvConsole *console)
{
    if (!console)
        return;
    stop_watching(console);
    sv_fd_close(console->listener);
    sv_fd_close(console->conn);
    sv_fd_close(console->master);
    unlink(console->path);
    g_free(console->path);
    g_free(console);
}

int sv_console_take(SvConsole *console, GError **error)
{
    if (console->master < 0 && accept_one(console))
        receive(console);
    if (console->master < 0)
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_FAILED, "crun handed over no terminal");
    return sv_fd_steal(&console->master);
}
