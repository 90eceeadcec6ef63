/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/fd.h"
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

static gboolean print_stats(SvTarget *target, const char *id, GError **error)
{
    Sandvirt__V1__ContainerRequest request = SANDVIRT__V1__CONTAINER_REQUEST__INIT;
    Sandvirt__V1__StatsResponse *response;
    g_autofree char *text = NULL;

    request.container_id = (char *)id;
    response = (Sandvirt__V1__StatsResponse *)sv_client_call(target->fd, &target->stream, "Stats",
        &request.base, &sandvirt__v1__stats_response__descriptor, sv_target_short_ms(target),
        error);
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

/* Until the container has stopped. */
static int repeat_stats(
    SvCli *cli, SvTarget *target, const char *id, const Options *opts, GError **error)
{
    g_auto(SvFd) timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec every = {{0, 0}, {0, 0}};
    guint64 ticks;
    gint64 ms = 0;

    if (!parse_interval(opts->interval, &ms, error))
        return -1;
    every.it_interval.tv_sec = every.it_value.tv_sec = ms / 1000;
    every.it_interval.tv_nsec = every.it_value.tv_nsec = ms % 1000 * 1000000;
    if (timer < 0 || timerfd_settime(timer, 0, &every, NULL) < 0) {
        sv_error_set_errno(error, SV_CLI_ERROR, errno, "timer");
        return -1;
    }
    for (;;) {
        g_autoptr(SvRecord) record = sv_record_load(cli->root, id, NULL);

        if (!record || sv_record_effective_state(record) == SV_STATE_STOPPED)
            return 0;
        if (!print_stats(target, id, error))
            return -1;
        if (TEMP_FAILURE_RETRY(read(timer, &ticks, sizeof(ticks))) < 0)
            return 0;
    }
}

static gboolean print_event(const SvFrame *frame, GError **error)
{
    SvRequest request;
    Sandvirt__V1__StateEvent *event;
    g_autofree char *line = NULL;
    gboolean ok = TRUE;

    if (frame->type != SV_FRAME_REQUEST)
        return TRUE;
    if (!sv_request_parse(frame, &request, error))
        return FALSE;
    event = (Sandvirt__V1__StateEvent *)sv_message_unpack(
        &sandvirt__v1__state_event__descriptor, request.payload, request.payload_len, error);
    if (event) {
        line = g_strconcat(event->json, "\n", NULL);
        sv_message_free(event);
        ok = sv_cli_print(line, error);
    }
    sv_request_clear(&request);
    return line && ok;
}

static int watch_state(SvTarget *target, GError **error)
{
    g_autoptr(SvFrameReader) reader = sv_frame_reader_new(SV_FRAME_MAX);
    g_autoptr(GBytes) request =
        sv_message_request(target->stream, SV_SERVICE_MONITOR, "Watch", NULL, 0);
    gsize len = 0;
    const void *data = g_bytes_get_data(request, &len);

    if (!sv_fd_write_all(target->fd, data, len, error))
        return -1;
    for (;;) {
        gsize room = 0;
        guint8 *space = sv_frame_reader_space(reader, &room);
        ssize_t n = TEMP_FAILURE_RETRY(recv(target->fd, space, room, 0));
        SvFrame frame;
        int r;

        if (n <= 0)
            return 0;
        sv_frame_reader_added(reader, (gsize)n);
        while ((r = sv_frame_reader_next(reader, &frame, error)) > 0)
            if (!print_event(&frame, error))
                return -1;
        if (r < 0)
            return -1;
    }
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
        return print_stats(&target, args[0], error) ? 0 : -1;
    return repeat_stats(cli, &target, args[0], opts, error);
}

const SvVerb sv_verb_events = {"events", "CONTAINER", "Print statistics, or changes of state",
    options, sizeof(Options), 1, 1, 0, cmd_events};
