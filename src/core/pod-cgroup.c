/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/pod-cgroup.h"

#include "base/command.h"
#include "base/file.h"
#include "base/process.h"
#include "core/host-cgroup.h"
#include "core/owner.h"

#include <string.h>
#include <unistd.h>

#define SYSTEMD_DIR "/run/systemd/system"
#define BUSCTL "/usr/bin/busctl"
#define BUSCTL_MS 10000
#define BUSCTL_OUTPUT 4096

/* A sandbox without a cgroup of its own would not be worth a failed pod. */
static void warn(const char *what, GError *error)
{
    if (!error)
        return;
    g_warning("ignoring: cgroup of %s: %s", what, error->message);
    g_error_free(error);
}

/* ---- choosing */

static gboolean choose_for_pod(SvContainer *container, const char *slice, GError **error)
{
    SvSandboxRecord *record = container->sandbox->record;
    g_autofree char *name = g_strdup_printf("sandvirt-%s", container->sandbox->paths->hash);
    gboolean own = strcmp(container->record->id, record->id) == 0;
    if (record->cgroup || record->started)
        return TRUE;
    record->cgroup = own ? g_strdup(container->record->cgroup)
                         : sv_cgroup_sibling(container->record->cgroup, name);
    record->partition = g_strdup(slice);
    return TRUE;
}

gboolean sv_pod_cgroup_choose(SvContainer *container, gboolean systemd, GError **error)
{
    g_autofree char *slice = NULL, *unit = NULL;
    const char *text = container->spec->cgroups_path;
    if (!text || !*text)
        return TRUE;
    container->record->cgroup = sv_cgroup_path(text, systemd, &slice, &unit, error);
    if (!container->record->cgroup)
        return FALSE;
    container->record->scope = g_strdup(unit);
    return choose_for_pod(container, slice, error);
}

/* ---- scopes: systemd removes what it does not know */

typedef struct {
    char *slice, *unit, *pid;
} Scope;

static void scope_free(gpointer data)
{
    Scope *scope = data;
    g_free(scope->slice);
    g_free(scope->unit);
    g_free(scope->pid);
    g_free(scope);
}

static void register_scope(GTask *task, gpointer source, gpointer data, GCancellable *unused)
{
    const Scope *scope = data;
    g_autofree char *errors = NULL;
    GError *error = NULL;
    int status = 0;
    g_autoptr(SvCommand) cmd = sv_command_new(BUSCTL);
    sv_command_add_args(cmd, "--system", "--quiet", "call", "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "StartTransientUnit",
        "ssa(sv)a(sa(sv))", scope->unit, "fail", "4", "PIDs", "au", "1", scope->pid, "Slice", "s",
        scope->slice, "Delegate", "b", "true", "DefaultDependencies", "b", "false", "0", NULL);
    if (sv_command_run(cmd, NULL, 0, BUSCTL_MS, BUSCTL_OUTPUT, NULL, &errors, &status, &error) &&
        status != 0)
        g_set_error(&error, SV_CORE_ERROR, SV_ERR_FAILED, "%s", g_strchomp(errors));
    warn(scope->unit, error);
    g_task_return_boolean(task, TRUE);
}

static void tell_systemd(const SvRecord *record, pid_t pid)
{
    if (!record->scope || access(SYSTEMD_DIR, F_OK) < 0 || access(BUSCTL, X_OK) < 0)
        return;
    g_autofree char *folder = g_path_get_dirname(record->cgroup);
    Scope *scope = g_new0(Scope, 1);
    scope->slice = g_path_get_basename(folder);
    scope->unit = g_strdup(record->scope);
    scope->pid = g_strdup_printf("%d", (int)pid);
    g_autoptr(GTask) task = g_task_new(NULL, NULL, NULL, NULL);
    g_task_set_task_data(task, scope, scope_free);
    g_task_run_in_thread(task, register_scope);
}

/* ---- containers */

void sv_container_cgroup_enter(SvContainer *container, pid_t pid)
{
    SvRecord *record = container->record;
    g_autofree char *made = NULL;
    g_autofree char *owner = sv_owner_text(container->sandbox->paths);
    GError *error = NULL;
    if (!record->cgroup || pid <= 1)
        return;
    if (!sv_cgroup_make(SV_CGROUP_TOP, record->cgroup, owner, &made, &error))
        warn(record->id, g_steal_pointer(&error));
    /* The one with the machine in it goes last. */
    char **maker = g_strcmp0(record->cgroup, container->sandbox->record->cgroup) == 0
        ? &container->sandbox->record->cgroup_made
        : &record->cgroup_made;
    if (made && !*maker)
        *maker = g_steal_pointer(&made);
    if (!sv_cgroup_enter(SV_CGROUP_TOP, record->cgroup, pid, FALSE, &error))
        warn(record->id, error);
    if (pid == record->shim_pid)
        tell_systemd(record, pid);
}

