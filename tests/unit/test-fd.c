/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static gboolean fd_is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static guint count_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

static void test_auto(void)
{
    int kept, stolen;

    errno = 77;
    {
        g_auto(SvFd) fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        g_auto(SvFd) other = open("/dev/null", O_RDONLY | O_CLOEXEC);
        g_auto(SvFd) none = -1;

        kept = fd;
        stolen = sv_fd_steal(&other);
        g_assert_cmpint(other, ==, -1);
        g_assert_cmpint(none, ==, -1);
        errno = 77;
    }
    g_assert_cmpint(errno, ==, 77);
    g_assert_false(fd_is_open(kept));
    g_assert_true(fd_is_open(stolen));
    sv_fd_clear(&stolen);
    g_assert_cmpint(stolen, ==, -1);
    sv_fd_clear(&stolen);
}

static gpointer slow_reader(gpointer data)
{
    int fd = GPOINTER_TO_INT(data);
    char *text = NULL;
    gsize len = 0;

    g_assert_true(sv_fd_read_all(fd, 1 << 20, &text, &len, NULL));
    g_assert_cmpuint(len, ==, 300000);
    g_free(text);
    return NULL;
}

static void test_write_read(void)
{
    g_autofree char *data = g_strnfill(300000, 'x');
    g_autoptr(GError) error = NULL;
    GThread *thread;
    int fds[2];

    /* More than the pipe holds, through a descriptor that does not block. */
    g_assert_true(sv_fd_pipe(fds, O_NONBLOCK, &error));
    g_assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    thread = g_thread_new("reader", slow_reader, GINT_TO_POINTER(fds[0]));
    g_assert_true(sv_fd_write_all(fds[1], data, 300000, &error));
    sv_fd_clear(&fds[1]);
    g_thread_join(thread);
    sv_fd_clear(&fds[0]);

    g_assert_true(sv_fd_pipe(fds, 0, &error));
    sv_fd_clear(&fds[0]);
    g_assert_false(sv_fd_write_all(fds[1], "x", 1, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_CLOSED);
    sv_fd_clear(&fds[1]);
}

static void test_read_limit(void)
{
    g_autoptr(GError) error = NULL;
    char *text = NULL;
    gsize len = 0;
    int fds[2];

    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    g_assert_true(sv_fd_write_all(fds[1], "12345", 5, NULL));
    sv_fd_clear(&fds[1]);
    g_assert_true(sv_fd_read_all(fds[0], 5, &text, &len, &error));
    g_assert_cmpstr(text, ==, "12345");
    g_assert_cmpuint(len, ==, 5);
    g_clear_pointer(&text, g_free);
    sv_fd_clear(&fds[0]);

    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    g_assert_true(sv_fd_write_all(fds[1], "123456", 6, NULL));
    g_assert_false(sv_fd_read_all(fds[0], 5, &text, &len, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_LIMIT);
    g_assert_null(text);
    sv_fd_clear(&fds[0]);
    sv_fd_clear(&fds[1]);

    g_clear_error(&error);
    g_assert_false(sv_fd_read_all(-1, 5, &text, &len, &error));
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_IO);
}

static void test_wait(void)
{
    gint64 before = g_get_monotonic_time();
    int fds[2];

    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    g_assert_cmpint(sv_fd_wait(fds[0], POLLIN, before + 30000), ==, 0);
    g_assert_cmpint(g_get_monotonic_time() - before, >=, 30000);
    g_assert_cmpint(sv_fd_wait(fds[0], POLLIN, 0), ==, 0);
    g_assert_true(sv_fd_write_all(fds[1], "x", 1, NULL));
    g_assert_cmpint(sv_fd_wait(fds[0], POLLIN, -1), ==, POLLIN);
    g_assert_cmpint(sv_fd_wait(fds[0], POLLIN, 0), ==, POLLIN);
    sv_fd_clear(&fds[0]);
    sv_fd_clear(&fds[1]);
}

static void test_flags(void)
{
    int fds[2];

    g_assert_true(sv_fd_pipe(fds, 0, NULL));
    g_assert_true(sv_fd_set_nonblock(fds[0], TRUE));
    g_assert_true(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
    g_assert_true(sv_fd_set_nonblock(fds[0], FALSE));
    g_assert_false(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
    g_assert_true(sv_fd_set_cloexec(fds[0], FALSE));
    g_assert_false(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    g_assert_false(sv_fd_set_cloexec(-1, TRUE));
    sv_fd_clear(&fds[0]);
    sv_fd_clear(&fds[1]);
}

static void test_pass(void)
{
    int pair[2], got[SV_FD_MAX_PASS], many[SV_FD_MAX_PASS + 1];
    guint n_got = 99;
    char buf[8];
    struct stat a, b;
    guint before;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(many); i++)
        many[i] = open(i % 2 ? "/dev/null" : "/dev/zero", O_RDONLY | O_CLOEXEC);
    before = count_fds();

    g_assert_cmpint(sv_fd_send(pair[0], "hello", 5, many, SV_FD_MAX_PASS), ==, 5);
    g_assert_cmpint(sv_fd_recv(pair[1], buf, sizeof(buf), got, &n_got), ==, 5);
    g_assert_cmpuint(n_got, ==, SV_FD_MAX_PASS);
    for (guint i = 0; i < n_got; i++) {
        g_assert_cmpint(fstat(got[i], &a), ==, 0);
        g_assert_cmpint(fstat(many[i], &b), ==, 0);
        g_assert_cmpuint(a.st_rdev, ==, b.st_rdev);
        g_assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
        sv_fd_clear(&got[i]);
    }

    g_assert_cmpint(sv_fd_send(pair[0], "x", 1, NULL, 0), ==, 1);
    g_assert_cmpint(sv_fd_recv(pair[1], buf, sizeof(buf), got, &n_got), ==, 1);
    g_assert_cmpuint(n_got, ==, 0);

    g_assert_cmpint(sv_fd_send(pair[0], "x", 1, many, SV_FD_MAX_PASS + 1), ==, -1);
    g_assert_cmpint(errno, ==, EINVAL);
    g_assert_cmpuint(count_fds(), ==, before);

    sv_fd_clear(&pair[0]);
    g_assert_cmpint(sv_fd_recv(pair[1], buf, sizeof(buf), got, &n_got), ==, 0);
    g_assert_cmpint(sv_fd_send(pair[1], "x", 1, NULL, 0), ==, -1);
    g_assert_cmpint(errno, ==, EPIPE);
    sv_fd_clear(&pair[1]);
    for (guint i = 0; i < G_N_ELEMENTS(many); i++)
        sv_fd_clear(&many[i]);
}

/* A peer that sends more descriptors than allowed gets none of them kept open here. */
static void test_pass_too_many(void)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int) * 40)];
    } control = {0};
    struct iovec iov = {.iov_base = (char[]){'x'}, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.buf,
        .msg_controllen = sizeof(control.buf)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    int pair[2], got[SV_FD_MAX_PASS], fds[40];
    guint n_got = 99, before;
    char buf[8];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    for (guint i = 0; i < 40; i++)
        fds[i] = pair[0];
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(c), fds, sizeof(fds));
    before = count_fds();
    g_assert_cmpint(sendmsg(pair[0], &msg, 0), ==, 1);
    g_assert_cmpint(sv_fd_recv(pair[1], buf, sizeof(buf), got, &n_got), ==, -1);
    g_assert_cmpint(errno, ==, EMSGSIZE);
    g_assert_cmpuint(n_got, ==, 0);
    g_assert_cmpuint(count_fds(), ==, before);
    sv_fd_clear(&pair[0]);
    sv_fd_clear(&pair[1]);
}

