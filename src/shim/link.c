/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the shim keeps a monitor: the one that is there, a new one by the launcher, or whichever comes. */
#include "sandvirt.pb-c.h"
#include "shim/shim.h"
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

/* A monitor that always ends before it has answered Attach is not asked for any more: the next one to
 * appear by itself is tried. */
#define FAILURES_MAX 5
/* A monitor that breaks the protocol so often is none. */
#define FAULTS_MAX 20

static void send_attach(SvShim *shim)
{
    Sandvirt__V1__AttachRequest request = SANDVIRT__V1__ATTACH_REQUEST__INIT;
    guint32 modes[SV_DESCRIPTORS_MAX];

    if (shim->attached)
        sv_descriptors_break(shim);
    request.container_id = (char *)shim->options.container;
    request.handle = shim->options.handle;
    request.pid = (guint32)getpid();
    request.stdout_offset = shim->output[0].written;
    request.stderr_offset = shim->output[1].written;
    request.stdin_offset = shim->input.acked;
    request.stdin_eof = shim->input.eof;
    request.stdout_broken = shim->output[0].broken;
    request.stderr_broken = shim->output[1].broken;
    request.terminal = shim->options.terminal;
    request.rows = shim->rows;
    request.cols = shim->cols;
    request.has_rootfs = shim->has_rootfs;
    for (guint i = 0; i < shim->options.descriptors; i++)
        modes[i] = (guint32)shim->descriptors[i].mode;
    request.descriptors = modes;
    request.n_descriptors = shim->options.descriptors;
    shim->attach_stream = sv_peer_request(&shim->monitor, SV_SERVICE_SHIM, "Attach", &request.base);
    shim->attached = TRUE;
    sv_input_rewind(&shim->input);
    shim->output[0].ack |= shim->output[0].broken;
    shim->output[1].ack |= shim->output[1].broken;
    shim->link = SV_LINK_ATTACHING;
}

static gboolean try_monitor(SvShim *shim, GError **error)
{
    if (!sv_peer_connect(&shim->monitor, shim->sock_fd, shim->options.monitor, error))
        return FALSE;
    send_attach(shim);
    return TRUE;
}

/* Asks the launcher; without one: waits. */
static void ensure(SvShim *shim)
{
    Sandvirt__V1__EnsureRequest request = SANDVIRT__V1__ENSURE_REQUEST__INIT;

    shim->link = SV_LINK_WAITING;
    if (!*shim->options.launcher || shim->failures > FAILURES_MAX ||
        !sv_peer_connect(&shim->launcher, shim->sock_fd, shim->options.launcher, NULL))
        return;
    request.root = (char *)shim->options.root;
    request.sandbox = (char *)shim->options.sandbox;
    request.config = (char *)shim->options.config;
    request.debug = shim->options.debug;
    request.monitor = (char *)shim->options.monitor_path;
    sv_peer_request(&shim->launcher, SV_SERVICE_LAUNCHER, "Ensure", &request.base);
    shim->link = SV_LINK_ENSURING;
}

void sv_link_start(SvShim *shim)
{
    g_autoptr(GError) error = NULL;

    if (try_monitor(shim, &error))
        return;
    if (shim->released) {
        ensure(shim);
        return;
    }
    sv_shim_tell(shim, SV_SHIM_ERROR_TEXT, error->message);
    sv_shim_end(shim, shim->status);
}

void sv_link_lost(SvShim *shim, const char *why)
{
    g_debug("monitor lost: %s", why);
    sv_peer_close(&shim->monitor);
    if (shim->link != SV_LINK_UP)
        shim->failures++;
    shim->attach_stream = 0;
    shim->exit_stream = 0;
    shim->link = SV_LINK_DOWN;
    if (!shim->released)
        return;
    if (shim->failures > FAILURES_MAX)
        shim->link = SV_LINK_WAITING;
    else
        sv_link_start(shim);
}

void sv_link_on_monitor(SvShim *shim, short revents)
{
    g_autoptr(GError) error = NULL;
    gboolean open = TRUE;
    SvFrame frame;
    int r = 0;

    if (revents & (POLLIN | POLLHUP | POLLERR))
        open = sv_peer_fill(&shim->monitor);
    /* What came before the end counts, an Exit most of all. */
    while (shim->monitor.fd >= 0 && (r = sv_peer_next(&shim->monitor, &frame, &error)) > 0) {
        if (!sv_serve_frame(shim, &frame, &error)) {
            r = -1;
            break;
        }
    }
    if (shim->monitor.fd < 0)
        return; /* lost meanwhile */
    if (r < 0 && ++shim->faults > FAULTS_MAX)
        sv_shim_end(shim, shim->status);
    else if (r < 0)
        sv_link_lost(shim, error->message);
    else if (!open || !sv_peer_flush(&shim->monitor))
        sv_link_lost(shim, "closed");
}

void sv_link_on_launcher(SvShim *shim)
{
    gboolean open = sv_peer_fill(&shim->launcher);
    g_autoptr(GError) error = NULL;
    SvFrame frame;
    int r;

    while (
        (r = sv_peer_next(&shim->launcher, &frame, &error)) > 0 && frame.type != SV_FRAME_RESPONSE)
        ;
    if (r > 0)
        sv_response_parse(&frame, NULL, &error);
    if (r == 0 && open && sv_peer_flush(&shim->launcher))
        return;
    sv_peer_close(&shim->launcher);
    shim->link = SV_LINK_WAITING;
    /* Whatever the answer was: a monitor may listen. */
    if (!try_monitor(shim, NULL))
        shim->failures++;
}

void sv_link_on_watch(SvShim *shim)
{
    union {
        struct inotify_event align;
        char bytes[4096];
    } events;
    gboolean launcher = FALSE;
    ssize_t n;

    while ((n = read(shim->watch_fd, events.bytes, sizeof(events.bytes))) > 0) {
        for (ssize_t i = 0; i < n;) {
            const struct inotify_event *event = (const void *)(events.bytes + i);

            launcher |= event->len > 0 && g_str_equal(event->name, shim->options.launcher);
            i += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    if (shim->link != SV_LINK_WAITING || try_monitor(shim, NULL) || !launcher)
        return;
    shim->failures = 0;
    ensure(shim);
}
