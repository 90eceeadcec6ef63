/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/target.h"
#include "base/fd.h"
#include "base/names.h"
#include "cli/siblings.h"
#include <unistd.h>

/* A monitor that starts may have to find everything again: libvirt, machine, agent. */
#define ENSURE_MS 60000
#define MARGIN_MS 10000
#define HOOK_MAX_S G_GINT64_CONSTANT(86400) /* that all hooks of a kind together are waited for */
/* How many monitors in a row may die under one call. */
#define CALL_ATTEMPTS 5

void sv_target_clear(SvTarget *target)
{
    g_clear_pointer(&target->record, sv_record_free);
    g_clear_pointer(&target->paths, sv_paths_free);
    sv_config_unref(target->config);
    target->config = NULL;
    sv_fd_clear(&target->fd);
}

SvRecord *sv_target_record(const SvCli *cli, const char *id, GError **error)
{
    GError *local = NULL;
    SvRecord *record;

    if (!sv_id_check(id, "container id", error))
        return NULL;
    record = sv_record_load(cli->root, id, &local);
    if (record)
        return record;
    if (sv_error_is(local, SV_ERR_NOT_FOUND)) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_NOT_FOUND, "container does not exist: \"%s\"", id);
        g_error_free(local);
    } else {
        g_propagate_error(error, local);
    }
    return NULL;
}

gboolean sv_target_load(
    SvTarget *target, SvCli *cli, const char *id, const char *verb, GError **error)
{
    target->record = sv_target_record(cli, id, error);
    return target->record &&
        (!verb || sv_lifecycle_allows(sv_record_effective_state(target->record), verb, error));
}

gboolean sv_target_locate(
    SvTarget *target, SvCli *cli, const char *sandbox, gboolean make, GError **error)
{
    const SvConfig *config = sv_cli_config(cli, error);
    g_autoptr(SvSandboxRecord) record = NULL;

    if (!config)
        return FALSE;
    target->paths = sv_paths_new(config, cli->root, sandbox, make, error);
    if (!target->paths)
        return FALSE;
    target->config = sv_config_ref(config);
    if (cli->config_path)
        return TRUE;
    /* A sandbox made with --config is found again without it, and when that file has gone. */
    record = sv_sandbox_record_load(target->paths, NULL);
    if (!record || !record->config_path)
        return TRUE;
    if (access(record->config_path, F_OK) != 0) {
        g_warning("the configuration that this pod was made with has gone: %s; ignoring",
            record->config_path);
        return TRUE;
    }
    sv_config_unref(target->config);
    target->config = sv_config_load(record->config_path, error);
    if (!target->config)
        return FALSE;
    sv_paths_free(target->paths);
    target->paths = sv_paths_new(target->config, cli->root, sandbox, make, error);
    return target->paths != NULL;
}

gboolean sv_target_connect(SvTarget *target, SvCli *cli, GError **error)
{
    g_autofree char *monitor = NULL;

    if (!target->paths && !sv_target_locate(target, cli, target->record->sandbox, FALSE, error))
        return FALSE;
    monitor = sv_sibling("monitor", error);
    if (!monitor)
        return FALSE;
    /* The file it was loaded from: given with --config, now or when the sandbox was made. */
    target->fd = sv_client_ensure(
        target->paths, monitor, target->config->path, cli->debug, ENSURE_MS, error);
    return target->fd >= 0;
}

gboolean sv_target_call(SvTarget *target, const char *method, const ProtobufCMessage *message,
    int timeout_ms, GError **error)
{
    GError *local = NULL;

    sv_client_call(target->fd, &target->stream, method, message, NULL, timeout_ms, &local);
    if (!local)
        return TRUE;
    g_propagate_error(error, local);
    return FALSE;
}

