/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/crun-error.h"
#include "agent/agent-error.h"
#include <errno.h>
#include <string.h>

#define NOT_FOUND_BEFORE "executable file `"
#define NOT_FOUND_AFTER "` not found in $PATH"
#define NOT_OPENED "open executable: "
#define TEXT_MAX 2048

/* The name between the quotes, (transfer full), or NULL. */
static char *missing_executable(const char *text)
{
    const char *start = strstr(text, NOT_FOUND_BEFORE);
    const char *end;

    if (!start)
        return NULL;
    start += strlen(NOT_FOUND_BEFORE);
    end = strstr(start, NOT_FOUND_AFTER);
    return end ? g_strndup(start, (gsize)(end - start)) : NULL;
}

/* The lines joined into one. */
static char *one_line(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GString *joined = g_string_new(NULL);

    for (char **line = lines; *line; line++) {
        g_strstrip(*line);
        if (**line)
            g_string_append_printf(joined, "%s%s", joined->len ? "; " : "", *line);
    }
    return g_string_free(joined, FALSE);
}

static SvErr code_of(const char *line)
{
    static const struct {
        const char *text;
        SvErr code;
    } known[] = {
        {"is not running", SV_ERR_NOT_RUNNING},
        {"process not found", SV_ERR_NOT_RUNNING},
        {"is paused", SV_ERR_STATE},
        {"already exists", SV_ERR_EXISTS},
        {"does not exist", SV_ERR_NOT_FOUND},
        {"cannot parse", SV_ERR_INVALID},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(known); i++)
        if (strstr(line, known[i].text))
            return known[i].code;
    return SV_ERR_FAILED;
}

/* Why the program cannot be run, in the phrases of runc, which engines look for; NULL: that is not it. */
static GError *program_error(const char *program, const char *text)
{
    g_autofree char *missing = missing_executable(text);
    const char *reason = strstr(text, NOT_OPENED);
    const char *name = program && *program ? program : missing;
    g_autofree char *shown = name ? sv_printable(name, TEXT_MAX) : NULL;
    g_autofree char *lower = NULL;

    if (!missing && !reason)
        return NULL;
    /* Found where it is looked for, but of no use: as good as not found. */
    if (name && !strchr(name, '/'))
        return g_error_new(SV_AGENT_ERROR, SV_ERR_EXEC_NOT_FOUND,
            "exec: \"%s\": executable file not found in $PATH", shown);
    if (missing)
        return g_error_new(SV_AGENT_ERROR, SV_ERR_EXEC_NOT_FOUND,
            "exec: \"%s\": stat %s: no such file or directory", shown, shown);
    reason += strlen(NOT_OPENED);
    /* EPERM: it is no regular file. */
    if (g_str_has_prefix(reason, g_strerror(EACCES)) || g_str_has_prefix(reason, g_strerror(EPERM)))
        return shown
            ? g_error_new(
                  SV_AGENT_ERROR, SV_ERR_EXEC_DENIED, "exec: \"%s\": permission denied", shown)
            : g_error_new(SV_AGENT_ERROR, SV_ERR_EXEC_DENIED, "open executable: permission denied");
    if (!shown)
        return NULL;
    lower = one_line(reason);
    lower[0] = g_ascii_tolower(lower[0]);
    return g_error_new(
        SV_AGENT_ERROR, SV_ERR_EXEC_DENIED, "exec: \"%s\": stat %s: %s", shown, shown, lower);
}

GError *sv_crun_error(const char *verb, const char *program, const char *text, int status)
{
    g_autofree char *line = one_line(text ? text : "");
    g_autofree char *printable = NULL;
    GError *error = program_error(program, text ? text : "");
    SvErr code;

    if (error)
        return error;
    code = code_of(line);
    printable = sv_printable(line, TEXT_MAX);
    if (*printable)
        return g_error_new(SV_AGENT_ERROR, code, "crun %s: %s", verb, printable);
    if (status > 128)
        return g_error_new(
            SV_AGENT_ERROR, code, "crun %s was killed by signal %d", verb, status - 128);
    return g_error_new(SV_AGENT_ERROR, code, "crun %s failed with status %d", verb, status);
}
