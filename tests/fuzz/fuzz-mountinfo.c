/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include "base/mount.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) list =
        sv_mount_parse(data != NULL ? (const char *)data : "", size, &error);

    g_assert_true((list == NULL) == (error != NULL));
    for (guint i = 0; list != NULL && i < list->len; i++) {
        const SvMountInfo *m = list->pdata[i];

        g_assert_true(m->root != NULL && m->target != NULL && m->options != NULL);
        g_assert_true(m->fstype != NULL && m->source != NULL && m->super_options != NULL);
    }
    return 0;
}
