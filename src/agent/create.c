/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Create: the container's disks are mounted one after the other, then crun makes it. */
#include "agent/block-table.h"
#include "agent/console.h"
#include "agent/container.h"
#include "agent/release.h"
#include "agent/setup.h"
#include "agent/stdfds.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/thread.h"
#include "rpc/sandvirt.pb-c.h"
#include <errno.h>
#include <string.h>
#include <sys/mount.h>

typedef struct {
    SvCall *call;
    const Sandvirt__V1__CreateRequest *request; /* of the call */
    SvContainer *container;
    SvProcess *process;
    SvStdio *stdio;
    int until_exec; /* crun's end of container->exec_fd */
    gsize mounted;
} Create;

/* One mount(2), in a thread. */
typedef struct {
    Create *create;
    char *source, *target, *fstype, *data;
    gulong flags;
    int errsv;
} Mount;

static void next_mount(Create *create);

static void create_free(Create *create)
{
    sv_stdio_free(create->stdio);
    sv_fd_close(create->until_exec);
    g_free(create);
}

/* Undoes everything, then answers with @error (transfer full). */
typedef struct {
    SvCall *call;
    GError *error;
} Failure;

static void on_released(gboolean busy, gpointer user_data)
{
    Failure *failure = user_data;

    sv_call_fail(failure->call, failure->error);
    g_error_free(failure->error);
    g_free(failure);
}

static void fail(Create *create, GError *error)
{
    Failure *failure = g_new0(Failure, 1);
    SvContainer *container = create->container;

    failure->call = create->call;
    failure->error = error;
    if (create->process)
        sv_process_drop(create->process);
    create_free(create);
    container->handle = 0;
    sv_container_release(container, 5000, on_released, failure);
    sv_container_adopt_removers(container);
}

static void on_created(const GError *error, pid_t pid, gint64 spent_us, gpointer user_data)
{
    Create *create = user_data;
    SvContainer *container = create->container;
    SvCall *call = create->call;
    Sandvirt__V1__CreateResponse response = SANDVIRT__V1__CREATE_RESPONSE__INIT;
    GError *failed = error ? g_error_copy(error) : NULL;
    gboolean current = sv_call_is_current(call);

    container->creating = NULL;
    if (!failed && container->removing)
        failed = g_error_new(SV_AGENT_ERROR, SV_ERR_CANCELLED, "the container is being removed");
    if (!failed)
        sv_stdio_hand_over(create->stdio, create->process, &failed);
    if (failed) {
        fail(create, failed);
        return;
    }
    container->created = TRUE;
    response.pid = (guint32)pid;
    sv_container_watch(container, pid);
    sv_call_reply(call, &response.base);
    /* After the answer: the host knows the handle when the first bytes or the exit come. */
    sv_process_begin(create->process, pid, SV_PROCESS_CREATED, current);
    create_free(create);
}

static void run_crun(Create *create)
{
    const Sandvirt__V1__CreateRequest *request =
        (Sandvirt__V1__CreateRequest *)create->call->message;
    SvContainer *container = create->container;
    const char *console = sv_stdio_console(create->stdio);
    const char *args[] = {
        "--bundle", container->dir, console ? "--console-socket" : NULL, console, NULL};
    SvCrunCall call = {.verb = "create",
        .args = args,
        .id = container->id,
        .dir = container->dir,
        .tag = "create",
        .program = request->program,
        .want_pid = TRUE};
    GError *error = NULL;

    sv_stdio_child_fds(create->stdio, &call);
    call.until_exec = create->until_exec;
    container->creating = sv_crun_start(create->call->agent, &call, on_created, create, &error);
    sv_stdio_close_child(create->stdio);
    sv_fd_clear(&create->until_exec);
    if (!container->creating)
        fail(create, error);
}

static void mount_work(gpointer data)
{
    Mount *mount_data = data;

    if (mount(mount_data->source, mount_data->target, mount_data->fstype, mount_data->flags,
            mount_data->data) < 0)
        mount_data->errsv = errno;
}

static void mount_done(gpointer data)
{
    Mount *mount_data = data;
    Create *create = mount_data->create;
    GError *error = NULL;

    if (mount_data->errsv) {
        sv_error_set_errno(&error, SV_AGENT_ERROR, mount_data->errsv, "mount %s (%s) of disk %s",
            mount_data->source, mount_data->fstype,
            create->request->block_mounts[create->mounted]->serial);
    } else {
        g_ptr_array_add(create->container->mounts, g_strdup(mount_data->target));
        create->mounted++;
    }
    g_free(mount_data->source);
    g_free(mount_data->target);
    g_free(mount_data->fstype);
    g_free(mount_data->data);
    g_free(mount_data);
    if (error)
        fail(create, error);
    else
        next_mount(create);
}

