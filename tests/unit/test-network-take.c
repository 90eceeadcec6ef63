/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A link is joined with a tap, and is as before afterwards. */
#include <config.h>

#include "devices/network-claim.h"
#include "devices/network-multicast.h"
#include "devices/network-sweep.h"
#include "devices/network-take.h"
#include "in-netns.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TAP "svtest0"
#define MARK 0x12345679
#define FRAME_TYPE 0x88b5 /* for experiments */

typedef struct {
    SvFd host, pod; /* namespaces */
    SvFd tap; /* as QEMU holds it */
    SvFd wire; /* the other end of the pod's link */
    SvFd multicast;
} Fixture;

static int open_tap(void)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

    g_strlcpy(request.ifr_name, TAP, sizeof request.ifr_name);
    if (fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0)
        return fd;
    sv_fd_close(fd);
    return -1;
}

static int open_wire(const char *name)
{
    struct ifreq request = {0};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(FRAME_TYPE));

    g_assert_cmpint(fd, >=, 0);
    g_strlcpy(request.ifr_name, name, sizeof request.ifr_name);
    g_assert_cmpint(ioctl(fd, SIOCGIFINDEX, &request), ==, 0);
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
        .sll_protocol = htons(FRAME_TYPE),
        .sll_ifindex = request.ifr_ifindex};
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    return fd;
}

static gboolean set_up(Fixture *f)
{
    *f = (Fixture){-1, -1, -1, -1, -1};
    if (!enter_new())
        return FALSE;
    f->host = keep_current();
    g_assert_true(enter_new());
    f->pod = keep_current();
    ip("link set lo up\nlink add eth0 type veth peer name peer\nlink set eth0 mtu 1400 txqueuelen "
       "0 up\n");
    return TRUE;
}

static void tear_down(Fixture *f)
{
    sv_fd_clear(&f->tap);
    sv_fd_clear(&f->wire);
    sv_fd_clear(&f->host);
    sv_fd_clear(&f->pod);
    sv_fd_clear(&f->multicast);
}

static void send_frame_to(int fd, const guint8 to[ETH_ALEN], guint8 mark)
{
    guint8 frame[ETH_ZLEN] = {
        0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, FRAME_TYPE >> 8, FRAME_TYPE & 0xff, mark};

    memcpy(frame, to, ETH_ALEN);
    g_assert_cmpint(write(fd, frame, sizeof frame), ==, sizeof frame);
}

static void send_frame(int fd, guint8 mark)
{
    send_frame_to(fd, (const guint8[]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mark);
}

/* Frames of the kernel's own may come too. */
static gboolean receive_frame(int fd, guint8 mark, int timeout_ms)
{
    gint64 deadline = g_get_monotonic_time() + timeout_ms * 1000;
    guint8 frame[2048];

    while (sv_fd_wait(fd, POLLIN, deadline) > 0) {
        ssize_t n = read(fd, frame, sizeof frame);

        if (n >= ETH_ZLEN && frame[12] == FRAME_TYPE >> 8 && frame[13] == (FRAME_TYPE & 0xff))
            return frame[14] == mark;
    }
    return FALSE;
}

static SvNetState *read_pod(int pod)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(pod, NETLINK_ROUTE, &error);

    g_assert_no_error(error);
    SvNetState *state = sv_net_state_read(nl, &error);
    g_assert_no_error(error);
    return state;
}

static char *tc_of(int pod, int host)
{
    g_autoptr(SvCommand) cmd = sv_command_new("/sbin/tc");
    char *text = NULL;
    int status = -1;

    enter(pod);
    sv_command_add_args(cmd, "qdisc", "show", "dev", "eth0", NULL);
    g_assert_true(sv_command_run(cmd, NULL, 0, 10000, 65536, &text, NULL, &status, NULL));
    enter(host);
    return text;
}

