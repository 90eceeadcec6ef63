/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/crun-error.h"
#include "agent/agent-error.h"
#include <string.h>

#define NOT_FOUND_BEFORE "executable file `"
#define NOT_FOUND_AFTER "` not found in $PATH"
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
        {"open executable: Permission denied", SV_ERR_EXEC_DENIED},
        {"open executable: Operation not permitted", SV_ERR_EXEC_DENIED}, /* no regular file */
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

GError *sv_crun_error(const char *verb, const char *text, int status)
{
    g_autofree char *name = missing_executable(text ? text : "");
    g_autofree char *line = one_line(text ? text : "");
    g_autofree char *printable = NULL;
    SvErr code;

    if (name) {
        g_autofree char *shown = sv_printable(name, TEXT_MAX);

        /* The phrases of runc, which engines look for. */
        if (strchr(name, '/'))
            return g_error_new(SV_AGENT_ERROR, SV_ERR_EXEC_NOT_FOUND,
                "exec: \"%s\": stat %s: no such file or directory", shown, shown);
        return g_error_new(SV_AGENT_ERROR, SV_ERR_EXEC_NOT_FOUND,
            "exec: \"%s\": executable file not found in $PATH", shown);
    }
    code = code_of(line);
    if (code == SV_ERR_EXEC_DENIED)
        return g_error_new(SV_AGENT_ERROR, code, "open executable: permission denied");
    printable = sv_printable(line, TEXT_MAX);
    if (*printable)
        return g_error_new(SV_AGENT_ERROR, code, "crun %s: %s", verb, printable);
    if (status > 128)
        return g_error_new(
            SV_AGENT_ERROR, code, "crun %s was killed by signal %d", verb, status - 128);
    return g_error_new(SV_AGENT_ERROR, code, "crun %s failed with status %d", verb, status);
}
