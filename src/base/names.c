/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/names.h"

#include "base/error.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Numbers of the kernel's ABI towards programs: glibc keeps 32 and 33 for itself. */
#define RT_MIN 34
#define RT_MAX 64

static gboolean id_char(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '+' || c == '.' || c == '-';
}

gboolean sv_id_check(const char *id, const char *what, GError **error)
{
    gsize len = id != NULL ? strlen(id) : 0;
    g_autofree char *shown = NULL;

    if (len == 0) {
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "%s is empty", what);
        return FALSE;
    }
    if (len <= SV_ID_MAX && id[0] != '.') {
        gsize i = 0;

        while (i < len && id_char(id[i]))
            i++;
        if (i == len)
            return TRUE;
    }
    shown = sv_printable(id, 64);
    if (len > SV_ID_MAX)
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "%s '%s' is longer than %d bytes", what,
            shown, SV_ID_MAX);
    else
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID,
            "%s '%s' is not valid: only A-Z a-z 0-9 _ + . - and no dot at the start", what, shown);
    return FALSE;
}

static const struct {
    const char *name;
    int signo;
} signal_aliases[] = {{"IOT", SIGABRT}, {"CLD", SIGCHLD}, {"IO", SIGIO}};

/* "" gives 0, "<sign>N" gives N; -1 otherwise. */
static int rt_offset(const char *text, char sign)
{
    gint64 n;

    if (*text == '\0')
        return 0;
    if (*text != sign || !g_ascii_isdigit(text[1]))
        return -1;
    return sv_parse_int64(text + 1, 0, RT_MAX - RT_MIN, &n, NULL) ? (int)n : -1;
}

static int signal_by_name(const char *name)
{
    int n;

    if (g_ascii_strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    if (g_ascii_strncasecmp(name, "RTMIN", 5) == 0) {
        n = rt_offset(name + 5, '+');
        return n < 0 ? -1 : RT_MIN + n;
    }
    if (g_ascii_strncasecmp(name, "RTMAX", 5) == 0) {
        n = rt_offset(name + 5, '-');
        return n < 0 ? -1 : RT_MAX - n;
    }
    for (guint i = 1; i < 32; i++) {
        if (g_ascii_strcasecmp(name, sigabbrev_np((int)i)) == 0)
            return (int)i;
    }
    for (guint i = 0; i < G_N_ELEMENTS(signal_aliases); i++) {
        if (g_ascii_strcasecmp(name, signal_aliases[i].name) == 0)
            return signal_aliases[i].signo;
    }
    return -1;
}

int sv_signal_parse(const char *text, GError **error)
{
    g_autofree char *shown = NULL;
    gint64 number;
    int signo = -1;

    if (text != NULL && g_ascii_isdigit(*text)) {
        if (sv_parse_int64(text, 0, RT_MAX, &number, NULL))
            signo = (int)number;
    } else if (text != NULL) {
        signo = signal_by_name(text);
    }
    if (signo < 0) {
        shown = sv_printable(text, 64);
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "unknown signal '%s'", shown);
    }
    return signo;
}

gboolean sv_signal_terminates(int signo)
{
    switch (signo) {
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
        return FALSE;
    default:
        return signo > 0 && signo <= RT_MAX;
    }
}

const char *sv_enum_name(const char *const *names, guint n, guint value)
{
    return value < n && names[value] != NULL ? names[value] : "?";
}

gboolean sv_enum_parse(const char *const *names, guint n, const char *text, guint *value)
{
    for (guint i = 0; text != NULL && i < n; i++) {
        if (names[i] != NULL && strcmp(names[i], text) == 0) {
            *value = i;
            return TRUE;
        }
    }
    return FALSE;
}

/* Digits only, after an optional minus. */
static gboolean decimal_form(const char *text)
{
    const char *p = text;

    if (p == NULL)
        return FALSE;
    if (*p == '-')
        p++;
    if (*p == '\0')
        return FALSE;
    while (g_ascii_isdigit(*p))
        p++;
    return *p == '\0';
}

gboolean sv_parse_size(const char *text, gint64 *value)
{
    static const char units[] = "kmgtp";
    const char *p = text, *unit;
    guint64 whole = 0, fraction = 0, scale = 1, factor = 1;

    if (g_strcmp0(text, "-1") == 0) {
        *value = -1;
        return TRUE;
    }
    if (!text || !g_ascii_isdigit(*p))
        return FALSE;
    for (; g_ascii_isdigit(*p); p++) {
        if (whole > (G_MAXUINT64 - 9) / 10)
            return FALSE;
        whole = whole * 10 + (guint64)(*p - '0');
    }
    if (*p == '.' && !g_ascii_isdigit(*++p))
        return FALSE;
    for (; g_ascii_isdigit(*p); p++) {
        if (scale < 1000000000) {
            fraction = fraction * 10 + (guint64)(*p - '0');
            scale *= 10;
        }
    }
    p += *p == ' ' && p[1];
    unit = *p ? strchr(units, g_ascii_tolower(*p)) : NULL;
    if (unit) {
        factor = G_GUINT64_CONSTANT(1) << 10 * (unit - units + 1);
        p++;
    }
    p += g_ascii_tolower(*p) == 'i' && p[1];
    p += g_ascii_tolower(*p) == 'b';
    if (*p || whole > (G_MAXINT64 - (fraction ? factor : 0)) / factor)
        return FALSE;
    *value =
        (gint64)(whole * factor + (guint64)((double)fraction / (double)scale * (double)factor));
    return TRUE;
}

gboolean sv_parse_int64(const char *text, gint64 min, gint64 max, gint64 *value, GError **error)
{
    g_autofree char *shown = NULL;
    gint64 n;
    int saved = errno;

    if (!decimal_form(text)) {
        shown = sv_printable(text, 64);
        g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "'%s' is not a number", shown);
        return FALSE;
    }
    errno = 0;
    n = g_ascii_strtoll(text, NULL, 10);
    if (errno == ERANGE || n < min || n > max) {
        errno = saved;
        shown = sv_printable(text, 64);
        g_set_error(error, SV_BASE_ERROR, SV_ERR_LIMIT,
            "%s is not within %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT, shown, min, max);
        return FALSE;
    }
    errno = saved;
    *value = n;
    return TRUE;
}
