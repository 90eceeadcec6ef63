#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The pod's network in the machine: as found, and given back (A37, A38). All links are in namespaces that a
# test makes: the pod's, "$POD_NS", and one for who is on the other side, "$FAR_NS".

load lib
load network

setup_file() {
    export BATS_TEST_TIMEOUT=${SV_LONG:+1200}
    : "${BATS_TEST_TIMEOUT:=400}"
    network_suite
}
teardown_file() { suite_end; }
setup() { network_test; }
teardown() { network_test_end; }

@test "one link: alike inside, ping, TCP both ways, UDP, given back" {
    look_for_duplicates 1
    plain
    local before
    before=$(found)
    up
    assert_alike
    assert_eq "$(taps)" 1 taps
    far busybox ping -c 2 -W 5 10.66.0.2
    far busybox ping -c 2 -W 5 fd66::2
    inside ping -c 2 -W 5 10.66.0.1
    # TCP both ways and UDP
    serve inside tcp-serve :: 700
    assert_eq "$(seq 1 20000 | far "$PAYLOAD" tcp 10.66.0.2 700 | sha256sum)" "$(seq 1 20000 | sha256sum)"
    assert_eq "$(seq 1 20000 | far "$PAYLOAD" tcp fd66::2 700 | sha256sum)" "$(seq 1 20000 | sha256sum)"
    serve far tcp-serve :: 701
    assert_eq "$(seq 1 20000 | inside payload tcp 10.66.0.1 701 | sha256sum)" "$(seq 1 20000 | sha256sum)"
    serve far udp-serve 10.66.0.1 702
    assert_eq "$(inside payload udp 10.66.0.1 702 datagram)" datagram
    run -0 virsh -c qemu:///system domiflist "$(domain_of "$ID")"
    assert_has "$output" "$(ip -n "$POD_NS" -j link | jq -r '.[] | select(.ifname == "eth0").address')"
    # libvirt looks for the taps where they are no more: these do not
    run -0 rt top --once --json
    assert_eq "$(jq '.[0] | .netReceived > 200000 and .netSent > 200000' <<<"$output")" true "$output"
    run -0 rt delete --force "$ID"
    assert_same_text 'the namespace' "$before" "$(found)"
    assert_same_snap
}

@test "addresses and routes of all kinds, two links, a name of 15 characters, one MAC twice" {
    ip -n "$POD_NS" link set lo up
    wire eth0 02:66:00:00:00:01
    wire net-15-char-nam 02:66:00:00:00:01
    batch "$POD_NS" <<END
link set eth0 mtu 9000
link set net-15-char-nam mtu 1280
link set eth0 up
link set net-15-char-nam up
addr add 10.66.0.2/24 brd + dev eth0
addr add 10.66.0.3/24 dev eth0
addr add 10.67.0.1/32 dev net-15-char-nam
addr add 10.69.0.1 peer 10.69.0.2/32 dev net-15-char-nam
addr add 10.68.8.8/32 dev lo
addr add fd66::2/64 dev eth0 nodad
addr add fd66::3/64 dev eth0 nodad
addr add fd67::1/128 dev net-15-char-nam nodad
route add default dev eth0
route add default via 192.0.2.1 dev eth0 onlink metric 300
route add 10.70.0.0/16 via 10.66.0.1 mtu 1400
route add 10.71.0.0/16 via 192.0.2.9 dev eth0 onlink metric 77 src 10.66.0.2
route add 10.72.0.0/16 dev net-15-char-nam scope link
route add blackhole 10.73.0.0/16
route add unreachable 10.74.0.0/16 metric 5
route add 10.75.0.0/16 nexthop via 10.66.0.1 weight 2 nexthop via 10.66.0.9
route add 10.76.0.0/16 via 10.66.0.1 table 100
route del 10.66.0.0/24 dev eth0 src 10.66.0.2
route add 10.66.0.0/24 dev eth0 src 10.66.0.2 proto static
route add default dev net-15-char-nam metric 2048
route add fd70::/64 via fd66::1 mtu 1300 metric 7
route add fd71::/64 via fd99::1 dev eth0 onlink
route add blackhole fd73::/64
neigh add 10.66.0.1 lladdr 02:66:00:00:00:aa dev eth0 nud permanent
neigh add fd66::1 lladdr 02:66:00:00:00:aa dev eth0 nud permanent
rule add from 10.66.0.3 lookup 100 priority 1000
rule add fwmark 0x10/0xff lookup main suppress_prefixlength 0 priority 1001
END
    ip -n "$POD_NS" -6 route add default dev eth0 metric 2000
    ip -n "$POD_NS" -6 rule add from fd66::3 lookup 100 priority 1002
    local before
    before=$(found)
    up
    assert_alike
    assert_eq "$(taps)" 2 taps
    # frames of the full length, and packets that need several
    batch "$FAR_NS" <<END
link set far-eth0 mtu 9000
link set far-net-15-char mtu 1280
addr add 10.66.0.1/24 dev far-eth0
addr add 10.72.0.1/16 dev far-net-15-char
route add 10.67.0.1/32 dev far-net-15-char
END
    ip -n "$POD_NS" neigh del 10.66.0.1 dev eth0
    wait_for 20 assert_alike
    far busybox ping -c 2 -W 5 -s 8972 10.66.0.2
    far busybox ping -c 2 -W 5 -s 20000 10.66.0.2
    far busybox ping -c 2 -W 5 -s 1252 10.67.0.1
    far busybox ping -c 2 -W 5 -s 9000 10.67.0.1
    ip -n "$POD_NS" neigh add 10.66.0.1 lladdr 02:66:00:00:00:aa dev eth0 nud permanent
    run -0 rt delete --force "$ID"
    assert_same_text 'the namespace' "$before" "$(found)"
}