static void take(const Fixture *f, SvTakeLink *link, gboolean *made)
{
    g_autoptr(SvNetState) state = read_pod(f->pod);
    g_autoptr(GError) error = NULL;

    *link = (SvTakeLink){.tap = TAP,
        .alias = SV_TAP_ALIAS "sandvirt-x:eth0",
        .index = sv_net_device_find(state->devices, "eth0")->index,
        .mtu = 1400,
        .mark = MARK,
        .multicast = f->multicast};
    gboolean ok = sv_link_take(f->pod, link, made, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

static void give_back(const Fixture *f, const SvTakeLink *link, gboolean made)
{
    g_autoptr(GError) error = NULL;
    gboolean ok = sv_link_give_back(f->pod, link, made, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

static void test_take(void)
{
    Fixture f;
    SvTakeLink link;
    gboolean made = FALSE;

    if (!set_up(&f))
        return;
    enter(f.host);
    f.tap = open_tap();
    if (f.tap < 0) {
        g_test_skip("no taps here");
        tear_down(&f);
        return;
    }
    g_autofree char *before = tc_of(f.pod, f.host);
    take(&f, &link, &made);
    g_assert_true(made);

    g_autoptr(SvNetState) state = read_pod(f.pod);
    const SvNetDevice *tap = sv_net_device_find(state->devices, TAP);
    g_assert_nonnull(tap);
    g_assert_true(tap->link->flags & IFF_UP);
    g_assert_cmpuint(tap->link->mtu, ==, 1400);
    g_autofree char *owner = sv_link_tap_owner(tap);
    g_assert_cmpstr(owner, ==, "sandvirt-x");
    g_assert_cmpstr(sv_link_refusal(tap, state->devices), ==, "");
    for (guint i = 0; i < state->addresses->len; i++)
        g_assert_cmpstr(((SvNetAddress *)state->addresses->pdata[i])->link, !=, TAP);
    give_back(&f, &link, made);
    g_autofree char *after = tc_of(f.pod, f.host);
    g_assert_cmpstr(after, ==, before);
    g_autoptr(SvNetState) left = read_pod(f.pod);
    g_assert_cmpuint(sv_net_device_find(left->devices, "eth0")->link->queue_length, ==, 0);
    g_assert_null(sv_net_device_find(left->devices, TAP));
    /* twice is fine */
    give_back(&f, &link, made);
    tear_down(&f);
}

/* A veth whose peer is the wire, in the pod's namespace, and a tap in the host's. FALSE: not here. */
static gboolean set_up_wire(Fixture *f)
{
    if (!enter_new())
        return FALSE;
    f->pod = keep_current();
    ip("link add eth0 type veth peer name peer\nlink set eth0 up\nlink set peer up\n");
    f->wire = open_wire("peer");
    g_assert_true(enter_new());
    f->host = keep_current();
    f->tap = open_tap();
    if (f->tap >= 0)
        return TRUE;
    g_test_skip("no taps here");
    tear_down(f);
    return FALSE;
}

static void test_frames(void)
{
    Fixture f = {-1, -1, -1, -1, -1};
    SvTakeLink link;
    gboolean made = FALSE;

    if (!set_up_wire(&f))
        return;
    take(&f, &link, &made);
    send_frame(f.wire, 1);
    g_assert_true(receive_frame(f.tap, 1, 5000));
    send_frame(f.tap, 2);
    g_assert_true(receive_frame(f.wire, 2, 5000));

    /* what the machine got is what the tap has sent */
    guint64 received = 0, sent = 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(SvNetlink) nl = sv_netlink_new_in(f.pod, NETLINK_ROUTE, &error);
    g_assert_no_error(error);
    sv_link_count(nl, TAP, &received, &sent);
    g_assert_cmpuint(received, >=, ETH_ZLEN);
    g_assert_cmpuint(sent, >=, ETH_ZLEN);
    sv_link_count(nl, "gone", &received, &sent);

    /* QEMU is killed, and nobody gave anything back: the next one takes over all the same */
    sv_fd_clear(&f.tap);
    f.tap = open_tap();
    take(&f, &link, &made);
    g_assert_false(made);
    send_frame(f.wire, 3);
    g_assert_true(receive_frame(f.tap, 3, 5000));
    give_back(&f, &link, TRUE);
    g_autofree char *after = tc_of(f.pod, f.host);
    g_assert_null(strstr(after, "ingress"));
    tear_down(&f);
}

/* A group that only the guest has joined: a macvlan passes it on while the machine has the link, and no longer. */
static void test_groups(void)
{
    static const guint8 group[ETH_ALEN] = {1, 0, 0x5e, 1, 2, 3};
    Fixture f = {-1, -1, -1, -1, -1};
    SvTakeLink link;
    gboolean made = FALSE;
    g_autoptr(GError) error = NULL;

    if (!enter_new())
        return;
    f.pod = keep_current();
    ip("link add under type veth peer name peer\nlink set under up\nlink set peer up\n"
       "link add eth0 link under type macvlan mode bridge\nlink set eth0 up\n");
    f.wire = open_wire("peer");
    g_auto(SvFd) watcher = open_wire("eth0");
    g_assert_true(enter_new());
    f.host = keep_current();
    f.tap = open_tap();
    if (f.tap < 0) {
        g_test_skip("no taps here");
        tear_down(&f);
        return;
    }
    f.multicast = sv_multicast_open(f.pod, &error);
    g_assert_no_error(error);
    send_frame_to(f.wire, group, 1);
    take(&f, &link, &made);
    send_frame_to(f.wire, group, 2);
    g_assert_true(receive_frame(f.tap, 2, 5000));
    give_back(&f, &link, made);
    send_frame_to(f.wire, group, 3);
    send_frame(f.wire, 4);
    /* It has missed all but the last: nobody in this namespace has joined, and the others went to the machine. */
    g_assert_true(receive_frame(watcher, 4, 5000));

    /* a process that is killed leaves nothing */
    sv_multicast_add(f.multicast, link.index);
    send_frame_to(f.wire, group, 5);
    g_assert_true(receive_frame(watcher, 5, 5000));
    sv_fd_clear(&f.multicast);
    send_frame_to(f.wire, group, 6);
    send_frame(f.wire, 7);
    g_assert_true(receive_frame(watcher, 7, 5000));
    tear_down(&f);
}

static gpointer claim(gpointer pod)
{
    g_autoptr(GError) error = NULL;
    int fd = sv_network_claim(*(int *)pod, &error);
    if (fd < 0)
        g_assert_cmpint(error->code, ==, SV_ERR_BUSY);
    return GINT_TO_POINTER(fd);
}

/* Of many at once one gets it. */
static void test_claim(void)
{
    enum { MANY = 16, ROUNDS = 20 };
    GThread *threads[MANY];

    if (!enter_new())
        return;
    g_auto(SvFd) pod = keep_current();
    g_assert_true(enter_new());
    for (guint round = 0; round < ROUNDS; round++) {
        g_auto(SvFd) winner = -1;
        for (guint i = 0; i < MANY; i++)
            threads[i] = g_thread_new("claim", claim, &pod);
        for (guint i = 0; i < MANY; i++) {
            int fd = GPOINTER_TO_INT(g_thread_join(threads[i]));
            g_assert_true(fd < 0 || winner < 0);
            winner = fd >= 0 ? fd : winner;
        }
        g_assert_cmpint(winner, >=, 0);
    }
    /* of another namespace */
    g_auto(SvFd) other = keep_current();
    g_auto(SvFd) first = GPOINTER_TO_INT(claim(&pod));
    g_auto(SvFd) second = GPOINTER_TO_INT(claim(&other));
    g_assert_cmpint(first, >=, 0);
    g_assert_cmpint(second, >=, 0);
}

/* Ours was killed, and somebody else has the link now. */
static void test_taken_again(void)
{
    Fixture f = {-1, -1, -1, -1, -1};
    SvTakeLink link, other;
    gboolean made = FALSE;

    if (!set_up_wire(&f))
        return;
    take(&f, &other, &made);
    link = other;
    link.tap = "svgone";
    give_back(&f, &link, TRUE);
    send_frame(f.wire, 7);
    g_assert_true(receive_frame(f.tap, 7, 5000));
    give_back(&f, &other, TRUE);
    g_autofree char *after = tc_of(f.pod, f.host);
    g_assert_null(strstr(after, "ingress"));
    tear_down(&f);
}

static guint sweep(const Fixture *f, guint32 mark, gboolean dry_run)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    /* of its own, as that of another process */
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", f->pod);
    g_auto(SvFd) pod = open(path, O_RDONLY | O_CLOEXEC);
    g_assert_true(sv_network_sweep(pod, mark, dry_run, found, &error));
    g_assert_no_error(error);
    if (found->len > 0)
        g_assert_cmpstr(found->pdata[0], ==, "eth0");
    return found->len;
}

static void assert_ingress(const Fixture *f, gboolean wanted)
{
    g_autofree char *text = tc_of(f->pod, f->host);
    g_assert_cmpint(strstr(text, "ingress") != NULL, ==, wanted);
}

/* Of a machine that nobody knows any more; not while it runs, nor while somebody has the namespace. */
static void test_sweep(void)
{
    Fixture f = {-1, -1, -1, -1, -1};
    g_autoptr(GError) error = NULL;
    SvTakeLink link;
    gboolean made = FALSE;

    if (!set_up_wire(&f))
        return;
    g_assert_cmpuint(sweep(&f, MARK, FALSE), ==, 0);
    take(&f, &link, &made);
    g_assert_cmpuint(sweep(&f, MARK, FALSE), ==, 0);
    assert_ingress(&f, TRUE);
    sv_fd_clear(&f.tap);
    g_assert_true(sv_network_hold(f.pod, &error));
    g_assert_cmpuint(sweep(&f, MARK, FALSE), ==, 0);
    assert_ingress(&f, TRUE);
    g_assert_cmpint(flock(f.pod, LOCK_UN), ==, 0);
    /* of another root */
    g_assert_cmpuint(sweep(&f, MARK + 2, FALSE), ==, 0);
    g_assert_cmpuint(sweep(&f, MARK, TRUE), ==, 1);
    assert_ingress(&f, TRUE);
    g_assert_cmpuint(sweep(&f, MARK, FALSE), ==, 1);
    assert_ingress(&f, FALSE);
    g_assert_cmpuint(sweep(&f, MARK, FALSE), ==, 0);
    tear_down(&f);
}

/* Another's qdisc stays, with its filters. */
static void test_foreign_qdisc(void)
{
    Fixture f = {-1, -1, -1, -1, -1};
    SvTakeLink link;
    gboolean made = TRUE;
    int status = -1;
    g_autoptr(SvCommand) cmd = sv_command_new("/sbin/tc");

    if (!enter_new())
        return;
    f.pod = keep_current();
    ip("link add eth0 type veth peer name peer\nlink set eth0 up\nlink set peer up\n");
    sv_command_add_args(cmd, "qdisc", "add", "dev", "eth0", "clsact", NULL);
    g_assert_true(sv_command_run(cmd, NULL, 0, 10000, 65536, NULL, NULL, &status, NULL));
    g_assert_true(enter_new());
    f.host = keep_current();
    f.tap = status == 0 ? open_tap() : -1;
    if (f.tap < 0) {
        g_test_skip("no taps or no clsact here");
        tear_down(&f);
        return;
    }
    take(&f, &link, &made);
    g_assert_false(made);
    give_back(&f, &link, made);
    g_autofree char *after = tc_of(f.pod, f.host);
    g_assert_nonnull(strstr(after, "clsact"));
    tear_down(&f);
}

static void test_gone(void)
{
    Fixture f = {-1, -1, -1, -1, -1};
    SvTakeLink link = {.tap = TAP, .alias = SV_TAP_ALIAS "x:eth0", .index = 99, .mtu = 1500};
    gboolean made = FALSE;
    g_autoptr(GError) error = NULL;

    if (!enter_new())
        return;
    f.pod = keep_current();
    g_assert_true(enter_new());
    f.host = keep_current();
    g_assert_false(sv_link_take(f.pod, &link, &made, &error));
    g_assert_nonnull(strstr(error->message, TAP));
    give_back(&f, &link, TRUE);
    tear_down(&f);
}

static const SvNetDevice *device(
    SvNetDevice *device, guint16 type, const char *kind, int index, guint32 flags)
{
    device->type = type;
    device->kind = (char *)kind;
    device->index = index;
    device->link->flags = flags;
    return device;
}

static void test_refusals(void)
{
    SvNetLink links[3] = {
        SANDVIRT__V1__NET_LINK__INIT, SANDVIRT__V1__NET_LINK__INIT, SANDVIRT__V1__NET_LINK__INIT};
    SvNetDevice devices[3] = {{.link = &links[0]}, {.link = &links[1]}, {.link = &links[2]}};
    g_autoptr(GPtrArray) all = g_ptr_array_new();

    for (guint i = 0; i < 3; i++)
        g_ptr_array_add(all, &devices[i]);
    g_assert_null(sv_link_refusal(device(&devices[0], 1, "veth", 2, IFF_UP), all));
    g_assert_null(sv_link_refusal(device(&devices[0], 1, NULL, 2, 0), all));
    g_assert_cmpstr(sv_link_refusal(device(&devices[0], 776, "sit", 2, 0), all), ==, "");
    g_assert_nonnull(strstr(
        sv_link_refusal(device(&devices[0], 65534, "wireguard", 2, IFF_UP), all), "Ethernet"));
    g_assert_nonnull(
        strstr(sv_link_refusal(device(&devices[0], 1, "vxlan", 2, IFF_UP), all), "kind"));
    /* a bridge is taken, its ports are not */
    device(&devices[1], 1, "bridge", 3, IFF_UP);
    device(&devices[2], 1, "veth", 4, IFF_UP);
    devices[2].master = 3;
    g_assert_null(sv_link_refusal(&devices[1], all));
    g_assert_nonnull(strstr(sv_link_refusal(&devices[2], all), "port"));
    devices[2].master = 0;
    devices[2].lower = 3;
    g_assert_null(sv_link_refusal(&devices[2], all)); /* the other end of a veth */
    device(&devices[2], 1, "macvlan", 4, IFF_UP);
    g_assert_nonnull(strstr(sv_link_refusal(&devices[2], all), "lies on"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network-take/take", test_take);
    g_test_add_func("/network-take/frames", test_frames);
    g_test_add_func("/network-take/groups", test_groups);
    g_test_add_func("/network-take/claim", test_claim);
    g_test_add_func("/network-take/taken-again", test_taken_again);
    g_test_add_func("/network-take/sweep", test_sweep);
    g_test_add_func("/network-take/foreign-qdisc", test_foreign_qdisc);
    g_test_add_func("/network-take/gone", test_gone);
    g_test_add_func("/network-take/refusals", test_refusals);
    return g_test_run();
}
