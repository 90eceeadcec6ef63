/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A process for tests that need one with a pid of its own: a shim's, or QEMU's. It makes sockets when it
 * is told to and hands them to the test, which speaks on them: so the test has the script and the kernel
 * tells its peers this process's pid. Orders come on descriptor 3, one a message:
 *   cPATH   connects        lPATH   listens        -> "k" with the socket, or "e"
 *   xBYTE   ends with that status; so does the end of the test, with 0 */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONTROL_FD 3

static int make_socket(char order, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t len = strlen(path);

    if (fd < 0 || len >= sizeof(address.sun_path))
        return -1;
    memcpy(address.sun_path, path, len + 1);
    if (order == 'c' && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    if (order == 'l') {
        unlink(path);
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0)
            return fd;
    }
    close(fd);
    return -1;
}

static void hand_over(int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(fd >= 0 ? "k" : "e"), .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof(control.room);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    sendmsg(CONTROL_FD, &message, MSG_NOSIGNAL);
    if (fd >= 0)
        close(fd);
}

int main(void)
{
    char order[256];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        ssize_t n = recv(CONTROL_FD, order, sizeof(order) - 1, 0);

        if (n <= 0)
            return 0;
        order[n] = '\0';
        if (order[0] == 'x')
            return (unsigned char)order[1];
        hand_over(make_socket(order[0], order + 1));
    }
}