/* The sandbox's is the last one below parents that a container has made. */
static void inherit_parents(SvSandbox *sandbox, const char *made)
{
    SvSandboxRecord *record = sandbox->record;
    g_autoptr(GError) error = NULL;
    if (!made || !record->cgroup || !g_str_has_prefix(record->cgroup, made) ||
        record->cgroup[strlen(made)] != '/' ||
        (record->cgroup_made && strlen(record->cgroup_made) <= strlen(made)))
        return;
    g_free(record->cgroup_made);
    record->cgroup_made = g_strdup(made);
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
}

void sv_container_cgroup_remove(SvContainer *container)
{
    const SvRecord *record = container->record;
    if (!record->cgroup)
        return;
    sv_cgroup_remove(SV_CGROUP_TOP, record->cgroup, record->cgroup_made);
    inherit_parents(container->sandbox, record->cgroup_made);
}

/* ---- the sandbox */

void sv_pod_cgroup_begin(SvSandbox *sandbox)
{
    SvSandboxRecord *record = sandbox->record;
    g_autofree char *made = NULL;
    g_autofree char *owner = sv_owner_text(sandbox->paths);
    GError *error = NULL;
    if (!record->cgroup)
        return;
    if (!sandbox->cgroup_home)
        sandbox->cgroup_home = sv_cgroup_places(getpid());
    if (!sv_cgroup_make(SV_CGROUP_TOP, record->cgroup, owner, &made, &error))
        warn(record->id, g_steal_pointer(&error));
    if (made && !record->cgroup_made)
        record->cgroup_made = g_steal_pointer(&made);
    if (record->partition) {
        g_autofree char *slices = NULL;
        /* libvirt wants it in every hierarchy that it uses; systemd may use it too */
        if (!sv_cgroup_make(SV_CGROUP_TOP, record->partition, NULL, &slices, &error))
            warn(record->id, g_steal_pointer(&error));
    }
    if (!sv_cgroup_enter(SV_CGROUP_TOP, record->cgroup, getpid(), FALSE, &error))
        warn(record->id, error);
}

static void enter(SvSandbox *sandbox, pid_t pid)
{
    GError *error = NULL;
    if (pid > 1 && !sv_cgroup_enter(SV_CGROUP_TOP, sandbox->record->cgroup, pid, TRUE, &error))
        warn(sandbox->paths->sandbox, error);
}

/* virtiofsd has a child that does its work. */
static void enter_share(SvSandbox *sandbox)
{
    pid_t pid = sv_process_pid(sandbox->share_pidfd);
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", (int)pid, (int)pid);
    g_autofree char *text = NULL;
    if (pid <= 1)
        return;
    enter(sandbox, pid);
    if (!sv_file_read(path, 4096, &text, NULL, NULL))
        return;
    g_auto(GStrv) children = g_strsplit(text, " ", -1);
    for (char **child = children; *child; child++)
        enter(sandbox, (pid_t)g_ascii_strtoll(*child, NULL, 10));
}

/* Remembers where libvirt had put it, for the time that it is lent. */
static void remember_place(SvSandbox *sandbox, pid_t qemu)
{
    g_autofree char *places = sv_cgroup_places(qemu);
    g_autoptr(GError) error = NULL;
    if (!places || strstr(places, sandbox->record->cgroup))
        return;
    g_free(sandbox->record->machine_places);
    sandbox->record->machine_places = g_steal_pointer(&places);
    if (!sv_sandbox_save(sandbox, &error))
        g_warning("sandbox %s: ignoring: %s", sandbox->paths->sandbox, error->message);
}

void sv_pod_cgroup_place(SvSandbox *sandbox)
{
    pid_t qemu = sv_process_pid(sandbox->qemu_pidfd);
    if (!sandbox->record->cgroup || sandbox->record->partition)
        return;
    if (qemu > 1) {
        remember_place(sandbox, qemu);
        enter(sandbox, qemu);
    }
    enter_share(sandbox);
}

void sv_pod_cgroup_lend(SvSandbox *sandbox)
{
    pid_t qemu = sv_process_pid(sandbox->qemu_pidfd);
    GError *error = NULL;
    if (!sandbox->record->cgroup || !sandbox->record->machine_places || qemu <= 1)
        return;
    if (!sv_cgroup_return(SV_CGROUP_TOP, sandbox->record->machine_places, qemu, TRUE, &error))
        warn(sandbox->paths->sandbox, error);
}

void sv_pod_cgroup_end(SvSandbox *sandbox)
{
    SvSandboxRecord *record = sandbox->record;
    GError *error = NULL;
    if (!record || !record->cgroup)
        return;
    if (sandbox->cgroup_home &&
        !sv_cgroup_return(SV_CGROUP_TOP, sandbox->cgroup_home, getpid(), FALSE, &error))
        warn(record->id, error);
    sv_cgroup_remove(SV_CGROUP_TOP, record->cgroup, record->cgroup_made);
    g_clear_pointer(&record->cgroup, g_free);
}
