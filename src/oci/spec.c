/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* config.json: the file and its top level. */
#include <config.h>

#include "oci/spec.h"

#include "base/file.h"
#include "oci/spec-private.h"
#include <string.h>

#define HOSTNAME_MAX 64 /* of the kernel */

static SvSpec *spec_alloc(void)
{
    SvSpec *spec = g_new0(SvSpec, 1);

    spec->mounts = g_ptr_array_new_with_free_func((GDestroyNotify)sv_spec_mount_free);
    spec->namespaces = g_ptr_array_new_with_free_func((GDestroyNotify)sv_spec_namespace_free);
    spec->devices = g_ptr_array_new_with_free_func((GDestroyNotify)sv_spec_device_free);
    for (gsize i = 0; i < G_N_ELEMENTS(spec->hooks); i++)
        spec->hooks[i] = g_ptr_array_new_with_free_func((GDestroyNotify)sv_spec_hook_free);
    spec->annotations = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return spec;
}

void sv_spec_free(SvSpec *spec)
{
    if (!spec)
        return;
    g_clear_pointer(&spec->json, json_node_unref);
    g_free(spec->oci_version);
    g_free(spec->root_path);
    g_strfreev(spec->args);
    g_free(spec->hostname);
    g_free(spec->domainname);
    g_ptr_array_unref(spec->mounts);
    g_ptr_array_unref(spec->namespaces);
    g_ptr_array_unref(spec->devices);
    for (gsize i = 0; i < G_N_ELEMENTS(spec->hooks); i++)
        g_ptr_array_unref(spec->hooks[i]);
    g_free(spec->cgroups_path);
    g_hash_table_unref(spec->annotations);
    g_free(spec);
}

/* 1.x of the specification, with whatever suffix. */
static gboolean read_version(SvSpec *spec, JsonObject *root, GError **error)
{
    const char *version = NULL;

    if (!sv_json_get_string(root, "ociVersion", "", &version, error))
        return FALSE;
    if (!version)
        version = SV_OCI_VERSION;
    if (!g_str_has_prefix(version, "1.") || !g_ascii_isdigit(version[2])) {
        g_autofree char *text = sv_printable(version, 64);

        return sv_spec_error(error, "ociVersion", "\"%s\" is not supported (only 1.x)", text);
    }
    spec->oci_version = g_strdup(version);
    return TRUE;
}

static gboolean read_root(SvSpec *spec, JsonObject *root, const char *bundle, GError **error)
{
    JsonObject *object = NULL;
    const char *path = NULL;

    if (!sv_json_get_object(root, "root", "", &object, error))
        return FALSE;
    if (!object)
        return sv_spec_error(error, "root", "is missing");
    if (!sv_json_get_string(object, "path", "root", &path, error) ||
        !sv_json_get_bool(object, "readonly", "root", &spec->root_readonly, error))
        return FALSE;
    if (!path || !*path)
        return sv_spec_error(error, "root.path", "is missing or empty");
    spec->root_path = g_canonicalize_filename(path, bundle);
    return TRUE;
}

/* @out: (transfer full) NULL when empty. */
static gboolean read_name(JsonObject *root, const char *name, char **out, GError **error)
{
    const char *text = NULL;

    if (!sv_json_get_string(root, name, "", &text, error))
        return FALSE;
    if (text && strlen(text) > HOSTNAME_MAX)
        return sv_spec_error(error, name, "is longer than %d bytes", HOSTNAME_MAX);
    *out = text && *text ? g_strdup(text) : NULL;
    return TRUE;
}

SvSpec *sv_spec_parse(const char *text, gsize len, const char *bundle, GError **error)
{
    g_autoptr(SvSpec) spec = spec_alloc();

    g_return_val_if_fail(g_path_is_absolute(bundle), NULL);
    spec->json = sv_json_parse(text, len, FALSE, "config.json", error);
    if (!spec->json)
        return NULL;
    json_node_seal(spec->json);
    JsonObject *root = json_node_get_object(spec->json);
    if (!read_version(spec, root, error) || !read_root(spec, root, bundle, error) ||
        !read_name(root, "hostname", &spec->hostname, error) ||
        !read_name(root, "domainname", &spec->domainname, error) ||
        !sv_spec_string_map(root, "annotations", "", spec->annotations, error) ||
        !sv_spec_read_process(spec, root, error) || !sv_spec_read_mounts(spec, root, error) ||
        !sv_spec_read_hooks(spec, root, error) || !sv_spec_read_linux(spec, root, error)) {
        g_prefix_error(error, "config.json: ");
        return NULL;
    }
    return g_steal_pointer(&spec);
}

SvSpec *sv_spec_load(const char *bundle, GError **error)
{
    g_autofree char *path = g_build_filename(bundle, "config.json", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) local = NULL;
    gsize len = 0;

    if (!g_path_is_absolute(bundle)) {
        g_set_error(error, SV_OCI_ERROR, SV_ERR_INVALID,
            "the bundle \"%s\" is not an absolute path", bundle);
        return NULL;
    }
    if (!sv_file_read(path, SV_SPEC_MAX, &text, &len, &local)) {
        g_set_error(error, SV_OCI_ERROR, local->code, "cannot load the bundle: %s", local->message);
        return NULL;
    }
    return sv_spec_parse(text, len, bundle, error);
}
