/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/sysctl.h"
#include "base/fd.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOP "/proc/sys"
#define VALUE_MAX 4096
#define MAX_DEPTH 8

/* /proc/sys/net shows the namespace of the thread that looks. */
typedef struct {
    int netns_fd; /* -1: a new namespace */
    GHashTable *values; /* path below TOP -> value */
    GPtrArray *order; /* the paths, owned by @values */
    GError *error;
} Walk;

static void read_value(Walk *walk, int dir, const char *name, const char *path)
{
    char text[VALUE_MAX];
    g_auto(SvFd) fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    if (n < 0 || n == sizeof(text) - 1)
        return;
    text[n] = '\0';
    char *key = g_strdup(path);
    g_hash_table_insert(walk->values, key, g_strdup(g_strchomp(text)));
    g_ptr_array_add(walk->order, key);
}

/* Links have their own way, and the tables of routes and neighbours their own size. */
static gboolean is_skipped(const char *parent, const char *name)
{
    static const char *const whole[] = {"route", "neigh", "icmp", NULL};

    if (g_str_has_suffix(parent, "/conf"))
        return strcmp(name, "all") != 0 && strcmp(name, "default") != 0;
    return g_strv_contains(whole, name);
}

static void walk_folder(Walk *walk, int parent, const char *name, const char *path, guint depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (!stream) {
        sv_fd_close(fd);
        return;
    }
    while ((entry = readdir(stream))) {
        g_autofree char *inner = g_strdup_printf("%s/%s", path, entry->d_name);
        struct stat st;

        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH && !is_skipped(path, entry->d_name))
            walk_folder(walk, dirfd(stream), entry->d_name, inner, depth + 1);
        else if (S_ISREG(st.st_mode) && (st.st_mode & 0200) && (st.st_mode & 0400))
            read_value(walk, dirfd(stream), entry->d_name, inner);
    }
    closedir(stream);
}

static gpointer walk_inside(gpointer user_data)
{
    static const char *const folders[] = {"net/core", "net/ipv4", "net/ipv6", "net/unix"};
    Walk *walk = user_data;
    g_auto(SvFd) top = -1;

    if (walk->netns_fd >= 0 ? setns(walk->netns_fd, CLONE_NEWNET) < 0 : unshare(CLONE_NEWNET) < 0) {
        sv_error_set_errno(&walk->error, SV_NET_ERROR, errno, "enter a network namespace");
        return NULL;
    }
    top = open(TOP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (gsize i = 0; top >= 0 && i < G_N_ELEMENTS(folders); i++)
        walk_folder(walk, top, folders[i], folders[i], 0);
    return NULL;
}

static gboolean walk_run(Walk *walk, GError **error)
{
    GThread *thread = g_thread_try_new("sv-sysctl", walk_inside, walk, error);

    if (!thread)
        return FALSE;
    g_thread_join(thread);
    if (!walk->error)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&walk->error));
    return FALSE;
}

static Walk walk_new(int netns_fd)
{
    Walk walk = {.netns_fd = netns_fd};

    walk.values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    walk.order = g_ptr_array_new();
    return walk;
}

static void walk_clear(Walk *walk)
{
    g_ptr_array_unref(walk->order);
    g_hash_table_unref(walk->values);
}

/* Those of all links change those of new ones, and of each. */
static guint rank_of(const char *path)
{
    if (strcmp(path, "net/ipv4/ip_forward") == 0)
        return 0;
    if (strstr(path, "/conf/all/"))
        return 1;
    return strstr(path, "/conf/default/") ? 2 : 3;
}

#define RANKS 4

/* A new namespace has the host's conf.*, which a guest does not know. */
static gboolean matters(const Walk *ours, const Walk *fresh, const char *path)
{
    const char *value = g_hash_table_lookup(ours->values, path);
    const char *other = g_hash_table_lookup(fresh->values, path);

    return rank_of(path) < RANKS - 1 || (other && strcmp(value, other) != 0);
}

GPtrArray *sv_net_sysctls_read(int netns_fd, GError **error)
{
    Walk ours = walk_new(netns_fd), fresh = walk_new(-1);
    GPtrArray *chosen = NULL;

    if (walk_run(&ours, error) && walk_run(&fresh, error)) {
        chosen = g_ptr_array_new_with_free_func(g_free);
        for (guint rank = 0; rank < RANKS; rank++)
            for (guint i = 0; i < ours.order->len; i++) {
                const char *path = ours.order->pdata[i];
                const char *value = g_hash_table_lookup(ours.values, path);

                if (rank_of(path) == rank && matters(&ours, &fresh, path))
                    g_ptr_array_add(chosen, g_strdup_printf("%s=%s", path, value));
            }
    }
    walk_clear(&ours);
    walk_clear(&fresh);
    return chosen;
}

void sv_net_request_set_sysctls(SvNetRequest *request, const GPtrArray *sysctls)
{
    request->n_sysctls = sysctls->len;
    request->sysctls = g_new0(Sandvirt__V1__Sysctl *, sysctls->len);
    for (guint i = 0; i < sysctls->len; i++) {
        const char *pair = sysctls->pdata[i];
        const char *equals = strchr(pair, '=');
        Sandvirt__V1__Sysctl *sysctl = g_new0(Sandvirt__V1__Sysctl, 1);

        sandvirt__v1__sysctl__init(sysctl);
        sysctl->key = g_strndup(pair, (gsize)(equals - pair));
        sysctl->value = g_strdup(equals + 1);
        request->sysctls[i] = sysctl;
    }
}
