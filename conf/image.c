/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which guest kernel and image a new machine gets. */
#include <config.h>

#include "conf/config.h"
#include "conf/image-place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define KERNEL "vmlinux"
#define IMAGE "initramfs.img"

/* QEMU runs as a user of its own: every folder on the way must let others pass. */
static gboolean check_folders(const char *path, const char *what, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    for (;;) {
        struct stat st;
        if (stat(folder, &st) < 0) {
            sv_error_set_errno(error, SV_CONF_ERROR, errno, "%s %s: %s", what, path, folder);
            return FALSE;
        }
        if ((st.st_mode & S_IXOTH) == 0) {
            g_set_error(error, SV_CONF_ERROR, SV_ERR_PERMISSION,
                "%s %s: QEMU's user cannot pass the folder %s (mode %03o)", what, path, folder,
                st.st_mode & 0777);
            return FALSE;
        }
        if (strcmp(folder, "/") == 0)
            return TRUE;
        char *parent = g_path_get_dirname(folder);
        g_free(folder);
        folder = parent;
    }
}

static char *resolve(const char *path, const char *what, GError **error)
{
    char *real = realpath(path, NULL);
    if (real == NULL) {
        int errsv = errno;
        sv_error_set_errno(error, SV_CONF_ERROR, errsv, "%s %s", what, path);
        if (errsv == ENOENT)
            g_prefix_error(error, "no guest image is installed: ");
        return NULL;
    }
    g_autofree char *result = g_strdup(real);
    free(real);

    struct stat st;
    if (stat(result, &st) < 0) {
        sv_error_set_errno(error, SV_CONF_ERROR, errno, "%s %s", what, result);
        return NULL;
    }
    if (!S_ISREG(st.st_mode) || st.st_size == 0) {
        g_set_error(error, SV_CONF_ERROR, SV_ERR_INVALID, "%s %s is %s", what, result,
            S_ISREG(st.st_mode) ? "empty" : "not a regular file");
        return NULL;
    }
    if ((st.st_mode & S_IROTH) == 0) {
        g_set_error(error, SV_CONF_ERROR, SV_ERR_PERMISSION,
            "%s %s: QEMU's user cannot read it (mode %03o)", what, result, st.st_mode & 0777);
        return NULL;
    }
    return check_folders(result, what, error) ? g_steal_pointer(&result) : NULL;
}

gboolean sv_config_guest_image(const SvConfig *config, char **kernel, char **image, GError **error)
{
    g_autoptr(GError) local = NULL;
    if (sv_image_in_place(config, kernel, image, &local))
        return TRUE;
    if (local) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    g_autofree char *kernel_path = *config->kernel != '\0'
        ? g_strdup(config->kernel)
        : g_build_filename(config->image_dir, KERNEL, NULL);
    g_autofree char *image_path = *config->image != '\0'
        ? g_strdup(config->image)
        : g_build_filename(config->image_dir, IMAGE, NULL);

    g_autofree char *real_kernel = resolve(kernel_path, "guest kernel", error);
    if (real_kernel == NULL)
        return FALSE;
    g_autofree char *real_image = resolve(image_path, "guest image", error);
    if (real_image == NULL)
        return FALSE;
    *kernel = g_steal_pointer(&real_kernel);
    *image = g_steal_pointer(&real_image);
    return TRUE;
}
