/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A domain whose start libvirt's daemon was killed in. When it has written the domain's status, but has not started QEMU
 * yet, its next daemon (seen with 9.0) takes the domain for one that is being started: there is no process to watch, and no
 * call that changes it gets its lock. It stays in the list until its status file is removed while no daemon runs. */
#include <config.h>

#include "hypervisor/libvirt-priv.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/names.h"
#include "base/process.h"

static char *status_file(virDomainPtr dom, const char *suffix)
{
    return g_strdup_printf("%s/%s%s", SV_LIBVIRT_RUN_DIR, virDomainGetName(dom), suffix);
}

/* A process that the start has forked and not become QEMU yet ends with the daemon that it waits for. */
static gboolean has_process(virDomainPtr dom)
{
    g_autofree char *path = status_file(dom, ".pid");
    g_autofree char *text = NULL;
    gint64 pid = 0;
    if (!sv_file_read(path, 64, &text, NULL, NULL) ||
        !sv_parse_int64(g_strstrip(text), 2, G_MAXINT, &pid, NULL))
        return FALSE;
    g_autofree char *cmdline = sv_process_cmdline((pid_t)pid);
    g_autofree char *mark = g_strdup_printf("guest=%s,", virDomainGetName(dom));
    return cmdline != NULL && strstr(cmdline, mark) != NULL;
}

gboolean sv_domain_is_stillborn(virDomainPtr dom)
{
    g_autofree char *status = status_file(dom, ".xml");
    int state = 0, reason = 0;
    return virDomainGetState(dom, &state, &reason, 0) == 0 && state == VIR_DOMAIN_PAUSED &&
        reason == VIR_DOMAIN_PAUSED_STARTING_UP && access(status, F_OK) == 0 && !has_process(dom);
}

void sv_domain_tell_stillborn(const char *name)
{
    g_warning("libvirt was killed when it began to start domain %s: it has no process, but libvirt "
              "lists it until "
              "%s/%s.xml is removed while libvirt's daemon does not run",
        name, SV_LIBVIRT_RUN_DIR, name);
}
