/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/names.h"
#include "conf/config.h"
#include "launcher/launcher.h"
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define SYSTEMD_FD 3
#define BACKLOG 128

typedef struct {
    char *config, *socket, *monitor, *log;
    gboolean debug;
} Options;

static gboolean parse(Options *options, int *argc, char ***argv, GError **error)
{
    const GOptionEntry entries[] = {
        {"config", 0, 0, G_OPTION_ARG_FILENAME, &options->config, "Configuration to use", "FILE"},
        {"socket", 0, 0, G_OPTION_ARG_FILENAME, &options->socket, "Socket to listen on", "PATH"},
        {"monitor", 0, 0, G_OPTION_ARG_FILENAME, &options->monitor, "sandvirt-monitor", "PATH"},
        {"log", 0, 0, G_OPTION_ARG_FILENAME, &options->log, "Log file", "FILE"},
        {"debug", 0, 0, G_OPTION_ARG_NONE, &options->debug, "Log more", NULL},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("- start the monitors of sandvirt");

    g_option_context_add_main_entries(context, entries, NULL);
    return g_option_context_parse(context, argc, argv, error);
}

static void options_clear(Options *options)
{
    g_free(options->config);
    g_free(options->socket);
    g_free(options->monitor);
    g_free(options->log);
}

/* The socket that systemd has passed, or one of our own. */
static int open_socket(const Options *options, GError **error)
{
    const char *pid = g_getenv("LISTEN_PID");
    const char *n = g_getenv("LISTEN_FDS");
    g_autofree char *mine = g_strdup_printf("%d", (int)getpid());
    g_autofree char *path = g_strdup(options->socket);
    g_autofree char *folder = NULL;
    const SvConfig *config;

    if (g_strcmp0(pid, mine) == 0 && g_strcmp0(n, "1") == 0) {
        sv_fd_set_cloexec(SYSTEMD_FD, TRUE);
        return SYSTEMD_FD;
    }
    if (!path) {
        config = sv_config_load(options->config, error);
        if (!config)
            return -1;
        path = *config->launcher_socket
            ? g_strdup(config->launcher_socket)
            : g_build_filename(config->run_dir, ".sock", "launcher", NULL);
        sv_config_unref(config);
    }
    folder = g_path_get_dirname(path);
    if (!sv_file_mkdirs(folder, 0700, error))
        return -1;
    return sv_unix_listen(path, 0600, BACKLOG, error);
}

static char *default_monitor(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);

    return g_strdup(self && g_str_has_prefix(self, SV_BUILD_ROOT "/")
            ? SV_BUILD_ROOT "/src/monitor/sandvirt-monitor"
            : SV_LIBEXECDIR "/sandvirt-monitor");
}

static gboolean on_end(gpointer user_data)
{
    g_main_loop_quit(user_data);
    return G_SOURCE_CONTINUE;
}

static gboolean run(const Options *options, GError **error)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autofree char *monitor =
        options->monitor ? g_canonicalize_filename(options->monitor, NULL) : default_monitor();
    SvMonitors *monitors;
    SvServer *server;
    int fd = open_socket(options, error);

    if (fd < 0)
        return FALSE;
    monitors = sv_monitors_new(monitor);
    server = sv_server_new(fd, monitors);
    g_unix_signal_add(SIGTERM, on_end, loop);
    g_unix_signal_add(SIGINT, on_end, loop);
    g_main_loop_run(loop);
    sv_server_free(server);
    sv_monitors_free(monitors);
    return TRUE;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    Options options = {NULL};
    gboolean ok = parse(&options, &argc, &argv, &error);

    if (ok)
        ok =
            sv_log_init("sandvirt-launcher", options.debug, options.log, SV_LOG_TEXT, TRUE, &error);
    if (ok)
        ok = run(&options, &error);
    if (!ok)
        sv_log_fatal_error(error->message);
    options_clear(&options);
    return ok ? 0 : 1;
}
