/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guest's links: found by the MAC of their device, never by name or order. */
#include "agent/network.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static gboolean is_device_of(const SvNetDevice *device, const SvNetLink *link)
{
    if (link->loopback)
        return device->link->loopback;
    return device->mac_len && device->mac_len == link->device_mac.len &&
        memcmp(device->mac, link->device_mac.data, device->mac_len) == 0;
}

static SvNetDevice *find_device(const GPtrArray *devices, const SvNetLink *link)
{
    for (guint i = 0; i < devices->len; i++)
        if (is_device_of(devices->pdata[i], link))
            return devices->pdata[i];
    return NULL;
}

static gboolean is_of(const SvNetRequest *request, const SvNetDevice *device)
{
    for (gsize i = 0; request && i < request->n_links; i++)
        if (is_device_of(device, request->links[i]))
            return TRUE;
    return FALSE;
}

gboolean sv_network_devices_there(
    const SvNetRequest *wanted, const GPtrArray *devices, const SvNetLink **missing)
{
    for (gsize i = 0; i < wanted->n_links; i++) {
        *missing = wanted->links[i];
        if (!find_device(devices, wanted->links[i]))
            return FALSE;
    }
    *missing = NULL;
    return TRUE;
}

/* A message that changes @device. It has room for all that is put into it here: names of the kernel's length. */
static struct nl_msg *change_new(const SvNetDevice *device, guint32 flags, guint32 mask)
{
    struct ifinfomsg info = {.ifi_index = device->index, .ifi_flags = flags, .ifi_change = mask};

    return sv_nl_new(RTM_NEWLINK, 0, &info, sizeof(info));
}

static void put_address_mode(struct nl_msg *msg, guint32 mode)
{
    struct nlattr *spec = nla_nest_start(msg, IFLA_AF_SPEC);
    struct nlattr *family = nla_nest_start(msg, AF_INET6);

    nla_put_u8(msg, IFLA_INET6_ADDR_GEN_MODE, (guint8)mode);
    nla_nest_end(msg, family);
    nla_nest_end(msg, spec);
}

/* A kernel without IPv6 has no such mode. */
static gboolean set_address_mode(
    SvNetWork *work, const SvNetDevice *device, guint32 mode, GError **error)
{
    if (mode == device->link->address_mode ||
        !g_file_test("/proc/sys/net/ipv6", G_FILE_TEST_IS_DIR))
        return TRUE;
    struct nl_msg *msg = change_new(device, 0, 0);
    put_address_mode(msg, mode);
    return sv_netlink_request(work->nl, msg, NULL, error);
}

/* ---- names */

static gboolean send_name(
    SvNetWork *work, const SvNetDevice *device, const char *name, int *errsv, GError **error)
{
    struct nl_msg *msg = change_new(device, 0, 0);

    nla_put_string(msg, IFLA_IFNAME, name);
    return sv_netlink_request(work->nl, msg, errsv, error);
}

/* Older kernels do it only while the link is down. What it loses by that is missed, and added, later. */
static gboolean rename_down(
    SvNetWork *work, const SvNetDevice *device, const char *name, GError **error)
{
    return set_address_mode(work, device, IN6_ADDR_GEN_MODE_NONE, error) &&
        sv_netlink_request(work->nl, change_new(device, 0, IFF_UP), NULL, error) &&
        send_name(work, device, name, NULL, error) &&
        sv_netlink_request(work->nl, change_new(device, IFF_UP, IFF_UP), NULL, error);
}

static gboolean rename_device(
    SvNetWork *work, const SvNetDevice *device, const char *name, GError **error)
{
    g_autoptr(GError) local = NULL;
    int errsv = 0;

    if (send_name(work, device, name, &errsv, &local))
        return TRUE;
    if (errsv == EBUSY && (device->link->flags & IFF_UP)) {
        g_clear_error(&local);
        if (rename_down(work, device, name, &local))
            return TRUE;
    }
    g_propagate_prefixed_error(
        error, g_steal_pointer(&local), "rename link %s to %s: ", device->link->name, name);
    return FALSE;
}

