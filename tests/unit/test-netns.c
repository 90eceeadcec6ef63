/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading a network namespace, and making another one like it. Each test is in namespaces of its own. */
#include "agent/network.h"
#include "in-netns.h"
#include "netns/message.h"
#include "netns/sysctl.h"
#include <errno.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static SvNetState *read_here(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvNetlink) nl = sv_netlink_new(NETLINK_ROUTE, &error);

    g_assert_no_error(error);
    SvNetState *state = sv_net_state_read(nl, &error);
    g_assert_no_error(error);
    return state;
}

static const SvNetRoute *find_route(const SvNetState *state, guint family, const char *destination)
{
    for (guint i = 0; i < state->routes->len; i++) {
        const SvNetRoute *route = state->routes->pdata[i];
        g_autoptr(GString) text = g_string_new(NULL);

        for (gsize k = 0; k < route->destination.len; k++)
            g_string_append_printf(text, "%02x", route->destination.data[k]);
        g_string_append_printf(text, "/%u", route->destination_length);
        if (route->family == family && route->table == RT_TABLE_MAIN &&
            strcmp(text->str, destination) == 0)
            return route;
    }
    return NULL;
}

static guint32 metric_of(const SvNetRoute *route, guint metric)
{
    for (gsize i = 0; i < route->n_metrics; i++)
        if (route->metrics[i]->metric == metric)
            return route->metrics[i]->value;
    return 0;
}

/* What a plug-in may leave behind: both families, all kinds of routes. */
static const char rich[] =
    "link add eth0 address 02:00:00:00:00:01 type veth peer name peer0\n"
    "link add net-15-char-nam address 02:00:00:00:00:02 type veth peer name peer1\n"
    "link set eth0 mtu 9000 up\n"
    "link set peer0 up\n"
    "link set net-15-char-nam mtu 1280 up\n"
    "link set peer1 up\n"
    "link set lo up\n"
    "addr add 10.1.0.2/24 brd + dev eth0\n"
    "addr add 10.1.0.3/24 dev eth0\n"
    "addr add 10.2.0.1/32 dev eth0\n"
    "addr add 10.9.0.1 peer 10.9.0.2/32 dev net-15-char-nam\n"
    "addr add 10.8.8.8/32 dev lo\n"
    "addr add fd00:1::2/64 dev eth0 nodad\n"
    "addr add fd00:1::3/64 dev eth0 nodad\n"
    "addr add fd00:2::2/64 dev net-15-char-nam nodad noprefixroute\n"
    "route add default via 10.1.0.1 dev eth0\n"
    "route add default dev net-15-char-nam metric 500\n"
    "route add 10.50.0.0/16 via 192.0.2.1 dev eth0 onlink mtu 1400\n"
    "route add 10.51.0.0/16 via 10.1.0.1 metric 77 src 10.1.0.2 advmss 1200\n"
    "route add blackhole 10.52.0.0/16\n"
    "route add unreachable 10.53.0.0/16 metric 9\n"
    "route add 10.54.0.0/16 nexthop via 10.1.0.1 weight 2 nexthop dev net-15-char-nam\n"
    "route add 10.55.0.0/16 via 10.1.0.1 table 100\n"
    "route add 10.56.0.0/16 via inet6 fd00:1::1 dev eth0\n"
    "route del 10.1.0.0/24 dev eth0\n"
    "route add 10.1.0.0/24 dev eth0 proto static scope link\n"
    "route add default via fd00:1::1 dev eth0\n"
    "route add fd00:51::/64 dev net-15-char-nam metric 5 mtu 1300\n"
    "route add fd00:52::/64 via fd00:1::1 pref high\n"
    "route add blackhole fd00:53::/64\n"
    "route add fd00:54::/64 nexthop via fd00:1::8 dev eth0 nexthop via fd00:1::9 dev eth0\n"
    "neigh add 10.1.0.1 lladdr 02:00:00:00:00:aa dev eth0 nud permanent\n"
    "neigh add fd00:1::1 lladdr 02:00:00:00:00:aa dev eth0 nud permanent\n"
    "rule add from 10.1.0.3 lookup 100 priority 1000\n"
    "rule add fwmark 0x10/0xff lookup main suppress_prefixlength 0 priority 1001\n";
