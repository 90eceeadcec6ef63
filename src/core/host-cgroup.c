/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/host-cgroup.h"

#include "base/fd.h"
#include "base/file.h"
#include "core/cgroup-mark.h"
#include "core/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACES_MAX 65536
#define VALUE_MAX 4096

/* ---- names */

static gboolean check_path(const char *path, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (char **part = parts; *part; part++)
        if (strcmp(*part, "..") == 0 || strcmp(*part, ".") == 0) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID,
                "linux.cgroupsPath: \"%s\" leads out of its place", path);
            return FALSE;
        }
    return TRUE;
}

/* "a-b.slice" is a folder in that of "a.slice". */
static char *slice_path(const char *slice)
{
    GString *path = g_string_new(NULL);
    if (!*slice)
        slice = "system.slice";
    const char *end = g_str_has_suffix(slice, ".slice") ? slice + strlen(slice) - 6 : NULL;
    for (const char *p = slice; end && p <= end && strcmp(slice, "-.slice") != 0; p++)
        if (*p == '-' || p == end)
            g_string_append_printf(path, "/%.*s.slice", (int)(p - slice), slice);
    return g_string_free(path, FALSE);
}

char *sv_cgroup_path(const char *text, gboolean systemd, char **slice, char **unit, GError **error)
{
    *slice = *unit = NULL;
    if (!check_path(text, error))
        return NULL;
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    if (!systemd || g_strv_length(parts) != 3)
        return g_canonicalize_filename(text, "/");
    *slice = slice_path(parts[0]);
    *unit = g_str_has_suffix(parts[2], ".slice")
        ? g_strdup(parts[2])
        : g_strdup_printf("%s%s%s.scope", parts[1], *parts[1] ? "-" : "", parts[2]);
    return g_strdup_printf("%s/%s", *slice, *unit);
}

char *sv_cgroup_sibling(const char *path, const char *name)
{
    g_autofree char *parent = g_path_get_dirname(path);
    return g_build_filename(parent, name, NULL);
}

/* ---- hierarchies */

GPtrArray *sv_cgroup_hierarchies(const char *top)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *v2 = g_build_filename(top, "cgroup.procs", NULL);
    g_autoptr(GDir) dir = NULL;
    const char *name;
    if (access(v2, F_OK) == 0) {
        g_ptr_array_add(list, g_strdup(top));
        return list;
    }
    dir = g_dir_open(top, 0, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(top, name, NULL);
        g_autofree char *procs = g_build_filename(path, "cgroup.procs", NULL);
        /* "cpu,cpuacct" has links beside it */
        if (!g_file_test(path, G_FILE_TEST_IS_SYMLINK) && access(procs, F_OK) == 0)
            g_ptr_array_add(list, g_steal_pointer(&path));
    }
    return list;
}

static gboolean write_value(const char *folder, const char *name, const char *value, GError **error)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_auto(SvFd) fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && TEMP_FAILURE_RETRY(write(fd, value, strlen(value))) >= 0)
        return TRUE;
    sv_error_set_errno(error, SV_CORE_ERROR, errno, "write %s to %s", value, path);
    return FALSE;
}

static char *read_value(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    char *text = NULL;
    if (!sv_file_read(path, VALUE_MAX, &text, NULL, NULL))
        return NULL;
    return g_strstrip(text);
}

/* A cpuset of version 1 allows nothing until it is told; engines leave theirs so. */
static void fill_cpuset(const char *parent, const char *folder)
{
    static const char *const names[] = {"cpuset.cpus", "cpuset.mems"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *mine = read_value(folder, names[i]);
        g_autofree char *theirs = read_value(parent, names[i]);
        if (mine && !*mine && theirs && *theirs && !write_value(folder, names[i], theirs, NULL))
            g_debug("ignoring: %s of %s", names[i], folder);
    }
}

/* In version 2 a parent says which controllers its children have. Refused where processes are. */
static void pass_controllers(const char *parent)
{
    g_autofree char *names = read_value(parent, "cgroup.controllers");
    g_auto(GStrv) list = g_strsplit(names ? names : "", " ", -1);
    for (char **name = list; *name; name++) {
        g_autofree char *value = g_strdup_printf("+%s", *name);
        if (**name && !write_value(parent, "cgroup.subtree_control", value, NULL))
            g_debug("ignoring: %s of %s", value, parent);
    }
}

/* Remembers the shortest in *@made. */
static void note_made(char **made, const char *path, gsize len)
{
    if (*made && strlen(*made) <= len)
        return;
    g_free(*made);
    *made = g_strndup(path, len);
}