static void on_disk(const SvBlock *block, const GError *error, gpointer user_data)
{
    Create *create = user_data;
    const Sandvirt__V1__BlockMount *wanted = create->request->block_mounts[create->mounted];
    g_autofree char *group = g_strdup_printf("fs-%s", wanted->fstype);
    Mount *mount_data;
    GError *failed = NULL;

    if (!block) {
        fail(create, g_error_copy(error));
        return;
    }
    sv_modules_insert(create->call->agent->modules, group);
    mount_data = g_new0(Mount, 1);
    mount_data->create = create;
    mount_data->source = g_strdup_printf("/dev/%s", block->name);
    mount_data->target = g_build_filename(create->container->dir, wanted->target, NULL);
    mount_data->fstype = g_strdup(wanted->fstype);
    mount_data->flags = sv_block_mount_flags(
        wanted->options, wanted->read_only || block->read_only, &mount_data->data);
    if (!sv_file_mkdirs(mount_data->target, 0755, &failed)) {
        g_clear_error(&failed);
        mount_data->errsv = ENOENT;
        mount_done(mount_data);
        return;
    }
    sv_thread_run(mount_work, mount_done, mount_data);
}

static void next_mount(Create *create)
{
    const Sandvirt__V1__BlockMount *wanted;

    if (create->container->removing) {
        fail(create,
            g_error_new(SV_AGENT_ERROR, SV_ERR_CANCELLED, "the container is being removed"));
        return;
    }
    if (create->mounted == create->request->n_block_mounts) {
        run_crun(create);
        return;
    }
    wanted = create->request->block_mounts[create->mounted];
    sv_block_table_wait(
        create->call->agent->blocks, wanted->serial, wanted->timeout_ms, on_disk, create);
}

static gboolean check(const Sandvirt__V1__CreateRequest *request, GError **error)
{
    for (gsize i = 0; i < request->n_block_mounts; i++) {
        const char *target = request->block_mounts[i]->target;

        if (!*target || *target == '.' || strchr(target, '/')) {
            g_set_error(error, SV_AGENT_ERROR, SV_ERR_INVALID, "bad target of a disk: %s", target);
            return FALSE;
        }
    }
    if (*request->share_dir == '/' || strstr(request->share_dir, "..")) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_INVALID, "bad folder in the share");
        return FALSE;
    }
    return TRUE;
}

static gboolean prepare(Create *create, GError **error)
{
    const Sandvirt__V1__CreateRequest *request = create->request;
    SvAgent *agent = create->call->agent;
    SvContainer *container = create->container;
    g_autofree char *config = g_build_filename(container->dir, "config.json", NULL);
    int fds[2];

    if (!sv_fd_pipe(fds, 0, error))
        return FALSE;
    container->exec_fd = fds[0];
    create->until_exec = fds[1];
    create->process = sv_process_add(agent, request->handle, request->container_id, FALSE, error);
    if (!create->process)
        return FALSE;
    container->handle = request->handle;
    container->share_dir = *request->share_dir ? g_strdup(request->share_dir) : NULL;
    if (!sv_setup_sysctls(request->net_sysctls, request->n_net_sysctls, error) ||
        !sv_file_mkdirs(container->dir, 0700, error) ||
        !sv_file_write_atomic(
            config, request->config.data, request->config.len, 0600, FALSE, error))
        return FALSE;
    create->stdio = sv_stdio_new(container->dir, request->handle, request->terminal, request->stdin,
        request->rows, request->cols, error);
    return create->stdio &&
        sv_stdio_add(create->stdio, request->descriptors, request->n_descriptors, error);
}

void sv_container_create(SvCall *call)
{
    const Sandvirt__V1__CreateRequest *request = (Sandvirt__V1__CreateRequest *)call->message;
    SvContainer *container = NULL;
    GError *error = NULL;
    Create *create;

    if (check(request, &error))
        container = sv_container_add(call->agent, request->container_id, &error);
    if (!container) {
        sv_call_fail(call, error);
        g_error_free(error);
        return;
    }
    create = g_new0(Create, 1);
    create->until_exec = -1;
    create->call = call;
    create->request = request;
    create->container = container;
    if (prepare(create, &error))
        next_mount(create);
    else
        fail(create, error);
}
