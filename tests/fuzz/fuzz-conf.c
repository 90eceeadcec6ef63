/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sandvirt.conf */
#include "fuzz.h"

#include "base/fd.h"
#include "conf/config.h"
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_auto(SvFd) fd = memfd_create("sandvirt.conf", MFD_CLOEXEC);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autoptr(GError) error = NULL;
    const SvConfig *config = NULL;

    g_assert_true(sv_fd_write_all(fd, data ? (const void *)data : "", size, &error));
    config = sv_config_load(path, &error);
    g_assert_true((config == NULL) == (error != NULL));
    if (config) {
        g_assert_nonnull(config->run_dir);
        g_assert_cmpuint(config->vcpus, >, 0);
    }
    sv_config_unref(config);
    return 0;
}
