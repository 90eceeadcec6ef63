#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The pod's network under stress: many connections, links that come and go, processes that are killed. Whatever happens,
# the namespace is as it was found afterwards, and nothing is left.

load lib
load network

setup_file() {
    export BATS_TEST_TIMEOUT=600
    network_suite
}
teardown_file() { suite_end; }
setup() { network_test; }
teardown() { network_test_end; }

# connections VERB PORT COUNT [ADDRESS]: in the pod's namespace on the host.
connections() { here "$SV_SOURCE/tests/integration/connections" "$1" "${4:-127.0.0.1}" "$2" "$3"; }

# guest_connections: those that are there, without those that only wait for their number to be free again.
guest_connections() {
    inside cat /proc/net/tcp /proc/net/tcp6 | awk '$4 ~ /^0[1-9B]$/ && $4 != "06" { n++ } END { print n + 0 }'
}
no_guest_connections() { [ "$(guest_connections)" = 0 ]; }
descriptors() { find "/proc/$1/fd" -mindepth 1 | wc -l; }
has_descriptors() { [ "$(descriptors "$1")" -le "$2" ]; }

@test "localhost: many at once, nobody inside, clients that leave, readers that take nothing, the container and the sandbox go" {
    local monitor before holders
    plain
    before=$(found)
    up
    monitor=$(monitor_pid "$ID")
    serve inside tcp-serve :: 8080
    run -0 connections echo 8080 10
    local open
    open=$(descriptors "$monitor")
    # more than are forwarded at once
    run -0 connections echo 8080 300
    assert_eq "$output" 'ok 300'
    run -0 connections echo 8080 150 ::1
    assert_eq "$output" 'ok 150'
    run -0 connections echo 9999 200
    assert_eq "$output" 'reset 200'
    for _ in 1 2 3; do
        run -0 connections leave 8080 100
        assert_eq "$output" 'ok 100'
    done
    wait_for 20 no_guest_connections || fail "left in the guest: $(guest_connections)"
    wait_for 5 has_descriptors "$monitor" "$open" || fail "$(descriptors "$monitor") descriptors, $open before"
    # a machine that stands still: the client is not kept waiting for ever, and the guest keeps nothing
    $VIRSH suspend "$(domain_of "$ID")"
    run -0 connections echo 8080 20
    assert_eq "$output" 'reset 20'
    $VIRSH resume "$(domain_of "$ID")"
    wait_for 20 no_guest_connections || fail "left in the guest: $(guest_connections)"
    run -0 connections echo 8080 10
    assert_eq "$output" 'ok 10'
    # its container is killed, and then all is deleted
    mkfifo "$T/fifo"
    connections hold 8080 50 <"$T/fifo" >"$T/held" 2>&1 3>&- 4>&- &
    holders=$!
    exec 9>"$T/fifo"
    wait_for 90 grep -q held "$T/held"
    assert_eq "$(inside echo alive)" alive
    rt update --memory 300000000 "$ID"
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    rt delete --force "$ID"
    exec 9>&-
    wait $holders
    [[ $(tail -n 1 "$T/held") != *late* ]] || fail "$(cat "$T/held")"
    assert_same_text 'the namespace' "$before" "$(found)"
    assert_same_snap
}

@test "two machines at the same instant in one namespace: one has it, the other is refused" {
    local before first second winner loser round pids
    plain
    before=$(found)
    for round in $(seq "$(rounds 10)"); do
        new_id "a$round" && first=$ID
        new_id "b$round" && second=$ID
        pids=()
        for ID in "$first" "$second"; do
            mkb "$T/$ID" sleep 1000000
            in_ns "$T/$ID"
            { quiet_as "$ID" rt run --detach --bundle "$T/$ID" "$ID" && echo up; } >"$T/$ID.end" 3>&- 4>&- &
            pids+=($!)
        done
        wait "${pids[@]}" || true
        winner=$first loser=$second
        [ -s "$T/$first.end" ] || winner=$second loser=$first
        assert_eq "$(cat "$T/$winner.end")" up "$(cat "$T/$first.log" "$T/$second.log")"
        assert_eq "$(cat "$T/$loser.end")" '' 'the other'
        assert_has "$(cat "$T/$loser.log")" 'in use by'
        ID=$winner
        assert_alike
        assert_eq "$(taps)" 1 taps
        [[ "$(found)" = *'table sandvirt'* ]] || fail 'the refused one took the forwarding away'
        run rt state "$loser"
        assert_refused
        rt delete --force "$winner"
        assert_same_text 'the namespace' "$before" "$(found)"
        assert_same_snap
    done
}

# quiet_as NAME COMMAND...: quiet, with a log of its own.
quiet_as() {
    "${@:2}" </dev/null >"$T/$1.log" 2>&1
}

