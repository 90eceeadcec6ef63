/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/uids.h"

#include "base/fd.h"
#include "base/file.h"
#include "base/names.h"
#include "core/record.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLAIM_MAX 16384
#define NO_GROUP ((gid_t)-1)
#define MAX_GROUPS 64

static char *claim_path(const SvConfig *config, guint uid)
{
    g_autofree char *name = g_strdup_printf("%u", uid);
    return g_build_filename(config->run_dir, ".uid", name, NULL);
}

static char *claim_text(const SvPaths *paths)
{
    /* an id has no newline, a root may have some */
    return g_strdup_printf("%s\n%s", paths->sandbox, paths->root);
}

/* A claim counts as long as the record of its sandbox names the same user. */
static gboolean is_claimed(const SvConfig *config, guint uid, int fd)
{
    g_autofree char *text = NULL;
    if (!sv_fd_read_all(fd, CLAIM_MAX, &text, NULL, NULL))
        return TRUE;
    char *root = strchr(text, '\n');
    if (!root)
        return FALSE;
    *root++ = '\0';
    g_autoptr(GError) error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(config, root, text, FALSE, NULL);
    g_autoptr(SvSandboxRecord) record = paths ? sv_sandbox_record_load(paths, &error) : NULL;
    if (!record)
        return paths && !sv_error_is(error, SV_ERR_NOT_FOUND); /* damaged: it may have a machine */
    return record->uid == (int)uid;
}

/* Shorter than a page, so that a kill does not leave half of it; and half of it names no record that has the
 * user. */
static gboolean write_claim(int fd, const char *path, const char *text, GError **error)
{
    gsize len = strlen(text);
    if (pwrite(fd, text, len, 0) == (ssize_t)len && ftruncate(fd, (off_t)len) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_CORE_ERROR, errno, "write %s", path);
    return FALSE;
}

/* 1: taken; 0: somebody else has it, or is about to; -1: @error. */
static int try_one(const SvConfig *config, const SvPaths *paths, guint uid, SvUidSave save,
    gpointer user_data, GError **error)
{
    g_autofree char *path = claim_path(config, uid);
    g_autofree char *text = claim_text(paths);
    GError *local = NULL;
    /* Each user has a lock of its own that nobody waits for: a sandbox that is stuck holds up no other. */
    g_auto(SvFd) lock = sv_file_lock(path, &local);
    if (lock < 0 && sv_error_is(local, SV_ERR_BUSY)) {
        g_error_free(local);
        return 0;
    }
    if (lock < 0) {
        g_propagate_error(error, local);
        return -1;
    }
    if (is_claimed(config, uid, lock))
        return 0;
    if (write_claim(lock, path, text, error) && save((int)uid, user_data, error))
        return 1;
    unlink(path);
    return -1;
}

/* Users of the range that own a process: nobody gets these, whatever the claims say. */
static GHashTable *running_users(const SvConfig *config)
{
    GHashTable *set = g_hash_table_new(NULL, NULL);
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename("/proc", name, NULL);
        struct stat st;
        if (g_ascii_isdigit(*name) && stat(path, &st) == 0 && st.st_uid >= config->uid_first &&
            st.st_uid <= config->uid_last)
            g_hash_table_add(set, GUINT_TO_POINTER(st.st_uid));
    }
    return set;
}

gboolean sv_uids_take(const SvConfig *config, const SvPaths *paths, SvUidSave save,
    gpointer user_data, int *uid, GError **error)
{
    *uid = -1;
    if (config->uid_first == 0)
        return TRUE;
    g_autofree char *folder = g_build_filename(config->run_dir, ".uid", NULL);
    if (!sv_file_mkdirs(folder, 0700, error))
        return FALSE;
    g_autoptr(GHashTable) running = running_users(config);
    for (guint one = config->uid_first; one <= config->uid_last; one++) {
        if (g_hash_table_contains(running, GUINT_TO_POINTER(one)))
            continue;
        if (sv_uids_group((int)one) < 0) {
            g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND,
                "uid %u of [hypervisor] uid_first is no user of this host", one);
            return FALSE;
        }
        int taken = try_one(config, paths, one, save, user_data, error);
        if (taken > 0)
            *uid = (int)one;
        if (taken != 0)
            return taken > 0;
    }
    g_set_error(error, SV_CORE_ERROR, SV_ERR_LIMIT,
        "no user is left for another machine: all of %u to %u are taken", config->uid_first,
        config->uid_last);
    return FALSE;
}