static void check_socket(const char *path)
{
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) listener = sv_unix_listen(path, 0600, 8, &error);
    g_auto(SvFd) client = -1;
    g_auto(SvFd) server = -1;
    struct stat st;
    pid_t pid = 0;
    uid_t uid = 99;
    char c = 0;

    g_assert_no_error(error);
    g_assert_cmpint(listener, >=, 0);
    g_assert_cmpint(lstat(path, &st), ==, 0);
    g_assert_true(S_ISSOCK(st.st_mode));
    g_assert_cmpuint(st.st_mode & 07777, ==, 0600);
    client = sv_unix_connect(path, &error);
    g_assert_no_error(error);
    server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(server, >=, 0);
    g_assert_true(fcntl(client, F_GETFD) & FD_CLOEXEC);
    g_assert_true(sv_fd_write_all(client, "y", 1, &error));
    g_assert_cmpint(read(server, &c, 1), ==, 1);
    g_assert_cmpint(c, ==, 'y');
    g_assert_true(sv_unix_peer(server, &pid, &uid, NULL));
    g_assert_cmpint(pid, ==, getpid());
    g_assert_cmpuint(uid, ==, getuid());
}

static char *make_dir(void)
{
    char *dir = g_dir_make_tmp("sv-test-XXXXXX", NULL);

    g_assert_nonnull(dir);
    return dir;
}

