#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What dies beside the containers: cases A13, A16, A17, and a monitor that dies again and again.

load lib
load lifecycle

setup_file() {
    export BATS_TEST_TIMEOUT=300
    suite_begin
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() {
    ip netns del "$NETNS-gone" 2>/dev/null || true
    ip netns del "$NETNS-far" 2>/dev/null || true
    pod_down_all
    test_end
}

@test "A13: QEMU killed: containers, shims, calls and deletes are right" {
    local one shims monitor pid
    take_snap
    POD=vm-${WORK##*.}
    mkb "$T/pod" sleep 1000
    jqe "$T/pod" '.annotations += {"io.kubernetes.cri-o.ContainerType": "sandbox", "io.kubernetes.cri-o.SandboxID": $p}' --arg p "$POD"
    in_netns "$T/pod"
    echo "$POD" >>"$T/ids"
    cm "$POD" "$T/pod"
    rt start "$POD"
    member_up one sleep 1000
    one=$ID
    rt start "$one"
    member_up two sleep 1000
    rt start "$ID"
    shims="$(pid_of "$POD") $(pid_of "$one") $(pid_of "$ID")"
    monitor=$(monitor_pid "$POD")
    kill -KILL "$(vm_pid "$POD")"
    took wait_state "$ID" stopped 10
    within 1000 'QEMU killed to stopped'
    assert_stopped "$one" 137 domain-crashed
    assert_stopped "$ID" 137 domain-crashed
    assert_stopped "$POD" 137 domain-crashed
    assert_eq "$(cm_status "$one" "$T/one")" 137
    assert_eq "$(cm_status "$ID" "$T/two")" 137
    assert_eq "$(cm_status "$POD" "$T/pod")" 137
    for pid in $shims $monitor; do
        wait_for 10 test ! -d "/proc/$pid" || fail "process $pid ($(cat "/proc/$pid/comm")) is still there"
    done
    run rt kill "$one" 9
    assert_refused 'container not running'
    run -0 rt kill --all "$one" 9
    run -0 rt stop "$ID"
    run rt exec "$one" true
    assert_refused 'cannot exec in a stopped container'
    run rt start "$one"
    assert_refused 'cannot start a stopped container'
    run -0 rt delete "$one"
    run -0 rt delete "$ID"
    run -0 rt delete "$POD"
    assert_same_snap
}

@test "A16: a shim killed: the workload dies in the guest, its neighbour lives" {
    pod_up
    take_snap
    member_up one sleep 4242
    local one=$ID
    rt start "$one"
    member_up two sleep 1000
    jqe "$T/two" '.linux.namespaces |= map(select(.type != "pid"))'
    rt delete "$ID"
    cm "$ID" "$T/two"
    rt start "$ID"
    # It sees the machine's processes.
    run -0 rt exec "$ID" ps
    assert_has "$output" 'sleep 4242'
    kill -KILL "$(pid_of "$one")"
    wait_state "$one" stopped 10
    assert_stopped "$one" 137 shim-killed
    run -0 rt exec "$ID" ps
    [[ $output != *'sleep 4242'* ]] || fail 'the workload goes on'
    assert_eq "$(cm_status "$one" "$T/one")" 137
    assert_eq "$(state_of "$ID")" running
    run rt kill "$one" 9
    assert_refused 'container not running'
    run -0 rt delete "$one"
    rt delete --force "$ID"
    assert_same_snap
}

@test "A17: the monitor, the monitor and QEMU, the network namespace gone before delete" {
    local what net=$NETNS-gone far=$NETNS-far before
    mkb "$T/b" sleep 1000
    ip netns add "$far"
    for what in monitor both netns; do
        take_snap
        new_id "$what"
        ip netns add "$net"
        ip -n "$net" link add eth0 type veth peer name far0 netns "$far"
        ip -n "$net" link set eth0 addrgenmode none
        ip -n "$net" link set eth0 up
        ip -n "$net" address add 10.88.0.2/24 dev eth0
        before=$(net_shot "$net")
        in_netns "$T/b" "$net"
        quiet rt run --detach --bundle "$T/b" "$ID"
        assert_has "$(net_shot "$net")" 'filter of eth0'
        case $what in
        monitor) kill -KILL "$(monitor_pid "$ID")" ;;
        both) kill -KILL "$(monitor_pid "$ID")" "$(vm_pid "$ID")" ;;
        netns) ip netns del "$net" ;;
        esac
        run -0 rt delete --force "$ID"
        [ "$what" = netns ] || assert_net_shot "$net" "$before"
        run -0 rt delete --force "$ID"
        [ "$what" = netns ] || ip netns del "$net"
        # The namespace is really gone: nobody has it open, and its link's other end went with it.
        wait_for 10 eval "! ip -n $far link show far0 2>/dev/null" || fail "$what: the namespace is still there"
        assert_same_snap || fail "$what"
    done
    ip netns del "$far"
}