static const char rich6[] =
    "rule add iif eth0 to fd00:1::/64 ipproto tcp dport 80-90 lookup 100 priority 1002\n";

static void make_rich(void)
{
    ip(rich);
    ip_family("-6", rich6);
}

static void test_read(void)
{
    if (!enter_new())
        return;
    make_rich();
    g_autoptr(SvNetState) state = read_here();
    const SvNetDevice *eth0 = sv_net_device_find(state->devices, "eth0");
    g_assert_nonnull(eth0);
    g_assert_cmpstr(eth0->kind, ==, "veth");
    g_assert_cmpuint(eth0->link->mtu, ==, 9000);
    g_assert_cmpmem(eth0->link->mac.data, eth0->link->mac.len, "\x02\0\0\0\0\1", 6);
    g_assert_true(eth0->link->flags & IFF_UP);
    g_assert_true(sv_net_device_find(state->devices, "lo")->link->loopback);
    g_assert_nonnull(sv_net_device_find(state->devices, "net-15-char-nam"));
    g_assert_cmpuint(eth0->link->n_settings, >, 10);

    const SvNetRoute *route = find_route(state, AF_INET, "0a320000/16");
    g_assert_nonnull(route);
    g_assert_cmpuint(metric_of(route, RTAX_MTU), ==, 1400);
    g_assert_cmpuint(route->hops[0]->flags, ==, RTNH_F_ONLINK);
    g_assert_cmpmem(route->hops[0]->gateway.data, route->hops[0]->gateway.len, "\xc0\0\2\1", 4);
    route = find_route(state, AF_INET, "0a330000/16");
    g_assert_cmpuint(route->priority, ==, 77);
    g_assert_cmpmem(route->preferred_source.data, route->preferred_source.len, "\x0a\1\0\2", 4);
    g_assert_cmpuint(find_route(state, AF_INET, "0a340000/16")->type, ==, RTN_BLACKHOLE);
    g_assert_cmpuint(find_route(state, AF_INET, "0a360000/16")->n_hops, ==, 2);
    g_assert_cmpuint(find_route(state, AF_INET, "0a380000/16")->hops[0]->gateway.len, ==, 16);
    route = find_route(state, AF_INET6, "fd000052000000000000000000000000/64");
    g_assert_cmpuint(route->preference, ==, 1);
    g_assert_cmpuint(state->neighbours->len, ==, 2);
    /* three of the kernel's for IPv4, two for IPv6 */
    g_assert_cmpuint(state->rules->len, ==, 8);
}

static void test_read_limits(void)
{
    if (!enter_new())
        return;
    g_autoptr(SvNetState) state = read_here();
    /* nothing but the loopback, and what kernels add by themselves */
    g_assert_true(((SvNetDevice *)state->devices->pdata[0])->link->loopback);
    g_assert_cmpuint(state->addresses->len, ==, 0);
    g_assert_cmpuint(state->routes->len, ==, 0);
}

/* ---- making another one like it */

/* The links with a MAC of our own, and the loopback; in the order of @names when given. */
static SvNetRequest *request_here(void)
{
    g_autoptr(SvNetState) state = read_here();
    g_autoptr(GPtrArray) devices = g_ptr_array_new();

    for (guint i = 0; i < state->devices->len; i++) {
        SvNetDevice *device = state->devices->pdata[i];

        if (device->link->loopback ||
            (device->mac_len == 6 && memcmp(device->mac, "\x02\0\0\0\0", 5) == 0)) {
            if (!device->link->loopback)
                sv_bytes_set(&device->link->device_mac, device->mac, device->mac_len);
            g_ptr_array_add(devices, device);
        }
    }
    return sv_net_request_new(state, devices);
}

