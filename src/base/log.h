/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logging: GLib structured logging with one writer. Each folder defines G_LOG_DOMAIN through meson
 * ("sv-base", "sv-core", ...) and uses g_debug/g_info/g_message/g_warning. Libraries stay silent
 * above debug unless something was ignored ("ignoring: ..."). The only mutable file-scope state of
 * the project lives in log.c. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum { SV_LOG_TEXT, SV_LOG_JSON } SvLogFormat;

/* Installs the writer. @program: name in front of text lines. @debug: also debug and info.
 * @path: (nullable) file to append lines to, as runc does with --log (created 0644); NULL: no file.
 * @format: format of the lines in that file: json lines are
 * {"level":"error|warning|info|debug","msg":"...","time":"RFC3339"}, text lines as logrus writes
 * them (time="..." level=error msg="..."). @to_stderr: warnings and worse go to stderr too, as
 * "<program>: <message>" (text). Under systemd (JOURNAL_STREAM) stderr lines carry <N> priorities.
 * With @debug and no @path, stderr takes the debug and info lines too. Debug and info of other
 * libraries (domains without "sv-") are dropped. The fields SANDBOX, CONTAINER and PHASE of
 * g_log_structured() become members of the lines in the file. A second call replaces the settings.
 * Returns FALSE with @error when @path cannot be opened. Main thread, at the start of main. */
gboolean sv_log_init(const char *program, gboolean debug, const char *path, SvLogFormat format,
    gboolean to_stderr, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* The final error of a command-line call: one line on stderr ("sandvirt: <message>" unless
 * @to_stderr was off) and one level=error line in the log file. Message is made printable. */
void sv_log_fatal_error(const char *message);

G_END_DECLS
