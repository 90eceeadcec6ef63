/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/command.h"
#include "base/fd.h"
#include "base/process.h"
#include "core/client.h"
#include "launcher/launcher.h"
#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SV_DEFINE_ERROR_QUARK(launcher)

#define READY_TIMEOUT_MS 60000
/* A monitor that lived shorter has died quickly. After so many quick deaths in a row the next start
 * waits, longer each time; after too many only a request starts it again. */
#define QUICK_SECONDS 10
#define QUICK_DEATHS 3
#define DEATHS_MAX 100
#define DELAY_MAX_S 2 /* a pod without a monitor answers nobody */

typedef enum {
    SV_MON_STARTING, /* spawned, its ready byte is waited for. Left by it, by the end of the pipe, or a
                        deadline */
    SV_MON_READY, /* listens. Left by its end */
    SV_MON_DELAYED, /* died too often: a timer starts it again, or the next request does */
} SvMonState;

typedef struct {
    SvEnsured done;
    gpointer user_data;
} Waiter;

typedef struct {
    SvMonitors *owner;
    char *key; /* root, newline, sandbox */
    char *root, *sandbox, *config, *path;
    gboolean debug;
    gboolean locked; /* it said so */
    SvMonState state;
    pid_t pid;
    int pidfd, ready_fd; /* -1: none */
    guint pid_source, ready_source, timer;
    GString *said;
    GArray *waiters;
    guint deaths, delay_s;
    gint64 started;
} Monitor;

struct SvMonitors {
    char *monitor_path;
    GHashTable *table; /* key -> Monitor */
};

static gboolean monitor_start(Monitor *m, GError **error);

static void remove_source(guint *id)
{
    if (*id)
        g_source_remove(*id);
    *id = 0;
}

static void monitor_free(gpointer data)
{
    Monitor *m = data;

    remove_source(&m->pid_source);
    remove_source(&m->ready_source);
    remove_source(&m->timer);
    sv_fd_close(m->pidfd);
    sv_fd_close(m->ready_fd);
    g_string_free(m->said, TRUE);
    g_array_unref(m->waiters);
    g_free(m->key);
    g_free(m->root);
    g_free(m->sandbox);
    g_free(m->config);
    g_free(m->path);
    g_free(m);
}

static void answer(Monitor *m, const GError *error)
{
    g_autoptr(GArray) waiters = m->waiters;

    m->waiters = g_array_new(FALSE, FALSE, sizeof(Waiter));
    for (guint i = 0; i < waiters->len; i++) {
        Waiter *waiter = &g_array_index(waiters, Waiter, i);

        waiter->done(error, waiter->user_data);
    }
}

static void forget(Monitor *m)
{
    g_hash_table_remove(m->owner->table, m->key);
}

/* ---- starting */

static void not_ready(Monitor *m, const char *why)
{
    g_autoptr(GError) error = g_error_new(SV_LAUNCHER_ERROR, SV_ERR_FAILED,
        "cannot start the monitor of sandbox \"%s\": %s", m->sandbox, why);

    g_warning("%s", error->message);
    answer(m, error);
}

static void on_said_all(Monitor *m)
{
    g_autofree char *text = NULL;

    sv_fd_clear(&m->ready_fd);
    remove_source(&m->timer);
    if (m->said->len > 0 && m->said->str[0] == SV_READY_OK) {
        m->state = SV_MON_READY;
        answer(m, NULL);
        return;
    }
    text = sv_printable(g_strchomp(m->said->len > 1 ? m->said->str + 1 : m->said->str), 1024);
    m->locked = strstr(text, SV_READY_LOCKED) != NULL;
    if (m->locked)
        answer(m, NULL); /* another one serves, and its shims ask for the next */
    else
        not_ready(m, *text ? text : "it ended without a word");
}

static gboolean on_ready_input(gint fd, GIOCondition condition, gpointer user_data)
{
    Monitor *m = user_data;
    char buffer[1024];
    ssize_t n = read(fd, buffer, sizeof(buffer));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (n > 0 && m->said->len < SV_READY_MAX)
        g_string_append_len(m->said, buffer, n);
    if (n > 0 && m->said->str[0] != SV_READY_OK && m->said->len < SV_READY_MAX)
        return G_SOURCE_CONTINUE;
    m->ready_source = 0;
    on_said_all(m);
    return G_SOURCE_REMOVE;
}

static gboolean on_ready_timeout(gpointer user_data)
{
    Monitor *m = user_data;

    m->timer = 0;
    remove_source(&m->ready_source);
    sv_fd_clear(&m->ready_fd);
    not_ready(m, "it is not ready in time");
    sv_process_signal(m->pidfd, SIGKILL);
    return G_SOURCE_REMOVE;
}

/* ---- the end of a child */

static gboolean on_delay_over(gpointer user_data)
{
    Monitor *m = user_data;
    g_autoptr(GError) error = NULL;

    m->timer = 0;
    if (!monitor_start(m, &error)) {
        g_warning("%s", error->message);
        forget(m);
    }
    return G_SOURCE_REMOVE;
}

