# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of lib.bash and of the tests
# What the tests of the pod's network share. Loaded behind lib.bash. All links are in namespaces that a test makes: the
# pod's, "$POD_NS", and one for who is on the other side, "$FAR_NS".

network_suite() {
    suite_begin
    add_program "$BUNDLES/base" /bin/ip
}

network_test() {
    test_begin
    POD_NS=svp-$N FAR_NS=svf-$N
    ip netns add "$POD_NS"
    ip netns add "$FAR_NS"
    ip -n "$FAR_NS" link set lo up
    look_for_duplicates 0
    take_snap
}

network_test_end() {
    local server
    [ ! -e "$T/servers" ] || while read -r server; do kill "$server" 2>/dev/null || true; done <"$T/servers"
    write_conf
    test_end
    ip netns del "$POD_NS" 2>/dev/null || true
    ip netns del "$FAR_NS"
}

# look_for_duplicates 0|1: whether new IPv6 addresses wait for that, as they do by default: a second or two.
look_for_duplicates() {
    local ns
    for ns in "$POD_NS" "$FAR_NS"; do
        ip netns exec "$ns" sh -c "echo $1 >/proc/sys/net/ipv6/conf/default/accept_dad"
    done
}

# add_program ROOTFS PATH: with the libraries it needs.
add_program() {
    local lib
    rm -f "$1/bin/${2##*/}"
    cp -L "$2" "$1/bin/${2##*/}"
    while read -r lib; do
        mkdir -p "$1${lib%/*}"
        cp -L "$lib" "$1$lib"
    done < <(ldd "$2" | grep -o '/[^ ]*\.so[^ ]*')
}

# batch NS <<LINES: lines for ip(8) in that namespace.
batch() { ip -n "$1" -batch -; }

# wire NAME [MAC]: a link of the pod whose other end, far-NAME, is up in $FAR_NS.
wire() {
    ip -n "$POD_NS" link add "$1" ${2:+address "$2"} type veth peer name "far-${1:0:11}" netns "$FAR_NS"
    ip -n "$FAR_NS" link set "far-${1:0:11}" up
}

# plain: eth0 with both families and default routes.
plain() {
    ip -n "$POD_NS" link set lo up
    wire eth0
    batch "$FAR_NS" <<END
addr add 10.66.0.1/24 dev far-eth0
addr add fd66::1/64 dev far-eth0 nodad
END
    batch "$POD_NS" <<END
link set eth0 up
addr add 10.66.0.2/24 brd + dev eth0
addr add fd66::2/64 dev eth0 nodad
route add default via 10.66.0.1
route add default via fd66::1 dev eth0
END
}

# in_ns DIR [NS]: the bundle is in that namespace.
in_ns() {
    jqe "$1" '(.linux.namespaces[] | select(.type == "network")).path = $path' --arg path "/run/netns/${2:-$POD_NS}"
}

# up [ARG...]: a sandbox in $POD_NS, in ID, that runs ARG... (sleeps).
up() {
    [ $# -gt 0 ] || set -- sleep 1000000
    new_id n
    rm -rf "$T/b"
    mkb "$T/b" "$@"
    in_ns "$T/b"
    start_bundle
}

start_bundle() {
    may_net "$T/b"
    quiet rt run --detach --bundle "$T/b" "$ID" || fail "$(cat "$T/out.log")"
}

# may_net DIR: the bundle's processes may ping and change the network.
may_net() { jqe "$1" '.process.capabilities |= map_values(. + ["CAP_NET_RAW", "CAP_NET_ADMIN"])'; }

inside() { rt exec "$ID" "$@"; }
far() { ip netns exec "$FAR_NS" "$@"; }
here() { ip netns exec "$POD_NS" "$@"; } # in the pod's namespace on the host

# serve inside|far VERB ADDRESS PORT: a server of the payload's, until the end of the test.
serve() {
    local log=$T/serve.$4
    if [ "$1" = far ]; then
        ip netns exec "$FAR_NS" "$PAYLOAD" "${@:2}" >"$log" 2>&1 3>&- 4>&- &
        echo $! >>"$T/servers"
    else
        rt exec "$ID" payload "${@:2}" </dev/null >"$log" 2>&1 3>&- 4>&- &
    fi
    wait_for 20 grep -q listening "$log" || fail "$(cat "$log")"
}

# What is compared: all that does not differ between any two machines.
ADDR='map(select(.ifname | test("^sv[0-9a-f]{9}|^sandvirt") | not) | {ifname, address, mtu,
    up: (.flags | index("UP") != null), noarp: (.flags | index("NOARP") != null),
    addr_info: [.addr_info[] | del(.tentative)]}) | sort_by(.ifname)'
ROUTE='map(del(.flags) + {flags: (.flags - ["linkdown"])})'
addresses() { jq -S "$ADDR"; }
routes() { jq -S "$ROUTE"; }

# What is asked here and inside, in one call: the name of each part stands above it. The path, because busybox has an ip too.
ALIKE='echo "== addresses"; /bin/ip -j addr
echo "== routes"; /bin/ip -j route
echo "== IPv6 routes"; /bin/ip -6 -j route
echo "== rules"; /bin/ip rule 2>&1; /bin/ip -6 rule 2>&1; /bin/ip route show table 100 2>&1
echo "== neighbours"; /bin/ip -4 neigh show nud permanent; /bin/ip -6 neigh show nud permanent'

# part NAME TEXT
part() { awk -v name="== $1" '/^== / { on = $0 == name; next } on' <<<"$2"; }

assert_alike() {
    local host guest what
    host=$(here sh -c "$ALIKE")
    guest=$(inside sh -c "$ALIKE")
    assert_same_text addresses "$(part addresses "$host" | addresses)" "$(part addresses "$guest" | addresses)"
    for what in routes 'IPv6 routes'; do
        assert_same_text "$what" "$(part "$what" "$host" | routes)" "$(part "$what" "$guest" | routes)"
    done
    assert_same_text rules "$(part rules "$host")" "$(part rules "$guest")"
    # These have no order.
    assert_same_text neighbours "$(part neighbours "$host" | sort)" "$(part neighbours "$guest" | sort)"
}

assert_same_text() { # WHAT A B
    [ "$2" = "$3" ] || fail "$1 differ:"$'\n'"$(diff <(echo "$2") <(echo "$3"))"
}

# found: what the namespace looks like, for comparing.
found() {
    wait_for 10 eval '! ip -n "$POD_NS" addr | grep -q tentative'
    net_shot "$POD_NS"
}

taps() { ip -n "$POD_NS" -o link | grep -c 'alias sandvirt:' || true; }
