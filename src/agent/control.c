/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Methods on a container that exists: Start, Signal, Pause, Resume, Stats. */
#include "agent/container.h"
#include "base/fd.h"
#include "rpc/sandvirt.pb-c.h"
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <unistd.h>

#define FREEZE_TIMEOUT_MS 5000
#define START_TIMEOUT_MS 2000

static void finish(SvCall *call, GError *error)
{
    if (error)
        sv_call_fail(call, error);
    else
        sv_call_reply(call, NULL);
    g_clear_error(&error);
}

/* What `crun start` does: the init waits for a byte in this fifo. */
static gboolean write_fifo(const char *id, GError **error)
{
    g_autofree char *path = g_build_filename(SV_AGENT_CRUN_ROOT, id, "exec.fifo", NULL);
    g_auto(SvFd) fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && errno == ENXIO) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_NOT_RUNNING, "container not running");
        return FALSE;
    }
    if (fd < 0 || unlink(path) < 0 || write(fd, "", 1) != 1) {
        sv_error_set_errno(error, SV_AGENT_ERROR, errno, "start through %s", path);
        return FALSE;
    }
    return TRUE;
}

/* Answered when the program runs: hooks and signals that come behind it are for the program, not for crun's
 * init, which as the first process of its namespace gets no signal that it does not catch. */
struct SvStart {
    SvCall *call;
    int fd;
    guint source, timer;
};

void sv_container_start_finish(SvContainer *container)
{
    SvStart *start = g_steal_pointer(&container->starting);

    if (!start)
        return;
    g_source_remove(start->source);
    g_source_remove(start->timer);
    sv_fd_close(start->fd);
    sv_call_reply(start->call, NULL);
    g_free(start);
}

static gboolean on_program(gint fd, GIOCondition condition, gpointer user_data)
{
    sv_container_start_finish(user_data);
    return G_SOURCE_CONTINUE; /* it is removed already */
}

/* A hook that goes on has the descriptor too, and a file system may be slow. */
static gboolean on_start_timeout(gpointer user_data)
{
    sv_container_start_finish(user_data);
    return G_SOURCE_CONTINUE;
}

static void answer_when_it_runs(SvContainer *container, SvCall *call)
{
    SvStart *start = g_new0(SvStart, 1);

    start->call = call;
    start->fd = sv_fd_steal(&container->exec_fd);
    start->source = g_unix_fd_add(start->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_program, container);
    start->timer = g_timeout_add(START_TIMEOUT_MS, on_start_timeout, container);
    container->starting = start;
}

void sv_container_start(SvCall *call)
{
    const Sandvirt__V1__ContainerRequest *request = (Sandvirt__V1__ContainerRequest *)call->message;
    GError *error = NULL;
    SvContainer *container = sv_container_find(call->agent, request->container_id, &error);
    SvProcess *init = container ? sv_container_init(container) : NULL;

    if (container && (!init || init->state == SV_PROCESS_EXITED))
        error = g_error_new(SV_AGENT_ERROR, SV_ERR_NOT_RUNNING, "cannot start a stopped container");
    else if (container && init->state == SV_PROCESS_RUNNING)
        error = g_error_new(SV_AGENT_ERROR, SV_ERR_STATE, "cannot start a running container");
    else if (container && write_fifo(container->id, &error))
        init->state = SV_PROCESS_RUNNING;
    if (!error && container->exec_fd >= 0)
        answer_when_it_runs(container, call);
    else
        finish(call, error);
}

static gboolean signal_one(SvContainer *container, guint32 handle, int signo, GError **error)
{
    SvProcess *process = sv_process_lookup(container->agent, handle ? handle : container->handle);

    if (process && process->state != SV_PROCESS_CREATING &&
        g_str_equal(process->container_id, container->id))
        return sv_process_send_signal(process, signo, error);
    g_set_error(error, SV_AGENT_ERROR, SV_ERR_NOT_FOUND, "no process has handle %u", handle);
    return FALSE;
}

/* Asked again by a caller whose monitor died before it passed on the answer. */
static gboolean carried_out(const SvContainer *container, guint64 order)
{
    for (guint i = 0; order && i < SV_AGENT_ORDERS; i++)
        if (container->orders[i] == order)
            return TRUE;
    return FALSE;
}