@test "macvlan: groups that the guest joins, and addresses of its own" {
    ip -n "$POD_NS" link set lo up
    batch "$FAR_NS" <<END
link add under type veth peer name under2
link set under up
link set under2 up
addr add 10.68.0.1/24 dev under2
addr add fd68::1/64 dev under2 nodad
route add 239.0.0.0/8 dev under2
link add mac0 link under type macvlan mode bridge
link set mac0 netns $POD_NS
END
    batch "$POD_NS" <<END
link set mac0 up
addr add 10.68.0.2/24 dev mac0
addr add fd68::2/64 dev mac0 nodad
END
    here sh -c 'echo 0 >/proc/sys/net/ipv4/icmp_echo_ignore_broadcasts'
    local before
    before=$(found)
    up
    inside ip addr add 239.66.0.1/32 dev mac0 autojoin
    far busybox ping -c 2 -W 5 239.66.0.1
    # whose neighbours are asked by a group that the host's link has not joined
    inside ip addr add fd68::77:1234/64 dev mac0 nodad
    far busybox ping -c 2 -W 5 fd68::77:1234
    # a new monitor opens it again
    kill -KILL "$(monitor_pid "$ID")"
    inside ip addr add fd68::78:4321/64 dev mac0 nodad
    wait_for 20 far busybox ping -c 1 -W 1 fd68::78:4321
    rt delete --force "$ID"
    assert_same_text 'the namespace' "$before" "$(found)"
}

# ---------------------------------------------------------------- links that change

# flap FILE: changes links, as fast as ip can, while FILE is there.
flap() {
    local i
    for ((i = 0; ; i++)); do
        [ -e "$1" ] || return 0
        # What is asked for twice, or too late, fails: that is what happens to engines, too.
        ip -n "$POD_NS" -force -batch - <<END >/dev/null 2>&1 || true
link add net1 address 02:66:00:00:01:$(printf %02x $((i % 256))) type veth peer name far-net1 netns $FAR_NS
link set net1 up
addr add 10.67.0.2/24 dev net1
addr add 10.66.0.$((100 + i % 100))/24 dev eth0
link set eth0 mtu $((1400 + i % 100))
link set eth0 down
link set eth0 up
addr add fd66::$((i % 100 + 10))/64 dev eth0 nodad
route add 10.70.0.0/16 via 10.66.0.1
link set net1 down
link set net1 name net2
link set net2 up
addr del 10.66.0.$((100 + i % 100))/24 dev eth0
link del net2
END
    done
}

# calm: an end to all that, with two links.
calm() {
    rm "$T/flapping"
    wait "$FLAP"
    ip -n "$POD_NS" link del net1 2>/dev/null || true
    ip -n "$POD_NS" link del net2 2>/dev/null || true
    wire net1
    batch "$POD_NS" <<END
link set net1 up
addr add 10.67.0.3/24 dev net1
link set eth0 mtu 1400
addr flush dev eth0
addr add 10.66.0.2/24 brd + dev eth0
addr add fd66::2/64 dev eth0 nodad
route replace default via 10.66.0.1
route replace default via fd66::1 dev eth0
END
}

flap_begin() {
    : >"$T/flapping"
    flap "$T/flapping" 3>&- 4>&- &
    FLAP=$!
}

@test "links that come, go and change while the machine starts, runs, grows, and its monitor is killed; nexthop objects" {
    plain
    flap_begin
    up
    calm
    wait_for 30 assert_alike || assert_alike
    wait_for 10 eval '[ "$(taps)" = 2 ]' || fail "$(taps) taps"
    far busybox ping -c 2 -W 5 10.66.0.2
    flap_begin
    rt update --memory 300000000 "$ID"
    rt update --memory 400000000 "$ID"
    inside true
    kill -KILL "$(monitor_pid "$ID")"
    inside true
    rt update --memory 500000000 "$ID"
    calm
    wait_for 30 assert_alike || assert_alike
    wait_for 10 eval '[ "$(taps)" = 2 ]' || fail "$(taps) taps"
    far busybox ping -c 2 -W 5 10.66.0.2
    assert_eq "$($VIRSH domiflist "$(domain_of "$ID")" | grep -c sv)" 2 cards
    # routes by way of objects are plain ones in the guest, and follow what becomes of the objects
    here sh -c 'echo 0 >/proc/sys/net/ipv4/nexthop_compat_mode'
    ip -n "$POD_NS" nexthop add id 7 via 10.66.0.8 dev eth0
    ip -n "$POD_NS" route add 10.71.0.0/16 nhid 7
    wait_for 20 eval 'inside ip route | grep -q "10.71.0.0/16 via 10.66.0.8 dev eth0"'
    ip -n "$POD_NS" nexthop replace id 7 via 10.66.0.9 dev eth0
    wait_for 20 eval 'inside ip route | grep -q "10.71.0.0/16 via 10.66.0.9 dev eth0"'
    # deleted while they change
    flap_begin
    rt delete --force "$ID"
    rm "$T/flapping"
    wait "$FLAP"
    [[ "$(found)" != *ingress* && "$(found)" != *'table sandvirt'* ]] || fail "left: $(found)"
    assert_same_snap
}

