/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sandvirt-monitor: one per sandbox, as long as the sandbox. */
#include <config.h>

#include "base/confine.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "conf/config.h"
#include "core/owner.h"
#include "hypervisor/accel.h"
#include "hypervisor/driver.h"
#include "monitor/check.h"
#include "monitor/gc.h"
#include "monitor/server.h"
#include "monitor/top.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char *root, *sandbox, *config;
    gboolean debug, gc, dry_run, check, json, quick, top, once, metrics, all;
    int ready_fd;
} Options;

typedef struct {
    GMainLoop *loop;
    SvServer *server;
    SvSandbox *sandbox;
    guint first; /* timer: the caller it was started for has not come yet; 0 */
} Monitor;

/* Who has it started connects when it hears that it listens; on a busy machine that takes a while. */
#define FIRST_CALLER_MS 3000
#define LOCK_ATTEMPTS 20

static gboolean parse_options(int *argc, char ***argv, Options *options, GError **error)
{
    const GOptionEntry entries[] = {
        {"root", 0, 0, G_OPTION_ARG_FILENAME, &options->root, "state folder", "DIR"},
        {"sandbox", 0, 0, G_OPTION_ARG_STRING, &options->sandbox, "id of the sandbox", "ID"},
        {"config", 0, 0, G_OPTION_ARG_FILENAME, &options->config, "configuration file", "FILE"},
        {"debug", 0, 0, G_OPTION_ARG_NONE, &options->debug, "log more", NULL},
        {"ready-fd", 0, 0, G_OPTION_ARG_INT, &options->ready_fd, "told when it listens", "FD"},
        {"gc", 0, 0, G_OPTION_ARG_NONE, &options->gc, "remove what was left, and end", NULL},
        {"dry-run", 0, 0, G_OPTION_ARG_NONE, &options->dry_run, "with --gc: only list", NULL},
        {"check", 0, 0, G_OPTION_ARG_NONE, &options->check, "is this host fit? and end", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options->json, "with --check: print JSON", NULL},
        {"top", 0, 0, G_OPTION_ARG_NONE, &options->top, "what the machines take", NULL},
        {"once", 0, 0, G_OPTION_ARG_NONE, &options->once, "with --top: once", NULL},
        {"all", 0, 0, G_OPTION_ARG_NONE, &options->all, "with --top, --metrics: all roots", NULL},
        {"metrics", 0, 0, G_OPTION_ARG_NONE, &options->metrics, "for Prometheus, and end", NULL},
        {"quick", 0, 0, G_OPTION_ARG_NONE, &options->quick, "with --check: no machine", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (options->root &&
        (options->sandbox || options->gc || options->check || options->top || options->metrics))
        return TRUE;
    g_set_error_literal(error, SV_BASE_ERROR, SV_ERR_INVALID, "--root and --sandbox are needed");
    return FALSE;
}

/* "R" when it listens; "E<text>" when it cannot (see core/client.h). */
static void tell_ready(Options *options, const GError *error)
{
    if (options->ready_fd < 0)
        return;
    g_autofree char *text = error ? g_strdup_printf("E%s", error->message) : g_strdup("R");
    g_autoptr(GError) ignored = NULL;
    if (!sv_fd_write_all(options->ready_fd, text, strlen(text), &ignored))
        g_info("ignoring: %s", ignored->message);
    sv_fd_clear(&options->ready_fd);
}

/* Nothing to watch and nobody there: ends, unless somebody comes at this moment. */
static void try_to_end(gpointer user_data)
{
    Monitor *monitor = user_data;
    if (monitor->first && !sv_server_was_used(monitor->server))
        return;
    if (sv_sandbox_is_idle(monitor->sandbox) && sv_server_close_if_unused(monitor->server))
        g_main_loop_quit(monitor->loop);
}

static gboolean on_nobody_came(gpointer user_data)
{
    Monitor *monitor = user_data;
    monitor->first = 0;
    try_to_end(monitor);
    return G_SOURCE_REMOVE;
}

static void on_idle(SvSandbox *sandbox, gpointer user_data)
{
    try_to_end(user_data);
}

static void on_changed(SvSandbox *sandbox, const SvRecord *record, SvState old, gpointer user_data)
{
    Monitor *monitor = user_data;
    sv_server_notify(monitor->server, record, old);
}

static void on_oom(SvSandbox *sandbox, const SvRecord *record, gpointer user_data)
{
    Monitor *monitor = user_data;
    sv_server_notify_oom(monitor->server, record);
}

static void on_recovered(const GError *error, gpointer user_data)
{
    Monitor *monitor = user_data;
    if (error)
        g_warning("sandbox record: %s", error->message);
    sv_server_serve(monitor->server, monitor->sandbox);
}

static const SvDriver driver = {
    .open = sv_libvirt_new,
    .resolve_accel = sv_accel_resolve,
};

static const SvSandboxHandlers handlers = {
    .idle = on_idle,
    .changed = on_changed,
    .oom = on_oom,
};

/* --debug, or what the administrator has set for all of them. */
static gboolean start_log(const SvConfig *config, const Options *options, GError **error)
{
    gboolean debug = options->debug || config->log_level >= SV_LOG_LEVEL_INFO;
    return sv_log_init("sandvirt-monitor", debug, NULL, SV_LOG_TEXT, TRUE, error);
}

/* What mounts, namespaces, taps, hooks' processes and files of all owners need. The bounding set stays:
 * hooks are the engine's, and run with what the engine would give them. For the same reason there is
 * no no_new_privs and no system call filter here, which hooks would inherit. */
#define CAPABILITIES                                                                               \
    (SV_CAP(CAP_CHOWN) | SV_CAP(CAP_DAC_OVERRIDE) | SV_CAP(CAP_DAC_READ_SEARCH) |                  \
        SV_CAP(CAP_FOWNER) | SV_CAP(CAP_FSETID) | SV_CAP(CAP_KILL) | SV_CAP(CAP_SETGID) |          \
        SV_CAP(CAP_SETUID) | SV_CAP(CAP_NET_BIND_SERVICE) | SV_CAP(CAP_NET_ADMIN) |                \
        SV_CAP(CAP_NET_RAW) | SV_CAP(CAP_SYS_ADMIN) | SV_CAP(CAP_SYS_CHROOT) |                     \
        SV_CAP(CAP_SYS_PTRACE) | SV_CAP(CAP_SYS_NICE) | SV_CAP(CAP_SYS_RESOURCE) |                 \
        SV_CAP(CAP_MKNOD))

/* For life: there is never a second monitor of a sandbox. One that ends takes the lock's folder with it, which
 * may be just now. */
static int take_lock(const SvPaths *paths, GError **error)
{
    for (guint i = 0;; i++) {
        g_autoptr(GError) local = NULL;
        int lock = -1;
        if (sv_file_mkdirs(paths->state_dir, 0700, &local))
            lock = sv_file_lock(paths->lock_file, &local);
        if (lock >= 0 || !sv_error_is(local, SV_ERR_NOT_FOUND) || i == LOCK_ATTEMPTS) {
            if (lock < 0)
                g_propagate_error(error, g_steal_pointer(&local));
            return lock;
        }
    }
}

static gboolean run(Options *options, GError **error)
{
    if (!sv_confine_capabilities(CAPABILITIES, FALSE, error))
        return FALSE;
    g_autoptr(SvPaths) paths = NULL;
    const SvConfig *config = sv_config_load(options->config, error);
    if (!config || !start_log(config, options, error)) {
        sv_config_unref(config);
        return FALSE;
    }
    paths = sv_paths_new(config, options->root, options->sandbox, TRUE, error);
    if (!paths || !sv_file_mkdirs(paths->sock_dir, 0700, error)) {
        sv_config_unref(config);
        return FALSE;
    }
    g_auto(SvFd) lock = take_lock(paths, error);
    Monitor monitor = {0};
    if (lock >= 0 && sv_owner_write(paths, paths->owner_file, error))
        monitor.server = sv_server_new(paths->monitor_socket, error);
    if (!monitor.server) {
        sv_config_unref(config);
        return FALSE;
    }
    monitor.loop = g_main_loop_new(NULL, FALSE);
    monitor.sandbox = sv_sandbox_new(config, g_steal_pointer(&paths), &driver, &handlers, &monitor);
    sv_server_set_left(monitor.server, try_to_end, &monitor);
    tell_ready(options, NULL);
    monitor.first = g_timeout_add(FIRST_CALLER_MS, on_nobody_came, &monitor);
    sv_sandbox_recover(monitor.sandbox, on_recovered, &monitor);
    g_main_loop_run(monitor.loop);

    if (monitor.first)
        g_source_remove(monitor.first);
    sv_sandbox_clean_up(monitor.sandbox);
    sv_server_free(monitor.server);
    sv_sandbox_free(monitor.sandbox);
    g_main_loop_unref(monitor.loop);
    sv_config_unref(config);
    return TRUE;
}

static gboolean run_gc(const Options *options, GError **error)
{
    const SvConfig *config = sv_config_load(options->config, error);
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    if (!config)
        return FALSE;
    gboolean ok = sv_gc(config, options->config, options->root, self, options->dry_run, error);
    sv_config_unref(config);
    return ok;
}

static int run_check(const Options *options, GError **error)
{
    const SvConfig *config = sv_config_load(options->config, error);
    if (!config)
        return -1;
    int status = sv_check(config, options->root, options->json, options->quick);
    sv_config_unref(config);
    return status;
}

static int run_statistics(const Options *options, GError **error)
{
    const SvConfig *config = sv_config_load(options->config, error);
    g_autoptr(SvPaths) paths =
        config ? sv_paths_new(config, options->root, "top", FALSE, error) : NULL;
    gboolean ok = FALSE;
    const char *root = paths && !options->all ? paths->root : NULL;
    if (paths)
        ok = options->top ? sv_top(config, root, options->once, options->json, error)
                          : sv_metrics(config, root, error);
    sv_config_unref(config);
    return ok ? 0 : -1;
}

/* The exit status of a mode, -1 with @error. */
static int run_mode(Options *options, GError **error)
{
    if (options->check)
        return run_check(options, error);
    if (options->top || options->metrics)
        return run_statistics(options, error);
    return (options->gc ? run_gc(options, error) : run(options, error)) ? 0 : -1;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    Options options = {.ready_fd = -1};
    /* One arena: the workers' heaps would be most of the memory of an idle monitor. */
    mallopt(M_ARENA_MAX, 1);
    signal(SIGPIPE, SIG_IGN);
    umask(077);
    int status = -1;
    if (parse_options(&argc, &argv, &options, &error) &&
        sv_log_init("sandvirt-monitor", options.debug, NULL, SV_LOG_TEXT, TRUE, &error))
        status = run_mode(&options, &error);
    if (status < 0) {
        tell_ready(&options, error);
        g_printerr("sandvirt-monitor: %s\n", error->message);
        status = sv_error_is(error, SV_ERR_BUSY) ? 3 : 1;
    }
    g_free(options.root);
    g_free(options.sandbox);
    g_free(options.config);
    return status;
}
