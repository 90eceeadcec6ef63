/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "conf/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_auto(SvFd) fd = memfd_create("fuzz-config", MFD_CLOEXEC);
    g_assert_true(
        fd >= 0 && sv_fd_write_all(fd, data != NULL ? (const char *)data : "", size, NULL));
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);

    const SvConfig *config = sv_config_load(path, &error);
    g_assert_true((config == NULL) == (error != NULL));
    if (error != NULL) {
        g_assert_true(error->code == SV_ERR_INVALID || error->code == SV_ERR_LIMIT);
        g_assert_nonnull(strstr(error->message, path));
    } else {
        g_assert_cmpuint(config->memory_mib, <=, config->max_memory_mib);
        g_assert_cmpuint(config->vcpus, <=, config->max_vcpus);
        g_assert_cmpuint(config->uid_first, <=, config->uid_last);
    }
    sv_config_unref(config);
    return 0;
}
