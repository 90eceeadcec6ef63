/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "core/uids.h"

#include "base/fd.h"
#include "base/file.h"
#include "core/record.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLAIM_MAX 16384
#define NO_GROUP ((gid_t)-1)
#define MAX_GROUPS 64

static char *folder_of(const SvConfig *config)
{
    return g_build_filename(config->run_dir, ".uid", NULL);
}

static char *claim_path(const SvConfig *config, guint uid)
{
    g_autofree char *name = g_strdup_printf("%u", uid);
    return g_build_filename(config->run_dir, ".uid", name, NULL);
}

/* Waits: it is held for the time of a few writes. */
static int lock_range(const SvConfig *config, GError **error)
{
    g_autofree char *folder = folder_of(config);
    g_autofree char *path = g_build_filename(folder, "lock", NULL);
    if (!sv_file_mkdirs(folder, 0700, error))
        return -1;
    g_auto(SvFd) fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int result = -1;
    while (fd >= 0 && (result = flock(fd, LOCK_EX)) < 0 && errno == EINTR)
        ;
    if (result == 0)
        return sv_fd_steal(&fd);
    sv_error_set_errno(error, SV_CORE_ERROR, errno, "lock %s", path);
    return -1;
}

static char *claim_text(const SvPaths *paths)
{
    /* an id has no newline, a root may have some */
    return g_strdup_printf("%s\n%s", paths->sandbox, paths->root);
}

/* A claim counts as long as the record of its sandbox names the same user. */
static gboolean is_claimed(const SvConfig *config, guint uid)
{
    g_autofree char *path = claim_path(config, uid);
    g_autofree char *text = NULL;
    if (!sv_file_read(path, CLAIM_MAX, &text, NULL, NULL))
        return FALSE;
    char *root = strchr(text, '\n');
    if (!root)
        return FALSE;
    *root++ = '\0';
    g_autoptr(GError) error = NULL;
    g_autoptr(SvPaths) paths = sv_paths_new(config, root, text, FALSE, NULL);
    g_autoptr(SvSandboxRecord) record = paths ? sv_sandbox_record_load(paths, &error) : NULL;
    if (!record)
        return !sv_error_is(error, SV_ERR_NOT_FOUND); /* a damaged record may have a machine */
    return record->uid == (int)uid;
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
    g_auto(SvFd) lock = lock_range(config, error);
    if (lock < 0)
        return FALSE;
    g_autoptr(GHashTable) running = running_users(config);
    guint found = config->uid_first;
    while (found <= config->uid_last &&
        (g_hash_table_contains(running, GUINT_TO_POINTER(found)) || is_claimed(config, found)))
        found++;
    if (found > config->uid_last) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_LIMIT,
            "no user is left for another machine: all of %u to %u are taken", config->uid_first,
            config->uid_last);
        return FALSE;
    }
    if (sv_uids_group((int)found) < 0) {
        g_set_error(error, SV_CORE_ERROR, SV_ERR_NOT_FOUND,
            "uid %u of [hypervisor] uid_first is no user of this host", found);
        return FALSE;
    }
    g_autofree char *path = claim_path(config, found);
    g_autofree char *text = claim_text(paths);
    if (!sv_file_write_atomic(path, text, strlen(text), 0600, FALSE, error) ||
        !save((int)found, user_data, error))
        return FALSE;
    *uid = (int)found;
    return TRUE;
}

void sv_uids_release(const SvConfig *config, const SvPaths *paths, int uid)
{
    g_autoptr(GError) error = NULL;
    if (uid < 0 || config->uid_first == 0)
        return;
    g_auto(SvFd) lock = lock_range(config, &error);
    g_autofree char *path = claim_path(config, (guint)uid);
    g_autofree char *mine = claim_text(paths);
    g_autofree char *text = NULL;
    if (lock < 0)
        g_warning("ignoring: %s", error->message);
    else if (sv_file_read(path, CLAIM_MAX, &text, NULL, NULL) && strcmp(text, mine) == 0)
        unlink(path);
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
