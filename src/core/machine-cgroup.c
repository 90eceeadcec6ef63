/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What libvirt's daemon leaves of a machine in whose start it was killed: its cgroup, which without systemd nobody
 * else removes. */
#include "core/host-cgroup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LIBVIRT_PLACE "machine" /* libvirt's default partition */
#define PREFIX "qemu-"
#define SUFFIX ".libvirt-qemu"
#define NAME_LEN 64 /* of a machine's name, what comes before SUFFIX */

static void trim_end(char *name)
{
    for (gsize len = strlen(name); len > 0 && strchr("-.", name[len - 1]); len--)
        name[len - 1] = '\0';
}

/* Of a domain's name libvirt keeps what may stand in a host's, and of dashes and dots in a row the first. */
static char *kept_of(const char *domain)
{
    GString *kept = g_string_new(NULL);
    gboolean mark = TRUE; /* a dash or a dot was the last */
    for (const char *p = domain; *p; p++) {
        gboolean is_mark = *p == '-' || *p == '.';
        if (!is_mark && !g_ascii_isalnum(*p))
            continue;
        if (!is_mark || !mark)
            g_string_append_c(kept, *p);
        mark = is_mark;
    }
    return g_string_free(kept, FALSE);
}

/* "qemu-ID-NAME.libvirt-qemu", what stands before the dot cut to its longest. */
static gboolean is_of(const char *folder, const char *kept)
{
    gsize digits =
        g_str_has_prefix(folder, PREFIX) ? strspn(folder + strlen(PREFIX), "0123456789") : 0;
    if (digits == 0)
        return FALSE;
    g_autofree char *name =
        g_strdup_printf("%.*s-%s", (int)(strlen(PREFIX) + digits), folder, kept);
    if (strlen(name) > NAME_LEN)
        name[NAME_LEN] = '\0';
    trim_end(name);
    g_autofree char *whole = g_strconcat(name, SUFFIX, NULL);
    return strcmp(folder, whole) == 0;
}

/* With those below it; one that somebody lives in stays. */
static void remove_folder(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *below = g_build_filename(path, name, NULL);
        if (g_file_test(below, G_FILE_TEST_IS_DIR) && !g_file_test(below, G_FILE_TEST_IS_SYMLINK))
            remove_folder(below);
    }
    if (rmdir(path) < 0 && errno != ENOENT)
        g_debug("ignoring: %s: %s", path, g_strerror(errno));
}

void sv_cgroup_remove_machine(const char *top, const char *domain)
{
    g_autoptr(GPtrArray) list = sv_cgroup_hierarchies(top);
    g_autofree char *kept = kept_of(domain);
    for (guint i = 0; i < list->len; i++) {
        g_autofree char *place = g_build_filename(list->pdata[i], LIBVIRT_PLACE, NULL);
        g_autoptr(GDir) dir = g_dir_open(place, 0, NULL);
        const char *name;
        while (dir && (name = g_dir_read_name(dir)))
            if (is_of(name, kept)) {
                g_autofree char *folder = g_build_filename(place, name, NULL);
                remove_folder(folder);
            }
    }
}