/* @reply NULL: none is wanted. */
static gboolean ask(SvTarget *target, SvCli *cli, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type,
    ProtobufCMessage **reply, int timeout_ms, gboolean *again, GError **error)
{
    gint64 deadline = g_get_monotonic_time() + timeout_ms * (gint64)1000;

    *again = FALSE;
    for (int i = 0;; i++) {
        gint64 left_ms = (deadline - g_get_monotonic_time()) / 1000;
        GError *local = NULL;

        if (target->fd >= 0 || sv_target_connect(target, cli, &local)) {
            ProtobufCMessage *answer = sv_client_call(
                target->fd, &target->stream, method, message, type, (int)MAX(left_ms, 1), &local);
            if (!local && reply)
                *reply = answer;
        }
        if (!local)
            return TRUE;
        if (!sv_error_is(local, SV_ERR_CLOSED) || i + 1 == CALL_ATTEMPTS || left_ms <= 0) {
            g_propagate_error(error, local);
            return FALSE;
        }
        g_error_free(local);
        sv_fd_clear(&target->fd);
        *again = TRUE;
    }
}

gboolean sv_target_call_again(SvTarget *target, SvCli *cli, const char *method,
    const ProtobufCMessage *message, int timeout_ms, gboolean *again, GError **error)
{
    return ask(target, cli, method, message, NULL, NULL, timeout_ms, again, error);
}

ProtobufCMessage *sv_target_ask(SvTarget *target, SvCli *cli, const char *method,
    const ProtobufCMessage *message, const ProtobufCMessageDescriptor *type, GError **error)
{
    ProtobufCMessage *reply = NULL;
    gboolean again = FALSE;

    if (target->fd < 0 && !sv_target_connect(target, cli, error))
        return NULL;
    ask(target, cli, method, message, type, &reply, sv_target_short_ms(target), &again, error);
    return reply;
}

/* The container is as @verb makes it, or was and has gone on from there. */
static gboolean is_done(const SvCli *cli, const char *id, const char *verb)
{
    g_autoptr(SvRecord) record = sv_record_load(cli->root, id, NULL);

    if (!record)
        return FALSE;
    if (g_str_equal(verb, "start"))
        return record->started_us != 0;
    return record->state == (g_str_equal(verb, "pause") ? SV_STATE_PAUSED : SV_STATE_RUNNING);
}

gboolean sv_target_order(SvTarget *target, SvCli *cli, const char *id, const char *verb,
    const char *method, int hooks_ms, GError **error)
{
    Sandvirt__V1__ContainerRequest request = SANDVIRT__V1__CONTAINER_REQUEST__INIT;
    gboolean again = FALSE;
    GError *local = NULL;

    request.container_id = (char *)id;
    if (sv_target_call_again(target, cli, method, &request.base,
            sv_target_short_ms(target) + hooks_ms, &again, &local))
        return TRUE;
    if (again && is_done(cli, id, verb)) {
        g_error_free(local);
        return TRUE;
    }
    g_propagate_error(error, local);
    return FALSE;
}

gboolean sv_target_simple(
    SvCli *cli, const char *id, const char *verb, const char *method, GError **error)
{
    g_auto(SvTarget) target = SV_TARGET_INIT;
    int hooks_ms = 0;

    if (!sv_target_load(&target, cli, id, verb, error) || !sv_target_connect(&target, cli, error))
        return FALSE;
    if (g_str_equal(verb, "start"))
        hooks_ms = sv_target_hooks_ms(&target, target.record->bundle, SV_HOOK_POSTSTART);
    return sv_target_order(&target, cli, id, verb, method, hooks_ms, error);
}

int sv_target_short_ms(const SvTarget *target)
{
    return (int)(target->config->agent_ms + target->config->hook_ms + MARGIN_MS);
}

int sv_target_hooks_ms(const SvTarget *target, const char *bundle, SvHookKind kind)
{
    g_autoptr(SvSpec) spec = bundle ? sv_spec_load(bundle, NULL) : NULL;
    gint64 sum = 0;

    for (guint i = 0; spec && i < spec->hooks[kind]->len; i++) {
        const SvSpecHook *hook = spec->hooks[kind]->pdata[i];

        sum += hook->timeout_s > 0 ? MIN(hook->timeout_s, HOOK_MAX_S) * 1000
                                   : (gint64)target->config->hook_ms;
    }
    return (int)MIN(sum, HOOK_MAX_S * 1000);
}

int sv_target_stop_ms(const SvTarget *target)
{
    const SvConfig *c = target->config;

    return (int)(c->agent_ms + c->stop_ms + c->unplug_ms * 2 + c->shutdown_ms + c->hook_ms +
        MARGIN_MS * 2);
}
