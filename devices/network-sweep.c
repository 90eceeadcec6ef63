/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "devices/network-sweep.h"

#include "devices/network-localhost.h"
#include "devices/network-take.h"
#include "devices/network-tc.h"

#include <errno.h>
#include <sys/file.h>

typedef GHashTable Indexes;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Indexes, g_hash_table_unref)

gboolean sv_network_hold(int netns_fd, GError **error)
{
    if (TEMP_FAILURE_RETRY(flock(netns_fd, LOCK_SH)) == 0)
        return TRUE;
    sv_error_set_errno(error, SV_NET_ERROR, errno, "lock the network namespace");
    return FALSE;
}

static gboolean has_machine(const GPtrArray *devices)
{
    for (guint i = 0; i < devices->len; i++) {
        g_autofree char *owner = sv_link_tap_owner(devices->pdata[i]);
        if (owner != NULL)
            return TRUE;
    }
    return FALSE;
}

static gboolean leads_nowhere(
    SvNetlink *nl, const SvNetDevice *device, const GPtrArray *devices, guint32 mark)
{
    guint32 found = 0;
    int target = sv_tc_target(nl, device->index, &found);
    return target >= 0 && found == mark && sv_net_device_at(devices, target) == NULL;
}

static gboolean sweep(
    int netns_fd, guint32 mark, gboolean dry_run, GPtrArray *found, GError **error)
{
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(netns_fd, NETLINK_ROUTE, error);
    g_autoptr(GPtrArray) devices = nl != NULL ? sv_net_devices_read(nl, error) : NULL;
    g_autoptr(Indexes) foreign = g_hash_table_new(NULL, NULL);
    if (devices == NULL || !sv_tc_foreign(nl, foreign, error))
        return FALSE;
    if (has_machine(devices))
        return TRUE;
    for (guint i = 0; i < devices->len; i++) {
        const SvNetDevice *device = devices->pdata[i];
        gboolean own = !g_hash_table_contains(foreign, GINT_TO_POINTER(device->index));
        if (!leads_nowhere(nl, device, devices, mark))
            continue;
        g_ptr_array_add(found, g_strdup(device->link->name));
        if (!dry_run && !sv_tc_clear(nl, device->index, own, error))
            return FALSE;
    }
    /* The table tells nothing of its maker; a machine without links leaves no more than that. */
    return dry_run || found->len == 0 || sv_localhost_release(netns_fd, error);
}

gboolean sv_network_sweep(
    int netns_fd, guint32 mark, gboolean dry_run, GPtrArray *found, GError **error)
{
    if (flock(netns_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return TRUE;
        sv_error_set_errno(error, SV_NET_ERROR, errno, "lock the network namespace");
        return FALSE;
    }
    gboolean ok = sweep(netns_fd, mark, dry_run, found, error);
    flock(netns_fd, LOCK_UN);
    return ok;
}
