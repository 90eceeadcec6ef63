/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/log.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_MAX (64 * 1024)

/* Set by sv_log_init in the main thread, read only afterwards. */
static struct {
    char *program;
    gboolean debug;
    SvLogFormat format;
    gboolean to_stderr;
    gboolean journal; /* stderr goes to the journal */
    gboolean installed;
    int fd; /* log file, -1: none */
} log_state = {.fd = -1, .to_stderr = TRUE};

/* The message as the inside of a quoted string: valid for JSON and for the text of logrus. Line ends
 * stay, as \n. */
static char *quote(const char *message)
{
    g_auto(GStrv) lines = g_strsplit(message, "\n", -1);
    GString *out = g_string_new(NULL);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_autofree char *line = sv_printable(lines[i], MESSAGE_MAX);

        if (i > 0)
            g_string_append(out, "\\n");
        for (const char *p = line; *p != '\0'; p++) {
            if (*p == '"' || *p == '\\')
                g_string_append_c(out, '\\');
            g_string_append_c(out, *p);
        }
    }
    return g_string_free(out, FALSE);
}

static const char *level_name(GLogLevelFlags level)
{
    if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
        return "error";
    if (level & G_LOG_LEVEL_WARNING)
        return "warning";
    if (level & (G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO))
        return "info";
    return "debug";
}

static int level_priority(GLogLevelFlags level)
{
    if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
        return 3;
    if (level & G_LOG_LEVEL_WARNING)
        return 4;
    if (level & G_LOG_LEVEL_MESSAGE)
        return 5;
    return level & G_LOG_LEVEL_INFO ? 6 : 7;
}

/* A line is one write: several processes append to the same file. Nobody to tell when it fails. */
static void write_line(int fd, const char *line)
{
    if (!sv_fd_write_all(fd, line, strlen(line), NULL))
        return;
}

static void write_file(const char *level, const char *message, const char *const extra[3])
{
    static const char *const extra_names[3] = {"sandbox", "container", "phase"};
    gboolean json = log_state.format == SV_LOG_JSON;
    g_autofree char *quoted = quote(message);
    g_autoptr(GString) line = g_string_new(NULL);
    time_t now = time(NULL);
    char when[32] = "";
    struct tm tm;

    if (gmtime_r(&now, &tm) != NULL)
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (json)
        g_string_append_printf(
            line, "{\"level\":\"%s\",\"msg\":\"%s\",\"time\":\"%s\"", level, quoted, when);
    else
        g_string_append_printf(line, "time=\"%s\" level=%s msg=\"%s\"", when, level, quoted);
    for (guint i = 0; i < G_N_ELEMENTS(extra_names); i++) {
        g_autofree char *value = extra[i] != NULL ? quote(extra[i]) : NULL;

        if (value != NULL)
            g_string_append_printf(
                line, json ? ",\"%s\":\"%s\"" : " %s=\"%s\"", extra_names[i], value);
    }
    g_string_append(line, json ? "}\n" : "\n");
    write_line(log_state.fd, line->str);
}

static void write_stderr(int priority, const char *message)
{
    g_autofree char *shown = sv_printable(message, MESSAGE_MAX);
    const char *program = log_state.program != NULL ? log_state.program : "sandvirt";
    g_autofree char *line = NULL;

    if (log_state.journal)
        line = g_strdup_printf("<%d>%s: %s\n", priority, program, shown);
    else
        line = g_strdup_printf("%s: %s\n", program, shown);
    write_line(STDERR_FILENO, line);
}

static char *field_text(const GLogField *field)
{
    if (field->length < 0)
        return g_strdup(field->value);
    return g_strndup(field->value, (gsize)field->length);
}

static GLogWriterOutput log_writer(
    GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
    g_autofree char *message = NULL;
    g_autofree char *domain = NULL;
    g_autofree char *sandbox = NULL;
    g_autofree char *container = NULL;
    g_autofree char *phase = NULL;
    const struct {
        const char *key;
        char **value;
    } wanted[] = {{"MESSAGE", &message}, {"GLIB_DOMAIN", &domain}, {"SANDBOX", &sandbox},
        {"CONTAINER", &container}, {"PHASE", &phase}};
    gboolean detail = (level & (G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG)) != 0;
    gboolean important =
        (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING)) != 0;

    if (detail && !log_state.debug)
        return G_LOG_WRITER_HANDLED;
    for (gsize i = 0; i < n_fields; i++) {
        for (guint k = 0; k < G_N_ELEMENTS(wanted); k++) {
            if (strcmp(fields[i].key, wanted[k].key) == 0 && *wanted[k].value == NULL)
                *wanted[k].value = field_text(&fields[i]);
        }
    }
    if (message == NULL || (detail && (domain == NULL || !g_str_has_prefix(domain, "sv-"))))
        return G_LOG_WRITER_HANDLED;
    if (log_state.fd >= 0)
        write_file(level_name(level), message, (const char *const[]){sandbox, container, phase});
    if (log_state.to_stderr && (important || (log_state.debug && log_state.fd < 0)))
        write_stderr(level_priority(level), message);
    return G_LOG_WRITER_HANDLED;
}

/* sd_journal_stream_fd(3): JOURNAL_STREAM is "<device>:<inode>" of the stream. */
static gboolean stderr_is_journal(void)
{
    const char *text = g_getenv("JOURNAL_STREAM");
    guint64 device, inode;
    struct stat st;

    if (text == NULL ||
        sscanf(text, "%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT, &device, &inode) != 2 ||
        fstat(STDERR_FILENO, &st) < 0)
        return FALSE;
    return (guint64)st.st_dev == device && (guint64)st.st_ino == inode;
}

gboolean sv_log_init(const char *program, gboolean debug, const char *path, SvLogFormat format,
    gboolean to_stderr, GError **error)
{
    int fd = -1;

    if (path != NULL) {
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, 0644);
        if (fd < 0) {
            sv_error_set_errno(error, SV_BASE_ERROR, errno, "open log file %s", path);
            return FALSE;
        }
    }
    sv_fd_close(log_state.fd);
    log_state.fd = fd;
    g_free(log_state.program);
    log_state.program = g_strdup(program);
    log_state.debug = debug;
    log_state.format = format;
    log_state.to_stderr = to_stderr;
    log_state.journal = stderr_is_journal();
    if (!log_state.installed) {
        log_state.installed = TRUE;
        g_log_set_writer_func(log_writer, NULL, NULL);
    }
    return TRUE;
}

void sv_log_fatal_error(const char *message)
{
    const char *const none[3] = {NULL, NULL, NULL};

    if (log_state.fd >= 0)
        write_file("error", message, none);
    if (log_state.to_stderr)
        write_stderr(3, message);
}
