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
#define NAME_LEN 64 /* longest name of a machine, what comes before SUFFIX */

/* "qemu-ID-NAME.libvirt-qemu"; of NAME libvirt keeps what may stand in a host's name. */
static gboolean is_of(const char *folder, const char *kept)
{
    const char *end =
        g_str_has_suffix(folder, SUFFIX) ? folder + strlen(folder) - strlen(SUFFIX) : NULL;
    if (!end || !g_str_has_prefix(folder, PREFIX))
        return FALSE;
    const char *id = folder + strlen(PREFIX);
    const char *name = id + strspn(id, "0123456789");
    if (name == id || *name++ != '-' || name >= end)
        return FALSE;
    gsize len = (gsize)(end - name);
    return strncmp(name, kept, len) == 0 && (kept[len] == '\0' || end - folder == NAME_LEN);
}

static char *kept_of(const char *domain)
{
    GString *kept = g_string_new(NULL);
    for (const char *p = domain; *p; p++)
        if (g_ascii_isalnum(*p) || *p == '-' || *p == '.')
            g_string_append_c(kept, *p);
    return g_string_free(kept, FALSE);
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