static void apply(const SvNetRequest *wanted, const SvNetRequest *before)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvNetlink) nl = sv_netlink_new(NETLINK_ROUTE, &error);
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);

    g_assert_no_error(error);
    gboolean ok = sv_network_apply(nl, wanted, before, warnings, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    for (guint i = 0; i < warnings->len; i++)
        g_error("warning: %s", (char *)warnings->pdata[i]);
}

/* Never freed: for the last words of a test. */
static char *text_of(GBytes *bytes)
{
    gsize len = 0;
    const guint8 *data = g_bytes_get_data(bytes, &len);
    GString *text = g_string_new(NULL);

    for (gsize i = 0; i < len; i++)
        g_string_append_printf(text, g_ascii_isprint(data[i]) ? "%c" : "\\%02x", data[i]);
    return g_string_free(text, FALSE);
}

static void assert_same(
    ProtobufCMessage *const *a, gsize n_a, ProtobufCMessage *const *b, gsize n_b, const char *what)
{
    for (gsize i = 0; i < MAX(n_a, n_b); i++) {
        g_autoptr(GBytes) one = i < n_a ? sv_net_pack(a[i]) : NULL;
        g_autoptr(GBytes) other = i < n_b ? sv_net_pack(b[i]) : NULL;

        if (!one || !other || !g_bytes_equal(one, other)) {
            g_error("%s %zu of %zu and %zu differ: %s, %s", what, i, n_a, n_b,
                one ? text_of(one) : "none", other ? text_of(other) : "none");
        }
    }
}

static int by_name(gconstpointer a, gconstpointer b, gpointer unused)
{
    return strcmp((*(SvNetLink *const *)a)->name, (*(SvNetLink *const *)b)->name);
}

static int by_link(gconstpointer a, gconstpointer b, gpointer unused)
{
    const SvNetAddress *one = *(SvNetAddress *const *)a, *other = *(SvNetAddress *const *)b;

    return one->family != other->family ? (int)one->family - (int)other->family
                                        : strcmp(one->link, other->link);
}

/* The kernel lists by the numbers of the links. */
static void sort(const SvNetRequest *request)
{
    g_qsort_with_data(
        request->links, (gint)request->n_links, sizeof(*request->links), by_name, NULL);
    g_qsort_with_data(
        request->addresses, (gint)request->n_addresses, sizeof(*request->addresses), by_link, NULL);
}

