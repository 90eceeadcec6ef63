/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/names.h"
#include "cli/target.h"
#include <signal.h>

typedef struct {
    gboolean all;
} Options;
static const SvOption options[] = {
    {"all", 'a', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, all), NULL,
        "send it to every process of the container"},
    {NULL},
};

/* The text that engines look for. */
static gboolean not_running(GError **error)
{
    g_set_error(error, SV_CLI_ERROR, SV_ERR_NOT_RUNNING, "container not running");
    return FALSE;
}

/* The guest tells by it that it has this signal already, when a monitor died under the call. */
static guint64 order_number(void)
{
    return ((guint64)g_random_int() << 32) | g_random_int() | 1;
}

static gboolean send_signal(SvCli *cli, const char *id, int signo, gboolean all, GError **error)
{
    g_auto(SvTarget) target = SV_TARGET_INIT;
    Sandvirt__V1__KillRequest request = SANDVIRT__V1__KILL_REQUEST__INIT;
    GError *local = NULL;
    gboolean again = FALSE;

    if (!sv_target_load(&target, cli, id, NULL, error))
        return FALSE;
    if (sv_record_effective_state(target.record) == SV_STATE_STOPPED)
        return all || not_running(error);
    if (!sv_target_connect(&target, cli, error))
        return FALSE;
    request.container_id = (char *)id;
    request.signal = (guint32)signo;
    request.all = all;
    request.order = order_number();
    if (sv_target_call_again(
            &target, cli, "Kill", &request.base, sv_target_stop_ms(&target), &again, &local))
        return TRUE;
    if (sv_error_is(local, SV_ERR_NOT_RUNNING) || (again && sv_error_is(local, SV_ERR_NOT_FOUND))) {
        g_error_free(local);
        return all || (again && signo != 0) || not_running(error);
    }
    g_propagate_error(error, local);
    return FALSE;
}

static int cmd_kill(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    int signo = args[1] ? sv_signal_parse(args[1], error) : SIGTERM;

    if (signo < 0)
        return -1;
    return send_signal(cli, args[0], signo, opts->all, error) ? 0 : -1;
}

const SvVerb sv_verb_kill = {"kill", "CONTAINER [SIGNAL]",
    "Send a signal (TERM) to the container's first process", options, sizeof(Options), 1, 2, 0,
    cmd_kill};
