/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* clone and exec. Everything that needs memory is prepared before; between clone and exec only
 * async-signal-safe calls are made, as another thread may have held any lock at the time of the clone.
 * The clone system call is used bare, so that it can give a pidfd and new namespaces at once. */
#include <config.h>

#include "base/command-private.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif

/* Steps of the child, to name the one that failed. */
typedef enum {
    STEP_CLONE,
    STEP_NETNS,
    STEP_SESSION,
    STEP_OOM,
    STEP_PRE_EXEC,
    STEP_FDS,
    STEP_CWD,
    STEP_EXEC,
} Step;

static const char *const step_names[] = {
    [STEP_CLONE] = "clone",
    [STEP_NETNS] = "enter the network namespace",
    [STEP_SESSION] = "new session",
    [STEP_OOM] = "set " SV_COMMAND_OOM_ADJ,
    [STEP_PRE_EXEC] = "prepare",
    [STEP_FDS] = "pass descriptors",
    [STEP_CWD] = "change to its folder",
    [STEP_EXEC] = "execute",
};

/* Everything the child needs, made by the parent. */
typedef struct {
    const SvCommand *cmd;
    char **argv;
    char **envp;
    SvCommandMap *maps; /* sorted by child_fd */
    guint n_maps;
    int above; /* first number above every child_fd */
    int error_fd;
    gboolean orphan;
} Plan;

typedef struct {
    int step;
    int errsv;
} Failure;

static pid_t bare_clone(int flags, int *pidfd)
{
#if defined(__s390__) || defined(__CRIS__)
    return (pid_t)syscall(SYS_clone, NULL, (unsigned long)flags, pidfd, NULL, 0UL);
#else
    return (pid_t)syscall(SYS_clone, (unsigned long)flags, NULL, pidfd, NULL, 0UL);
#endif
}

static void child_fail(int error_fd, Step step, int errsv) G_GNUC_NORETURN;
static void child_fail(int error_fd, Step step, int errsv)
{
    Failure failure = {.step = (int)step, .errsv = errsv};
    ssize_t n = TEMP_FAILURE_RETRY(write(error_fd, &failure, sizeof(failure)));

    _exit(n == (ssize_t)sizeof(failure) ? 127 : 126);
}

static void child_reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    for (int signo = 1; signo < NSIG; signo++)
        sigaction(signo, &action, NULL); /* KILL, STOP and glibc's own two fail: fine */
}

/* 0 or an errno. */
static int child_set_oom_adj(const char *text)
{
    int fd = open(SV_COMMAND_OOM_ADJ, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return errno;
    close(fd);
    return 0;
}

/* Puts the descriptors in place; the sources go out of the way first, as one may have a number that is
 * a target. What is not mapped is closed by the exec. 0 or an errno. */
static int child_map_fds(Plan *plan)
{
    int next = 0;

    for (guint i = 0; i < plan->n_maps; i++) {
        plan->maps[i].fd = fcntl(plan->maps[i].fd, F_DUPFD_CLOEXEC, plan->above);
        if (plan->maps[i].fd < 0)
            return errno;
    }
    plan->error_fd = fcntl(plan->error_fd, F_DUPFD_CLOEXEC, plan->above);
    if (plan->error_fd < 0)
        return errno;
    if (close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return errno;
    for (guint i = 0; i < plan->n_maps; i++) {
        if (dup2(plan->maps[i].fd, plan->maps[i].child_fd) < 0)
            return errno;
        next = plan->maps[i].child_fd + 1;
    }
    return next > plan->above ? EINVAL : 0;
}

static void child_run(Plan *plan) G_GNUC_NORETURN;
static void child_run(Plan *plan)
{
    const SvCommand *cmd = plan->cmd;
    int error_fd = plan->error_fd; /* until the descriptors are mapped */
    sigset_t none;
    int r;

    if (cmd->netns_fd >= 0 && setns(cmd->netns_fd, CLONE_NEWNET) < 0)
        child_fail(error_fd, STEP_NETNS, errno);
    child_reset_signals();
    if ((cmd->new_session || plan->orphan) && setsid() < 0)
        child_fail(error_fd, STEP_SESSION, errno);
    if (cmd->oom_adj != NULL && (r = child_set_oom_adj(cmd->oom_adj)) != 0)
        child_fail(error_fd, STEP_OOM, r);
    if (cmd->pre_exec != NULL && (r = cmd->pre_exec(cmd->pre_exec_data)) != 0)
        child_fail(error_fd, STEP_PRE_EXEC, r);
    r = child_map_fds(plan);
    if (r != 0)
        child_fail(plan->error_fd >= 0 ? plan->error_fd : error_fd, STEP_FDS, r);
    error_fd = plan->error_fd;
    if (cmd->cwd != NULL && chdir(cmd->cwd) < 0)
        child_fail(error_fd, STEP_CWD, errno);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(cmd->path, plan->argv, plan->envp);
    child_fail(error_fd, STEP_EXEC, errno);
}

/* The middle child of an orphan: its own child loses its parent at once. */
static void middle_run(Plan *plan) G_GNUC_NORETURN;
static void middle_run(Plan *plan)
{
    pid_t pid = bare_clone(SIGCHLD | plan->cmd->clone_flags, NULL);

    if (pid == 0)
        child_run(plan);
    if (pid < 0)
        child_fail(plan->error_fd, STEP_CLONE, errno);
    _exit(0);
}

static int compare_maps(gconstpointer a, gconstpointer b)
{
    return ((const SvCommandMap *)a)->child_fd - ((const SvCommandMap *)b)->child_fd;
}

static char **with_null(const GPtrArray *array)
{
    char **v = g_new0(char *, array->len + 1);

    for (guint i = 0; i < array->len; i++)
        v[i] = array->pdata[i];
    return v;
}

/* The mappings sorted, with /dev/null for 0, 1, 2 and for -1. (transfer full) */
static GArray *complete_maps(const GArray *maps, int null_fd)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(SvCommandMap));

    for (int fd = 0; fd <= 2; fd++)
        sv_command_maps_set(all, null_fd, fd);
    for (guint i = 0; i < maps->len; i++) {
        const SvCommandMap *map = &g_array_index(maps, SvCommandMap, i);

        sv_command_maps_set(all, map->fd >= 0 ? map->fd : null_fd, map->child_fd);
    }
    g_array_sort(all, compare_maps);
    return all;
}

