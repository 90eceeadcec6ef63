/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/network-count.h"

#include "base/fd.h"
#include "core/network-private.h"

static gboolean count_in(
    const char *path, const SvSandboxRecord *sandbox, guint64 *received, guint64 *sent)
{
    g_auto(SvFd) fd = path ? sv_network_open(path) : -1;
    g_autoptr(SvNetlink) nl = sv_network_ask(fd, sandbox->netns_id);
    for (guint i = 0; nl && i < sandbox->links->len; i++)
        sv_link_count(nl, ((SvLinkRecord *)sandbox->links->pdata[i])->tap, received, sent);
    return nl != NULL;
}

void sv_network_count(
    const SvSandboxRecord *sandbox, const GPtrArray *containers, guint64 *received, guint64 *sent)
{
    /* Without the number of the namespace it may be any. */
    gboolean done = !sandbox->netns_id || count_in(sandbox->netns, sandbox, received, sent);
    for (guint i = 0; !done && containers && i < containers->len; i++) {
        const SvRecord *container = containers->pdata[i];
        g_autofree char *path = g_strdup_printf("/proc/%d/ns/net", (int)container->shim_pid);
        done = g_strcmp0(container->sandbox, sandbox->id) == 0 && container->shim_pid > 1 &&
            count_in(path, sandbox, received, sent);
    }
}
