/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "conf/image-place.h"

#include "base/fd.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static gboolean copy_bytes(int from, int to)
{
    for (;;) {
        ssize_t n = sendfile(to, from, NULL, 1 << 24);
        if (n <= 0)
            return n == 0;
    }
}

/* Under its final name only when it is whole. */
static gboolean copy_to(const char *source, const char *target, GError **error)
{
    g_autofree char *temporary = g_strconcat(target, ".XXXXXX", NULL);
    g_auto(SvFd) from = open(source, O_RDONLY | O_CLOEXEC);
    g_auto(SvFd) to = from >= 0 ? mkostemp(temporary, O_CLOEXEC) : -1;
    if (to >= 0 && copy_bytes(from, to) && fchmod(to, 0644) == 0 && rename(temporary, target) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_CONF_ERROR, errno, "put the guest image %s at %s", source, target);
    if (to >= 0)
        unlink(temporary);
    return FALSE;
}

/* Whatever the umask: others must pass. */
static gboolean make_folder(const char *path, GError **error)
{
    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return TRUE;
    if (!sv_file_mkdirs(path, 0755, error))
        return FALSE;
    if (chmod(path, 0755) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_CONF_ERROR, errno, "chmod %s", path);
    return FALSE;
}

static char *place(const SvConfig *config, const char *name, GError **error)
{
    g_autofree char *link = g_build_filename(SV_BUILD_ROOT, "guest", name, NULL);
    g_autofree char *source = realpath(link, NULL);
    if (!source)
        return NULL;
    g_autofree char *base = g_path_get_basename(source);
    g_autofree char *target = g_build_filename(config->image_dir, base, NULL);
    if (g_file_test(target, G_FILE_TEST_EXISTS))
        return g_steal_pointer(&target);
    if (!make_folder(config->image_dir, error) || !copy_to(source, target, error))
        return NULL;
    return g_steal_pointer(&target);
}

gboolean sv_image_in_place(const SvConfig *config, char **kernel, char **image, GError **error)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    if (!self || !g_str_has_prefix(self, SV_BUILD_ROOT "/src/") || *config->kernel ||
        *config->image)
        return FALSE;
    g_autofree char *placed_kernel = place(config, "vmlinux", error);
    g_autofree char *placed_image = placed_kernel ? place(config, "initramfs.img", error) : NULL;
    if (!placed_image)
        return FALSE;
    *kernel = g_steal_pointer(&placed_kernel);
    *image = g_steal_pointer(&placed_image);
    return TRUE;
}