static void assert_equal(const SvNetRequest *a, const SvNetRequest *b)
{
#define SAME(name)                                                                                 \
    assert_same((ProtobufCMessage *const *)a->name, a->n_##name,                                   \
        (ProtobufCMessage *const *)b->name, b->n_##name, #name)
    sort(a);
    sort(b);
    SAME(links);
    SAME(addresses);
    SAME(routes);
    SAME(neighbours);
    SAME(rules);
}

/* Devices as a machine shows them: other names, the wrong way round, down. */
static const char guest[] = "link add eth0 address 02:00:00:00:00:02 type veth peer name peer0\n"
                            "link add eth1 address 02:00:00:00:00:01 type veth peer name peer1\n"
                            "link set peer0 up\n"
                            "link set peer1 up\n"
                            "link set lo up\n";

static void test_mirror(void)
{
    if (!enter_new())
        return;
    make_rich();
    g_autoptr(SvNetRequest) wanted = request_here();
    g_assert_true(enter_new());
    ip(guest);
    apply(wanted, NULL);
    g_autoptr(SvNetRequest) made = request_here();
    assert_equal(wanted, made);
    /* again: nothing is left to do */
    apply(wanted, wanted);
    g_autoptr(SvNetRequest) again = request_here();
    assert_equal(wanted, again);
}

/* Routes by way of nexthop objects become plain ones, whether the kernel resolves them or not. */
static void test_nexthops(void)
{
    const char objects[] =
        "link add eth0 address 02:00:00:00:00:01 type veth peer name peer0\n"
        "link set peer0 up\nlink set eth0 up\nlink set lo up\naddr add 10.1.0.2/24 dev eth0\n"
        "addr add fd00:1::2/64 dev eth0 nodad\n"
        "nexthop add id 1 via 10.1.0.1 dev eth0\n"
        "nexthop add id 2 via fd00:1::1 dev eth0\n"
        "nexthop add id 3 dev eth0\n"
        "nexthop add id 4 blackhole\n"
        "nexthop add id 5 via 10.1.0.9 dev eth0\n"
        "nexthop add id 6 via 10.99.0.1 dev eth0 onlink\n"
        "nexthop add id 7 group 1,3/5,2\n"
        "nexthop add id 8 group 5\n"
        "route add 10.10.0.0/16 nhid 1 mtu 1400\n"
        "route add 10.11.0.0/16 nhid 2\n"
        "route add 10.12.0.0/16 nhid 3\n"
        "route add 10.13.0.0/16 nhid 4\n"
        "route add 10.14.0.0/16 nhid 6\n"
        "route add 10.15.0.0/16 nhid 7 metric 9\n"
        "route add 10.16.0.0/16 nhid 8\n"
        "route add fd00:10::/64 nhid 2\n";
    if (!enter_new())
        return;
    ip(objects);
    for (guint resolved = 0; resolved < 2; resolved++) {
        g_auto(SvFd) mode = open("/proc/sys/net/ipv4/nexthop_compat_mode", O_WRONLY | O_CLOEXEC);
        g_assert_cmpint(write(mode, resolved ? "1" : "0", 1), ==, 1);
        g_autoptr(SvNetRequest) wanted = request_here();
        g_auto(SvFd) host = keep_current();
        g_assert_true(enter_new());
        ip("link add eth9 address 02:00:00:00:00:01 type veth peer name peer0\nlink set peer0 "
           "up\n");
        apply(wanted, NULL);
        g_autoptr(SvNetRequest) made = request_here();
        assert_equal(wanted, made);
        g_autoptr(SvNetState) state = read_here();
        const SvNetRoute *group = find_route(state, AF_INET, "0a0f0000/16");
        g_assert_cmpuint(group->n_hops, ==, 2);
        g_assert_cmpuint(group->hops[1]->weight, ==, 1);
        g_assert_cmpuint(find_route(state, AF_INET, "0a0d0000/16")->type, ==, RTN_BLACKHOLE);
        enter(host);
    }
}

static void test_follow(void)
{
    if (!enter_new())
        return;
    make_rich();
    g_autoptr(SvNetRequest) first = request_here();
    g_auto(SvFd) host = keep_current();
    g_assert_true(enter_new());
    ip(guest);
    apply(first, NULL);
    /* the workload's own */
    ip("addr add 172.16.0.1/24 dev eth0\nroute add 172.17.0.0/16 via 10.1.0.1\n");
    g_auto(SvFd) machine = keep_current();

    enter(host);
    ip("addr del 10.1.0.2/24 dev eth0\n"
       "addr add 10.7.0.1/16 dev eth0\n"
       "addr del fd00:1::3/64 dev eth0\n"
       "route add 10.60.0.0/16 via 10.7.0.9\n"
       "route del blackhole 10.52.0.0/16\n"
       "link set eth0 mtu 1400\n"
       "rule del priority 1001\n"
       "rule add to 10.3.3.3 lookup 7 priority 1003\n"
       "neigh del 10.1.0.1 lladdr 02:00:00:00:00:aa dev eth0\n"
       "link set net-15-char-nam name other\n");
    g_autoptr(SvNetRequest) second = request_here();
    enter(machine);
    apply(second, first);
    /* still there, then not in the way of comparing */
    ip("route del 172.17.0.0/16 via 10.1.0.1\naddr del 172.16.0.1/24 dev eth0\n");
    g_autoptr(SvNetRequest) made = request_here();
    assert_equal(second, made);
}

static const SvNetAddress *limited_of(const SvNetRequest *request)
{
    for (gsize i = 0; i < request->n_addresses; i++)
        if (request->addresses[i]->limited)
            return request->addresses[i];
    return NULL;
}

/* Down and up again, and a lease that is renewed. */
static void test_down_and_up(void)
{
    if (!enter_new())
        return;
    ip("link add eth0 address 02:00:00:00:00:01 type veth peer name peer0\nlink set lo up\n"
       "link set peer0 up\nlink set eth0 up\naddr add 10.1.0.2/24 dev eth0\n"
       "addr add 10.2.0.2/24 dev eth0 valid_lft 100 preferred_lft 100\n"
       "addr add fd00:1::2/64 dev eth0 nodad\nroute add default via 10.1.0.1\n");
    g_autoptr(SvNetRequest) first = request_here();
    g_auto(SvFd) host = keep_current();
    g_assert_true(enter_new());
    ip("link add eth9 address 02:00:00:00:00:01 type veth peer name peer0\nlink set peer0 up\n");
    apply(first, NULL);
    g_auto(SvFd) machine = keep_current();

    enter(host);
    ip("link set eth0 down\naddr change 10.2.0.2/24 dev eth0 valid_lft 5000 preferred_lft 5000\n");
    g_autoptr(SvNetRequest) second = request_here();
    enter(machine);
    apply(second, first);
    g_autoptr(SvNetRequest) made = request_here();
    g_assert_cmpuint(made->n_routes, ==, second->n_routes);
    g_assert_cmpuint(made->n_addresses, ==, second->n_addresses);
    g_assert_cmpuint(limited_of(made)->valid_s, >, 4000);

    enter(host);
    ip("link set eth0 up\nroute add default via 10.1.0.1\naddr add fd00:1::2/64 dev eth0 nodad\n");
    g_autoptr(SvNetRequest) third = request_here();
    enter(machine);
    apply(third, second);
    g_autoptr(SvNetRequest) again = request_here();
    g_assert_cmpuint(again->n_routes, ==, third->n_routes);
    g_assert_cmpuint(again->n_addresses, ==, third->n_addresses);
}

/* The engine takes a link away and makes another one of the same name. */
static void test_replace(void)
{
    if (!enter_new())
        return;
    ip("link add eth0 address 02:00:00:00:00:01 type veth peer name peer0\nlink set lo up\n"
       "link set peer0 up\nlink set eth0 up\naddr add 10.1.0.2/24 dev eth0\n");
    g_autoptr(SvNetRequest) first = request_here();
    ip("link del eth0\nlink add eth0 address 02:00:00:00:00:02 type veth peer name peer0\n"
       "link set peer0 up\nlink set eth0 up\naddr add 10.1.0.2/24 dev eth0\n");
    g_autoptr(SvNetRequest) second = request_here();
    g_assert_true(enter_new());
    ip("link add eth9 address 02:00:00:00:00:01 type veth peer name peer0\nlink set peer0 up\n");
    apply(first, NULL);
    ip("link add eth9 address 02:00:00:00:00:02 type veth peer name peer1\nlink set peer1 up\n");
    apply(second, first);
    /* pulled */
    ip("link del peer0\n");
    g_autoptr(SvNetRequest) made = request_here();
    assert_equal(second, made);
}

static void test_ipv6_off(void)
{
    if (!enter_new())
        return;
    ip("link add eth0 address 02:00:00:00:00:01 type veth peer name peer0\n"
       "link set lo up\nlink set peer0 up\nlink set eth0 up\naddr add 10.1.0.2/24 dev eth0\n");
    g_autoptr(SvNetRequest) wanted = request_here();
    for (gsize i = 0; i < wanted->n_links; i++)
        for (gsize k = 0; k < wanted->links[i]->n_settings; k++)
            if (!wanted->links[i]->loopback &&
                strcmp(wanted->links[i]->settings[k]->name, "disable_ipv6") == 0)
                wanted->links[i]->settings[k]->value = 1;
    /* its link-local address is left in the list */
    g_assert_cmpuint(wanted->n_addresses, >, 1);
    g_assert_true(enter_new());
    ip("link add eth9 address 02:00:00:00:00:01 type veth peer name peer0\nlink set peer0 up\n");
    apply(wanted, NULL);
    g_autoptr(SvNetState) state = read_here();
    for (guint i = 0; i < state->addresses->len; i++) {
        const SvNetAddress *address = state->addresses->pdata[i];

        g_assert_false(strcmp(address->link, "eth0") == 0 && address->family == AF_INET6);
    }
}

static void test_missing_device(void)
{
    if (!enter_new())
        return;
    make_rich();
    g_autoptr(SvNetRequest) wanted = request_here();
    g_autoptr(SvNetState) state = read_here();
    const SvNetLink *missing = NULL;
    g_assert_true(sv_network_devices_there(wanted, state->devices, &missing));
    g_assert_true(enter_new());
    g_autoptr(SvNetState) empty = read_here();
    g_assert_false(sv_network_devices_there(wanted, empty->devices, &missing));
    g_assert_nonnull(missing);
    g_assert_false(missing->loopback);
}

static void test_inside(void)
{
    g_autoptr(GError) error = NULL;
    if (!enter_new())
        return;
    ip("link add marker type veth peer name other\n");
    g_auto(SvFd) fd = keep_current();
    g_assert_true(enter_new());
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(fd, NETLINK_ROUTE, &error);
    g_assert_no_error(error);
    g_autoptr(SvNetlink) here = sv_netlink_new(NETLINK_ROUTE, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) devices = sv_net_devices_read(nl, &error);
    g_assert_no_error(error);
    g_assert_nonnull(sv_net_device_find(devices, "marker"));
    if (sv_netlink_cookie(nl))
        g_assert_cmpuint(sv_netlink_cookie(nl), !=, sv_netlink_cookie(here));

    g_auto(SvFd) file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    SvNetlink *none = sv_netlink_new_in(file, NETLINK_ROUTE, &error);
    g_assert_null(none);
    g_assert_nonnull(error);
}

static void set_sysctl(const char *path, const char *value)
{
    g_auto(SvFd) fd = open(path, O_WRONLY | O_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, value, strlen(value)), ==, (gssize)strlen(value));
}