@test "A17: a state folder that cannot be removed: all else is, the rest by the next call" {
    take_snap
    mkb "$T/b" sleep 1000
    new_id stuck
    quiet rt run --detach --bundle "$T/b" "$ID"
    chattr +i "$ROOT/$ID" || skip 'no immutable files here'
    try timeout 60 "${RT[@]}" delete --force "$ID"
    chattr -i "$ROOT/$ID"
    # The machine went in any case.
    wait_for 10 no_domains
    run -0 rt delete --force "$ID"
    run -0 rt delete --force "$ID"
    assert_same_snap 5
}

@test "the monitor killed ten times while bytes flow in and out" {
    local chunk=6710887 i sum
    [ -n "${SV_LONG:-}" ] || chunk=$((chunk / 4))
    pod_up
    # A container that gives back what it gets.
    mkm "$T/b" cat
    new_id c
    head -c $((chunk * 10)) /dev/urandom >"$T/in"
    mkfifo "$T/pipe"
    local feed
    exec {feed}<>"$T/pipe"
    "${RT[@]}" run --bundle "$T/b" "$ID" <"$T/pipe" >"$T/out" 2>"$T/err" 3>&- 4>&- {feed}>&- &
    local run=$!
    for ((i = 0; i < 10; i++)); do
        dd if="$T/in" bs=$chunk skip=$i count=1 iflag=fullblock status=none >&$feed 3>&- 4>&- &
        # In the middle of this piece.
        wait_for 60 eval '[ "$(stat -c %s "$T/out")" -gt $((i * chunk + 1000)) ]' ||
            fail "stuck at $(stat -c %s "$T/out") of piece $i: $(tail -n 5 "$LOG/launcher")"
        kill_monitor "$POD"
        wait $!
    done
    exec {feed}>&-
    STATUS=0
    wait "$run" || STATUS=$?
    echo "# killed 10 times in $((chunk * 10)) bytes" >&3
    assert_eq "$STATUS" 0 "status: $(cat "$T/err")"
    sum=$(sha256sum <"$T/in")
    assert_eq "$(sha256sum <"$T/out")" "$sum" checksum
    run -0 rt exec "$POD" true
}

# What waits to be accepted by the monitor of SANDBOX.
calls_waiting() {
    local path
    path=$(ss -H -x -l -p | awk -v pid="pid=$(monitor_pid "$1")," 'index($0, pid) { print $3, $5 }')
    [ "${path%% *}" -gt 0 ]
}

# killed_at_its_answer PID: ends that monitor when it is to send the second message from now on. Its first
# one passes a call on to the guest.
killed_at_its_answer() {
    strace -qq -o "$T/trace" -p "$1" -e trace=sendmsg -e inject=sendmsg:error=EINTR:signal=KILL:when=2 >&3 2>&1 3>&- 4>&- &
    wait_for 10 traced "$1"
}
traced() { ! grep -q '^TracerPid:[[:space:]]*0$' "/proc/$1/status"; }

@test "a monitor killed before it reads the call: the next one answers" {
    pod_up
    member_up one sleep 1000
    rt start "$ID"
    local monitor verb call words
    for verb in exec ps; do
        words=()
        [ $verb = ps ] || words=(echo sleep)
        monitor=$(monitor_pid "$POD")
        kill -STOP "$monitor"
        rt "$verb" "$ID" "${words[@]}" >"$T/$verb.out" 2>&1 3>&- &
        call=$!
        wait_for 10 calls_waiting "$POD"
        kill -KILL "$monitor"
        wait "$call" || fail "$verb: $(cat "$T/$verb.out")"
        assert_has "$(cat "$T/$verb.out")" sleep
    done
}

@test "a monitor killed under a kill: the signal comes, and comes once" {
    command -v strace >/dev/null || skip 'no strace'
    local monitor call
    pod_up
    member_up c payload signals
    rt start "$ID"
    wait_for 20 grep -q ready "$DIR/log"
    monitor=$(monitor_pid "$POD")
    kill -STOP "$monitor"
    rt kill "$ID" RTMIN+1 >"$T/kill.out" 2>&1 3>&- &
    call=$!
    wait_for 10 calls_waiting "$POD"
    kill -KILL "$monitor"
    wait "$call" || fail "not read: $(cat "$T/kill.out")"
    # Passed on to the guest, which has it when the caller asks again.
    killed_at_its_answer "$(monitor_pid "$POD")"
    run -0 rt kill "$ID" RTMIN+2
    # These signals are queued, and the lower ones come first: whatever was to come twice is there.
    run -0 rt kill "$ID" RTMIN+3
    wait_for 10 grep -qw 37 "$DIR/log"
    assert_eq "$(cm_log "$DIR" stdout | tr '\n' ' ')" 'ready 35 36 37 '
    # One that ends it: who asks again hears of no failure.
    member_up t sh -c 'trap "exit 3" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    wait_for 20 grep -q up "$DIR/log"
    killed_at_its_answer "$(monitor_pid "$POD")"
    run -0 rt kill "$ID" TERM
    assert_stopped "$ID" 3 exited
}

