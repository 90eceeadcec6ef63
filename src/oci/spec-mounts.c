/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mounts */
#include <config.h>

#include "oci/spec-private.h"
#include <string.h>

void sv_spec_mount_free(SvSpecMount *mount)
{
    if (!mount)
        return;
    g_free(mount->destination);
    g_free(mount->type);
    g_free(mount->source);
    g_strfreev(mount->options);
    g_free(mount);
}

static gboolean read_mount(JsonObject *object, const char *path, gpointer user_data, GError **error)
{
    SvSpec *spec = user_data;
    g_autoptr(SvSpecMount) mount = g_new0(SvSpecMount, 1);
    const char *destination = NULL, *type = NULL, *source = NULL;

    if (!sv_json_get_string(object, "destination", path, &destination, error) ||
        !sv_json_get_string(object, "type", path, &type, error) ||
        !sv_json_get_string(object, "source", path, &source, error) ||
        !sv_json_get_strv(object, "options", path, &mount->options, error))
        return FALSE;
    if (!destination || !*destination)
        return sv_spec_error(error, path, "destination is missing or empty");
    /* As runc takes a relative one. */
    mount->destination =
        *destination == '/' ? g_strdup(destination) : g_strconcat("/", destination, NULL);
    mount->type = type && *type ? g_strdup(type) : NULL;
    mount->source = source && *source ? g_strdup(source) : NULL;
    if (!mount->options)
        mount->options = g_new0(char *, 1);
    if (sv_spec_mount_is_bind(mount)) {
        if (!mount->source)
            return sv_spec_error(error, path, "a bind mount without a source");
    } else if (!mount->type) {
        return sv_spec_error(error, path, "type is missing");
    }
    g_ptr_array_add(spec->mounts, g_steal_pointer(&mount));
    return TRUE;
}

gboolean sv_spec_read_mounts(SvSpec *spec, JsonObject *root, GError **error)
{
    return sv_spec_each(root, "mounts", "", read_mount, spec, error);
}

gboolean sv_spec_mount_has_option(const SvSpecMount *mount, const char *option)
{
    return g_strv_contains((const char *const *)mount->options, option);
}

gboolean sv_spec_mount_is_bind(const SvSpecMount *mount)
{
    return g_strcmp0(mount->type, "bind") == 0 || g_strcmp0(mount->type, "rbind") == 0 ||
        sv_spec_mount_has_option(mount, "bind") || sv_spec_mount_has_option(mount, "rbind");
}

gboolean sv_spec_mount_is_recursive(const SvSpecMount *mount)
{
    return g_strcmp0(mount->type, "rbind") == 0 || sv_spec_mount_has_option(mount, "rbind");
}

gboolean sv_spec_mount_is_read_only(const SvSpecMount *mount)
{
    gboolean read_only = FALSE;

    for (char **o = mount->options; *o; o++) {
        if (strcmp(*o, "ro") == 0 || strcmp(*o, "rro") == 0)
            read_only = TRUE;
        else if (strcmp(*o, "rw") == 0 || strcmp(*o, "rrw") == 0)
            read_only = FALSE;
    }
    return read_only;
}
