/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
#include "base/json.h"
#include "cli/stats-json.h"
#include "cli/target.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

typedef struct {
    gboolean stats, state;
    const char *interval;
} Options;
static const SvOption options[] = {
    {"stats", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, stats), NULL, "print statistics once"},
    {"state", 0, SV_OPT_FLAG, G_STRUCT_OFFSET(Options, state), NULL,
        "print changes of state until the end of the container's monitor"},
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

/* ---- what the monitor tells: a Watch that is read piece by piece */

typedef struct {
    const char *only_oom_of; /* id, NULL: everything is printed */
    SvFrameReader *reader;
    gboolean stopped; /* that container has */
} Watch;

static gboolean text_is(JsonObject *object, const char *name, const char *text)
{
    const char *value = NULL;

    return sv_json_get_string(object, name, "", &value, NULL) && g_strcmp0(value, text) == 0;
}

static gboolean print_event(Watch *watch, const char *json, GError **error)
{
    g_autofree char *line = g_strconcat(json, "\n", NULL);
    g_autoptr(JsonNode) node = NULL;
    JsonObject *object;

    if (!watch->only_oom_of)
        return sv_cli_print(line, error);
    node = sv_json_parse(json, -1, FALSE, "event", error);
    if (!node)
        return FALSE;
    object = json_node_get_object(node);
    if (!text_is(object, "id", watch->only_oom_of))
        return TRUE;
    watch->stopped |= text_is(object, "to", "stopped") || text_is(object, "to", "gone");
    return !text_is(object, "type", "oom") || sv_cli_print(line, error);
}

static gboolean take_frame(Watch *watch, const SvFrame *frame, GError **error)
{
    SvRequest request;
    Sandvirt__V1__StateEvent *event;
    gboolean ok = FALSE;

    if (frame->type != SV_FRAME_REQUEST)
        return TRUE;
    if (!sv_request_parse(frame, &request, error))
        return FALSE;
    event = (Sandvirt__V1__StateEvent *)sv_message_unpack(
        &sandvirt__v1__state_event__descriptor, request.payload, request.payload_len, error);
    if (event) {
        ok = print_event(watch, event->json, error);
        sv_message_free(event);
    }
    sv_request_clear(&request);
    return ok;
}

static gboolean watch_begin(SvTarget *target, GError **error)
{
    g_autoptr(GBytes) request =
        sv_message_request(target->stream, SV_SERVICE_MONITOR, "Watch", NULL, 0);
    gsize len = 0;
    const void *data = g_bytes_get_data(request, &len);

    return sv_fd_write_all(target->fd, data, len, error);
}

/* What has come; 0 at the end, -1 on an error. */
static int watch_read(Watch *watch, int fd, GError **error)
{
    gsize room = 0;
    guint8 *space = sv_frame_reader_space(watch->reader, &room);
    ssize_t n = TEMP_FAILURE_RETRY(recv(fd, space, room, 0));
    SvFrame frame;
    int r;

    if (n <= 0)
        return 0;
    sv_frame_reader_added(watch->reader, (gsize)n);
    while ((r = sv_frame_reader_next(watch->reader, &frame, error)) > 0)
        if (!take_frame(watch, &frame, error))
            return -1;
    return r < 0 ? -1 : 1;
}

static int watch_state(SvTarget *target, GError **error)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    Watch watch = {NULL, reader, FALSE};
    int r;

    if (!watch_begin(target, error))
        return -1;
    while ((r = watch_read(&watch, target->fd, error)) > 0)
        ;
    return r;
}

/* ---- statistics again and again, until the container has stopped, and its OOM between them */

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

static gboolean is_over(const SvCli *cli, const char *id)
{
    g_autoptr(SvRecord) record = sv_record_load(cli->root, id, NULL);

    return !record || sv_record_effective_state(record) == SV_STATE_STOPPED;
}

static int repeat_stats(
    SvCli *cli, SvTarget *target, SvTarget *events, const char *id, int timer, GError **error)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    Watch watch = {id, reader, FALSE};
    struct pollfd fds[] = {{timer, POLLIN, 0}, {events->fd, POLLIN, 0}};

    if (!watch_begin(events, error))
        return -1;
    while (!watch.stopped) {
        g_autoptr(GError) local = NULL;
        guint64 ticks;

        if (TEMP_FAILURE_RETRY(poll(fds, 2, -1)) < 0)
            return 0;
        if (fds[1].revents) {
            int r = watch_read(&watch, events->fd, error);

            if (r <= 0)
                return r;
        }
        if (!(fds[0].revents & POLLIN) || watch.stopped)
            continue;
        if (TEMP_FAILURE_RETRY(read(timer, &ticks, sizeof(ticks))) < 0 || is_over(cli, id))
            return 0;
        if (!print_stats(target, cli, id, &local)) {
            if (is_over(cli, id)) /* it stopped under the question */
                return 0;
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

    if (!sv_target_load(&target, cli, args[0], opts->state ? NULL : "stats", error) ||
        !sv_target_connect(&target, cli, error))
        return -1;
    if (opts->state)
        return watch_state(&target, error);
    if (opts->stats)
        return print_stats(&target, cli, args[0], error) ? 0 : -1;
    return print_until_stopped(cli, &target, args[0], opts, error);
}

const SvVerb sv_verb_events = {"events", "CONTAINER", "Print statistics, or changes of state",
    options, sizeof(Options), 1, 1, 0, cmd_events};
