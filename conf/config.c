/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "conf/config.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "conf/keys.h"

#define MAX_FILE (1024 * 1024)

/* What the public constness hides. */
typedef struct {
    SvConfig config; /* immutable once sv_config_load has returned */
    gatomicrefcount refs;
} Shared;

GQuark sv_conf_error_quark(void)
{
    return g_quark_from_static_string("sv-conf-error-quark");
}

const SvConfig *sv_config_ref(const SvConfig *config)
{
    g_return_val_if_fail(config != NULL, NULL);
    g_atomic_ref_count_inc(&((Shared *)config)->refs);
    return config;
}

void sv_config_unref(const SvConfig *config)
{
    Shared *shared = (Shared *)config;
    if (shared == NULL || !g_atomic_ref_count_dec(&shared->refs))
        return;
    guint n = 0;
    const SvKey *keys = sv_keys(&n);
    for (guint i = 0; i < n; i++)
        sv_key_clear(&keys[i], &shared->config);
    g_free(shared->config.path);
    g_free(shared);
}

static Shared *new_default(void)
{
    Shared *shared = g_new0(Shared, 1);
    g_atomic_ref_count_init(&shared->refs);
    guint n = 0;
    const SvKey *keys = sv_keys(&n);
    for (guint i = 0; i < n; i++) {
        g_autoptr(GError) error = NULL;
        if (!sv_key_set(&keys[i], keys[i].def, &shared->config, &error))
            g_error("default of %s: %s", keys[i].name, error->message);
    }
    return shared;
}

/* GKeyFile gives no line numbers. The last line of @group that sets @name (what GKeyFile uses), or
 * the first header of @group when @name is NULL; with @group NULL the first line that is nothing a
 * key file may hold. 0: not found. */
static guint find_line(const char *text, const char *group, const char *name)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree char *header = g_strdup_printf("[%s]", group != NULL ? group : "");
    gboolean inside = FALSE, any = FALSE;
    guint found = 0;
    for (guint i = 0; lines[i] != NULL; i++) {
        char *line = g_strstrip(lines[i]);
        if (*line == '\0' || *line == '#')
            continue;
        if (*line == '[' && g_str_has_suffix(line, "]")) {
            inside = strcmp(line, header) == 0;
            any = TRUE;
            if (inside && group != NULL && name == NULL)
                return i + 1;
            continue;
        }
        char *equals = strchr(line, '=');
        if (group == NULL && (equals == NULL || equals == line || !any))
            return i + 1;
        if (equals == NULL || !inside || name == NULL)
            continue;
        *equals = '\0';
        if (strcmp(g_strchomp(line), name) == 0)
            found = i + 1;
    }
    return found;
}

/* Puts "FILE:LINE: " (or "FILE: ") in front. */
static void prefix_place(GError **error, const char *path, guint line)
{
    if (line > 0)
        g_prefix_error(error, "%s:%u: ", path, line);
    else
        g_prefix_error(error, "%s: ", path);
}

static gboolean apply_key(SvConfig *config, GKeyFile *file, const char *path, const char *text,
    const char *group, const char *name, GError **error)
{
    const SvKey *key = sv_keys_find(group, name);
    gboolean ok = FALSE;
    if (key == NULL) {
        g_set_error(
            error, SV_CONF_ERROR, SV_ERR_INVALID, "unknown key \"%s\" in [%s]", name, group);
    } else {
        g_autoptr(GError) local = NULL;
        g_autofree char *value = g_key_file_get_string(file, group, name, &local);
        if (value == NULL)
            g_set_error(error, SV_CONF_ERROR, SV_ERR_INVALID, "%s: %s", name, local->message);
        else if (!(ok = sv_key_set(key, g_strstrip(value), config, error)))
            g_prefix_error(error, "%s: ", name);
    }
    if (!ok)
        prefix_place(error, path, find_line(text, group, name));
    return ok;
}