static void test_unix(void)
{
    g_autofree char *dir = make_dir();
    g_autofree char *path = g_build_filename(dir, "s", NULL);
    g_autofree char *deep = g_strdup(dir);
    g_autofree char *long_name = g_strnfill(250, 'n');
    g_autofree char *long_path = NULL;
    g_autoptr(GDir) entries = NULL;
    guint n = 0;
    guint before = count_fds();

    check_socket(path);
    check_socket(path); /* a dead socket of that name is replaced */
    while (strlen(deep) < 600) {
        char *next = g_strdup_printf("%s/0123456789012345678901234567890123456789", deep);

        g_free(deep);
        deep = next;
    }
    g_assert_true(sv_file_mkdirs(deep, 0700, NULL));
    long_path = g_build_filename(deep, long_name, NULL);
    check_socket(long_path);
    g_assert_cmpuint(count_fds(), ==, before);
    entries = g_dir_open(deep, 0, NULL); /* no temporary is left */
    while (g_dir_read_name(entries) != NULL)
        n++;
    g_assert_cmpuint(n, ==, 1);
    g_assert_true(sv_file_remove_tree(dir, NULL));
}

static void test_unix_fail(void)
{
    g_autofree char *dir = make_dir();
    g_autofree char *path = g_build_filename(dir, "s", NULL);
    g_autofree char *none = g_build_filename(dir, "none", "s", NULL);
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_auto(SvFd) client = -1;
    int listener;

    g_assert_cmpint(sv_unix_connect(path, &error), ==, -1);
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_cmpint(sv_unix_listen(none, 0600, 1, &error), ==, -1);
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_NOT_FOUND);
    g_clear_error(&error);
    g_assert_cmpint(sv_unix_listen("", 0600, 1, &error), ==, -1);
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_INVALID);
    g_clear_error(&error);

    listener = sv_unix_listen(path, 0600, 1, &error);
    g_assert_no_error(error);
    client = sv_unix_connect_at(dir_fd, "s", &error);
    g_assert_no_error(error);
    sv_fd_clear(&listener);
    g_assert_cmpint(sv_unix_connect(path, &error), ==, -1);
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_CLOSED);
    g_clear_error(&error);
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    g_assert_cmpint(sv_unix_connect(path, &error), ==, -1);
    g_assert_error(error, SV_BASE_ERROR, SV_ERR_CLOSED);
    g_assert_true(sv_file_remove_tree(dir, NULL));
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fd/auto", test_auto);
    g_test_add_func("/fd/write-read", test_write_read);
    g_test_add_func("/fd/read-limit", test_read_limit);
    g_test_add_func("/fd/wait", test_wait);
    g_test_add_func("/fd/flags", test_flags);
    g_test_add_func("/fd/pass", test_pass);
    g_test_add_func("/fd/pass-too-many", test_pass_too_many);
    g_test_add_func("/fd/unix", test_unix);
    g_test_add_func("/fd/unix-fail", test_unix_fail);
    return g_test_run();
}