/* Devices that are no more wanted: the host is about to pull them. */
static gboolean retire_all(SvNetWork *work, GError **error)
{
    for (guint i = 0; i < work->devices->len; i++) {
        SvNetDevice *device = work->devices->pdata[i];

        if (!is_of(work->before, device) || is_of(work->wanted, device))
            continue;
        g_autofree char *aside = g_strdup_printf("gone%d", device->index);
        g_autoptr(GError) local = NULL;
        if ((device->link->flags & IFF_UP) &&
            !sv_netlink_request(work->nl, change_new(device, 0, IFF_UP), NULL, &local))
            return sv_network_pass(work, g_steal_pointer(&local), device->link->name, error);
        if (!rename_device(work, device, aside, error))
            return FALSE;
    }
    return sv_network_reread_devices(work, error);
}

static gboolean is_wanted(const SvNetRequest *wanted, const char *name)
{
    for (gsize i = 0; i < wanted->n_links; i++)
        if (strcmp(wanted->links[i]->name, name) == 0)
            return TRUE;
    return FALSE;
}

/* First away from names that others are to have, then to the right ones. */
static gboolean rename_all(SvNetWork *work, GError **error)
{
    if (!retire_all(work, error))
        return FALSE;
    for (int round = 0; round < 2; round++) {
        for (gsize i = 0; i < work->wanted->n_links; i++) {
            const SvNetLink *link = work->wanted->links[i];
            SvNetDevice *device = find_device(work->devices, link);
            g_autofree char *aside = g_strdup_printf("sandvirt%u", (guint)i);

            if (!device || link->loopback || strcmp(device->link->name, link->name) == 0)
                continue;
            if (round == 0 && !is_wanted(work->wanted, device->link->name))
                continue;
            if (!rename_device(work, device, round == 0 ? aside : link->name, error))
                return FALSE;
        }
        if (!sv_network_reread_devices(work, error))
            return FALSE;
    }
    return TRUE;
}

/* ---- everything else */

static gboolean set_conf(const char *link, const SvNetSetting *setting, GError **error)
{
    g_autofree char *path = g_strdup_printf(
        "/proc/sys/net/ipv%d/conf/%s/%s", setting->family == AF_INET6 ? 6 : 4, link, setting->name);
    g_autofree char *text = g_strdup_printf("%d", setting->value);
    g_auto(SvFd) fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, text, strlen(text)) >= 0)
        return TRUE;
    sv_error_set_errno(error, SV_AGENT_ERROR, errno, "set %s", path);
    return FALSE;
}

static const SvNetSetting *find_setting(const SvNetLink *link, const SvNetSetting *like)
{
    for (gsize i = 0; i < link->n_settings; i++)
        if (link->settings[i]->family == like->family &&
            strcmp(link->settings[i]->name, like->name) == 0)
            return link->settings[i];
    return NULL;
}

const SvNetLink *sv_network_link_like(const SvNetRequest *request, const SvNetLink *link)
{
    for (gsize i = 0; request && i < request->n_links; i++) {
        const SvNetLink *other = request->links[i];

        if (other->loopback == link->loopback && other->device_mac.len == link->device_mac.len &&
            (!link->device_mac.len ||
                memcmp(other->device_mac.data, link->device_mac.data, link->device_mac.len) == 0))
            return other;
    }
    return NULL;
}

/* Those that differ from what the guest has, or from what was wanted before. */
static void set_confs(SvNetWork *work, const SvNetDevice *device, const SvNetLink *link)
{
    const SvNetLink *before = sv_network_link_like(work->before, link);

    for (gsize i = 0; i < link->n_settings; i++) {
        const SvNetSetting *setting = link->settings[i];
        const SvNetSetting *old = find_setting(before ? before : device->link, setting);
        g_autoptr(GError) error = NULL;

        /* No such setting in the guest: another kernel. */
        if (!old || old->value == setting->value)
            continue;
        if (!set_conf(link->name, setting, &error))
            g_ptr_array_add(work->warnings, g_strdup(error->message));
    }
}