/* It died although its sandbox lives: at once, or later when that happens again and again. */
static void start_again(Monitor *m)
{
    if (g_get_monotonic_time() - m->started > QUICK_SECONDS * G_USEC_PER_SEC)
        m->deaths = m->delay_s = 0;
    if (++m->deaths >= QUICK_DEATHS)
        m->delay_s = CLAMP(m->delay_s * 2, 1, DELAY_MAX_S);
    m->state = SV_MON_DELAYED;
    g_message("starting the monitor of sandbox \"%s\" again in %u s", m->sandbox, m->delay_s);
    m->timer = g_timeout_add_seconds(m->delay_s, on_delay_over, m);
}

static gboolean on_child_end(gint fd, GIOCondition condition, gpointer user_data)
{
    Monitor *m = user_data;
    gboolean again;
    int status = sv_command_wait(m->pid);

    m->pid_source = 0;
    sv_fd_clear(&m->pidfd);
    m->pid = 0;
    /* Its word may still lie in the pipe. */
    if (m->ready_source) {
        remove_source(&m->ready_source);
        for (;;) {
            char buffer[1024];
            ssize_t n = read(m->ready_fd, buffer, sizeof(buffer));

            if (n <= 0 || m->said->len >= SV_READY_MAX)
                break;
            g_string_append_len(m->said, buffer, n);
        }
        on_said_all(m);
    }
    remove_source(&m->timer);
    again = status != 0 && !m->locked &&
        (m->state == SV_MON_READY || (m->deaths > 0 && m->deaths < DEATHS_MAX));
    g_info("monitor of sandbox \"%s\" has ended with status %d", m->sandbox, status);
    if (again)
        start_again(m);
    else
        forget(m);
    return G_SOURCE_REMOVE;
}

static gboolean monitor_start(Monitor *m, GError **error)
{
    g_autoptr(SvCommand) cmd = sv_command_new(m->path);
    g_auto(SvFd) writer = -1;
    int fds[2] = {-1, -1};

    if (!sv_fd_pipe(fds, 0, error))
        return FALSE;
    m->ready_fd = fds[0];
    writer = fds[1];
    sv_fd_set_nonblock(m->ready_fd, TRUE);
    sv_command_add_args(cmd, "--root", m->root, "--sandbox", m->sandbox, NULL);
    if (*m->config)
        sv_command_add_args(cmd, "--config", m->config, NULL);
    if (m->debug)
        sv_command_add_arg(cmd, "--debug");
    sv_command_add_args(cmd, "--ready-fd", "3", NULL);
    sv_command_map_fd(cmd, writer, 3);
    sv_command_map_fd(cmd, STDERR_FILENO, STDERR_FILENO);
    sv_command_set_new_session(cmd, TRUE);
    if (!sv_command_spawn(cmd, &m->pid, &m->pidfd, error)) {
        sv_fd_clear(&m->ready_fd);
        return FALSE;
    }
    g_string_truncate(m->said, 0);
    m->state = SV_MON_STARTING;
    m->locked = FALSE;
    m->started = g_get_monotonic_time();
    m->pid_source = g_unix_fd_add(m->pidfd, G_IO_IN, on_child_end, m);
    m->ready_source = g_unix_fd_add(m->ready_fd, G_IO_IN | G_IO_HUP, on_ready_input, m);
    m->timer = g_timeout_add(READY_TIMEOUT_MS, on_ready_timeout, m);
    g_info("monitor of sandbox \"%s\" is process %d", m->sandbox, (int)m->pid);
    return TRUE;
}

/* ---- */

SvMonitors *sv_monitors_new(const char *monitor_path)
{
    SvMonitors *monitors = g_new0(SvMonitors, 1);

    monitors->monitor_path = g_strdup(monitor_path);
    monitors->table = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, monitor_free);
    return monitors;
}

void sv_monitors_free(SvMonitors *monitors)
{
    if (!monitors)
        return;
    g_hash_table_unref(monitors->table);
    g_free(monitors->monitor_path);
    g_free(monitors);
}

static Monitor *monitor_new(
    SvMonitors *monitors, const Sandvirt__V1__EnsureRequest *request, char *key)
{
    Monitor *m = g_new0(Monitor, 1);

    m->owner = monitors;
    m->key = key;
    m->root = g_strdup(request->root);
    m->sandbox = g_strdup(request->sandbox);
    m->config = g_strdup(request->config);
    m->path = g_strdup(*request->monitor ? request->monitor : monitors->monitor_path);
    m->debug = request->debug;
    m->pidfd = m->ready_fd = -1;
    m->said = g_string_new(NULL);
    m->waiters = g_array_new(FALSE, FALSE, sizeof(Waiter));
    g_hash_table_insert(monitors->table, m->key, m);
    return m;
}

void sv_monitors_ensure(SvMonitors *monitors, const Sandvirt__V1__EnsureRequest *request,
    SvEnsured done, gpointer user_data)
{
    Waiter waiter = {done, user_data};
    g_autofree char *key = g_strdup_printf("%s\n%s", request->root, request->sandbox);
    Monitor *m = g_hash_table_lookup(monitors->table, key);
    g_autoptr(GError) error = NULL;

    if (m && m->state == SV_MON_READY) {
        done(NULL, user_data);
        return;
    }
    if (!m)
        m = monitor_new(monitors, request, g_steal_pointer(&key));
    g_array_append_val(m->waiters, waiter);
    if (m->pid != 0)
        return;
    remove_source(&m->timer);
    if (!monitor_start(m, &error)) {
        answer(m, error);
        forget(m);
    }
}