static void log_command(const SvCommand *cmd, char **argv)
{
    g_autofree char *joined = g_strjoinv(" ", argv);
    g_autofree char *shown = sv_printable(joined, 4096);

    g_debug("run %s: %s", cmd->path, shown);
}

/* Clones with all signals blocked, so that no handler of the parent runs in the child. */
static pid_t clone_child(Plan *plan, int *pidfd)
{
    int flags = SIGCHLD | CLONE_PIDFD | (plan->orphan ? 0 : plan->cmd->clone_flags);
    sigset_t all, old;
    int saved;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = bare_clone(flags, pidfd);
    if (pid == 0) {
        if (plan->orphan)
            middle_run(plan);
        child_run(plan);
    }
    saved = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    return pid;
}

/* Reads what the child says until the exec closes its end. TRUE: it was started. */
static gboolean read_outcome(int error_fd, const char *path, GError **error)
{
    Failure failure = {0};
    ssize_t n = TEMP_FAILURE_RETRY(read(error_fd, &failure, sizeof(failure)));

    if (n == 0)
        return TRUE;
    if (n != (ssize_t)sizeof(failure) || failure.step < 0 ||
        failure.step >= (int)G_N_ELEMENTS(step_names)) {
        g_set_error(error, SV_BASE_ERROR, SV_ERR_FAILED, "start %s: no answer", path);
        return FALSE;
    }
    if (failure.step == STEP_EXEC)
        sv_error_set_errno(error, SV_BASE_ERROR, failure.errsv, "start %s", path);
    else
        sv_error_set_errno(
            error, SV_BASE_ERROR, failure.errsv, "start %s: %s", path, step_names[failure.step]);
    return FALSE;
}

static gboolean start(
    Plan *plan, int error_read, int *error_write, pid_t *pid, int *pidfd, GError **error)
{
    const char *path = plan->cmd->path;
    g_auto(SvFd) child_fd = -1;
    pid_t child;
    gboolean ok;

    child = clone_child(plan, &child_fd);
    if (child < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "start %s: clone", path);
        return FALSE;
    }
    sv_fd_clear(error_write);
    ok = read_outcome(error_read, path, error);
    if (!ok || plan->orphan)
        TEMP_FAILURE_RETRY(waitpid(child, NULL, 0));
    if (!ok)
        return FALSE;
    if (pid != NULL)
        *pid = child;
    if (pidfd != NULL)
        *pidfd = sv_fd_steal(&child_fd);
    return TRUE;
}

gboolean sv_command_spawn_with(const SvCommand *cmd, const GArray *maps, gboolean orphan,
    pid_t *pid, int *pidfd, GError **error)
{
    g_autofree char **argv = with_null(cmd->argv);
    g_autofree char **envp = with_null(cmd->env);
    g_autoptr(GArray) all = NULL;
    g_auto(SvFd) null_fd = -1;
    int fds[2] = {-1, -1};
    Plan plan = {.cmd = cmd, .argv = argv, .envp = envp, .orphan = orphan};
    gboolean ok;

    if (*cmd->path != '/') {
        g_set_error(
            error, SV_BASE_ERROR, SV_ERR_INVALID, "start %s: not an absolute path", cmd->path);
        return FALSE;
    }
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        sv_error_set_errno(error, SV_BASE_ERROR, errno, "open /dev/null");
        return FALSE;
    }
    if (!sv_fd_pipe(fds, 0, error))
        return FALSE;
    all = complete_maps(maps, null_fd);
    plan.maps = (SvCommandMap *)(gpointer)all->data;
    plan.n_maps = all->len;
    plan.above = plan.maps[all->len - 1].child_fd + 1;
    plan.error_fd = fds[1];
    log_command(cmd, argv);
    ok = start(&plan, fds[0], &fds[1], pid, pidfd, error);
    sv_fd_clear(&fds[0]);
    sv_fd_clear(&fds[1]);
    return ok;
}