void sv_container_signal(SvCall *call)
{
    const Sandvirt__V1__SignalRequest *request = (Sandvirt__V1__SignalRequest *)call->message;
    GError *error = NULL;
    SvContainer *container = sv_container_find(call->agent, request->container_id, &error);
    int signo = (int)request->signal;

    if (container && carried_out(container, request->order)) {
        finish(call, NULL);
        return;
    }
    if (container && (signo < 0 || signo > SIGRTMAX))
        error = g_error_new(SV_AGENT_ERROR, SV_ERR_INVALID, "no signal has number %d", signo);
    else if (container && request->all && signo == SIGKILL)
        sv_cgroup_kill(container->cgroup);
    else if (container && request->all)
        sv_cgroup_signal(container->cgroup, signo);
    else if (container && signal_one(container, request->handle, signo, &error) && signo == SIGKILL)
        sv_cgroup_write(container->cgroup, "cgroup.freeze", "0", NULL);
    if (container && !error && request->order)
        container->orders[container->n_orders++ % SV_AGENT_ORDERS] = request->order;
    finish(call, error);
}

/* ---- freezing */

typedef struct {
    SvCall *call;
    char *cgroup;
    gboolean freeze;
} Freeze;

static void on_frozen(gboolean reached, gpointer user_data)
{
    Freeze *freeze = user_data;
    GError *error = NULL;

    if (!reached) {
        error = g_error_new(SV_AGENT_ERROR, SV_ERR_TIMEOUT, "the container could not be %s",
            freeze->freeze ? "frozen" : "thawed");
        if (freeze->freeze)
            sv_cgroup_write(freeze->cgroup, "cgroup.freeze", "0", NULL);
    }
    finish(freeze->call, error);
    g_free(freeze->cgroup);
    g_free(freeze);
}

static void set_frozen(SvCall *call, gboolean on)
{
    const Sandvirt__V1__ContainerRequest *request = (Sandvirt__V1__ContainerRequest *)call->message;
    GError *error = NULL;
    SvContainer *container = sv_container_find(call->agent, request->container_id, &error);
    Freeze *freeze;

    if (!container ||
        !sv_cgroup_write(container->cgroup, "cgroup.freeze", on ? "1" : "0", &error)) {
        finish(call, error);
        return;
    }
    freeze = g_new0(Freeze, 1);
    freeze->call = call;
    freeze->cgroup = g_strdup(container->cgroup);
    freeze->freeze = on;
    sv_cgroup_wait(container->cgroup, "frozen", on, FREEZE_TIMEOUT_MS, on_frozen, freeze);
}

void sv_container_pause(SvCall *call)
{
    set_frozen(call, TRUE);
}

void sv_container_resume(SvCall *call)
{
    set_frozen(call, FALSE);
}

/* ---- stats */

void sv_container_stats(SvCall *call)
{
    static const char *const names[] = {"cpu.stat", "cpu.pressure", "cpu.max", "cpu.weight",
        "cpuset.cpus.effective", "memory.current", "memory.peak", "memory.max", "memory.stat",
        "memory.events", "memory.pressure", "memory.swap.current", "memory.swap.max",
        "hugetlb.2MB.current", "hugetlb.2MB.events", "hugetlb.1GB.current", "hugetlb.1GB.events",
        "pids.current", "pids.max", "pids.events", "io.stat", "io.pressure", "cgroup.procs",
        "cgroup.freeze"};
    const Sandvirt__V1__StatsRequest *request = (Sandvirt__V1__StatsRequest *)call->message;
    GError *error = NULL;
    SvContainer *container = sv_container_find(call->agent, request->container_id, &error);
    Sandvirt__V1__StatsResponse response = SANDVIRT__V1__STATS_RESPONSE__INIT;
    Sandvirt__V1__KeyValue files[G_N_ELEMENTS(names)];
    Sandvirt__V1__KeyValue *pointers[G_N_ELEMENTS(names)];

    if (!container) {
        finish(call, error);
        return;
    }
    response.files = pointers;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        char *text = sv_cgroup_read(container->cgroup, names[i]);

        if (!text)
            continue;
        sandvirt__v1__key_value__init(&files[response.n_files]);
        files[response.n_files].key = (char *)names[i];
        files[response.n_files].value = text;
        pointers[response.n_files] = &files[response.n_files];
        response.n_files++;
    }
    sv_call_reply(call, &response.base);
    for (gsize i = 0; i < response.n_files; i++)
        g_free(files[i].value);
}
