/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
#include "base/json.h"
#include "cli/stats-json.h"
#include "cli/watch.h"
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

typedef struct {
    gboolean stats, state;
    const char *interval;
} Options;
static const SvOption options[] = {
    {"stats", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, stats), NULL, "print statistics once"},
    {"state", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, state), NULL,
        "print changes of state as lines of JSON: of CONTAINER until it is gone, else of all for "
        "ever"},
    {"interval", 0, SV_OPT_STRING, G_STRUCT_OFFSET(Options, interval), "DURATION",
        "between statistics: 5s, 100ms"},
    {NULL},
};

static gboolean print_stats(SvTarget *target, SvCli *cli, const char *id, GError **error)
{
    Sandvirt__V1__ContainerRequest request = SANDVIRT__V1__CONTAINER_REQUEST__INIT;
    Sandvirt__V1__StatsResponse *response;
    g_autofree char *text = NULL;

    request.container_id = (char *)id;
    response = (Sandvirt__V1__StatsResponse *)sv_target_ask(
        target, cli, "Stats", &request.base, &sandvirt__v1__stats_response__descriptor, error);
    if (!response)
        return FALSE;
    text = sv_stats_json(id, response);
    sv_message_free(response);
    return sv_cli_print(text, error);
}

static gboolean parse_interval(const char *text, gint64 *ms, GError **error)
{
    char *unit = NULL;
    gint64 n = text ? g_ascii_strtoll(text, &unit, 10) : 5;

    if (!text || (n > 0 && n <= 86400 && (g_str_equal(unit, "s") || !*unit)))
        *ms = n * 1000;
    else if (n > 0 && n <= 86400000 && g_str_equal(unit, "ms"))
        *ms = n;
    else if (n > 0 && n <= 1440 && g_str_equal(unit, "m"))
        *ms = n * 60000;
    else {
        g_set_error(
            error, SV_CLI_ERROR, SV_ERR_INVALID, "invalid value \"%s\" for --interval", text);
        return FALSE;
    }
    return TRUE;
}

/* ---- statistics again and again, until the container has stopped, and its OOM between them */

typedef struct {
    const char *id;
    gboolean stopped;
} Watched;

static gboolean text_is(JsonObject *object, const char *name, const char *text)
{
    const char *value = NULL;

    return sv_json_get_string(object, name, "", &value, NULL) && g_strcmp0(value, text) == 0;
}

static gboolean on_event(const char *json, gboolean current, gpointer user_data, GError **error)
{
    Watched *watched = user_data;
    g_autofree char *line = g_strconcat(json, "\n", NULL);
    g_autoptr(JsonNode) node = sv_json_parse(json, -1, FALSE, "event", error);
    JsonObject *object;

    if (!node)
        return FALSE;
    object = json_node_get_object(node);
    if (!text_is(object, "id", watched->id))
        return TRUE;
    watched->stopped |= text_is(object, "to", "stopped") || text_is(object, "to", "gone");
    return !text_is(object, "type", "oom") || sv_cli_print(line, error);
}

static const SvWatchFuncs funcs = {on_event, NULL};

static int start_timer(gint64 ms, GError **error)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec every = {
        {ms / 1000, ms % 1000 * 1000000},
        {ms / 1000, ms % 1000 * 1000000},
    };

    if (timer >= 0 && timerfd_settime(timer, 0, &every, NULL) == 0)
        return timer;
    sv_error_set_errno(error, SV_CLI_ERROR, errno, "timer");
    sv_fd_close(timer);
    return -1;
}

/* @begun: its end has begun, at least. */
static gboolean is_over(const SvCli *cli, const char *id, gboolean begun)
{
    g_autoptr(SvRecord) record = sv_record_load(cli->root, id, NULL);

    return !record || (begun && record->stopping) ||
        sv_record_effective_state(record) == SV_STATE_STOPPED;
}

/* What has been told of the container by now. */
static int watch_rest(SvFrameReader *reader, int fd, Watched *watched, GError **error)
{
    struct pollfd p = {fd, POLLIN, 0};

    while (!watched->stopped && poll(&p, 1, 0) > 0) {
        int r = sv_watch_read(reader, fd, &funcs, watched, error);

        if (r <= 0)
            return r;
    }
    return 0;
}

static int repeat_stats(
    SvCli *cli, SvTarget *target, SvTarget *events, const char *id, int timer, GError **error)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    Watched watched = {id, FALSE};
    struct pollfd fds[] = {{timer, POLLIN, 0}, {events->fd, POLLIN, 0}};

    if (!sv_watch_begin(events, error))
        return -1;
    while (!watched.stopped) {
        g_autoptr(GError) local = NULL;
        guint64 ticks;

        if (TEMP_FAILURE_RETRY(poll(fds, 2, -1)) < 0)
            return 0;
        if (fds[1].revents) {
            int r = sv_watch_read(reader, events->fd, &funcs, &watched, error);

            if (r <= 0)
                return r;
        }
        if (!(fds[0].revents & POLLIN) || watched.stopped)
            continue;
        if (TEMP_FAILURE_RETRY(read(timer, &ticks, sizeof(ticks))) < 0 || is_over(cli, id, FALSE))
            return watch_rest(reader, events->fd, &watched, error);
        if (!print_stats(target, cli, id, &local)) {
            if (is_over(cli, id, TRUE)) /* under the question; the next round tells when it is */
                continue;
            g_propagate_error(error, g_steal_pointer(&local));
            return -1;
        }
    }
    return 0;
}

static int print_until_stopped(
    SvCli *cli, SvTarget *target, const char *id, const Options *opts, GError **error)
{
    g_auto(SvTarget) events = SV_TARGET_INIT;
    g_auto(SvFd) timer = -1;
    gint64 ms = 0;

    if (!parse_interval(opts->interval, &ms, error) || (timer = start_timer(ms, error)) < 0 ||
        !sv_target_load(&events, cli, id, NULL, error) || !sv_target_connect(&events, cli, error))
        return -1;
    return repeat_stats(cli, target, &events, id, timer, error);
}

static int cmd_events(SvCli *cli, gconstpointer values, char **args, GError **error)
{
    const Options *opts = values;
    g_auto(SvTarget) target = SV_TARGET_INIT;

    if (!args[0] && !opts->state) {
        g_set_error(error, SV_CLI_ERROR, SV_ERR_INVALID, "events takes: CONTAINER, or --state");
        return -1;
    }
    if (args[0] && !sv_target_load(&target, cli, args[0], opts->state ? NULL : "stats", error))
        return -1;
    if (opts->state)
        return sv_watch_states(cli, args[0], error) ? 0 : -1;
    if (!sv_target_connect(&target, cli, error))
        return -1;
    if (opts->stats)
        return print_stats(&target, cli, args[0], error) ? 0 : -1;
    return print_until_stopped(cli, &target, args[0], opts, error);
}

const SvVerb sv_verb_events = {"events", "[CONTAINER]", "Print statistics, or changes of state",
    options, sizeof(Options), 0, 1, 0, cmd_events};