void sv_uids_release(const SvConfig *config, const SvPaths *paths, int uid)
{
    if (uid < 0 || config->uid_first == 0)
        return;
    g_autofree char *path = claim_path(config, (guint)uid);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return;
    /* held by who looks at it now: the claim stays, and counts for nothing */
    g_auto(SvFd) lock = sv_file_lock(path, NULL);
    g_autofree char *mine = claim_text(paths);
    g_autofree char *text = NULL;
    if (lock >= 0 && sv_fd_read_all(lock, CLAIM_MAX, &text, NULL, NULL) &&
        (!*text || strcmp(text, mine) == 0))
        unlink(path);
}

static void claim_free(gpointer data)
{
    SvUidClaim *claim = data;
    g_free(claim->root);
    g_free(claim->sandbox);
    g_free(claim);
}

static SvUidClaim *read_claim(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *text = NULL;
    gint64 uid = 0;
    char *root = NULL;
    if (sv_parse_int64(name, 1, G_MAXINT, &uid, NULL) &&
        sv_file_read(path, CLAIM_MAX, &text, NULL, NULL))
        root = strchr(text, '\n');
    if (!root)
        return NULL;
    *root++ = '\0';
    SvUidClaim *claim = g_new0(SvUidClaim, 1);
    claim->uid = (int)uid;
    claim->root = g_strdup(root);
    claim->sandbox = g_strdup(text);
    return claim;
}

GPtrArray *sv_uids_list(const SvConfig *config)
{
    GPtrArray *claims = g_ptr_array_new_with_free_func(claim_free);
    g_autofree char *folder = g_build_filename(config->run_dir, ".uid", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        SvUidClaim *claim = read_claim(folder, name);
        if (claim)
            g_ptr_array_add(claims, claim);
    }
    return claims;
}

int sv_uids_group(int uid)
{
    struct passwd entry, *user = NULL;
    char buffer[8192];
    if (getpwuid_r((uid_t)uid, &entry, buffer, sizeof buffer, &user) != 0 || !user)
        return -1;
    return (int)user->pw_gid;
}

static gid_t group_named(const char *name)
{
    struct group entry, *group = NULL;
    char buffer[8192];
    if (getgrnam_r(name, &entry, buffer, sizeof buffer, &group) != 0 || !group)
        return NO_GROUP;
    return group->gr_gid;
}

/* Of /dev/kvm, and of the folder in which libvirt keeps those of its machines. */
static const char *const needed_groups[] = {"kvm", "libvirt-qemu"};

static gboolean check_one(guint uid, GError **error)
{
    struct passwd entry, *user = NULL;
    char buffer[8192];
    gid_t groups[MAX_GROUPS];
    int n = MAX_GROUPS;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &user) != 0 || !user) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND, "there is no user with uid %u", uid);
        return FALSE;
    }
    if (getgrouplist(user->pw_name, user->pw_gid, groups, &n) < 0)
        return TRUE;
    for (guint g = 0; g < G_N_ELEMENTS(needed_groups); g++) {
        gid_t wanted = group_named(needed_groups[g]);
        gboolean found = wanted == NO_GROUP;
        for (int i = 0; i < n; i++)
            found = found || groups[i] == wanted;
        if (found)
            continue;
        g_set_error(error, SV_CORE_ERROR, SV_ERR_PERMISSION,
            "user %s (uid %u) is not in the group %s", user->pw_name, uid, needed_groups[g]);
        return FALSE;
    }
    return TRUE;
}

gboolean sv_uids_check(const SvConfig *config, GError **error)
{
    if (config->uid_last < config->uid_first) {
        g_set_error(
            error, SV_CORE_ERROR, SV_ERR_INVALID, "[hypervisor] uid_last is less than uid_first");
        return FALSE;
    }
    for (guint uid = config->uid_first; uid <= config->uid_last; uid++)
        if (!check_one(uid, error))
            return FALSE;
    return TRUE;
}
