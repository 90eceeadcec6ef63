/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* events --state. Each monitor of the root tells its own changes; what happened while there was none, or
 * before it was found, is seen by comparing: a monitor tells how its containers are to who begins to watch,
 * and a record without a monitor is gone when its file is. */
#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/watch.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

typedef struct Watch Watch;

/* A connection to the monitor of one sandbox. */
typedef struct {
    Watch *watch;
    SvTarget target;
    SvFrameReader *reader;
    GHashTable *told; /* ids told as current; NULL: Watch is answered */
} Link;

/* A container as it was told last. */
typedef struct {
    SvState state;
    char *sandbox;
} Known;

struct Watch {
    SvCli *cli;
    const char *only; /* nullable */
    char *only_sandbox; /* nullable */
    int inotify;
    GHashTable *links; /* sandbox -> Link */
    GHashTable *known; /* id -> Known */
    gboolean over; /* @only is gone, or nobody reads */
};

static void link_free(gpointer data)
{
    Link *link = data;

    sv_target_clear(&link->target);
    sv_frame_reader_free(link->reader);
    g_clear_pointer(&link->told, g_hash_table_unref);
    g_free(link);
}

static void known_free(gpointer data)
{
    Known *known = data;

    g_free(known->sandbox);
    g_free(known);
}

/* ---- telling */

static void remember(Watch *watch, const char *id, const char *sandbox, SvState state)
{
    Known *known;

    if (state == SV_STATE_GONE) {
        watch->over |= watch->only != NULL;
        g_hash_table_remove(watch->known, id);
        return;
    }
    known = g_new0(Known, 1);
    known->state = state;
    known->sandbox = g_strdup(sandbox);
    g_hash_table_replace(watch->known, g_strdup(id), known);
}

static gboolean print_line(JsonNode *event, GError **error)
{
    g_autofree char *text = sv_json_text(event, FALSE);
    g_autofree char *line = g_strconcat(text, "\n", NULL);

    return sv_cli_print(line, error);
}

/* Its record is not there any more, and nobody was there to tell. */
static gboolean print_gone(Watch *watch, const char *id, GError **error)
{
    const Known *known = g_hash_table_lookup(watch->known, id);
    g_autofree char *time = sv_time_rfc3339(g_get_real_time());
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    g_autofree char *copy = g_strdup(id); /* it may be the table's own */
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "type", "state");
    json_object_set_string_member(object, "id", id);
    json_object_set_string_member(object, "sandbox", known->sandbox);
    json_object_set_string_member(object, "from", sv_state_name(known->state));
    json_object_set_string_member(object, "to", sv_state_name(SV_STATE_GONE));
    json_object_set_string_member(object, "time", time);
    json_node_take_object(node, object);
    remember(watch, copy, NULL, SV_STATE_GONE);
    return print_line(node, error);
}

/* A change, or how a container is: then it is printed when it is not as it was told last. */
static gboolean take_state(
    Watch *watch, JsonNode *node, const char *id, gboolean current, GError **error)
{
    JsonObject *object = json_node_get_object(node);
    const Known *known = g_hash_table_lookup(watch->known, id);
    const char *to = "", *sandbox = "";
    SvState state;

    if (!sv_json_get_string(object, "to", "", &to, error) ||
        !sv_json_get_string(object, "sandbox", "", &sandbox, error))
        return FALSE;
    if (!sv_state_parse(to, &state)) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "event with an unknown state \"%s\"", to);
        return FALSE;
    }
    if (known && known->state == state)
        return TRUE;
    if (current) {
        SvState from = known ? known->state : SV_STATE_GONE;

        json_object_set_string_member(object, "from", sv_state_name(from));
    }
    /* a create that goes on was not told of by anybody yet */
    gboolean silent = current && !known && state == SV_STATE_CREATING;
    remember(watch, id, sandbox, state);
    return silent || print_line(node, error);
}

static gboolean on_event(const char *json, gboolean current, gpointer user_data, GError **error)
{
    Link *link = user_data;
    Watch *watch = link->watch;
    g_autoptr(JsonNode) node = sv_json_parse(json, -1, FALSE, "event", error);
    const char *id = "", *type = "";

    if (!node)
        return FALSE;
    if (!JSON_NODE_HOLDS_OBJECT(node) ||
        !sv_json_get_string(json_node_get_object(node), "id", "", &id, error) ||
        !sv_json_get_string(json_node_get_object(node), "type", "", &type, error))
        return FALSE;
    if (watch->only && !g_str_equal(id, watch->only))
        return TRUE;
    if (current && link->told)
        g_hash_table_add(link->told, g_strdup(id));
    if (g_str_equal(type, "state"))
        return take_state(watch, node, id, current, error);
    return print_line(node, error);
}

/* What the monitor did not name when it told of all that it has is gone. */
static gboolean on_answered(gpointer user_data, GError **error)
{
    Link *link = user_data;
    Watch *watch = link->watch;
    g_autoptr(GHashTable) told = g_steal_pointer(&link->told);
    g_autoptr(GList) ids = g_hash_table_get_keys(watch->known);

    for (GList *item = ids; told && item; item = item->next) {
        const Known *known = g_hash_table_lookup(watch->known, item->data);

        if (g_strcmp0(known->sandbox, link->target.paths->sandbox) == 0 &&
            !g_hash_table_contains(told, item->data) && !print_gone(watch, item->data, error))
            return FALSE;
    }
    return TRUE;
}

static const SvWatchFuncs funcs = {on_event, on_answered};