static gboolean set_mac(
    SvNetWork *work, const SvNetDevice *device, const SvNetLink *link, GError **error)
{
    const ProtobufCBinaryData *now = &device->link->mac;

    if (link->loopback || link->mac.len == 0 ||
        (now->len == link->mac.len && memcmp(now->data, link->mac.data, now->len) == 0))
        return TRUE;
    struct nl_msg *msg = change_new(device, 0, 0);
    nla_put(msg, IFLA_ADDRESS, (int)link->mac.len, link->mac.data);
    return sv_netlink_request(work->nl, msg, NULL, error);
}

static gboolean set_rest(
    SvNetWork *work, const SvNetDevice *device, const SvNetLink *link, GError **error)
{
    const SvNetLink *before = sv_network_link_like(work->before, link);
    guint32 mask = device->link->flags ^ link->flags;

    /* What a workload changed stays until it changes on the host. */
    if (before)
        mask &= before->flags ^ link->flags;
    if (link->loopback)
        mask = ~device->link->flags & IFF_UP;
    struct nl_msg *msg = change_new(device, link->loopback ? IFF_UP : link->flags, mask);
    if (link->mtu != device->link->mtu && (!before || before->mtu != link->mtu))
        nla_put_u32(msg, IFLA_MTU, link->mtu);
    /* None at all would drop what the device has no room for at once. */
    if (link->queue_length && link->queue_length != device->link->queue_length && !before)
        nla_put_u32(msg, IFLA_TXQLEN, link->queue_length);
    return sv_netlink_request(work->nl, msg, NULL, error);
}

static gboolean set_link(SvNetWork *work, const SvNetLink *link, GError **error)
{
    const SvNetDevice *device = find_device(work->devices, link);
    g_autoptr(GError) local = NULL;

    if (!device)
        return TRUE; /* waited for in vain before, and told */
    set_confs(work, device, link);
    /* Its own addresses would come with a search for duplicates. */
    if (set_mac(work, device, link, &local) &&
        (link->loopback || sv_network_link_like(work->before, link) ||
            set_address_mode(work, device, IN6_ADDR_GEN_MODE_NONE, &local)) &&
        set_rest(work, device, link, &local))
        return TRUE;
    return sv_network_pass(work, g_steal_pointer(&local), link->name, error);
}

gboolean sv_network_apply_links(SvNetWork *work, GError **error)
{
    if (!sv_network_reread_devices(work, error) || !rename_all(work, error))
        return FALSE;
    for (gsize i = 0; i < work->wanted->n_links; i++)
        if (!set_link(work, work->wanted->links[i], error))
            return FALSE;
    return sv_network_reread_devices(work, error);
}

void sv_network_settle_links(SvNetWork *work)
{
    for (gsize i = 0; i < work->wanted->n_links; i++) {
        const SvNetLink *link = work->wanted->links[i];
        const SvNetDevice *device = find_device(work->devices, link);
        g_autoptr(GError) error = NULL;

        if (!device || link->loopback)
            continue;
        /* One of the modes needs a secret that stays on the host. */
        if (!set_address_mode(work, device, link->address_mode, &error))
            g_info("ignoring: %s: %s", link->name, error->message);
    }
}

gboolean sv_network_ipv6_is_off(const SvNetRequest *wanted, const char *name)
{
    for (gsize i = 0; i < wanted->n_links; i++) {
        const SvNetLink *link = wanted->links[i];

        if (strcmp(link->name, name) != 0)
            continue;
        for (gsize k = 0; k < link->n_settings; k++)
            if (strcmp(link->settings[k]->name, "disable_ipv6") == 0)
                return link->settings[k]->value != 0;
    }
    return FALSE;
}
