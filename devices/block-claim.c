/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/block-claim.h"

#include "base/fd.h"
#include "base/file.h"
#include "devices/block-probe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CLAIMS_MAX (1024 * 1024)
#define N_FIELDS 7

void sv_block_claim_free(SvBlockClaim *claim)
{
    if (claim == NULL)
        return;
    g_free(claim->device);
    g_free(claim->disk);
    g_free(claim->boot_id);
    g_free(claim->root);
    g_free(claim->sandbox);
    g_free(claim->container);
    g_free(claim->alias);
    g_free(claim);
}

/* ---- lines */

static void append_line(GString *text, const SvBlockClaim *claim)
{
    /* ids, numbers and aliases have no blanks; a path may have anything */
    g_autofree char *root = g_strescape(claim->root, NULL);
    g_string_append_printf(text, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
        claim->exclusive ? "own" : "shared", claim->device, claim->boot_id, claim->sandbox,
        claim->container, claim->alias, root);
}

/* NULL for a line that is none of ours. */
static SvBlockClaim *parse_line(const char *line, const char *disk)
{
    g_auto(GStrv) f = g_strsplit(line, "\t", N_FIELDS + 1);
    if (g_strv_length(f) != N_FIELDS)
        return NULL;
    SvBlockClaim *claim = g_new0(SvBlockClaim, 1);
    claim->exclusive = strcmp(f[0], "shared") != 0;
    claim->disk = g_strdup(disk);
    claim->device = g_strdup(f[1]);
    claim->boot_id = g_strdup(f[2]);
    claim->sandbox = g_strdup(f[3]);
    claim->container = g_strdup(f[4]);
    claim->alias = g_strdup(f[5]);
    claim->root = g_strcompress(f[6]);
    return claim;
}

static void parse(const char *text, const char *disk, GPtrArray *claims)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        SvBlockClaim *claim = parse_line(*line, disk);
        if (claim != NULL)
            g_ptr_array_add(claims, claim);
    }
}

/* ---- the file of a disk, locked */

static char *file_of(const char *dir, const char *disk)
{
    return g_build_filename(dir, disk, NULL);
}

/* Held for the time of two small writes: who meets it wants the disk at the same moment. */
static int lock_file(const char *path, GError **error)
{
    GError *local = NULL;
    int fd = sv_file_lock(path, &local);
    if (sv_error_is(local, SV_ERR_BUSY)) {
        g_clear_error(&local);
        g_set_error_literal(error, SV_DEVICES_ERROR, SV_ERR_BUSY,
            "it is being taken by another container at this moment");
    } else if (local != NULL) {
        g_propagate_prefixed_error(error, local, "claim of a disk: ");
    }
    return fd;
}

static gboolean load(int fd, const char *disk, GPtrArray *claims, GError **error)
{
    g_autofree char *text = NULL;
    if (lseek(fd, 0, SEEK_SET) < 0 || !sv_fd_read_all(fd, CLAIMS_MAX, &text, NULL, error))
        return FALSE;
    parse(text, disk, claims);
    return TRUE;
}

/* Shorter than a page, so that a kill does not leave half of it. */
static gboolean save(int fd, const char *path, const GPtrArray *claims, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < claims->len; i++)
        append_line(text, claims->pdata[i]);
    if (claims->len == 0)
        unlink(path);
    if (pwrite(fd, text->str, text->len, 0) == (ssize_t)text->len &&
        ftruncate(fd, (off_t)text->len) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_DEVICES_ERROR, errno, "claim of a disk: \"%s\"", path);
    return FALSE;
}

static gboolean is_same(const SvBlockClaim *a, const SvBlockClaim *b)
{
    return strcmp(a->alias, b->alias) == 0 && strcmp(a->root, b->root) == 0;
}

/* A disk and its partition, or the same; two partitions do not meet. */
static gboolean meet(const SvBlockClaim *a, const SvBlockClaim *b)
{
    return strcmp(a->device, b->device) == 0 || strcmp(a->device, a->disk) == 0 ||
        strcmp(b->device, b->disk) == 0;
}

static gboolean refuse(const SvBlockClaim *claim, const SvBlockClaim *other, GError **error)
{
    g_autofree char *sandbox = sv_printable(other->sandbox, 250);
    g_autofree char *container = sv_printable(other->container, 250);
    g_set_error(error, SV_DEVICES_ERROR, SV_ERR_BUSY,
        "it is a disk of container \"%s\" (sandbox \"%s\")%s", container, sandbox,
        strcmp(claim->device, other->device) != 0 ? ", whole or in part" : "");
    return FALSE;
}

gboolean sv_block_claim_take(const char *dir, const SvBlockClaim *claim, SvBlockClaimAlive alive,
    gpointer user_data, guint *others, GError **error)
{
    g_autofree char *path = file_of(dir, claim->disk);
    g_autoptr(GPtrArray) claims =
        g_ptr_array_new_with_free_func((GDestroyNotify)sv_block_claim_free);
    if (!sv_file_mkdirs(dir, 0700, error))
        return FALSE;
    g_auto(SvFd) fd = lock_file(path, error);
    if (fd < 0 || !load(fd, claim->disk, claims, error))
        return FALSE;
    guint n = 0;
    for (guint i = claims->len; i > 0; i--) {
        const SvBlockClaim *other = claims->pdata[i - 1];
        if (is_same(claim, other) || !alive(other, user_data)) {
            g_ptr_array_remove_index(claims, i - 1);
            continue;
        }
        if (!meet(claim, other))
            continue;
        if (claim->exclusive || other->exclusive)
            return refuse(claim, other, error);
        n++;
    }
    SvBlockClaim *copy = g_new0(SvBlockClaim, 1);
    copy->exclusive = claim->exclusive;
    copy->device = g_strdup(claim->device);
    copy->disk = g_strdup(claim->disk);
    copy->boot_id = g_strdup(claim->boot_id);
    copy->root = g_strdup(claim->root);
    copy->sandbox = g_strdup(claim->sandbox);
    copy->container = g_strdup(claim->container);
    copy->alias = g_strdup(claim->alias);
    g_ptr_array_add(claims, copy);
    if (others != NULL)
        *others = n;
    return save(fd, path, claims, error);
}

void sv_block_claim_drop(const char *dir, const SvBlockClaim *claim)
{
    g_autofree char *path = file_of(dir, claim->disk);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) claims =
        g_ptr_array_new_with_free_func((GDestroyNotify)sv_block_claim_free);
    g_auto(SvFd) fd = lock_file(path, &error);
    gboolean ok = fd >= 0 && load(fd, claim->disk, claims, &error);
    for (guint i = claims->len; ok && i > 0; i--)
        if (is_same(claim, claims->pdata[i - 1]))
            g_ptr_array_remove_index(claims, i - 1);
    if (ok)
        ok = save(fd, path, claims, &error);
    if (!ok && !sv_error_is(error, SV_ERR_NOT_FOUND))
        g_debug("ignoring: %s", error->message);
}

GPtrArray *sv_block_claim_list(const char *dir)
{
    GPtrArray *claims = g_ptr_array_new_with_free_func((GDestroyNotify)sv_block_claim_free);
    GDir *stream = g_dir_open(dir, 0, NULL);
    const char *name;
    while (stream != NULL && (name = g_dir_read_name(stream)) != NULL) {
        g_autofree char *path = file_of(dir, name);
        g_autofree char *text = NULL;
        if (sv_file_read(path, CLAIMS_MAX, &text, NULL, NULL))
            parse(text, name, claims);
    }
    if (stream != NULL)
        g_dir_close(stream);
    return claims;
}
