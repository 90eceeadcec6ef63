/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/paths.h"

#include "base/file.h"
#include "base/names.h"
#include "core/lifecycle.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Longest domain name without a hash: libvirt makes file names of it ("NAME.log"), and 64 hex digits
 * behind "sandvirt-" must fit. */
#define NAME_MAX_PLAIN 100
#define NAME_KEPT 60

/* Real path of the longest part that exists, the rest as given: the same name before and after the
 * folder is made. */
static char *resolve(const char *path)
{
    g_autofree char *full = g_canonicalize_filename(path, NULL);
    g_autofree char *head = g_strdup(full);

    for (;;) {
        g_autofree char *real = realpath(head, NULL);

        if (real) {
            const char *rest = full + strlen(head);

            while (*rest == '/')
                rest++;
            return *rest ? g_build_filename(real, rest, NULL) : g_steal_pointer(&real);
        }
        if (strcmp(head, "/") == 0)
            return g_steal_pointer(&full);
        char *parent = g_path_get_dirname(head);
        g_free(head);
        head = parent;
    }
}

static gboolean make_root(const char *root, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(root);

    if (mkdir(root, 0700) == 0 || errno == EEXIST)
        return TRUE;
    if (errno == ENOENT) {
        if (!sv_file_mkdirs(parent, 0755, error))
            return FALSE;
        if (mkdir(root, 0700) == 0 || errno == EEXIST)
            return TRUE;
    }
    sv_error_set_errno(error, SV_CORE_ERROR, errno, "cannot make the state folder \"%s\"", root);
    return FALSE;
}

/* An RFC 9562 uuid (version 8, custom) of the digest. */
static char *uuid_of(const guint8 *digest)
{
    guint8 b[16];

    memcpy(b, digest + 16, sizeof b);
    b[6] = (b[6] & 0x0f) | 0x80;
    b[8] = (b[8] & 0x3f) | 0x80;
    return g_strdup_printf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
        b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
        b[14], b[15]);
}

/* @hash: 16 hex digits, @uuid: (transfer full both) from sha256(root, NUL, sandbox). */
static void derive(const char *root, const char *sandbox, char **hash, char **uuid)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    guint8 digest[32];
    gsize len = sizeof digest;

    g_checksum_update(sum, (const guchar *)root, strlen(root) + 1);
    g_checksum_update(sum, (const guchar *)sandbox, strlen(sandbox));
    g_checksum_get_digest(sum, digest, &len);
    *hash = g_strdup_printf("%02x%02x%02x%02x%02x%02x%02x%02x", digest[0], digest[1], digest[2],
        digest[3], digest[4], digest[5], digest[6], digest[7]);
    *uuid = uuid_of(digest);
}

/* '@' is in no id: a name with a hash is never another sandbox's plain name. */
static char *domain_name(const char *root, const char *sandbox, const char *hash)
{
    g_autofree char *standard = resolve(SV_DEFAULT_ROOT);

    if (strlen(sandbox) + strlen("sandvirt-") > NAME_MAX_PLAIN)
        return g_strdup_printf("sandvirt-%.*s@%s", NAME_KEPT, sandbox, hash);
    if (strcmp(root, standard) != 0)
        return g_strdup_printf("sandvirt-%s@%s", sandbox, hash);
    return g_strdup_printf("sandvirt-%s", sandbox);
}

SvPaths *sv_paths_new(
    const SvConfig *config, const char *root, const char *sandbox, gboolean make, GError **error)
{
    g_autoptr(SvPaths) p = g_new0(SvPaths, 1);
    g_autofree char *run = g_canonicalize_filename(config->run_dir, "/");
    g_autofree char *images = g_canonicalize_filename(config->image_dir, "/");
    g_autofree char *data = g_path_get_dirname(images);

    if (!sv_id_check(sandbox, "sandbox id", error))
        return NULL;
    if (root && !*root) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_INVALID, "the state folder's path is empty");
        return NULL;
    }
    p->root = resolve(root ? root : SV_DEFAULT_ROOT);
    if (make && !make_root(p->root, error))
        return NULL;

    p->sandbox = g_strdup(sandbox);
    derive(p->root, sandbox, &p->hash, &p->domain_uuid);
    p->domain_name = domain_name(p->root, sandbox, p->hash);
    p->state_dir = g_build_filename(p->root, ".sandbox", sandbox, NULL);
    p->sandbox_file = g_build_filename(p->state_dir, "sandbox.json", NULL);
    p->lock_file = g_build_filename(p->state_dir, "lock", NULL);

    p->sock_dir = g_build_filename(run, ".sock", NULL);
    p->monitor_name = g_strconcat(p->hash, ".monitor", NULL);
    p->monitor_socket = g_build_filename(p->sock_dir, p->monitor_name, NULL);
    p->agent_socket = g_strconcat(p->sock_dir, "/", p->hash, ".agent", NULL);
    p->owner_file = g_strconcat(p->sock_dir, "/", p->hash, ".owner", NULL);
    p->launcher_socket = config->launcher_socket && *config->launcher_socket
        ? g_strdup(config->launcher_socket)
        : g_build_filename(p->sock_dir, "launcher", NULL);

    p->box_dir = g_build_filename(run, ".box", p->hash, NULL);
    p->base_dir = g_build_filename(p->box_dir, "base", NULL);
    p->share_dir = g_build_filename(p->box_dir, "share", NULL);
    p->console_log = g_build_filename(p->box_dir, "console.log", NULL);
    p->boot_dir = g_build_filename(data, "boot", p->hash, NULL);
    p->boot_kernel = g_build_filename(p->boot_dir, "kernel", NULL);
    p->boot_image = g_build_filename(p->boot_dir, "image", NULL);
    return g_steal_pointer(&p);
}

void sv_paths_free(SvPaths *paths)
{
    if (!paths)
        return;
    g_free(paths->root);
    g_free(paths->sandbox);
    g_free(paths->hash);
    g_free(paths->state_dir);
    g_free(paths->sandbox_file);
    g_free(paths->lock_file);
    g_free(paths->sock_dir);
    g_free(paths->monitor_name);
    g_free(paths->monitor_socket);
    g_free(paths->agent_socket);
    g_free(paths->launcher_socket);
    g_free(paths->owner_file);
    g_free(paths->box_dir);
    g_free(paths->base_dir);
    g_free(paths->share_dir);
    g_free(paths->console_log);
    g_free(paths->boot_dir);
    g_free(paths->boot_kernel);
    g_free(paths->boot_image);
    g_free(paths->domain_name);
    g_free(paths->domain_uuid);
    g_free(paths);
}

guint32 sv_paths_mark(const SvPaths *paths)
{
    g_autofree char *hash = NULL, *uuid = NULL;

    derive(paths->root, "", &hash, &uuid);
    return (guint32)g_ascii_strtoull(hash, NULL, 16) | 1;
}

char *sv_paths_container_dir(const char *root, const char *id)
{
    return g_build_filename(root, id, NULL);
}

char *sv_paths_container_file(const char *root, const char *id)
{
    return g_build_filename(root, id, SV_PATHS_RECORD, NULL);
}

char *sv_paths_entry_dir(const char *root, const char *sandbox)
{
    return g_build_filename(root, ".sandbox", sandbox, "entry", NULL);
}