static gboolean apply_group(SvConfig *config, GKeyFile *file, const char *path, const char *text,
    const char *group, GError **error)
{
    if (!sv_keys_has_group(group)) {
        g_autofree char *shown = sv_printable(group, 80);
        g_set_error(error, SV_CONF_ERROR, SV_ERR_INVALID, "unknown group [%s]", shown);
        prefix_place(error, path, find_line(text, group, NULL));
        return FALSE;
    }
    g_auto(GStrv) names = g_key_file_get_keys(file, group, NULL, NULL);
    for (guint i = 0; names != NULL && names[i] != NULL; i++) {
        if (!apply_key(config, file, path, text, group, names[i], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean load_file(SvConfig *config, const char *path, GError **error)
{
    g_autofree char *text = NULL;
    gsize len = 0;
    if (!sv_file_read(path, MAX_FILE, &text, &len, error))
        return FALSE;
    if (strlen(text) != len) {
        g_set_error(error, SV_CONF_ERROR, SV_ERR_INVALID, "%s: holds a NUL byte", path);
        return FALSE;
    }

    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) local = NULL;
    if (len > 0 && !g_key_file_load_from_data(file, text, len, G_KEY_FILE_NONE, &local)) {
        g_autofree char *shown = sv_printable(local->message, 300);
        g_set_error(error, SV_CONF_ERROR, SV_ERR_INVALID, "%s", shown);
        prefix_place(error, path, find_line(text, NULL, NULL));
        return FALSE;
    }
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    for (guint i = 0; groups[i] != NULL; i++) {
        if (!apply_group(config, file, path, text, groups[i], error))
            return FALSE;
    }
    return TRUE;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static gboolean load_drop_ins(SvConfig *config, const char *path, GError **error)
{
    g_autofree char *folder = g_strdup_printf("%s.d", path);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    if (dir == NULL)
        return TRUE;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name = NULL;
    while ((name = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_suffix(name, ".conf") && *name != '.')
            g_ptr_array_add(names, g_strdup(name));
    }
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *file = g_build_filename(folder, names->pdata[i], NULL);
        if (!load_file(config, file, error))
            return FALSE;
    }
    return TRUE;
}

/* What no single key can tell. */
static const char *find_contradiction(const SvConfig *config)
{
    if (config->memory_mib > config->max_memory_mib)
        return "memory_mib is larger than max_memory_mib";
    if (config->vcpus > config->max_vcpus)
        return "vcpus is larger than max_vcpus";
    if ((config->uid_first == 0) != (config->uid_last == 0) || config->uid_first > config->uid_last)
        return "uid_first and uid_last are no range";
    if (strcmp(config->disk_io, "native") == 0 && strcmp(config->disk_cache, "none") != 0 &&
        strcmp(config->disk_cache, "directsync") != 0)
        return "disk_io \"native\" needs disk_cache \"none\" or \"directsync\"";
    if (*config->uri == '\0')
        return "uri is empty";
    if (*config->run_dir == '\0' || *config->image_dir == '\0')
        return "run_dir and image_dir cannot be empty";
    return NULL;
}

static gboolean finish(SvConfig *config, const char *path, GError **error)
{
    if (config->max_memory_mib == 0) {
        guint64 bytes = (guint64)sysconf(_SC_PHYS_PAGES) * (guint64)sysconf(_SC_PAGESIZE);
        config->max_memory_mib = (guint)MAX(bytes >> 20, config->memory_mib);
    }
    if (config->max_vcpus == 0)
        config->max_vcpus = MAX(g_get_num_processors(), config->vcpus);
    const char *wrong = find_contradiction(config);
    if (wrong == NULL)
        return TRUE;
    g_set_error(error, SV_CONF_ERROR, SV_ERR_INVALID, "%s: %s", path, wrong);
    return FALSE;
}

const SvConfig *sv_config_load(const char *path, GError **error)
{
    const char *file = path != NULL ? path : SV_SYSCONFDIR "/" SV_CONFIG_FILE;
    Shared *shared = new_default();
    SvConfig *config = &shared->config;
    gboolean there = path != NULL || access(file, F_OK) == 0;
    config->path = g_strdup(path);
    if ((there && !load_file(config, file, error)) || !load_drop_ins(config, file, error) ||
        !finish(config, file, error)) {
        g_prefix_error(error, "configuration: ");
        sv_config_unref(config);
        return NULL;
    }
    return config;
}