static gboolean look_for_gone(Watch *watch, GError **error)
{
    g_autoptr(GList) ids = g_hash_table_get_keys(watch->known);

    for (GList *item = ids; item; item = item->next) {
        const Known *known = g_hash_table_lookup(watch->known, item->data);
        g_autoptr(GError) why = NULL;

        if (known->sandbox && g_hash_table_contains(watch->links, known->sandbox))
            continue;
        g_autoptr(SvRecord) record = sv_record_load(watch->cli->root, item->data, &why);
        if (!record && sv_error_is(why, SV_ERR_NOT_FOUND) && !print_gone(watch, item->data, error))
            return FALSE;
    }
    return TRUE;
}

/* ---- finding monitors */

static gboolean follow_folder(Watch *watch, const char *path, GError **error)
{
    if (sv_file_mkdirs(path, 0700, error) &&
        inotify_add_watch(watch->inotify, path, IN_CREATE | IN_DELETE | IN_MOVE) >= 0)
        return TRUE;
    if (error && !*error)
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "watch %s", path);
    return FALSE;
}

static gboolean connect_link(Link *link, SvCli *cli, const char *sandbox, GError **error)
{
    /* the folder first: a socket that comes behind the attempt is seen */
    if (!sv_target_locate(&link->target, cli, sandbox, FALSE, error) ||
        !follow_folder(link->watch, link->target.paths->sock_dir, error))
        return FALSE;
    link->target.fd = sv_client_connect(link->target.paths, NULL);
    return link->target.fd >= 0 && sv_watch_begin(&link->target, NULL);
}

static void try_sandbox(Watch *watch, const char *sandbox)
{
    g_autoptr(GError) error = NULL;
    Link *link;

    if (g_hash_table_contains(watch->links, sandbox))
        return;
    link = g_new0(Link, 1);
    link->watch = watch;
    link->target = (SvTarget)SV_TARGET_INIT;
    link->reader = sv_frame_reader_new(SV_FRAME_MAX);
    link->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (connect_link(link, watch->cli, sandbox, &error)) {
        g_hash_table_insert(watch->links, g_strdup(sandbox), link);
        return;
    }
    link_free(link);
    if (error)
        g_warning("ignoring sandbox %s: %s", sandbox, error->message);
}

static gboolean look_around(Watch *watch, GError **error)
{
    g_autofree char *top = g_build_filename(watch->cli->root, ".sandbox", NULL);
    g_autoptr(GDir) dir = NULL;
    const char *name;

    if (!follow_folder(watch, watch->cli->root, error) || !follow_folder(watch, top, error))
        return FALSE;
    dir = g_dir_open(top, 0, NULL);
    while (dir && (name = g_dir_read_name(dir)))
        if (name[0] != '.' && (!watch->only || g_strcmp0(name, watch->only_sandbox) == 0))
            try_sandbox(watch, name);
    return look_for_gone(watch, error);
}

/* ---- the loop */

static gboolean read_link(Watch *watch, int fd, GError **error)
{
    GHashTableIter iter;
    gpointer value = NULL;
    int r;

    g_hash_table_iter_init(&iter, watch->links);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((Link *)value)->target.fd == fd)
            break;
    r = sv_watch_read(((Link *)value)->reader, fd, &funcs, value, error);
    if (r < 0)
        return FALSE;
    if (r > 0)
        return TRUE;
    /* another one may listen already: its socket came before this end was seen */
    g_hash_table_iter_remove(&iter);
    return look_around(watch, error);
}

static void drain(int fd)
{
    char events[4096];

    while (read(fd, events, sizeof(events)) > 0)
        ;
}

static gboolean turn(Watch *watch, GError **error)
{
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(struct pollfd));
    struct pollfd own[] = {{watch->inotify, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    GHashTableIter iter;
    gpointer value;

    g_array_append_vals(fds, own, G_N_ELEMENTS(own));
    g_hash_table_iter_init(&iter, watch->links);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct pollfd one = {((Link *)value)->target.fd, POLLIN, 0};

        g_array_append_val(fds, one);
    }
    struct pollfd *all = (struct pollfd *)(gpointer)fds->data;
    if (TEMP_FAILURE_RETRY(poll(all, fds->len, -1)) < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "poll");
        return FALSE;
    }
    /* one of them: the table of links is another one afterwards */
    for (guint i = G_N_ELEMENTS(own); i < fds->len; i++)
        if (all[i].revents)
            return read_link(watch, all[i].fd, error);
    if (all[0].revents) {
        drain(watch->inotify);
        return look_around(watch, error);
    }
    watch->over |= all[1].revents != 0; /* nobody reads any more */
    return TRUE;
}

static gboolean know_all(Watch *watch, GError **error)
{
    g_autoptr(GPtrArray) records = sv_record_list(watch->cli->root, NULL, error);

    for (guint i = 0; records && i < records->len; i++) {
        const SvRecord *record = records->pdata[i];

        if (watch->only && !g_str_equal(record->id, watch->only))
            continue;
        remember(watch, record->id, record->sandbox, record->state);
        if (watch->only)
            watch->only_sandbox = g_strdup(record->sandbox);
    }
    return records != NULL;
}

gboolean sv_watch_states(SvCli *cli, const char *only, GError **error)
{
    Watch watch = {.cli = cli, .only = only};
    gboolean ok = FALSE;

    watch.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch.inotify < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "inotify");
        return FALSE;
    }
    watch.links = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, link_free);
    watch.known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, known_free);
    ok = know_all(&watch, error);
    watch.over = only && !watch.only_sandbox; /* gone since it was looked up */
    ok = ok && look_around(&watch, error);
    while (ok && !watch.over)
        ok = turn(&watch, error);
    g_hash_table_unref(watch.links);
    g_hash_table_unref(watch.known);
    g_free(watch.only_sandbox);
    sv_fd_close(watch.inotify);
    return ok;
}
