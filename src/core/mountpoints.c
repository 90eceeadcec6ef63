/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/mountpoints.h"

#include "base/fd.h"
#include "core/lifecycle.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_LINKS 40 /* of the kernel */
#define MAX_RETRIES 16 /* openat2 says EAGAIN when something is renamed meanwhile */

static int open_in_root(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags = (guint64)(flags | O_PATH | O_CLOEXEC),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    int fd = -1;

    for (guint i = 0; i < MAX_RETRIES; i++) {
        fd = syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return fd;
}

static gboolean fail(GError **error, int errsv, const char *path)
{
    g_autofree char *text = sv_printable(path, 256);

    sv_error_set_errno(
        error, SV_CORE_ERROR, errsv, "cannot make \"%s\" in the root file system", text);
    return FALSE;
}

/* Where the link @name in @parent (at @prefix, from the root) leads, and on to @rest; (transfer full)
 * NULL with errno. */
static char *follow(int parent, const char *name, const char *prefix, char **rest)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(parent, name, target, sizeof target - 1);
    g_autofree char *tail = g_strjoinv("/", rest);

    if (n < 0)
        return NULL;
    target[n] = '\0';
    if (target[0] == '/')
        return g_strconcat(target, "/", tail, NULL);
    return g_strconcat(prefix, "/", target, "/", tail, NULL);
}

/* One component; *again (transfer full): it was a link to nothing, go on there. */
static gboolean make_one(
    int root, const char *prefix, char **rest, gboolean is_dir, char **again, GError **error)
{
    const char *name = rest[0];
    g_auto(SvFd) parent = open_in_root(root, *prefix ? prefix : ".", O_DIRECTORY);
    int result = -1;

    if (parent < 0)
        return fail(error, errno, prefix);
    result =
        rest[1] || is_dir ? mkdirat(parent, name, 0755) : mknodat(parent, name, S_IFREG | 0644, 0);
    if (result == 0)
        return TRUE;
    if (errno != EEXIST)
        return fail(error, errno, name);
    *again = follow(parent, name, prefix, rest + 1);
    return *again || fail(error, EEXIST, name);
}

/* The components of @path, without empty ones. */
static GStrv split(const char *path)
{
    g_auto(GStrv) all = g_strsplit(path, "/", -1);
    g_autoptr(GStrvBuilder) parts = g_strv_builder_new();

    for (char **part = all; *part; part++)
        if (**part)
            g_strv_builder_add(parts, *part);
    return g_strv_builder_end(parts);
}

static gboolean make_in_root(
    int root, const char *path, gboolean is_dir, guint links, GError **error)
{
    g_auto(GStrv) parts = split(path);
    g_autoptr(GString) prefix = g_string_new(NULL);

    for (char **part = parts; *part; part++) {
        g_autofree char *parent = g_strdup(prefix->str);
        g_auto(SvFd) fd = -1;
        g_autofree char *again = NULL;

        g_string_append_printf(prefix, "%s%s", prefix->len ? "/" : "", *part);
        fd = open_in_root(root, prefix->str, 0);
        if (fd >= 0)
            continue;
        if (errno != ENOENT)
            return fail(error, errno, path);
        if (!make_one(root, parent, part, is_dir, &again, error))
            return FALSE;
        if (again && links >= MAX_LINKS)
            return fail(error, ELOOP, path);
        if (again)
            return make_in_root(root, again, is_dir, links + 1, error);
    }
    return TRUE;
}

/* Below the destination of one of the first @n mounts: then it is made in that mount, not in the rootfs. */
static gboolean is_covered(const SvSpec *spec, guint n, const char *path)
{
    for (guint i = 0; i < n; i++) {
        const SvSpecMount *mount = spec->mounts->pdata[i];
        g_autofree char *top = g_canonicalize_filename(mount->destination, "/");
        gsize len = strlen(top);

        if (len > 1 && strncmp(path, top, len) == 0 && path[len] == '/')
            return TRUE;
    }
    return FALSE;
}

static void make_working_directory(int root, const SvSpec *spec)
{
    JsonObject *object = json_node_get_object(spec->json);
    const char *cwd = NULL;
    g_autoptr(GError) error = NULL;

    if (!spec->has_process)
        return;
    object = json_object_get_object_member(object, "process");
    cwd = json_object_get_string_member(object, "cwd");
    g_autofree char *path = g_canonicalize_filename(cwd, "/");
    if (!is_covered(spec, spec->mounts->len, path) && !make_in_root(root, path, TRUE, 0, &error))
        g_debug("ignoring: %s", error->message);
}

gboolean sv_mountpoints_make(const SvSpec *spec, const SvSourceInfo *sources, GError **error)
{
    g_auto(SvFd) root = open(spec->root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0) {
        sv_error_set_errno(error, SV_CORE_ERROR, errno, "cannot open the root file system \"%s\"",
            spec->root_path);
        return FALSE;
    }
    for (guint i = 0; i < spec->mounts->len; i++) {
        const SvSpecMount *mount = spec->mounts->pdata[i];
        g_autofree char *path = g_canonicalize_filename(mount->destination, "/");
        gboolean is_dir = !sv_spec_mount_is_bind(mount) || sources[i].is_dir;

        if (is_covered(spec, i, path))
            continue;
        if (!make_in_root(root, path, is_dir, 0, error)) {
            g_prefix_error(error, "mounts[%u]: ", i);
            return FALSE;
        }
    }
    make_working_directory(root, spec);
    return TRUE;
}