static gboolean make_in(
    const char *hierarchy, const char *path, const char *owner, char **made, GError **error)
{
    g_autofree char *parent = g_strdup(hierarchy);
    for (const char *end = path; *end;) {
        end = strchrnul(end + 1, '/');
        g_autofree char *folder = g_strdup_printf("%s%.*s", hierarchy, (int)(end - path), path);
        if (mkdir(folder, 0755) == 0) {
            note_made(made, path, (gsize)(end - path));
            if (owner)
                sv_cgroup_mark(folder, owner);
            pass_controllers(parent);
        } else if (errno != EEXIST) {
            sv_error_set_errno(error, SV_CORE_ERROR, errno, "make cgroup %s", folder);
            return FALSE;
        }
        fill_cpuset(parent, folder);
        g_free(parent);
        parent = g_steal_pointer(&folder);
    }
    return TRUE;
}

/* ---- what callers do */

/* Keeps the first error. */
static void note(GError **first, GError *error)
{
    if (!error)
        return;
    if (*first)
        g_error_free(error);
    else
        *first = error;
}

static gboolean end(GError *first, GError **error)
{
    if (first)
        g_propagate_error(error, first);
    return first == NULL;
}

gboolean sv_cgroup_make(
    const char *top, const char *path, const char *owner, char **made, GError **error)
{
    g_autoptr(GPtrArray) list = sv_cgroup_hierarchies(top);
    GError *first = NULL;
    *made = NULL;
    for (guint i = 0; i < list->len; i++) {
        GError *local = NULL;
        if (!make_in(list->pdata[i], path, owner, made, &local))
            note(&first, local);
    }
    return end(first, error);
}

gboolean sv_cgroup_enter(
    const char *top, const char *path, pid_t pid, gboolean keep_devices, GError **error)
{
    g_autoptr(GPtrArray) list = sv_cgroup_hierarchies(top);
    g_autofree char *value = g_strdup_printf("%d", (int)pid);
    GError *first = NULL;
    for (guint i = 0; i < list->len; i++) {
        GError *local = NULL;
        g_autofree char *folder = g_strconcat(list->pdata[i], path, NULL);
        if (keep_devices && g_str_has_suffix(list->pdata[i], "/devices"))
            continue;
        if (!write_value(folder, "cgroup.procs", value, &local))
            note(&first, local);
    }
    return end(first, error);
}

void sv_cgroup_remove(const char *top, const char *path, const char *made)
{
    g_autoptr(GPtrArray) list = sv_cgroup_hierarchies(top);
    gsize least = made ? strlen(made) : strlen(path);
    for (guint i = 0; i < list->len; i++) {
        g_autofree char *rest = g_strdup(path);
        while (strlen(rest) >= least && strlen(rest) > 1) {
            g_autofree char *folder = g_strconcat(list->pdata[i], rest, NULL);
            if (rmdir(folder) < 0 && errno != ENOENT)
                break;
            *strrchr(rest, '/') = '\0';
        }
    }
}

char *sv_cgroup_places(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/cgroup", (int)pid);
    char *text = NULL;
    return sv_file_read(path, PLACES_MAX, &text, NULL, NULL) ? text : NULL;
}

/* The hierarchy with these controllers, as a line of /proc/PID/cgroup names them (transfer full). */
static char *hierarchy_of(const char *top, const char *controllers)
{
    g_autofree char *procs = g_build_filename(top, "cgroup.procs", NULL);
    if (*controllers)
        return g_build_filename(
            top, g_str_has_prefix(controllers, "name=") ? controllers + 5 : controllers, NULL);
    return access(procs, F_OK) == 0 ? g_strdup(top) : g_build_filename(top, "unified", NULL);
}

static gboolean return_to(
    const char *top, const char *line, pid_t pid, gboolean domain, GError **error)
{
    g_auto(GStrv) fields = g_strsplit(line, ":", 3);
    g_autofree char *value = g_strdup_printf("%d", (int)pid);
    if (g_strv_length(fields) != 3)
        return TRUE;
    if (domain && g_str_has_suffix(fields[2], "/emulator"))
        *strrchr(fields[2], '/') = '\0';
    g_autofree char *hierarchy = hierarchy_of(top, fields[1]);
    g_autofree char *folder = g_build_filename(hierarchy, fields[2], NULL);
    g_autofree char *procs = g_build_filename(folder, "cgroup.procs", NULL);
    if (access(procs, F_OK) < 0)
        return TRUE; /* a hierarchy that is not mounted here */
    return write_value(folder, "cgroup.procs", value, error);
}

gboolean sv_cgroup_return(
    const char *top, const char *places, pid_t pid, gboolean domain, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(places, "\n", -1);
    GError *first = NULL;
    for (char **line = lines; *line; line++) {
        GError *local = NULL;
        if (!return_to(top, *line, pid, domain, &local))
            note(&first, local);
    }
    return end(first, error);
}
