/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/names.h"
#include "cli/target.h"

#define DEFAULT_SECONDS 10

typedef struct {
    const char *time;
} Options;
static const SvOption options[] = {
    {"time", 't', SV_OPT_STRING, G_STRUCT_OFFSET(Options, time), "SECONDS",
        "from SIGTERM to SIGKILL (10)"},
    {"timeout", 0, SV_OPT_STRING, G_STRUCT_OFFSET(Options, time), "SECONDS", "the same"},
    {NULL},
};

static gboolean parse_time(const char *text, gint64 *seconds, GError **error)
{
    *seconds = DEFAULT_SECONDS;
    if (!text || sv_parse_int64(text, 0, 86400, seconds, error))
        return TRUE;
    g_prefix_error(error, "--time: ");
    return FALSE;
}

static int cmd_stop(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_auto(SvTarget) target = SV_TARGET_INIT;
    Sandvirt__V1__StopRequest request = SANDVIRT__V1__STOP_REQUEST__INIT;
    gint64 seconds = 0;
    gboolean again = FALSE;

    if (!parse_time(opts->time, &seconds, error) ||
        !sv_target_load(&target, cli, args[0], NULL, error))
        return -1;
    /* The record itself, not what its shim makes of it: a stop that hangs half way is waited for. */
    if (target.record->state == SV_STATE_STOPPED)
        return 0;
    if (!sv_target_connect(&target, cli, error))
        return -1;
    request.container_id = args[0];
    request.timeout_ms = (guint32)(seconds * 1000);
    /* a monitor that dies on the way does not begin the time anew */
    request.kill_at_us = g_get_monotonic_time() + seconds * G_USEC_PER_SEC;
    return sv_target_call_again(&target, cli, "Stop", &request.base,
               (int)seconds * 1000 + sv_target_stop_ms(&target), &again, error)
        ? 0
        : -1;
}

const SvVerb sv_verb_stop = {"stop", "CONTAINER",
    "End a container: SIGTERM, then SIGKILL, and wait for it", options, sizeof(Options), 1, 1, 0,
    cmd_stop};
