/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "cli/siblings.h"
#include "cli/options.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static gboolean in_build_folder(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);

    return self && g_str_has_prefix(self, SV_BUILD_ROOT "/");
}

char *sv_sibling(const char *name, GError **error)
{
    g_autofree char *path = in_build_folder()
        ? g_strdup_printf("%s/src/%s/sandvirt-%s", SV_BUILD_ROOT, name, name)
        : g_strdup_printf("%s/sandvirt-%s", SV_LIBEXECDIR, name);

    if (access(path, X_OK) == 0)
        return g_steal_pointer(&path);
    sv_error_set_errno(error, SV_CLI_ERROR, errno, "sandvirt-%s at %s", name, path);
    return NULL;
}
