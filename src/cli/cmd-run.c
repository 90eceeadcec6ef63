/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
#include "cli/create.h"
#include "cli/foreground.h"

typedef struct {
    SvCreateOptions create;
    gboolean detach, keep;
} Options;
static const SvOption options[] = {
    SV_CREATE_OPTION_ROWS(Options, create),
    {"detach", 'd', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, detach), NULL, "do not wait for its end"},
    {"keep", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, keep), NULL, "do not delete it at its end"},
    {NULL},
};

/* Deletes what has ended, or could not start. */
static gboolean clean_up(SvCreated *created, SvCli *cli, const char *id, GError **error)
{
    Sandvirt__V1__DeleteRequest request = SANDVIRT__V1__DELETE_REQUEST__INIT;
    SvTarget *target = &created->target;
    GError *local = NULL;
    gboolean again = FALSE;

    request.container_id = (char *)id;
    request.force = TRUE;
    if (sv_target_call_again(target, cli, "Delete", &request.base,
            sv_target_stop_ms(target) +
                sv_target_hooks_ms(target, created->bundle, SV_HOOK_POSTSTOP),
            &again, &local))
        return TRUE;
    if (sv_error_is(local, SV_ERR_NOT_FOUND)) {
        g_error_free(local);
        return TRUE;
    }
    g_propagate_error(error, local);
    return FALSE;
}

static int wait_in_foreground(
    SvForeground *fg, SvCreated *created, SvCli *cli, const char *id, gboolean keep, GError **error)
{
    int status = sv_foreground_wait(fg, created->shim.pid, created->shim.pidfd, error);
    g_autoptr(GError) local = NULL;

    sv_foreground_end(fg);
    if (status >= 0 && !keep && !clean_up(created, cli, id, &local))
        g_warning("ignoring: delete container %s: %s", id, local->message);
    return status;
}

static int cmd_run(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_auto(SvCreated) created = SV_CREATED_INIT;
    g_auto(SvForeground) fg = {FALSE};
    g_autoptr(GError) ignored = NULL;

    if (!sv_create(cli, &opts->create, args[0], !opts->detach, &created, error))
        return -1;
    if (!opts->detach)
        sv_foreground_begin(&fg, created.spec->terminal && !opts->create.console_socket);
    if (!sv_target_order(&created.target, cli, args[0], "start", "Start",
            sv_target_hooks_ms(&created.target, created.bundle, SV_HOOK_POSTSTART), error)) {
        sv_foreground_end(&fg);
        if (!clean_up(&created, cli, args[0], &ignored))
            g_warning("ignoring: delete container %s: %s", args[0], ignored->message);
        return -1;
    }
    return opts->detach ? 0 : wait_in_foreground(&fg, &created, cli, args[0], opts->keep, error);
}

const SvVerb sv_verb_run = {"run", "CONTAINER", "Create a container, start it and wait for its end",
    options, sizeof(Options), 1, 1, 0, cmd_run};
