/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/hooks.h"

#include "base/command.h"
#include "core/sandbox-priv.h"

#define HOOK_OUTPUT_MAX (64u * 1024)

typedef struct {
    SvSandbox *sandbox;
    GPtrArray *hooks; /* SvSpecHook of the spec, copied */
    GPtrArray *ignored; /* char*: failures; NULL: the first ends the row */
    char *state, *bundle, *id;
    SvHookKind kind;
    guint default_ms;
    SvDone done;
    gpointer user_data;
} Row;

static const char *const kind_names[] = {
    "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};

static void hook_free(gpointer data)
{
    SvSpecHook *hook = data;
    g_free(hook->path);
    g_strfreev(hook->args);
    g_strfreev(hook->env);
    g_free(hook);
}

static SvSpecHook *hook_copy(const SvSpecHook *hook)
{
    SvSpecHook *copy = g_new0(SvSpecHook, 1);
    copy->path = g_strdup(hook->path);
    copy->args = g_strdupv(hook->args);
    copy->env = g_strdupv(hook->env);
    copy->timeout_s = hook->timeout_s;
    return copy;
}

static void row_free(gpointer data)
{
    Row *row = data;
    g_ptr_array_unref(row->hooks);
    g_clear_pointer(&row->ignored, g_ptr_array_unref);
    g_free(row->state);
    g_free(row->bundle);
    g_free(row->id);
    g_free(row);
}

static gboolean run_one(const Row *row, const SvSpecHook *hook, GError **error)
{
    g_autoptr(SvCommand) cmd = sv_command_new(hook->path);
    g_autofree char *errors = NULL;
    int status = 0;
    for (guint i = 0; hook->args && hook->args[i]; i++) {
        if (i == 0)
            sv_command_set_argv0(cmd, hook->args[i]);
        else
            sv_command_add_arg(cmd, hook->args[i]);
    }
    if (hook->env)
        sv_command_set_environ(cmd, (const char *const *)hook->env);
    sv_command_set_cwd(cmd, row->bundle);
    sv_command_set_oom_floor(cmd, 0); /* a service's protection is the monitor's */
    int timeout_ms =
        hook->timeout_s > 0 ? (int)MIN(hook->timeout_s * 1000, G_MAXINT) : (int)row->default_ms;
    if (!sv_command_run(cmd, row->state, strlen(row->state), timeout_ms, HOOK_OUTPUT_MAX, NULL,
            &errors, &status, error)) {
        g_prefix_error(error, "%s hook \"%s\": ", kind_names[row->kind], hook->path);
        return FALSE;
    }
    if (status == 0)
        return TRUE;
    g_autofree char *text = sv_printable(errors ? g_strstrip(errors) : "", 512);
    g_set_error(error, SV_CORE_ERROR, SV_ERR_FAILED, "%s hook \"%s\" exited with status %d%s%s",
        kind_names[row->kind], hook->path, status, *text ? ": " : "", text);
    return FALSE;
}

static void run_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    Row *row = data;
    for (guint i = 0; i < row->hooks->len; i++) {
        GError *error = NULL;
        if (run_one(row, row->hooks->pdata[i], &error))
            continue;
        if (!row->ignored) {
            g_task_return_error(task, error);
            return;
        }
        g_ptr_array_add(row->ignored, g_strdup(error->message));
        g_error_free(error);
    }
    g_task_return_boolean(task, TRUE);
}

static void on_row(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    Row *row = g_task_get_task_data(G_TASK(result));
    g_task_propagate_boolean(G_TASK(result), &error);
    for (guint i = 0; row->ignored && i < row->ignored->len; i++)
        g_warning("container %s: ignoring: %s", row->id, (char *)row->ignored->pdata[i]);
    row->sandbox->hooks_running--;
    if (row->done)
        row->done(error, row->user_data);
    sv_sandbox_check_idle(row->sandbox);
}

static void start(SvContainer *container, SvHookKind kind, const char *status, gboolean ignored,
    SvDone done, gpointer user_data)
{
    const GPtrArray *hooks = container->spec ? container->spec->hooks[kind] : NULL;
    if (!hooks || !hooks->len) {
        if (done)
            sv_answer_later(done, NULL, user_data);
        return;
    }
    Row *row = g_new0(Row, 1);
    row->sandbox = container->sandbox;
    container->sandbox->hooks_running++;
    row->hooks = g_ptr_array_new_with_free_func(hook_free);
    for (guint i = 0; i < hooks->len; i++)
        g_ptr_array_add(row->hooks, hook_copy(hooks->pdata[i]));
    pid_t pid = g_str_equal(status, "stopped") ? 0 : container->record->shim_pid;
    row->state = sv_record_oci_state(container->record, status, pid);
    row->bundle = g_strdup(container->record->bundle);
    row->id = g_strdup(container->record->id);
    row->kind = kind;
    row->ignored = ignored ? g_ptr_array_new_with_free_func(g_free) : NULL;
    row->default_ms = container->sandbox->config->hook_ms;
    row->done = done;
    row->user_data = user_data;
    g_autoptr(GTask) task = g_task_new(NULL, NULL, on_row, NULL);
    g_task_set_task_data(task, row, row_free);
    g_task_run_in_thread(task, run_in_thread);
}

void sv_hooks_run(
    SvContainer *container, SvHookKind kind, const char *status, SvDone done, gpointer user_data)
{
    start(container, kind, status, FALSE, done, user_data);
}

void sv_hooks_run_ignored(
    SvContainer *container, SvHookKind kind, const char *status, SvDone done, gpointer user_data)
{
    start(container, kind, status, TRUE, done, user_data);
}
