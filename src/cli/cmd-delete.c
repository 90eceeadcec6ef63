/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/file.h"
#include "base/names.h"
#include "cli/target.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    gboolean force;
} Options;
static const SvOption options[] = {
    {"force", 'f', SV_OPT_FLAG, G_STRUCT_OFFSET(Options, force), NULL,
        "end it first; what does not exist is fine"},
    {NULL},
};

/* Deletes it in the sandbox if that has a monitor, which may know the container. */
static gboolean delete_in(SvCli *cli, const char *sandbox, const char *id, GError **error)
{
    g_auto(SvTarget) target = SV_TARGET_INIT;
    Sandvirt__V1__DeleteRequest request = SANDVIRT__V1__DELETE_REQUEST__INIT;
    GError *local = NULL;

    if (!sv_target_locate(&target, cli, sandbox, FALSE, error))
        return FALSE;
    target.fd = sv_client_connect(target.paths, NULL);
    if (target.fd < 0)
        return TRUE;
    request.container_id = (char *)id;
    request.force = TRUE;
    if (sv_target_call(&target, "Delete", &request.base, sv_target_stop_ms(&target), &local))
        return TRUE;
    if (sv_error_is(local, SV_ERR_CLOSED)) { /* its last container has just gone */
        g_error_free(local);
        return TRUE;
    }
    g_propagate_error(error, local);
    return FALSE;
}

/* An entry that cannot be read names no sandbox: each of this root is asked to end the container. */
static gboolean delete_anywhere(SvCli *cli, const char *id, GError **error)
{
    g_autofree char *top = g_build_filename(cli->root, ".sandbox", NULL);
    g_autoptr(GDir) dir = g_dir_open(top, 0, NULL);
    const char *name = NULL;

    while (dir && (name = g_dir_read_name(dir)))
        if (sv_id_check(name, "sandbox id", NULL) && !delete_in(cli, name, id, error))
            return FALSE;
    return TRUE;
}

static gboolean remove_damaged(SvCli *cli, const char *id, const GError *why, GError **error)
{
    g_autofree char *folder = sv_paths_container_dir(cli->root, id);
    struct stat st;

    g_warning("removing a damaged entry: %s", why->message);
    if (!delete_anywhere(cli, id, error))
        return FALSE;
    if (lstat(folder, &st) == 0 && !S_ISDIR(st.st_mode)) {
        if (unlink(folder) == 0 || errno == ENOENT)
            return TRUE;
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "remove %s", folder);
        return FALSE;
    }
    return sv_file_remove_tree(folder, error);
}

/* A create that was cut off takes its entry away before the rest of what it has begun; an engine that deletes it tries
 * again with the same network namespace then. */
static void wait_for_rest(SvCli *cli, const char *id)
{
    g_auto(SvTarget) target = SV_TARGET_INIT;
    g_autoptr(SvSandboxRecord) record = NULL;
    g_autoptr(GError) error = NULL;

    if (sv_target_locate(&target, cli, id, FALSE, &error))
        record = sv_sandbox_record_load(target.paths, NULL);
    /* CLOSED: all of it has gone just now */
    if (record &&
        !(sv_target_connect(&target, cli, &error) &&
            sv_target_call(&target, "Settle", NULL, sv_target_stop_ms(&target), &error)) &&
        !sv_error_is(error, SV_ERR_CLOSED))
        g_info("ignoring: %s", error->message);
}

static gboolean ask_monitor(
    SvTarget *target, SvCli *cli, const char *id, gboolean force, GError **error)
{
    Sandvirt__V1__DeleteRequest request = SANDVIRT__V1__DELETE_REQUEST__INIT;
    GError *local = NULL;
    gboolean again = FALSE;

    if (!sv_target_connect(target, cli, error))
        return FALSE;
    request.container_id = (char *)id;
    request.force = force;
    if (sv_target_call_again(target, cli, "Delete", &request.base,
            sv_target_stop_ms(target) +
                sv_target_hooks_ms(target, target->record->bundle, SV_HOOK_POSTSTOP),
            &again, &local))
        return TRUE;
    if ((force || again) && sv_error_is(local, SV_ERR_NOT_FOUND)) {
        g_error_free(local);
        wait_for_rest(cli, id);
        return TRUE;
    }
    g_propagate_error(error, local);
    return FALSE;
}

static int cmd_delete(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_auto(SvTarget) target = SV_TARGET_INIT;
    g_autoptr(GError) local = NULL;

    if (sv_target_load(&target, cli, args[0], opts->force ? NULL : "delete", &local))
        return ask_monitor(&target, cli, args[0], opts->force, error) ? 0 : -1;
    if (opts->force && sv_error_is(local, SV_ERR_NOT_FOUND)) {
        wait_for_rest(cli, args[0]);
        return 0;
    }
    if (opts->force && !target.record && local->domain != SV_BASE_ERROR)
        return remove_damaged(cli, args[0], local, error) ? 0 : -1;
    g_propagate_error(error, g_steal_pointer(&local));
    return -1;
}

const SvVerb sv_verb_delete = {"delete", "CONTAINER",
    "Remove a container that is stopped, or was never started", options, sizeof(Options), 1, 1, 0,
    cmd_delete};
