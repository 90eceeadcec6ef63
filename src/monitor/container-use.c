/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor/container-use.h"

#include "base/fd.h"
#include "core/client.h"
#include "core/stats-files.h"

#define ONE_MS 2000 /* for one container */
#define ALL_MS 6000 /* whoever reads metrics waits for ten seconds, mostly */

/* The connection to the monitor of a sandbox, kept for its next container. */
typedef struct {
    char *sandbox;
    int fd; /* -1: it cannot be asked */
    guint32 stream;
} Asked;

static void asked_clear(Asked *asked)
{
    g_clear_pointer(&asked->sandbox, g_free);
    sv_fd_clear(&asked->fd);
}

/* A pod that was made with --config has its sockets where that says. */
static SvPaths *paths_of(const SvConfig *config, const char *root, const char *sandbox)
{
    SvPaths *paths = sv_paths_new(config, root, sandbox, FALSE, NULL);
    g_autoptr(SvSandboxRecord) record = paths ? sv_sandbox_record_load(paths, NULL) : NULL;
    const SvConfig *own =
        record && record->config_path ? sv_config_load(record->config_path, NULL) : NULL;
    if (own) {
        sv_paths_free(paths);
        paths = sv_paths_new(own, root, sandbox, FALSE, NULL);
        sv_config_unref(own);
    }
    return paths;
}

static void turn_to(Asked *asked, const SvConfig *config, const char *root, const char *sandbox)
{
    if (g_strcmp0(asked->sandbox, sandbox) == 0)
        return;
    asked_clear(asked);
    asked->sandbox = g_strdup(sandbox);
    asked->stream = 1;
    g_autoptr(SvPaths) paths = paths_of(config, root, sandbox);
    asked->fd = paths ? sv_client_connect(paths, NULL) : -1;
}

static gboolean ask(Asked *asked, const SvRecord *record, int timeout_ms, SvContainerUse *use)
{
    Sandvirt__V1__ContainerRequest request = SANDVIRT__V1__CONTAINER_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    request.container_id = record->id;
    Sandvirt__V1__StatsResponse *answer =
        (Sandvirt__V1__StatsResponse *)sv_client_call(asked->fd, &asked->stream, "Stats",
            &request.base, &sandvirt__v1__stats_response__descriptor, timeout_ms, &error);
    if (!answer) {
        g_debug("statistics of \"%s\": %s", record->id, error->message);
        sv_fd_clear(&asked->fd);
        /* Who is silent is not asked for the next one; a refusal (it has just ended) is only this one's. */
        if (!sv_error_is(error, SV_ERR_TIMEOUT))
            g_clear_pointer(&asked->sandbox, g_free);
        return FALSE;
    }
    use->cpu_us = (guint64)sv_stats_keyed(sv_stats_file(answer, "cpu.stat"), "usage_usec");
    use->memory = (guint64)sv_stats_number(answer, "memory.current", 0);
    use->processes = (guint64)sv_stats_number(answer, "pids.current", 0);
    sv_message_free(answer);
    return TRUE;
}

static gint by_sandbox(gconstpointer a, gconstpointer b)
{
    const SvRecord *const *one = a, *const *two = b;
    int order = g_strcmp0((*one)->sandbox, (*two)->sandbox);
    return order != 0 ? order : g_strcmp0((*one)->id, (*two)->id);
}

static gboolean is_suspended(const GPtrArray *machines, const char *root, const char *sandbox)
{
    for (guint i = 0; i < machines->len; i++) {
        const SvMachineStats *stats = machines->pdata[i];
        if (stats->state != SV_MACHINE_RUNNING && g_str_equal(stats->metadata->root, root) &&
            g_str_equal(stats->metadata->sandbox, sandbox))
            return TRUE;
    }
    return FALSE;
}

static void ask_root(const SvConfig *config, const SvRoot *root, const GPtrArray *machines,
    gint64 end_us, GArray *all)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    Asked asked = {.fd = -1};
    for (guint i = 0; i < root->records->len; i++)
        if (sv_record_effective_state(root->records->pdata[i]) == SV_STATE_RUNNING)
            g_ptr_array_add(sorted, root->records->pdata[i]);
    g_ptr_array_sort(sorted, by_sandbox);
    for (guint i = 0; i < sorted->len; i++) {
        SvContainerUse use = {.root = root, .record = sorted->pdata[i]};
        const char *sandbox = use.record->sandbox;
        gint64 left_ms = (end_us - g_get_monotonic_time()) / 1000;
        if (left_ms <= 0)
            break;
        if (is_suspended(machines, root->path, sandbox))
            continue;
        turn_to(&asked, config, root->path, sandbox);
        if (asked.fd >= 0 && ask(&asked, use.record, (int)MIN(left_ms, ONE_MS), &use))
            g_array_append_val(all, use);
    }
    asked_clear(&asked);
}

GArray *sv_root_containers(
    const SvConfig *config, const GPtrArray *roots, const GPtrArray *machines)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(SvContainerUse));
    gint64 end_us = g_get_monotonic_time() + ALL_MS * (gint64)1000;
    for (guint i = 0; i < roots->len; i++)
        ask_root(config, roots->pdata[i], machines, end_us, all);
    return all;
}
