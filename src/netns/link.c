/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "netns/message.h"
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/if.h>
#include <string.h>
#include <sys/socket.h>

/* Flags of a link that are made alike. */
#define LINK_FLAGS (IFF_UP | IFF_NOARP | IFF_MULTICAST)

static const SvAttr attrs[] = {
    {IFLA_IFNAME, SV_ATTR_STRING, G_STRUCT_OFFSET(SvNetLink, name)},
    {IFLA_ADDRESS, SV_ATTR_BYTES, G_STRUCT_OFFSET(SvNetLink, mac)},
    {IFLA_MTU, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetLink, mtu)},
    {IFLA_TXQLEN, SV_ATTR_U32, G_STRUCT_OFFSET(SvNetLink, queue_length)},
};

/* ---- net.ipvN.conf.LINK.*: by the numbers of <linux/ip.h> and <linux/ipv6.h> */

typedef struct {
    guint number;
    const char *name;
} Conf;

/* What says how a link talks to the others on it. */
static const Conf conf4[] = {
    {IPV4_DEVCONF_FORWARDING, "forwarding"},
    {IPV4_DEVCONF_PROXY_ARP, "proxy_arp"},
    {IPV4_DEVCONF_ACCEPT_REDIRECTS, "accept_redirects"},
    {IPV4_DEVCONF_SECURE_REDIRECTS, "secure_redirects"},
    {IPV4_DEVCONF_SEND_REDIRECTS, "send_redirects"},
    {IPV4_DEVCONF_RP_FILTER, "rp_filter"},
    {IPV4_DEVCONF_ACCEPT_SOURCE_ROUTE, "accept_source_route"},
    {IPV4_DEVCONF_LOG_MARTIANS, "log_martians"},
    {IPV4_DEVCONF_ARPFILTER, "arp_filter"},
    {IPV4_DEVCONF_ARP_ANNOUNCE, "arp_announce"},
    {IPV4_DEVCONF_ARP_IGNORE, "arp_ignore"},
    {IPV4_DEVCONF_ARP_ACCEPT, "arp_accept"},
    {IPV4_DEVCONF_ARP_NOTIFY, "arp_notify"},
    {IPV4_DEVCONF_ACCEPT_LOCAL, "accept_local"},
    {IPV4_DEVCONF_SRC_VMARK, "src_valid_mark"},
    {IPV4_DEVCONF_PROXY_ARP_PVLAN, "proxy_arp_pvlan"},
    {IPV4_DEVCONF_ROUTE_LOCALNET, "route_localnet"},
    {IPV4_DEVCONF_PROMOTE_SECONDARIES, "promote_secondaries"},
};
/* Without what is about duplicate addresses: that was found out already. */
static const Conf conf6[] = {
    {DEVCONF_DISABLE_IPV6, "disable_ipv6"},
    {DEVCONF_FORWARDING, "forwarding"},
    {DEVCONF_HOPLIMIT, "hop_limit"},
    {DEVCONF_ACCEPT_RA, "accept_ra"},
    {DEVCONF_ACCEPT_REDIRECTS, "accept_redirects"},
    {DEVCONF_AUTOCONF, "autoconf"},
    {DEVCONF_USE_TEMPADDR, "use_tempaddr"},
    {DEVCONF_MAX_ADDRESSES, "max_addresses"},
    {DEVCONF_ACCEPT_RA_DEFRTR, "accept_ra_defrtr"},
    {DEVCONF_ACCEPT_RA_PINFO, "accept_ra_pinfo"},
    {DEVCONF_ACCEPT_RA_MTU, "accept_ra_mtu"},
    {DEVCONF_ACCEPT_RA_FROM_LOCAL, "accept_ra_from_local"},
    {DEVCONF_PROXY_NDP, "proxy_ndp"},
    {DEVCONF_ACCEPT_SOURCE_ROUTE, "accept_source_route"},
    {DEVCONF_FORCE_TLLAO, "force_tllao"},
    {DEVCONF_NDISC_NOTIFY, "ndisc_notify"},
    {DEVCONF_SUPPRESS_FRAG_NDISC, "suppress_frag_ndisc"},
    {DEVCONF_DROP_UNICAST_IN_L2_MULTICAST, "drop_unicast_in_l2_multicast"},
    {DEVCONF_DROP_UNSOLICITED_NA, "drop_unsolicited_na"},
    {DEVCONF_KEEP_ADDR_ON_DOWN, "keep_addr_on_down"},
};

