/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/terminal.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

static gboolean send_master(const char *console_socket, int master, int number, GError **error)
{
    g_auto(SvFd) sock = sv_unix_connect(console_socket, error);
    char name[32];

    if (sock < 0) {
        g_prefix_error(error, "console socket: ");
        return FALSE;
    }
    g_snprintf(name, sizeof(name), "/dev/pts/%d", number);
    if (sv_fd_send(sock, name, strlen(name), &master, 1) < 0) {
        sv_error_set_errno(
            error, SV_BASE_ERROR, errno, "send the terminal to console socket %s", console_socket);
        return FALSE;
    }
    return TRUE;
}

static gboolean set_up(int slave, guint rows, guint cols)
{
    struct winsize size = {.ws_row = (unsigned short)(rows > 0 ? rows : SV_TERMINAL_ROWS),
        .ws_col = (unsigned short)(cols > 0 ? cols : SV_TERMINAL_COLS)};
    struct termios settings;

    if (tcgetattr(slave, &settings) < 0)
        return FALSE;
    cfmakeraw(&settings);
    return tcsetattr(slave, TCSANOW, &settings) == 0 && ioctl(slave, TIOCSWINSZ, &size) == 0 &&
        ioctl(slave, TIOCSCTTY, 0) == 0;
}

int sv_terminal_open(const char *console_socket, guint rows, guint cols, GError **error)
{
    g_auto(SvFd) master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    g_auto(SvFd) slave = -1;
    int unlock = 0, number = 0;

    if (master >= 0 && ioctl(master, TIOCSPTLCK, &unlock) == 0 &&
        ioctl(master, TIOCGPTN, &number) == 0)
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (slave < 0 || !set_up(slave, rows, cols)) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "make a terminal");
        return -1;
    }
    if (!send_master(console_socket, master, number, error))
        return -1;
    return sv_fd_steal(&slave);
}

void sv_terminal_keep_raw(int fd)
{
    struct termios settings;

    if (tcgetattr(fd, &settings) < 0 || !(settings.c_oflag & OPOST))
        return;
    settings.c_oflag &= ~(tcflag_t)OPOST;
    tcsetattr(fd, TCSANOW, &settings);
}

gboolean sv_terminal_size(int fd, guint *rows, guint *cols)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return FALSE;
    *rows = size.ws_row;
    *cols = size.ws_col;
    return TRUE;
}
