# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run
# Section network: TCP from pod to host and its round trip, beside the same tap, connected by hand in the same way to
# the same kind of link, in a bare domain, and beside crun with the link itself.

tcp_seconds=3

# wired NAME: a namespace NAME-$$ with a veth whose other end is in the far one; the addresses 10.66.I.2 and .1.
wired() { # NAME I
    local ns=svb-$1-$$
    ip netns add "$ns"
    spaces+=("$ns")
    ip -n "$ns" link set lo up
    ip -n "$ns" link add eth0 type veth peer name "far$2" netns "$far"
    ip -n "$far" addr add "10.66.$2.1/24" dev "far$2"
    ip -n "$far" link set "far$2" up
    [ "$1" = bare ] || ip -n "$ns" addr add "10.66.$2.2/24" dev eth0
    ip -n "$ns" link set eth0 up
}

drop_spaces() {
    local ns
    for ns in "${spaces[@]}"; do ip netns del "$ns" || true; done
    spaces=()
}

# redirect NS FROM TO: what comes in at FROM goes out at TO.
redirect() {
    tc -n "$1" qdisc add dev "$2" ingress
    tc -n "$1" filter add dev "$2" parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev "$3"
}

# measure NAME ADDRESS COMMAND...: COMMAND payload ... on the inside; the other end is in the far namespace.
measure() {
    local name=$1 address=$2 server
    shift 2
    ip netns exec "$far" "$PAYLOAD" tcp-sink "$address" 7001 >"$WORK/sink" 2>&1 &
    server=$!
    wait_for 10 grep -q listening "$WORK/sink"
    note "$name tcp" "$("$@" "payload tcp-blast $address 7001 $tcp_seconds")"
    wait $server || true
    ip netns exec "$far" "$PAYLOAD" tcp-serve "$address" 7002 >"$WORK/echo" 2>&1 &
    server=$!
    wait_for 10 grep -q listening "$WORK/echo"
    note "$name ping" "$("$@" "payload tcp-ping $address 7002 1000")"
    kill $server
    wait $server || true
}

# shellcheck disable=SC2086,SC2317 # words of a command; called by measure
in_own() { rt exec "$POD" $1 </dev/null; }
# shellcheck disable=SC2086,SC2317
in_crun() {
    jqe "$BUNDLES/crun" '.process.args = $ARGS.positional' --args -- $1
    hidden crun --root "$WORK/peers/crun" run --bundle "$BUNDLES/crun" "n$RANDOM" </dev/null
}

network_up() {
    far=svb-far-$$
    spaces=("$far")
    ip netns add "$far"
    ip -n "$far" link set lo up
    wired own 1
    wired bare 2
    wired crun 3
    mkb "$BUNDLES/crun" true
    in_netns "$BUNDLES/crun" "svb-crun-$$"
    NETNS=svb-own-$$ pod_up network
    bare_up
    cat >"$WORK/card.xml" <<END
<interface type='ethernet'>
  <mac address='02:00:00:00:66:02'/><target dev='svb$$'/><model type='virtio'/><driver name='qemu'/>
  <rom enabled='no'/>
</interface>
END
    bare "attach $WORK/card.xml" >/dev/null
    ip link set "svb$$" netns "svb-bare-$$"
    ip -n "svb-bare-$$" link set "svb$$" up
    redirect "svb-bare-$$" eth0 "svb$$"
    redirect "svb-bare-$$" "svb$$" eth0
    bare 'while ! [ -e /sys/class/net/eth0 ]; do busybox sleep 0.05; done' >/dev/null
    bare 'busybox ip addr add 10.66.2.2/24 dev eth0; busybox ip link set eth0 up' >/dev/null
}

part_network() {
    local round value
    network_up
    for ((round = 1; round <= rounds; round++)); do
        say "network: round $round of $rounds"
        measure own 10.66.1.1 in_own
        measure bare 10.66.2.1 bare
        measure crun 10.66.3.1 in_crun
    done
    bare_down
    pod_down_all
    drop_spaces
    title "Network, from the inside to the host (medians of $rounds rounds)"
    table
    row what pod bare crun pod/bare goal reached
    value=$(ratio "$(median 'own tcp')" "$(median 'bare tcp')")
    row 'TCP, MiB/s' "$(median 'own tcp')" "$(median 'bare tcp')" "$(median 'crun tcp')" "$value" '>= 0.95' \
        "$(least "$value" 0.95)"
    value=$(ratio "$(median 'bare ping')" "$(median 'own ping')")
    row 'round trip, us (bare/pod)' "$(median 'own ping')" "$(median 'bare ping')" "$(median 'crun ping')" "$value" \
        '>= 0.95' "$(least "$value" 0.95)"
}