/* @first: the number of the array's first value. */
static void read_conf(GPtrArray *settings, const struct nlattr *values, guint family,
    const Conf *conf, gsize n, guint first)
{
    for (gsize i = 0; values && i < n; i++) {
        gsize at = (conf[i].number - first) * sizeof(gint32);

        if (at + sizeof(gint32) > (gsize)nla_len(values))
            continue;
        SvNetSetting *setting = g_new0(SvNetSetting, 1);
        sandvirt__v1__net_setting__init(setting);
        setting->family = family;
        setting->name = g_strdup(conf[i].name);
        memcpy(&setting->value, (const guint8 *)nla_data(values) + at, sizeof(gint32));
        g_ptr_array_add(settings, setting);
    }
}

static void read_families(SvNetDevice *device, struct nlattr *spec)
{
    struct nlattr *families[AF_INET6 + 1], *inet[IFLA_INET_MAX + 1], *inet6[IFLA_INET6_MAX + 1];
    GPtrArray *settings = g_ptr_array_new();

    sv_attr_nested(spec, families, AF_INET6);
    sv_attr_nested(families[AF_INET], inet, IFLA_INET_MAX);
    sv_attr_nested(families[AF_INET6], inet6, IFLA_INET6_MAX);
    read_conf(settings, inet[IFLA_INET_CONF], AF_INET, conf4, G_N_ELEMENTS(conf4), 1);
    read_conf(settings, inet6[IFLA_INET6_CONF], AF_INET6, conf6, G_N_ELEMENTS(conf6), 0);
    device->link->address_mode = sv_attr_u8(inet6[IFLA_INET6_ADDR_GEN_MODE]);
    device->link->n_settings = settings->len;
    device->link->settings = (SvNetSetting **)g_ptr_array_free(settings, FALSE);
}

static void read_mac(SvNetDevice *device, const struct nlattr *permanent)
{
    const ProtobufCBinaryData *mac = &device->link->mac;

    device->mac_len = (guint8)nla_memcpy(device->mac, permanent, sizeof(device->mac));
    if (permanent || !mac->len)
        return;
    device->mac_len = (guint8)MIN(mac->len, sizeof(device->mac));
    memcpy(device->mac, mac->data, device->mac_len);
}

gpointer sv_net_device_decode(struct nlmsghdr *message, const SvNetNumbers *numbers)
{
    const struct ifinfomsg *info = nlmsg_data(message);
    struct nlattr *table[IFLA_MAX + 1], *kind[IFLA_INFO_MAX + 1];

    if (message->nlmsg_type != RTM_NEWLINK ||
        nlmsg_parse(message, sizeof(*info), table, IFLA_MAX, NULL) < 0 || !table[IFLA_IFNAME])
        return NULL;
    sv_attr_nested(table[IFLA_LINKINFO], kind, IFLA_INFO_MAX);
    SvNetDevice *device = g_new0(SvNetDevice, 1);
    device->link = g_new0(SvNetLink, 1);
    sandvirt__v1__net_link__init(device->link);
    sv_attrs_read(attrs, G_N_ELEMENTS(attrs), table, device->link);
    device->link->flags = info->ifi_flags & LINK_FLAGS;
    device->link->loopback = info->ifi_type == ARPHRD_LOOPBACK;
    device->index = info->ifi_index;
    device->type = info->ifi_type;
    device->kind = sv_attr_string(kind[IFLA_INFO_KIND]);
    device->alias = sv_attr_string(table[IFLA_IFALIAS]);
    device->master = (int)sv_attr_u32(table[IFLA_MASTER]);
    /* The other one's number is of another namespace then. */
    if (!table[IFLA_LINK_NETNSID])
        device->lower = (int)sv_attr_u32(table[IFLA_LINK]);
    if (device->lower == device->index)
        device->lower = 0;
    read_mac(device, table[IFLA_PERM_ADDRESS]);
    read_families(device, table[IFLA_AF_SPEC]);
    return device;
}

void sv_net_device_free(SvNetDevice *device)
{
    if (!device)
        return;
    protobuf_c_message_free_unpacked(&device->link->base, NULL);
    g_free(device->kind);
    g_free(device->alias);
    g_free(device);
}

SvNetDevice *sv_net_device_find(const GPtrArray *devices, const char *name)
{
    for (guint i = 0; i < devices->len; i++) {
        SvNetDevice *device = devices->pdata[i];

        if (strcmp(device->link->name, name) == 0)
            return device;
    }
    return NULL;
}

SvNetDevice *sv_net_device_at(const GPtrArray *devices, int index)
{
    for (guint i = 0; i < devices->len; i++) {
        SvNetDevice *device = devices->pdata[i];

        if (device->index == index)
            return device;
    }
    return NULL;
}

int sv_net_index_of(const GPtrArray *devices, const char *name, GError **error)
{
    const SvNetDevice *device = sv_net_device_find(devices, name);

    if (device)
        return device->index;
    g_set_error(error, SV_NET_ERROR, SV_ERR_NOT_FOUND, "no link is called %s", name);
    return 0;
}
