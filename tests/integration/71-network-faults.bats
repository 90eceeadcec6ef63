#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The pod's network under stress: many connections, links that come and go, processes that are killed. Whatever happens,
# the namespace is as it was found afterwards, and nothing is left.

load lib
load network

setup_file() {
    export BATS_TEST_TIMEOUT=300
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
    for round in 1 2 3; do
        new_id a$round && first=$ID
        new_id b$round && second=$ID
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