@test "launcher and monitor killed: the next call finds its way" {
    pod_up
    member_up c sleep 1000
    rt start "$ID"
    kill -KILL "$(launcher_pid)"
    wait_for 10 test ! -d "/proc/$(cat "$WORK/tini.pid")"
    kill -KILL "$(monitor_pid "$POD")"
    assert_eq "$(state_of "$ID")" running
    run -0 rt exec "$ID" cat /etc/origin
    assert_has "$output" image
    kill -KILL "$(monitor_pid "$POD")"
    launcher_start
    run -0 rt exec "$ID" cat /etc/origin
    rt kill "$ID" KILL
    assert_stopped "$ID" 137 signalled
    assert_eq "$(cm_status "$ID" "$DIR")" 137
    run -0 rt delete "$ID"
}

@test "stop goes on when the monitor dies under it: TERM is heard, KILL comes in its time" {
    local call
    pod_up
    member_up a sh -c 'trap "echo term; n=x" TERM; echo up; while [ -z "$n" ]; do sleep 0.1; done; sleep 1; exit 7'
    rt start "$ID"
    wait_for 20 grep -q up "$DIR/log"
    rt stop --time 60 "$ID" >"$T/stop.log" 2>&1 3>&- 4>&- &
    call=$!
    wait_for 20 grep -q term "$DIR/log"
    kill_monitor "$POD"
    wait "$call" || fail "$(cat "$T/stop.log")"
    assert_stopped "$ID" 7 exited
    assert_eq "$(cm_status "$ID" "$DIR")" 7
    rt delete "$ID"
    # Who does not heed TERM: the time does not begin anew with each monitor.
    member_up b sh -c 'trap "echo term" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    wait_for 20 grep -q up "$DIR/log"
    STATUS=0
    local from=${EPOCHREALTIME/./}
    rt stop --time 6 "$ID" >"$T/stop.log" 2>&1 3>&- 4>&- &
    call=$!
    wait_for 20 grep -q term "$DIR/log"
    kill_monitor "$POD"
    sleep 2
    kill_monitor "$POD"
    wait "$call" || fail "$(cat "$T/stop.log")"
    MS=$(((${EPOCHREALTIME/./} - from) / 1000))
    [ "$MS" -ge 6000 ] || fail "killed after $MS ms"
    within 8000 'stop --time 6 with two dead monitors'
    assert_stopped "$ID" 137 signalled
    assert_eq "$(cm_status "$ID" "$DIR")" 137
    rt delete "$ID"
    # Its caller dies, the monitor goes on.
    member_up c sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    wait_for 20 grep -q up "$DIR/log"
    timeout -s KILL 1 "${RT[@]}" stop --time 2 "$ID" >"$T/stop.log" 2>&1 3>&- 4>&- || true
    assert_stopped "$ID" 137 signalled
    rt delete "$ID"
    # Both die: nobody asks again, and KILL comes in its time all the same.
    member_up d sh -c 'trap "echo term" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    wait_for 20 grep -q up "$DIR/log"
    "${RT[@]}" stop --time 4 "$ID" >"$T/stop.log" 2>&1 3>&- 4>&- &
    call=$!
    wait_for 20 grep -q term "$DIR/log"
    kill -KILL "$call"
    kill_monitor "$POD"
    assert_eq "$(state_of "$ID")" running
    assert_stopped "$ID" 137 signalled 15
    assert_eq "$(cm_status "$ID" "$DIR")" 137
    run -0 rt delete "$ID"
}

@test "there are never two monitors of a sandbox" {
    local i n pid lock monitor
    monitor=$SV_BUILD/src/monitor/sandvirt-monitor
    pod_up
    lock=$ROOT/.sandbox/$POD/lock
    n=$(rounds 30)
    for ((i = 0; i < n; i++)); do
        pid=$(monitor_pid "$POD")
        try timeout 20 "$monitor" --root "$ROOT" --sandbox "$POD" --config "$CONF"
        assert_status 3
        assert_has "$stderr" 'locked by another'
        assert_eq "$(monitor_pid "$POD")" "$pid"
        ! flock -n "$lock" true || fail 'the lock is free'
        # Several want to follow at once.
        kill -KILL "$pid"
        "$monitor" --root "$ROOT" --sandbox "$POD" --config "$CONF" --debug >>"$LOG/second" 2>&1 3>&- 4>&- &
        run -0 rt exec "$POD" true
        wait_for 20 one_monitor "$POD" || fail "monitors: $(monitor_pid "$POD")"
        assert_eq "$(lock_holders "$lock")" "$(monitor_pid "$POD")" 'who has the lock'
    done
    run -0 rt exec "$POD" true
}
one_monitor() { [ "$(monitor_pid "$1" | wc -l)" = 1 ]; }
lock_holders() { # FILE: processes that have it locked
    local inode
    inode=$(stat -c %i "$1")
    awk -v i=":$inode" '$2 == "FLOCK" && $6 ~ i "$" { print $5 }' /proc/locks | sort -u
}