@test "IPv6 alone; and IPv6 switched off" {
    ip -n "$POD_NS" link set lo up
    wire eth0
    wire eth1
    batch "$POD_NS" <<END
link set eth0 up
link set eth1 up
addr add fd66::2/64 dev eth0 nodad
route add default via fd66::1 dev eth0
addr add 10.67.0.2/24 dev eth1
END
    ip netns exec "$POD_NS" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/eth1/disable_ipv6'
    up
    assert_alike
    assert_eq "$(inside cat /proc/sys/net/ipv6/conf/eth1/disable_ipv6)" 1
    ip -n "$FAR_NS" addr add fd66::1/64 dev far-eth0 nodad
    far busybox ping -c 2 -W 5 fd66::2
}

@test "a thousand routes, a link as long as can be, no IPv6 at all" {
    local i
    here sh -c 'for f in all default lo; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done'
    ip -n "$POD_NS" link set lo up
    wire eth0
    ip -n "$POD_NS" link set eth0 mtu 65535
    ip -n "$FAR_NS" link set far-eth0 mtu 65535
    {
        echo 'link set eth0 up'
        echo 'addr add 10.66.0.2/16 dev eth0'
        for ((i = 0; i < 1000; i++)); do
            echo "route add 10.$((100 + i / 250)).$((i % 250)).0/24 via 10.66.0.$((3 + i % 9)) metric $((i + 1))"
        done
        for ((i = 0; i < 100; i++)); do
            echo "neigh add 10.66.1.$i lladdr 02:66:00:00:01:$(printf %02x "$i") dev eth0 nud permanent"
        done
        for ((i = 0; i < 50; i++)); do
            echo "rule add from 10.66.2.$i lookup 100 priority $((1000 + i / 2))"
        done
    } | batch "$POD_NS"
    ip -n "$FAR_NS" addr add 10.66.0.1/16 dev far-eth0
    local before
    before=$(found)
    up
    assert_alike
    assert_eq "$(inside ip route | grep -c metric)" 1000 routes
    far busybox ping -c 2 -W 5 -s 30000 10.66.0.2
    # half of them go
    for ((i = 0; i < 1000; i += 2)); do
        echo "route del 10.$((100 + i / 250)).$((i % 250)).0/24"
    done | batch "$POD_NS"
    wait_for 20 eval '[ "$(inside ip route | grep -c metric)" = 500 ]'
    assert_alike
    assert_eq "$(taps)" 1 taps
    rt delete --force "$ID"
    [[ "$(found)" != *ingress* ]] || fail "left: $(found)"
    assert_has "$before" 'metric 1000'
}

# again: what `plain` has set up on eth0, after the kernel forgot it.
again() {
    batch "$POD_NS" <<END
link set eth0 up
addr replace 10.66.0.2/24 brd + dev eth0
addr replace fd66::2/64 dev eth0 nodad
route replace default via 10.66.0.1
route replace default via fd66::1 dev eth0
END
}

