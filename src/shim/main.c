/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/log.h"
#include "shim/confine.h"
#include "shim/shim.h"
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

extern const char __executable_start[], etext[]; /* by the linker */

/* There is a shim for every container, and most of its life it waits: the code that only starting up
 * needed is unmapped again. It is clean and comes back from the page cache when it is called. */
static void forget_code(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = ((uintptr_t)__executable_start + page - 1) & ~(page - 1);
    uintptr_t end = (uintptr_t)etext & ~(page - 1);

    if (end > start)
        madvise((void *)start, end - start, MADV_DONTNEED);
}

static gboolean start(SvShim *shim, int argc, char **argv, GError **error)
{
    return sv_shim_options_parse(&shim->options, argc, argv, error) &&
        sv_shim_set_up(shim, error) && sv_shim_confine(error);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    SvShim shim;
    int status;

    /* Its stderr is the container's. */
    if (!sv_log_init("sandvirt-shim", FALSE, NULL, SV_LOG_TEXT, FALSE, &error))
        return 1;
    sv_shim_init(&shim);
    if (start(&shim, argc, argv, &error)) {
        sv_shim_tell(&shim, SV_SHIM_READY, "");
        sv_link_start(&shim);
        forget_code();
        status = sv_shim_run(&shim);
    } else {
        sv_shim_tell(&shim, SV_SHIM_ERROR_TEXT, error->message);
        status = 1;
    }
    sv_shim_clear(&shim);
    return status;
}
