/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of containers, and how the kernel's OOM killer is noticed. */
#include "agent/container.h"
#include "agent/event.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/names.h"
#include <string.h>

SvContainer *sv_container_lookup(SvAgent *agent, const char *id)
{
    return g_hash_table_lookup(agent->containers, id);
}

SvContainer *sv_container_find(SvAgent *agent, const char *id, GError **error)
{
    SvContainer *container = sv_container_lookup(agent, id);

    if (!container || !container->created || container->removing) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_NOT_FOUND, "container does not exist");
        return NULL;
    }
    return container;
}

SvContainer *sv_container_add(SvAgent *agent, const char *id, GError **error)
{
    SvContainer *container;

    if (!sv_id_check(id, "container id", error))
        return NULL;
    if (sv_container_lookup(agent, id)) {
        g_set_error(error, SV_AGENT_ERROR, SV_ERR_EXISTS, "container %s already exists", id);
        return NULL;
    }
    container = g_new0(SvContainer, 1);
    container->agent = agent;
    container->exec_fd = -1;
    container->id = g_strdup(id);
    container->dir = g_build_filename(SV_AGENT_CONTAINERS, id, NULL);
    container->cgroup = g_build_filename(SV_AGENT_CGROUP, "sandvirt", id, NULL);
    container->mounts = g_ptr_array_new_with_free_func(g_free);
    container->removers = g_ptr_array_new();
    g_hash_table_insert(agent->containers, container->id, container);
    return container;
}

void sv_container_free(SvContainer *container)
{
    if (!container)
        return;
    sv_container_start_finish(container);
    sv_fd_clear(&container->exec_fd);
    sv_cgroup_watch_free(container->oom_watch);
    g_ptr_array_unref(container->mounts);
    g_ptr_array_unref(container->removers);
    g_free(container->id);
    g_free(container->dir);
    g_free(container->cgroup);
    g_free(container->share_dir);
    g_free(container);
}

void sv_container_drop(SvContainer *container)
{
    g_hash_table_remove(container->agent->containers, container->id);
}

SvProcess *sv_container_init(SvContainer *container)
{
    return sv_process_lookup(container->agent, container->handle);
}

static guint64 read_oom_kills(SvContainer *container)
{
    g_autofree char *text = sv_cgroup_read(container->cgroup, "memory.events");

    return text ? sv_cgroup_value(text, "oom_kill") : container->oom_kills;
}

void sv_container_check_oom(SvContainer *container)
{
    /* One at a time: a host that does not answer is not told without end. */
    if (container->oom_kills > container->oom_told && !container->oom_telling)
        container->oom_telling = sv_event_oom(container);
}

void sv_container_oom_told(SvContainer *container, guint64 kills)
{
    container->oom_told = MAX(kills, container->oom_told);
    container->oom_telling = FALSE;
    sv_container_check_oom(container);
}

void sv_container_oom_reset(SvContainer *container)
{
    container->oom_telling = FALSE;
    sv_container_check_oom(container);
}

static void on_memory_events(gpointer user_data)
{
    SvContainer *container = user_data;

    container->oom_kills = MAX(read_oom_kills(container), container->oom_kills);
    sv_container_check_oom(container);
}

void sv_container_watch(SvContainer *container, pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/cgroup", pid);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    const char *line;

    if (g_file_get_contents(path, &text, NULL, NULL) && (line = strstr(text, "0::/")) &&
        line[strlen("0::/")] != '\n') {
        g_free(container->cgroup);
        container->cgroup =
            g_strdup_printf("%s%.*s", SV_AGENT_CGROUP, (int)strcspn(line + 3, "\n"), line + 3);
    }
    container->oom_watch =
        sv_cgroup_watch(container->cgroup, "memory.events", on_memory_events, container, &error);
    if (!container->oom_watch)
        g_warning("ignoring: %s", error->message);
    on_memory_events(container); /* what came before the watch */
}

void sv_container_process_ended(SvProcess *process)
{
    SvContainer *container = sv_container_lookup(process->agent, process->container_id);

    if (!container)
        return;
    if (!process->exec)
        sv_container_start_finish(container);
    on_memory_events(container); /* the kill was counted before the process ended */
    process->oom = process->exit_code == 128 + 9 && container->oom_kills > process->oom_before;
}