@test "the link goes down and up, gets another MAC and name, leaves and comes back with its number" {
    local number=77
    ip -n "$POD_NS" link add eth0 index $number type veth peer name far-eth0 netns "$FAR_NS"
    ip -n "$FAR_NS" link set far-eth0 up
    batch "$FAR_NS" <<END
addr add 10.66.0.1/24 dev far-eth0
addr add fd66::1/64 dev far-eth0 nodad
END
    ip -n "$POD_NS" link set lo up
    again
    up
    assert_alike
    ip -n "$POD_NS" link set eth0 down
    wait_for 20 eval '! inside ip link show eth0 | grep -q ",UP"'
    again
    wait_for 20 assert_alike
    far busybox ping -c 2 -W 5 10.66.0.2
    ip -n "$POD_NS" link set eth0 address 02:66:00:00:00:99
    wait_for 20 assert_alike
    ip -n "$FAR_NS" neigh flush all
    far busybox ping -c 2 -W 5 10.66.0.2
    ip -n "$POD_NS" link set eth0 down
    ip -n "$POD_NS" link set eth0 name net9
    ip -n "$POD_NS" link set net9 up
    wait_for 20 eval 'inside ip link show net9'
    ip -n "$POD_NS" link set net9 down
    ip -n "$POD_NS" link set net9 name eth0
    again
    wait_for 20 assert_alike
    # Faster than anybody looks: the number is the same, what was on the link is gone.
    ip -n "$POD_NS" link set eth0 netns "$FAR_NS"
    ip -n "$FAR_NS" link set eth0 netns "$POD_NS"
    assert_eq "$(ip -n "$POD_NS" -j link show eth0 | jq '.[0].ifindex')" $number
    again
    wait_for 20 eval 'far busybox ping -c 1 -W 1 10.66.0.2'
    wait_for 20 assert_alike
    far busybox ping -c 2 -W 5 fd66::2
    wait_for 20 eval '[ "$(taps)" = 1 ]'
    # What changes while the machine stands still is seen when it goes on.
    rt pause "$ID"
    ip -n "$POD_NS" addr add 10.66.0.55/24 dev eth0
    rt resume "$ID"
    wait_for 20 assert_alike
    rt delete --force "$ID"
    [[ "$(found)" != *ingress* ]] || fail "left: $(found)"
    assert_same_snap
}

@test "an empty namespace has its loopback up" {
    up
    assert_alike_lo
}

assert_alike_lo() {
    assert_eq "$(inside ip -j link | jq -r 'map(.ifname) | join(" ")')" lo
    inside ping -c 1 127.0.0.1
    inside ping -c 1 ::1
    assert_eq "$(taps)" 0 taps
}

@test "macvlan, a bridge with its port, a tap of somebody else, links that cannot be taken" {
    ip -n "$POD_NS" link set lo up
    ip -n "$FAR_NS" link add under type veth peer name under2
    ip -n "$FAR_NS" link set under up
    ip -n "$FAR_NS" link set under2 up
    ip -n "$FAR_NS" addr add 10.68.0.1/24 dev under2
    ip -n "$FAR_NS" link add mac0 link under type macvlan mode bridge
    ip -n "$FAR_NS" link set mac0 netns "$POD_NS"
    wire port0
    batch "$POD_NS" <<END
link set mac0 up
addr add 10.68.0.2/24 dev mac0
link add br0 type bridge
link set port0 up
link set port0 master br0
link set br0 up
addr add 10.66.0.2/24 dev br0
END
    ip -n "$FAR_NS" addr add 10.66.0.1/24 dev far-port0
    ip -n "$POD_NS" tuntap add tap0 mode tap
    local before
    before=$(found)
    up
    # The port carries the bridge's frames; all others are there.
    assert_same_text addresses "$(ip -n "$POD_NS" -j addr | addresses | jq 'map(select(.ifname != "port0"))')" \
        "$(inside ip -j addr | addresses)"
    far busybox ping -c 2 -W 5 10.68.0.2
    far busybox ping -c 2 -W 5 10.66.0.2
    grep -q "$ID: network: port0 (veth) is not in the machine" "$LOG/launcher"
    rt delete --force "$ID"
    assert_same_text 'the namespace' "$before" "$(found)"
}

