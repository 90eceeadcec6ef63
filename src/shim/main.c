/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/log.h"
#include "shim/shim.h"

static gboolean start(SvShim *shim, int argc, char **argv, GError **error)
{
    return sv_shim_options_parse(&shim->options, argc, argv, error) && sv_shim_set_up(shim, error);
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
        status = sv_shim_run(&shim);
    } else {
        sv_shim_tell(&shim, SV_SHIM_ERROR_TEXT, error->message);
        status = 1;
    }
    sv_shim_clear(&shim);
    return status;
}