static void test_sysctls(void)
{
    g_autoptr(GError) error = NULL;
    if (!enter_new())
        return;
    g_auto(SvFd) fd = keep_current();
    ip("link add eth0 address 02:00:00:00:00:01 type veth peer name peer0\n");
    g_autoptr(GPtrArray) few = sv_net_sysctls_read(fd, &error);
    g_assert_no_error(error);
    /* nothing was changed: what is of all links, and no more */
    for (guint i = 0; i < few->len; i++)
        g_assert_true(strstr(few->pdata[i], "/conf/") || strstr(few->pdata[i], "/ip_forward="));
    set_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", "77");
    set_sysctl("/proc/sys/net/ipv4/ip_forward", "1");
    set_sysctl("/proc/sys/net/ipv4/conf/all/rp_filter", "2");
    g_autoptr(SvNetRequest) wanted = request_here();
    /* looked at from somewhere else */
    g_assert_true(enter_new());
    g_autoptr(GPtrArray) some = sv_net_sysctls_read(fd, &error);
    g_assert_no_error(error);
    g_assert_true(g_ptr_array_find_with_equal_func(
        some, "net/ipv4/ip_unprivileged_port_start=77", g_str_equal, NULL));
    g_assert_true(
        g_ptr_array_find_with_equal_func(some, "net/ipv4/conf/all/rp_filter=2", g_str_equal, NULL));
    sv_net_request_set_sysctls(wanted, some);
    ip("link add eth9 address 02:00:00:00:00:01 type veth peer name peer0\n");
    apply(wanted, NULL);
    g_auto(SvFd) made = keep_current();
    g_autoptr(GPtrArray) same = sv_net_sysctls_read(made, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(same->len, ==, some->len);
    for (guint i = 0; i < some->len; i++)
        g_assert_true(g_ptr_array_find_with_equal_func(same, some->pdata[i], g_str_equal, NULL));
}

/* Errors carry the kernel's words. */
static void test_refusal(void)
{
    g_autoptr(GError) error = NULL;
    if (!enter_new())
        return;
    g_autoptr(SvNetlink) nl = sv_netlink_new(NETLINK_ROUTE, &error);
    struct ifaddrmsg info = {.ifa_family = AF_INET, .ifa_prefixlen = 99, .ifa_index = 1};
    struct nl_msg *msg = sv_nl_new(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
    int errsv = 0;

    nla_put_u32(msg, IFA_LOCAL, 1);
    g_assert_false(sv_netlink_request(nl, msg, &errsv, &error));
    g_assert_cmpint(errsv, ==, EINVAL);
    g_assert_true(sv_error_is(error, SV_ERR_INVALID));
    g_assert_nonnull(strchr(error->message, ':'));
}

/* Messages grow as far as the kernel reads them, and no further. */
static void test_long(void)
{
    g_autoptr(GError) error = NULL;
    SvNetLink lo = SANDVIRT__V1__NET_LINK__INIT;
    SvNetDevice device = {.link = &lo, .index = 1};
    gpointer items[] = {&device};
    const GPtrArray devices = {items, G_N_ELEMENTS(items)};
    SvNetHop hop = SANDVIRT__V1__NET_HOP__INIT;
    SvNetHop *hops[2000];
    SvNetRoute route = SANDVIRT__V1__NET_ROUTE__INIT;
    guint8 gateway[16] = {0xfd};

    lo.name = (char *)"lo";
    hop.link = (char *)"lo";
    hop.gateway.data = gateway;
    hop.gateway.len = sizeof gateway;
    for (guint i = 0; i < G_N_ELEMENTS(hops); i++)
        hops[i] = &hop;
    route.family = AF_INET6;
    route.hops = hops;
    route.n_hops = G_N_ELEMENTS(hops);
    struct nl_msg *msg = sv_net_route_encode(&route, RTM_NEWROUTE, NLM_F_CREATE, &devices, &error);
    g_assert_no_error(error);
    struct nlattr *list = nlmsg_find_attr(nlmsg_hdr(msg), sizeof(struct rtmsg), RTA_MULTIPATH);
    g_assert_cmpint(nla_len(list), ==, 2000 * (8 + 4 + 16));
    nlmsg_free(msg);

    g_autofree char *text = g_strnfill(70000, 'x');
    route.n_hops = 0;
    route.congestion = text;
    g_assert_null(sv_net_route_encode(&route, RTM_NEWROUTE, NLM_F_CREATE, &devices, &error));
    g_assert_true(sv_error_is(error, SV_ERR_LIMIT));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/netns/read", test_read);
    g_test_add_func("/netns/long", test_long);
    g_test_add_func("/netns/read-empty", test_read_limits);
    g_test_add_func("/netns/mirror", test_mirror);
    g_test_add_func("/netns/nexthops", test_nexthops);
    g_test_add_func("/netns/follow", test_follow);
    g_test_add_func("/netns/down-and-up", test_down_and_up);
    g_test_add_func("/netns/replace", test_replace);
    g_test_add_func("/netns/ipv6-off", test_ipv6_off);
    g_test_add_func("/netns/missing-device", test_missing_device);
    g_test_add_func("/netns/inside", test_inside);
    g_test_add_func("/netns/sysctls", test_sysctls);
    g_test_add_func("/netns/refusal", test_refusal);
    return g_test_run();
}
