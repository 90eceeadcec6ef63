/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "base/error.h"

#include <errno.h>
#include <string.h>

SV_DEFINE_ERROR_QUARK(base)

SvErr sv_error_code_from_errno(int errsv)
{
    switch (errsv) {
    case ENOENT:
        return SV_ERR_NOT_FOUND;
    case EEXIST:
        return SV_ERR_EXISTS;
    case EPERM:
    case EACCES:
    case EROFS:
        return SV_ERR_PERMISSION;
    case EBUSY:
        return SV_ERR_BUSY;
    case ETIMEDOUT:
        return SV_ERR_TIMEOUT;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
    case ECONNREFUSED:
        return SV_ERR_CLOSED;
    case EINVAL:
        return SV_ERR_INVALID;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
        return SV_ERR_UNSUPPORTED;
    default:
        return SV_ERR_IO;
    }
}

void sv_error_set_errno(GError **error, GQuark domain, int errsv, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    if (error == NULL)
        return;
    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(
        error, domain, (int)sv_error_code_from_errno(errsv), "%s: %s", text, g_strerror(errsv));
}

gboolean sv_error_is(const GError *error, SvErr code)
{
    return error != NULL && error->code == (int)code &&
        g_str_has_prefix(g_quark_to_string(error->domain), "sv");
}

/* Number of bytes of one printable character at @p, 0 when there is none. */
static gsize printable_at(const char *p, const char *end)
{
    gunichar c;

    if ((guchar)*p < 0x80)
        return g_ascii_isprint(*p) ? 1 : 0;
    c = g_utf8_get_char_validated(p, end - p);
    if (c == (gunichar)-1 || c == (gunichar)-2 || !g_unichar_isprint(c))
        return 0;
    if (c == 0x2028 || c == 0x2029) /* line and paragraph separator */
        return 0;
    return g_utf8_skip[*(const guchar *)p];
}

char *sv_printable_len(const char *text, gsize len, gsize max_bytes)
{
    GString *out = g_string_new(NULL);
    gsize cut = 0; /* end of the last character that leaves room for the dots */
    const char *p = text;
    const char *end = text != NULL ? text + len : NULL;

    while (p < end && out->len <= max_bytes) {
        gsize n = printable_at(p, end);

        if (n > 0) {
            g_string_append_len(out, p, (gssize)n);
            p += n;
        } else {
            g_string_append_printf(out, "\\x%02x", *(const guchar *)p);
            p++;
        }
        if (max_bytes >= 3 && out->len <= max_bytes - 3)
            cut = out->len;
    }
    if (out->len > max_bytes) {
        g_string_truncate(out, cut);
        g_string_append_len(out, "...", (gssize)MIN(max_bytes, 3));
    }
    return g_string_free(out, FALSE);
}

char *sv_printable(const char *text, gsize max_bytes)
{
    return sv_printable_len(text, text != NULL ? strlen(text) : 0, max_bytes);
}
