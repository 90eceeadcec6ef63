/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Update: crun writes one file of the cgroup after the other and stops at the first that the kernel refuses.
 * What it wrote before that is taken back, so that a refused update changes nothing. */
#include "agent/container.h"
#include "agent/release.h"
#include "base/file.h"
#include "rpc/sandvirt.pb-c.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    SvCall *call;
    SvContainer *container;
    char *path;
    GHashTable *before; /* name of a file -> its content */
} Update;

/* Limits: not what acts when it is written (memory.reclaim, triggers of *.pressure). */
static gboolean is_limit(const char *cgroup, const char *name)
{
    static const char *const groups[] = {
        "cpu.", "cpuset.", "memory.", "pids.", "io.", "misc.", "hugetlb."};
    g_autofree char *path = NULL;
    struct stat st;
    gboolean known = FALSE;

    for (gsize i = 0; i < G_N_ELEMENTS(groups); i++)
        known |= g_str_has_prefix(name, groups[i]);
    if (!known || g_str_has_suffix(name, ".pressure"))
        return FALSE;
    path = g_build_filename(cgroup, name, NULL);
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IWUSR &&
        st.st_mode & S_IRUSR;
}

static GHashTable *read_limits(const char *cgroup)
{
    GHashTable *limits = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GDir) dir = g_dir_open(cgroup, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        char *text = is_limit(cgroup, name) ? sv_cgroup_read(cgroup, name) : NULL;

        if (text)
            g_hash_table_insert(limits, g_strdup(name), text);
    }
    return limits;
}

/* Limits of disks: a line for each that has one. */
static void restore_io(const char *cgroup, const char *before, const char *now)
{
    g_auto(GStrv) old_lines = g_strsplit(before, "\n", -1);
    g_auto(GStrv) new_lines = g_strsplit(now, "\n", -1);

    for (char **line = new_lines; *line; line++) {
        g_autofree char *reset = g_strdup_printf(
            "%.*s rbps=max wbps=max riops=max wiops=max", (int)strcspn(*line, " "), *line);

        if (**line)
            sv_cgroup_write(cgroup, "io.max", reset, NULL);
    }
    for (char **line = old_lines; *line; line++)
        if (**line)
            sv_cgroup_write(cgroup, "io.max", *line, NULL);
}

/* Some files are taken only after others (a weight when the cgroup is not idle, a quota when its burst is not above it):
 * @last tells whether this is the time to complain. */
static void restore(const Update *update, gboolean last)
{
    const char *cgroup = update->container->cgroup;
    GHashTableIter iter;
    gpointer name, before;

    g_hash_table_iter_init(&iter, update->before);
    while (g_hash_table_iter_next(&iter, &name, &before)) {
        g_autofree char *now = sv_cgroup_read(cgroup, name);
        g_autoptr(GError) error = NULL;

        if (!now || g_str_equal(now, before))
            continue;
        if (g_str_equal(name, "io.max"))
            restore_io(cgroup, before, now);
        else if (!sv_cgroup_write(cgroup, name, before, &error) && last)
            g_warning("ignoring: take back %s: %s", (char *)name, error->message);
    }
}

static void take_back(const Update *update)
{
    restore(update, FALSE);
    restore(update, TRUE);
}

/* What the kernel does not take yet crun writes, or tells why not. */
static void write_first(const Sandvirt__V1__UpdateRequest *request, const char *cgroup)
{
    for (size_t i = 0; i < request->n_first; i++) {
        const Sandvirt__V1__KeyValue *file = request->first[i];

        if (!strchr(file->key, '/'))
            sv_cgroup_write(cgroup, file->key, file->value, NULL);
    }
}

static void on_updated(const GError *error, pid_t pid, gint64 spent_us, gpointer user_data)
{
    Update *update = user_data;

    if (error) {
        take_back(update);
        sv_call_fail(update->call, error);
    } else {
        sv_call_reply(update->call, NULL);
    }
    update->container->execs--;
    sv_container_release_check(update->container);
    unlink(update->path);
    g_hash_table_unref(update->before);
    g_free(update->path);
    g_free(update);
}

void sv_container_update(SvCall *call)
{
    const Sandvirt__V1__UpdateRequest *request = (Sandvirt__V1__UpdateRequest *)call->message;
    g_autoptr(GError) error = NULL;
    SvContainer *container = sv_container_find(call->agent, request->container_id, &error);
    g_autofree char *tag = g_strdup_printf("update-%u", call->stream);
    SvCrunCall crun = {.verb = "update", .tag = tag, .stdio = {-1, -1, -1}};
    const char *args[] = {"--resources", NULL, NULL};
    Update *update;

    if (!container) {
        sv_call_fail(call, error);
        return;
    }
    update = g_new0(Update, 1);
    update->call = call;
    update->container = container;
    update->path = g_strdup_printf("%s/resources-%u.json", container->dir, call->stream);
    update->before = read_limits(container->cgroup);
    args[1] = update->path;
    crun.args = args;
    crun.id = container->id;
    crun.dir = container->dir;
    container->execs++;
    write_first(request, container->cgroup);
    if (!sv_file_write_atomic(
            update->path, request->resources.data, request->resources.len, 0600, FALSE, &error) ||
        !sv_crun_start(call->agent, &crun, on_updated, update, &error))
        on_updated(error, 0, 0, update);
}