# other_link NAME ADDRESS IP-WORDS...: a link made in $FAR_NS and moved to the pod; FALSE: the kernel has none of its kind.
other_link() {
    ip -n "$FAR_NS" link add name "$1" "${@:3}" 2>/dev/null || return
    ip -n "$FAR_NS" link set "$1" netns "$POD_NS"
    ip -n "$POD_NS" link set "$1" up
    ip -n "$POD_NS" addr add "$2" dev "$1"
}

@test "ipvlan, vlan, dummy, as far as the kernel has them" {
    local before kinds=''
    ip -n "$POD_NS" link set lo up
    batch "$FAR_NS" <<END
link add under type veth peer name under2
link set under up
link set under2 up
addr add 10.68.0.1/24 dev under2
END
    ! other_link ipv0 10.68.0.2/24 link under type ipvlan mode l2 || kinds+=i
    ! other_link vlan7 10.69.0.2/24 link under type vlan id 7 || kinds+=v
    ! other_link dummy7 10.70.0.1/32 type dummy || kinds+=d
    [ -n "$kinds" ] || skip 'none of them'
    if [[ $kinds = *v* ]]; then
        ip -n "$FAR_NS" link add link under2 name far-vlan type vlan id 7
        ip -n "$FAR_NS" link set far-vlan up
        ip -n "$FAR_NS" addr add 10.69.0.1/24 dev far-vlan
    fi
    before=$(found)
    up
    assert_alike
    assert_eq "$(taps)" ${#kinds} taps
    [[ $kinds != *i* ]] || far busybox ping -c 2 -W 5 10.68.0.2
    [[ $kinds != *v* ]] || far busybox ping -c 2 -W 5 10.69.0.2
    [[ $kinds != *d* ]] || inside ping -c 1 10.70.0.1
    rt delete --force "$ID"
    assert_same_text 'the namespace' "$before" "$(found)"
    echo "# kinds: $kinds" >&3
}

@test "two vCPUs: two queues; checksums and long frames are the host's work" {
    local tap before received sent
    plain
    new_id n
    mkb "$T/b" sleep 1000000
    in_ns "$T/b"
    jqe "$T/b" '.linux.resources.cpu = {quota: 200000, period: 100000}'
    start_bundle
    tap=$(ip -n "$POD_NS" -d -j link | jq -c '.[] | select(.ifname | test("^sv[0-9a-f]{9}")).linkinfo.info_data
        | {type, vnet_hdr, multi_queue, numqueues}')
    assert_eq "$tap" '{"type":"tap","vnet_hdr":true,"multi_queue":true,"numqueues":2}'
    assert_eq "$(inside sh -c 'echo /sys/class/net/eth0/queues/[rt]x-*')" \
        "$(printf '/sys/class/net/eth0/queues/%s ' rx-0 rx-1 tx-0 tx-1 | sed 's/ $//')"
    serve inside tcp-serve :: 700
    before=$(frames)
    assert_eq "$(seq 1 500000 | far "$PAYLOAD" tcp 10.66.0.2 700 | sha256sum)" "$(seq 1 500000 | sha256sum)"
    # 3.4 MB each way: in frames of 1500 bytes 2300 at least, and there are about 100
    read -r received sent <<<"$(frames)"
    [ $((received - ${before% *})) -lt 1000 ] || fail "the machine sent $((received - ${before% *})) frames"
    [ $((sent - ${before#* })) -lt 1000 ] || fail "the machine got $((sent - ${before#* })) frames"
}

# frames: received and sent by the other side.
frames() { ip -n "$FAR_NS" -s -j link show far-eth0 | jq -r '.[0].stats64 | "\(.rx.packets) \(.tx.packets)"'; }

@test "eight links" {
    local i
    for i in 0 1 2 3 4 5 6 7; do
        wire "eth$i"
        ip -n "$POD_NS" link set "eth$i" up
        ip -n "$POD_NS" addr add "10.66.$i.2/24" dev "eth$i"
    done
    ip -n "$POD_NS" link set lo up
    up
    assert_alike
    ip -n "$FAR_NS" addr add 10.66.7.1/24 dev far-eth7
    far busybox ping -c 2 -W 5 10.66.7.2
    rt delete --force "$ID"
    assert_eq "$(tc -n "$POD_NS" qdisc | grep -c ingress || true)" 0 'ingress qdiscs'
}

@test "a create that fails after the network, QEMU and monitor killed: given back, and the next pod works" {
    plain
    local before
    before=$(found)
    new_id n
    mkb "$T/b" /no/such/program
    in_ns "$T/b"
    run rt run --bundle "$T/b" "$ID"
    assert_refused
    assert_same_text 'the namespace' "$before" "$(found)"
    up
    assert_alike
    kill -KILL "$(monitor_pid "$ID")" "$(vm_pid "$ID")"
    run -0 rt delete --force "$ID"
    assert_same_text 'the namespace' "$before" "$(found)"
    assert_same_snap
}

@test "pods one after the other in one kept namespace" {
    local before i n
    plain
    before=$(found)
    n=$(rounds 100)
    for ((i = 0; i < n; i++)); do
        up true
        rt delete --force "$ID"
        assert_same_text "the namespace in round $i" "$before" "$(found)"
    done
    assert_same_snap
}

@test "paths that are none, and the host's network" {
    new_id n
    mkb "$T/b" true
    jqe "$T/b" '(.linux.namespaces[] | select(.type == "network")).path = "/run/netns/no-such"'
    run rt run --bundle "$T/b" "$ID"
    assert_refused '/run/netns/no-such'
    jqe "$T/b" '(.linux.namespaces[] | select(.type == "network")).path = "/etc/passwd"'
    run rt run --bundle "$T/b" "$ID"
    assert_refused 'no network namespace'
    jqe "$T/b" '.linux.namespaces |= map(select(.type != "network"))'
    run rt run --bundle "$T/b" "$ID"
    assert_refused "the host's network"
    jqe "$T/b" '.linux.namespaces += [{type: "network", path: "/proc/self/ns/net"}]'
    run rt run --bundle "$T/b" "$ID"
    assert_refused "the host's network"
    write_conf network.host_network_substitute=true
    jqe "$T/b" '.process.args = ["ip", "-o", "link"]'
    run -0 rt run --bundle "$T/b" "$ID"
    assert_has "$output" LOOPBACK,UP
    assert_eq "${#lines[@]}" 1
    assert_same_snap
}

@test "an entry without a path: a hook fills the namespace" {
    new_id n
    mkb "$T/b" sleep 1000000
    jqe "$T/b" '(.linux.namespaces[] | select(.type == "network")) |= del(.path)'
    cat >"$T/hook" <<END
#!/bin/bash
exec 2>"$T/hook\$2.log"
set -ex
pid=\$(jq .pid)
ip -n "$FAR_NS" link add far-\$1 type veth peer name \$1
ip -n "$FAR_NS" link set \$1 netns \$pid
ip -n "$FAR_NS" addr add 10.\$2.0.1/24 dev far-\$1
ip -n "$FAR_NS" link set far-\$1 up
inner() { nsenter --net=/proc/\$pid/ns/net ip "\$@"; }
inner link set lo up
inner link set \$1 up
inner addr add 10.\$2.0.2/24 dev \$1
END
    chmod +x "$T/hook"
    # Docker's is a prestart hook, from version 26 on one of createRuntime.
    jqe "$T/b" '.hooks.prestart = [{path: $hook, args: ["hook", "eth0", "66"], env: [$path]}]
        | .hooks.createRuntime = [{path: $hook, args: ["hook", "net1", "67"], env: [$path]}]' \
        --arg hook "$T/hook" --arg path 'PATH=/bin:/usr/bin:/sbin:/usr/sbin'
    start_bundle
    inside ip addr | grep 10.66.0.2
    far busybox ping -c 2 -W 5 10.66.0.2
    far busybox ping -c 2 -W 5 10.67.0.2
    # a second container of the same pod is in the same network
    mkb "$T/c" ip addr
    member "$T/c" "$ID"
    jqe "$T/c" '(.linux.namespaces[] | select(.type == "network")) |= del(.path)'
    new_id m
    run -0 rt run --bundle "$T/c" "$ID"
    assert_has "$output" 10.66.0.2
}

@test "later changes appear in the guest; what the workload made stays" {
    plain
    up
    inside true
    wire net1
    batch "$POD_NS" <<END
link set net1 up
addr add 10.67.0.2/24 dev net1
addr add 10.66.0.9/24 dev eth0
route add 10.70.0.0/16 via 10.66.0.1
END
    ip -n "$FAR_NS" addr add 10.67.0.1/24 dev far-net1
    wait_for 20 eval 'inside ip addr | grep 10.67.0.2'
    assert_alike
    far busybox ping -c 2 -W 5 10.67.0.2
    batch "$POD_NS" <<END
addr del 10.66.0.9/24 dev eth0
route del 10.70.0.0/16
link set eth0 mtu 1400
link del net1
END
    wait_for 20 eval '! inside ip -o link | grep net1:'
    wait_for 5 eval 'inside ip -o link | grep "mtu 1400"'
    assert_alike
    assert_eq "$(taps)" 1 taps
    # one that cannot be joined is told of, and let alone after a few times
    rt pause "$ID"
    wire net2
    tc -n "$POD_NS" qdisc add dev net2 ingress
    tc -n "$POD_NS" filter add dev net2 ingress pref 5356 protocol ip u32 match u32 0 0 flowid 1:1
    ip -n "$POD_NS" link set net2 up
    rt resume "$ID"
    wait_for 20 eval '[ "$(grep -c "network link net2: connect" "$LOG/launcher")" -ge 3 ]'
    sleep 1
    assert_eq "$(grep -c "network link net2: connect" "$LOG/launcher")" 3 tries
    assert_has "$(tc -n "$POD_NS" filter show dev net2 ingress)" 'pref 5356'
    ip -n "$POD_NS" link del net2
    # the link that the engine takes away and makes anew
    ip -n "$POD_NS" link del eth0
    plain
    wait_for 20 assert_alike
    far busybox ping -c 2 -W 5 10.66.0.2
}

# ---------------------------------------------------------------- localhost

@test "links that a workload makes: the kernel gets its modules when it asks for them" {
    new_id own
    mkb "$T/b" sleep 1000
    in_netns "$T/b"
    start_bundle
    run -0 inside ip link add br0 type bridge
    run -0 inside brctl addbr br1
    run -0 inside ip link add v0 type veth
    run -0 inside sh -c 'ls /sys/class/net | grep -cxE "br0|br1|v0|veth0"'
    assert_eq "$output" 4
    # what there is no module for is an error, as on any host
    run inside ip link add w0 type wireguard
    assert_status 2
}

@test "localhost: a connection in the namespace reaches the guest's; the monitor is killed, all goes on" {
    local i sum big=$T/big pids
    plain
    up
    serve inside tcp-serve 127.0.0.1 8080
    serve inside tcp-serve ::1 8081
    head -c 20000000 /dev/urandom >"$big"
    sum=$(sha256sum <"$big")
    # both ways at once, and the end of one way is not the end of the other
    assert_eq "$(here "$PAYLOAD" tcp 127.0.0.1 8080 <"$big" | sha256sum)" "$sum" IPv4
    assert_eq "$(here "$PAYLOAD" tcp ::1 8081 <"$big" | sha256sum)" "$sum" IPv6
    # many
    for i in 1 2 3 4 5 6 7 8 9 10; do
        (head -c 500000 "$big" | here "$PAYLOAD" tcp 127.0.0.1 8080 | sha256sum >"$T/sum$i") 3>&- 4>&- &
        pids[i]=$!
    done
    wait "${pids[@]}"
    for i in 1 2 3 4 5 6 7 8 9 10; do
        assert_eq "$(cat "$T/sum$i")" "$(head -c 500000 "$big" | sha256sum)" "connection $i"
    done
    # a reader that takes nothing stops its own connection, and nothing else
    mkfifo "$T/fifo"
    exec 9<>"$T/fifo" # which nobody reads
    ip netns exec "$POD_NS" "$PAYLOAD" tcp 127.0.0.1 8080 </dev/zero >"$T/fifo" 2>/dev/null 3>&- 4>&- &
    echo $! >>"$T/servers"
    sleep 1
    assert_eq "$(here "$PAYLOAD" tcp ::1 8081 <"$big" | sha256sum)" "$sum" 'beside a slow reader'
    run -0 inside echo alive
    assert_eq "$output" alive
    # who listens here is the one
    ip netns exec "$POD_NS" "$PAYLOAD" tcp-serve 127.0.0.1 8081 >"$T/serve.here" 3>&- 4>&- &
    echo $! >>"$T/servers"
    wait_for 10 grep -q listening "$T/serve.here"
    assert_eq "$(echo mine | here "$PAYLOAD" tcp 127.0.0.1 8081)" mine
    # nobody listens anywhere
    run here "$PAYLOAD" tcp 127.0.0.1 9999 </dev/null
    assert_status 1
    # a monitor that is killed: later changes are followed again, too
    kill -KILL "$(monitor_pid "$ID")"
    far busybox ping -c 2 -W 5 10.66.0.2
    wait_for 10 inside true
    ip -n "$POD_NS" addr add 10.66.0.77/24 dev eth0
    wait_for 10 eval 'inside ip addr | grep 10.66.0.77'
    assert_alike
    wait_for 10 eval '[ "$(echo again | here "$PAYLOAD" tcp 127.0.0.1 8080)" = again ]'
    rt delete --force "$ID"
    run here "$PAYLOAD" tcp 127.0.0.1 8080 </dev/null
    assert_has "$output" refused
}

@test "by configuration: localhost is not forwarded, later changes are left alone" {
    write_conf network.forward_localhost=false network.follow_changes=false
    plain
    up
    ip -n "$POD_NS" addr add 10.66.0.9/24 dev eth0
    serve inside tcp-serve 127.0.0.1 8080
    run here "$PAYLOAD" tcp 127.0.0.1 8080 </dev/null
    assert_has "$output" refused
    sleep 1 # 20 times as long as it takes to follow
    run inside ip addr
    [[ $output != *10.66.0.9* ]]
}

@test "settings of the namespace are the machine's; no other machine gets it; it is gone when the pod is deleted" {
    plain
    here sh -c 'echo 77 >/proc/sys/net/ipv4/ip_unprivileged_port_start
        echo 1 >/proc/sys/net/ipv4/ip_forward
        echo 0 >/proc/sys/net/ipv4/conf/eth0/accept_redirects
        echo 600 >/proc/sys/net/ipv4/tcp_keepalive_time'
    up
    local name
    for name in ip_unprivileged_port_start ip_forward tcp_keepalive_time conf/all/forwarding conf/eth0/accept_redirects; do
        assert_eq "$(inside cat "/proc/sys/net/ipv4/$name")" "$(here cat "/proc/sys/net/ipv4/$name")" "$name"
    done
    local first=$ID
    new_id second
    mkb "$T/b2" true
    in_ns "$T/b2"
    run rt run --bundle "$T/b2" "$ID"
    assert_refused 'in use by the machine'
    ID=$first
    far busybox ping -c 2 -W 5 10.66.0.2
    ip netns del "$POD_NS"
    run -0 rt delete --force "$ID"
    assert_same_snap
}

# ---------------------------------------------------------------- the plug-ins of the engines

# cni PLUGIN ADD|DEL LINK JSON: as an engine calls it, with $FAR_NS for the host.
cni() {
    far env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin CNI_COMMAND="$2" CNI_CONTAINERID="c$N" CNI_IFNAME="$3" \
        CNI_NETNS="/run/netns/$POD_NS" CNI_PATH=/usr/lib/cni "/usr/lib/cni/$1" <<<"$4"
}

# cni_conf TYPE NUMBER MORE: with addresses from 10.(66+NUMBER).0.0/24 and its like, routes in the first.
cni_conf() {
    local n=$((66 + $2)) routes=''
    [ "$2" != 0 ] || routes='{"dst": "0.0.0.0/0"}, {"dst": "::/0"}'
    echo '{"cniVersion": "0.4.0", "name": "net'"$2"'", "type": "'"$1"'", '"$3"' "ipam": {"type": "host-local", "dataDir": "'"$T"'/ipam",
        "ranges": [[{"subnet": "10.'$n'.0.0/24"}], [{"subnet": "fd'$n'::/64"}]], "routes": ['"$routes"']}}'
}

@test "CNI: bridge with portmap, ptp and macvlan, as CRI-O calls them" {
    [ -x /usr/lib/cni/portmap ] || skip 'no plug-ins'
    local bridge ptp macvlan portmap='' before
    ip -n "$POD_NS" link set lo up
    batch "$FAR_NS" <<END
link add up0 type veth peer name up1
link set up0 up
link set up1 up
addr add 10.60.0.1/24 dev up0
link add under type veth peer name under2
link set under up
link set under2 up
addr add 10.68.0.1/24 dev under2
END
    bridge=$(cni_conf bridge 0 '"bridge": "cni0", "isGateway": true, "ipMasq": false,')
    ptp=$(cni_conf ptp 1 '')
    macvlan=$(cni_conf macvlan 2 '"master": "under",')
    cni bridge ADD eth0 "$bridge" >"$T/result" || fail "$(cat "$T/result")"
    if far iptables -t nat -n -L >/dev/null 2>&1; then
        portmap=$(jq -c '{cniVersion: "0.4.0", name: "net0", type: "portmap", capabilities: {portMappings: true}, snat: true,
            prevResult: ., runtimeConfig: {portMappings: [{hostPort: 7777, containerPort: 7000, protocol: "tcp"}]}}' "$T/result")
        cni portmap ADD eth0 "$portmap" >"$T/cni.log" || fail "$(cat "$T/cni.log")"
    fi
    cni ptp ADD net1 "$ptp" >"$T/cni.log" || fail "$(cat "$T/cni.log")"
    cni macvlan ADD net2 "$macvlan" >"$T/cni.log" || fail "$(cat "$T/cni.log")"
    before=$(found)
    up
    assert_alike
    inside ping -c 2 -W 5 10.66.0.1
    inside ping -c 2 -W 5 10.67.0.1
    inside ping -c 2 -W 5 10.68.0.1
    if [ -n "$portmap" ]; then
        serve inside tcp-serve :: 7000
        assert_eq "$(echo mapped | far "$PAYLOAD" tcp 10.60.0.1 7777)" mapped
    else
        echo '# no iptables here: portmap was not called' >&3
    fi
    rt delete --force "$ID"
    assert_same_text 'the namespace' "$before" "$(found)"
    # the next pod's network is taken away before it is stopped, as CRI-O does it
    up
    [ -z "$portmap" ] || cni portmap DEL eth0 "$portmap"
    cni bridge DEL eth0 "$bridge"
    cni ptp DEL net1 "$ptp"
    cni macvlan DEL net2 "$macvlan"
    ip netns del "$POD_NS"
    run -0 rt kill "$ID" KILL
    run -0 rt delete --force "$ID"
    assert_same_snap
}

# pod_man ARG...: podman, with $FAR_NS for the host: its bridge, its ports and its rules are there. The runtime is a
# script, because the clean-up that conmon starts does not get --runtime-flag.
pod_man() {
    if [ ! -e "$WORK/sandvirt" ]; then
        { rt_words; printf '#!/bin/sh\nexec %s "$@"\n' "${RT[*]}"; } >"$WORK/sandvirt"
        chmod 0755 "$WORK/sandvirt"
    fi
    nsenter "--net=/run/netns/$FAR_NS" podman --root "$WORK/podman/storage" --runroot "$WORK/podman/run" \
        --tmpdir "$WORK/podman/tmp" --network-config-dir "$T/net.d" --cgroup-manager cgroupfs --events-backend none \
        --log-level error --runtime "$WORK/sandvirt" "$@"
}

@test "podman: a network with a published port" {
    command -v podman >/dev/null || skip 'no podman'
    [ -x /usr/lib/cni/portmap ] || skip 'no plug-ins'
    mkdir -p "$T/net.d"
    tar -C "$BUNDLES/base" -c . | pod_man import - busybox:test >"$T/podman.log" 2>&1
    pod_man network create --subnet 10.66.1.0/24 "n$N" >>"$T/podman.log" 2>&1
    batch "$FAR_NS" <<END
link add up0 type veth peer name up1
link set up0 up
link set up1 up
addr add 10.66.9.1/24 dev up0
END
    pod_man run --detach --name "p$N" --network "n$N" --publish 7777:7000 --dns 10.66.9.53 busybox:test \
        payload tcp-serve 0.0.0.0 7000 </dev/null >"$T/run.log" 2>&1 3>&- 4>&- || fail "$(cat "$T/run.log")"
    local address
    address=$(pod_man inspect "p$N" | jq -r '.[0].NetworkSettings.Networks[].IPAddress')
    assert_eq "$(pod_man exec "p$N" ip -o -4 addr show dev eth0 | grep -o "inet [0-9.]*")" "inet $address"
    wait_for 20 eval '[ "$(echo published | far "$PAYLOAD" tcp 10.66.9.1 7777)" = published ]'
    assert_has "$(pod_man exec "p$N" cat /etc/hosts)" "$address"
    assert_has "$(pod_man exec "p$N" cat /etc/resolv.conf)" 10.66.9.53
    pod_man rm --force --time 0 "p$N" >"$T/rm.log" 2>&1 || fail "$(cat "$T/rm.log")"
    pod_man rmi --force busybox:test >/dev/null 2>&1
    umount "$WORK/podman/storage/overlay" 2>/dev/null || true
    assert_same_snap 10
}
