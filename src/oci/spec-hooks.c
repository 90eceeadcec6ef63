/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* hooks */
#include <config.h>

#include "base/names.h"
#include "oci/spec-private.h"

static const char *const kinds[] = {
    [SV_HOOK_PRESTART] = "prestart",
    [SV_HOOK_CREATE_RUNTIME] = "createRuntime",
    [SV_HOOK_CREATE_CONTAINER] = "createContainer",
    [SV_HOOK_START_CONTAINER] = "startContainer",
    [SV_HOOK_POSTSTART] = "poststart",
    [SV_HOOK_POSTSTOP] = "poststop",
};

void sv_spec_hook_free(SvSpecHook *hook)
{
    if (!hook)
        return;
    g_free(hook->path);
    g_strfreev(hook->args);
    g_strfreev(hook->env);
    g_free(hook);
}

static gboolean read_hook(JsonObject *object, const char *path, gpointer user_data, GError **error)
{
    GPtrArray *hooks = user_data;
    g_autoptr(SvSpecHook) hook = g_new0(SvSpecHook, 1);
    const char *program = NULL;

    if (!sv_json_get_string(object, "path", path, &program, error) ||
        !sv_json_get_strv(object, "args", path, &hook->args, error) ||
        !sv_json_get_strv(object, "env", path, &hook->env, error) ||
        !sv_spec_range(object, "timeout", path, 0, G_MAXINT32, &hook->timeout_s, error))
        return FALSE;
    if (!program || !g_path_is_absolute(program))
        return sv_spec_error(error, path, "path must be an absolute path");
    hook->path = g_strdup(program);
    if (hook->args && !hook->args[0])
        g_clear_pointer(&hook->args, g_strfreev);
    if (!hook->args) {
        hook->args = g_new0(char *, 2);
        hook->args[0] = g_strdup(program);
    }
    if (!hook->env)
        hook->env = g_new0(char *, 1);
    g_ptr_array_add(hooks, g_steal_pointer(&hook));
    return TRUE;
}

gboolean sv_spec_read_hooks(SvSpec *spec, JsonObject *root, GError **error)
{
    JsonObject *hooks = NULL;

    if (!sv_json_get_object(root, "hooks", "", &hooks, error))
        return FALSE;
    for (gsize i = 0; hooks && i < G_N_ELEMENTS(kinds); i++)
        if (!sv_spec_each(hooks, kinds[i], "hooks", read_hook, spec->hooks[i], error))
            return FALSE;
    return TRUE;
}