# ---------------------------------------------------------------- killed

# victims WORD...: of the sandbox in ID; "call" is the command line that is at work, CALL.
victims() {
    local word
    for word in "$@"; do
        case $word in
        monitor) monitor_pid "$ID" ;;
        machine) vm_pid "$ID" ;;
        call) echo "$CALL" ;;
        esac
    done
}

logged() { grep -q "$ID: $1\$" "$LOG/launcher"; }
has_tap() { [ "$(taps)" -gt 0 ]; }
has_filter() { tc -n "$POD_NS" filter show dev eth0 ingress 2>/dev/null | grep -q mirred; }
call_over() { ! kill -0 "$CALL" 2>/dev/null; }

@test "killed while the network is taken: monitor, machine, command line, alone and together" {
    local before moment who pids round=0 moments=('logged network' has_tap has_filter)
    plain
    before=$(found)
    for who in monitor machine call 'monitor machine' 'monitor machine call'; do
        # The machine alone is killed by the faults' suite too, and it is among the last here.
        [ -n "${SV_LONG:-}" ] || [[ $who != *machine ]] || continue
        for moment in "${moments[@]}"; do
            # otherwise each of them at one moment
            [ -n "${SV_LONG:-}" ] || moment=${moments[round % 3]}
            new_id "k$((++round))"
            mkb "$T/$ID" sleep 1000000
            in_ns "$T/$ID"
            rt_words
            "${RT[@]}" create --bundle "$T/$ID" "$ID" </dev/null >"$T/out.log" 2>&1 3>&- 4>&- &
            CALL=$!
            # shellcheck disable=SC2086 # words
            wait_for 60 $moment || fail "no $moment: $(cat "$T/out.log")"
            # shellcheck disable=SC2086 # words
            mapfile -t pids < <(victims $who)
            kill -KILL "${pids[@]}" 2>/dev/null || true
            wait_for 60 call_over || fail "$who at $moment: create does not end"
            run rt delete --force "$ID"
            [ "$status" = 0 ] || fail "$who at $moment: delete: $output"
            assert_same_text "$who at $moment: the namespace" "$before" "$(found)"
            assert_same_snap 10 || fail "$who at $moment"
            [ -n "${SV_LONG:-}" ] || break
        done
    done
    up
    assert_alike
}

@test "killed while the network is given back" {
    local before who pids moment round=0 moments=('machine: destroy' 'machine: network')
    plain
    before=$(found)
    for who in monitor call machine 'monitor machine'; do
        for moment in "${moments[@]}"; do
            [ -n "${SV_LONG:-}" ] || moment=${moments[round++ % 2]}
            up
            : >"$LOG/launcher"
            rt_words
            "${RT[@]}" delete --force "$ID" </dev/null >"$T/out.log" 2>&1 3>&- 4>&- &
            CALL=$!
            # shellcheck disable=SC2086
            mapfile -t pids < <(victims ${who/call/})
            [ "$who" != call ] || pids=("$CALL")
            wait_for 30 grep -q "end the $moment" "$LOG/launcher"
            kill -KILL "${pids[@]}" 2>/dev/null || true
            wait_for 60 call_over || fail "$who at $moment: delete does not end"
            run rt delete --force "$ID"
            [ "$status" = 0 ] || fail "$who at $moment: delete: $output"
            assert_same_text "$who at $moment: the namespace" "$before" "$(found)"
            assert_same_snap 10 || fail "$who at $moment"
            [ -n "${SV_LONG:-}" ] || break
        done
    done
}

@test "the name of the namespace is gone, monitor and machine are killed; somebody still has the namespace" {
    local before holder
    plain
    before=$(found)
    ip netns exec "$POD_NS" sleep 1000 3>&- 4>&- &
    holder=$!
    echo $holder >>"$T/servers"
    up
    ip netns del "$POD_NS"
    kill -KILL "$(monitor_pid "$ID")" "$(vm_pid "$ID")"
    run -0 rt delete --force "$ID"
    ip netns attach "$POD_NS" $holder
    assert_same_text 'the namespace' "$before" "$(found)"
    assert_same_snap
    # the monitor lives, and has it
    up
    ip netns del "$POD_NS"
    kill -KILL "$(vm_pid "$ID")"
    wait_state "$ID" stopped
    run -0 rt delete "$ID"
    ip netns attach "$POD_NS" $holder
    assert_same_text 'the namespace' "$before" "$(found)"
    assert_same_snap
}
