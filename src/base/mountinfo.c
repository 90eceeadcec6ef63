/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parser of /proc/PID/mountinfo, see proc(5). */
#include <config.h>

#include "base/mount.h"

#include "base/error.h"
#include "base/file.h"
#include "base/names.h"

#include <string.h>

#define MOUNTINFO_MAX (16 * 1024 * 1024)

void sv_mount_info_free(SvMountInfo *info)
{
    if (info == NULL)
        return;
    g_free(info->root);
    g_free(info->target);
    g_free(info->options);
    g_free(info->fstype);
    g_free(info->source);
    g_free(info->super_options);
    g_free(info);
}

static gboolean is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* The kernel writes blanks and backslashes as \NNN. */
static char *unescape(const char *text)
{
    char *out = g_malloc(strlen(text) + 1);
    char *o = out;

    while (*text != '\0') {
        if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && is_octal(text[2]) &&
            is_octal(text[3]) && (text[1] != '0' || text[2] != '0' || text[3] != '0')) {
            *o++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
            text += 4;
        } else {
            *o++ = *text++;
        }
    }
    *o = '\0';
    return out;
}

static gboolean parse_device(const char *text, unsigned *major, unsigned *minor)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    gint64 a, b;

    if (g_strv_length(parts) != 2 || !sv_parse_int64(parts[0], 0, G_MAXUINT, &a, NULL) ||
        !sv_parse_int64(parts[1], 0, G_MAXUINT, &b, NULL))
        return FALSE;
    *major = (unsigned)a;
    *minor = (unsigned)b;
    return TRUE;
}

static SvMountInfo *parse_line(const char *line)
{
    g_auto(GStrv) f = g_strsplit(line, " ", -1);
    guint n = g_strv_length(f);
    SvMountInfo *info;
    gint64 id, parent;
    unsigned major, minor;
    gboolean shared = FALSE;
    guint i = 6;

    if (n < 9 || !sv_parse_int64(f[0], 0, G_MAXINT, &id, NULL) ||
        !sv_parse_int64(f[1], 0, G_MAXINT, &parent, NULL) || !parse_device(f[2], &major, &minor))
        return NULL;
    for (; i < n && strcmp(f[i], "-") != 0; i++) {
        if (g_str_has_prefix(f[i], "shared:"))
            shared = TRUE;
    }
    if (i >= n || n - i < 3)
        return NULL;
    info = g_new0(SvMountInfo, 1);
    info->id = (int)id;
    info->parent = (int)parent;
    info->major = major;
    info->minor = minor;
    info->root = unescape(f[3]);
    info->target = unescape(f[4]);
    info->options = unescape(f[5]);
    info->fstype = unescape(f[i + 1]);
    info->source = unescape(f[i + 2]);
    info->super_options = unescape(n - i > 3 ? f[i + 3] : "");
    info->shared = shared;
    return info;
}

GPtrArray *sv_mount_parse(const char *text, gsize len, GError **error)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func((GDestroyNotify)sv_mount_info_free);
    const char *p = text;
    const char *end = text + len;
    guint number = 0;

    while (p < end) {
        const char *eol = memchr(p, '\n', (gsize)(end - p));
        g_autofree char *line = g_strndup(p, (gsize)((eol != NULL ? eol : end) - p));
        SvMountInfo *info;

        number++;
        p = eol != NULL ? eol + 1 : end;
        if (*line == '\0')
            continue;
        info = parse_line(line);
        if (info == NULL) {
            g_autofree char *shown = sv_printable(line, 200);

            g_set_error(error, SV_BASE_ERROR, SV_ERR_INVALID, "mountinfo: line %u is not valid: %s",
                number, shown);
            return NULL;
        }
        g_ptr_array_add(list, info);
    }
    return g_steal_pointer(&list);
}

GPtrArray *sv_mount_list(int pid, GError **error)
{
    g_autofree char *path =
        pid > 0 ? g_strdup_printf("/proc/%d/mountinfo", pid) : g_strdup("/proc/self/mountinfo");
    g_autofree char *text = NULL;
    gsize len = 0;

    if (!sv_file_read(path, MOUNTINFO_MAX, &text, &len, error))
        return NULL;
    return sv_mount_parse(text, len, error);
}
