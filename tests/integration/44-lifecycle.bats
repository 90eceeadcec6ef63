#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Stop, records of other times, gc, events; what kubeadm's reset leaves.

load lib
load lifecycle

setup_file() {
    export BATS_TEST_TIMEOUT=240
    suite_begin
    pod_up life
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

@test "stop: TERM, and what the workload makes of it" {
    take_snap
    member_up c sh -c 'trap "exit 7" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    wait_for 20 grep -q up "$DIR/log"
    run -0 rt stop "$ID"
    assert_stopped "$ID" 7 exited
    assert_eq "$(cm_status "$ID" "$DIR")" 7
    run -0 rt list
    assert_has "$output" '7 (exited)'
    run -0 rt list --format json
    assert_eq "$(jq -r --arg id "$ID" '.[] | select(.id == $id) | "\(.exitStatus) \(.cause)"' <<<"$output")" '7 exited'
    # Again, and again after it: success.
    run -0 rt stop "$ID"
    run -0 rt stop --time 0 "$ID"
    run -0 rt delete "$ID"
    run rt stop "$ID"
    assert_refused 'does not exist'
    assert_same_snap
}

@test "stop: KILL after the time, at once with 0, and of a paused container" {
    take_snap
    member_up a sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    wait_for 20 grep -q up "$DIR/log"
    took rt stop --time 1 "$ID"
    assert_eq "$STATUS" 0
    [ "$MS" -ge 1000 ] || fail "no second was given: $MS ms"
    assert_stopped "$ID" 137 signalled
    rt delete "$ID"
    member_up b sleep 1000
    rt start "$ID"
    took rt stop --time 0 "$ID"
    assert_eq "$STATUS" 0
    within 2000 'stop --time 0'
    assert_stopped "$ID" 137 signalled
    rt delete "$ID"
    member_up p sleep 1000
    rt start "$ID"
    rt pause "$ID"
    assert_eq "$(state_of "$ID")" paused
    run -0 rt stop --time 1 "$ID"
    assert_eq "$(state_of "$ID")" stopped
    rt delete "$ID"
    assert_same_snap
}

@test "stop of a container that was never started" {
    take_snap
    member_up c sleep 1000
    run -0 rt stop "$ID"
    assert_stopped "$ID" 143 signalled
    assert_eq "$(cm_status "$ID" "$DIR")" 143
    run -0 rt delete "$ID"
    assert_same_snap
}

@test "stop of a paused container: it is thawed, so that TERM is heard" {
    take_snap
    member_up c sh -c 'trap "exit 9" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    wait_for 20 grep -q up "$DIR/log"
    rt pause "$ID"
    run -0 rt stop --time 60 "$ID"
    assert_stopped "$ID" 9 exited
    rt delete "$ID"
    assert_same_snap
}

@test "A02: a signal for a container that has ended, and for one that is ending" {
    local i n
    member_up c true
    rt start "$ID"
    wait_state "$ID" stopped
    try rt kill "$ID" 9
    assert_refused 'container not running'
    try rt kill "$ID" TERM
    assert_refused 'container not running'
    run -0 rt kill --all "$ID" 9
    rt delete "$ID"
    n=$(rounds 200)
    mkm "$T/b" sleep 0.1
    for ((i = 0; i < n; i++)); do
        new_id "k$i"
        quiet rt run --detach --bundle "$T/b" "$ID"
        # Until it is over: sent, or told so; never anything else.
        while :; do
            try timeout 20 "${RT[@]}" kill "$ID" 9
            [ "$status" != 0 ] || continue
            assert_refused 'container not running'
            break
        done
        wait_state "$ID" stopped 5
        rt delete "$ID"
    done
}

@test "A03: delete of a container that was created and never started" {
    local shim
    take_snap
    member_up c sleep 1000
    shim=$(pid_of "$ID")
    run -0 rt delete "$ID"
    run rt state "$ID"
    assert_refused 'does not exist'
    wait_for 5 test ! -d "/proc/$shim" || fail 'its shim is there'
    assert_eq "$(cm_status "$ID" "$DIR")" 137
    assert_same_snap
    # Of a running one that stays an error.
    member_up r sleep 1000
    rt start "$ID"
    try rt delete "$ID"
    assert_refused 'cannot delete a running container'
    assert_eq "$(state_of "$ID")" running
    rt delete --force "$ID"
    assert_same_snap
}

@test "A04: the first question after the end is answered stopped, pid 0" {
    member_up c true
    rt start "$ID"
    assert_eq "$(cm_status "$ID" "$DIR" 20)" 0
    run -0 rt state "$ID"
    assert_eq "$(jq -r '.status, .pid' <<<"$output" | tr '\n' ' ')" 'stopped 0 '
    run -0 rt list --format json
    assert_eq "$(jq -r --arg id "$ID" '.[] | select(.id == $id) | "\(.status) \(.pid)"' <<<"$output")" 'stopped 0'
    rt delete "$ID"
}

# watch_states [ID]: events --state, its lines in $T/events; WATCHER is its process.
watch_states() {
    "${RT[@]}" events --state "$@" </dev/null >"$T/events" 2>"$T/events.err" 3>&- 4>&- &
    WATCHER=$!
    # It listens when it has found the pod's monitor.
    wait_for 10 eval 'ls -l /proc/$WATCHER/fd 2>/dev/null | grep -q socket:'
}
told() { # ID: "from to", one after the other
    jq -r --arg id "$1" 'select(.id == $id and .type == "state") | "\(.from)-\(.to)"' "$T/events" | tr '\n' ' '
}
was_told() { [[ $(told "$1") == *"$2"* ]]; }

@test "events --state ID: every change of it, until it is gone" {
    member_up other sleep 1000
    local other=$ID
    member_up c sleep 1000
    watch_states "$ID"
    rt start "$other"
    rt start "$ID"
    rt pause "$ID"
    rt resume "$ID"
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    rt delete "$ID"
    STATUS=0
    wait "$WATCHER" || STATUS=$?
    assert_eq "$STATUS" 0
    assert_eq "$(told "$ID")" 'ready-running running-paused paused-running running-stopped stopped-gone '
    assert_eq "$(jq -r 'select(.to == "stopped") | "\(.exitStatus) \(.cause)"' "$T/events")" '137 signalled'
    assert_eq "$(jq -r '.sandbox + " " + .id' "$T/events" | sort -u)" "$POD $ID"
    assert_eq "$(jq -r 'select(.time | test("^20[0-9-]+T[0-9:.]+Z$") | not)' "$T/events")" ''
    rt delete --force "$other"
}

@test "events --state: all containers, those made later too, while monitors come and go" {
    local first before machine=$POD
    member_up first sleep 1000
    first=$ID
    watch_states
    rt start "$first"
    wait_for 10 was_told "$first" ready-running
    # Its monitor dies, and another one goes on; what happens meanwhile is not lost.
    before=$(monitor_pid "$POD")
    launcher_stop
    kill -KILL "$before"
    kill -KILL "$(pid_of "$first")"
    launcher_start
    run -0 rt exec "$POD" true
    wait_for 10 was_told "$first" running-stopped || fail "$(cat "$T/events")"
    assert_eq "$(jq -r --arg id "$first" 'select(.id == $id and .to == "stopped") | "\(.exitStatus) \(.cause)"' "$T/events")" '137 shim-killed'
    member_up second sleep 1000
    wait_for 10 was_told "$ID" creating-ready
    rt delete "$ID"
    wait_for 10 was_told "$ID" 'ready-stopped stopped-gone'
    # A pod of its own, with a monitor of its own.
    new_id own
    mkb "$T/own" true
    quiet rt run --bundle "$T/own" "$ID"
    wait_for 10 was_told "$ID" 'creating-ready ready-running running-stopped stopped-gone' || fail "$(cat "$T/events")"
    rt delete "$first"
    wait_for 10 was_told "$first" stopped-gone
    # Each once.
    assert_eq "$(jq -c '[.id, .from, .to]' "$T/events" | sort | uniq -d)" ''
    [ ! -s "$T/events.err" ] || fail "$(cat "$T/events.err")"
    kill -TERM "$WATCHER"
    wait_for 5 gone "$WATCHER" || fail 'TERM does not end it'
    wait "$WATCHER" || true
    POD=$machine
}

@test "events --state: ends when nobody reads any more; a root that is empty, and one that is not there" {
    local watcher
    mkfifo "$T/pipe"
    "${RT[@]}" events --state >"$T/pipe" 2>"$T/err" 3>&- 4>&- &
    watcher=$!
    exec {reader}<"$T/pipe"
    sleep 0.2
    kill -0 "$watcher"
    exec {reader}<&-
    wait_for 5 gone "$watcher" || fail 'it goes on'
    STATUS=0
    wait "$watcher" || STATUS=$?
    assert_eq "$STATUS" 0 "$(cat "$T/err")"
    "$SANDVIRT" --config "$CONF" --root "$WORK/later" events --state >"$T/events" 2>&1 3>&- 4>&- &
    watcher=$!
    wait_for 5 test -d "$WORK/later"
    new_id later
    mkb "$T/b" true
    run -0 "$SANDVIRT" --config "$CONF" --root "$WORK/later" run --bundle "$T/b" "$ID"
    wait_for 10 was_told "$ID" 'creating-ready ready-running running-stopped stopped-gone' || fail "$(cat "$T/events")"
    kill "$watcher"
    wait "$watcher" || true
    rm -rf "$WORK/later"
    try rt events
    assert_refused '--state'
}

@test "kubeadm's reset: two get TERM, the third CONT and then its shim KILL" {
    local id shim
    take_snap
    member_up one sh -c 'trap "exit 0" TERM; echo up; while :; do sleep 0.1; done'
    local one=$ID
    member_up two sh -c 'trap "exit 3" TERM; echo up; while :; do sleep 0.1; done'
    local two=$ID
    member_up three sleep 1000
    local three=$ID
    for id in "$one" "$two" "$three"; do rt start "$id"; done
    wait_for 20 grep -q up "$T/one/log"
    wait_for 20 grep -q up "$T/two/log"
    shim=$(pid_of "$three")
    rt kill "$one" 15
    rt kill "$two" TERM
    rt kill "$three" CONT
    kill -KILL "$shim"
    assert_stopped "$one" 0 exited
    assert_stopped "$two" 3 exited
    assert_stopped "$three" 137 shim-killed
    assert_eq "$(cm_status "$one" "$T/one")" 0
    assert_eq "$(cm_status "$two" "$T/two")" 3
    assert_eq "$(cm_status "$three" "$T/three")" 137
    assert_eq "$(state_of "$POD")" running
    for id in "$three" "$one" "$two"; do run -0 rt delete "$id"; done
    assert_same_snap
}

@test "the same, to the end of the sandbox" {
    local machine=$POD
    POD=reset-$N
    take_snap
    member_up one sleep 1000
    local one=$ID
    rt start "$one"
    member_up two sleep 1000
    kill -KILL "$(pid_of "$one")" "$(pid_of "$ID")"
    assert_stopped "$one" 137 shim-killed
    assert_stopped "$ID" 137 shim-killed
    run -0 rt delete "$one"
    run -0 rt delete "$ID"
    assert_same_snap
    POD=$machine
}

@test "create right behind a delete of the same id waits for the end of the old machine" {
    local i call
    mkb "$T/b" sleep 1000
    new_id again
    take_snap
    quiet rt run --detach --bundle "$T/b" "$ID"
    for i in 1 2 3; do
        rt delete --force "$ID" >"$T/delete.log" 2>&1 3>&- 4>&- &
        call=$!
        # The record goes first, then the machine.
        wait_for 20 eval '! rt state "$ID" >/dev/null 2>&1'
        quiet rt create --bundle "$T/b" "$ID" || fail "$(cat "$T/out.log")"
        assert_eq "$(state_of "$ID")" created
        wait "$call" || fail "$(cat "$T/delete.log")"
        # One machine, one monitor, and it has the lock.
        assert_eq "$(domains | grep -c "again-$N")" 1
        assert_eq "$(monitor_pid "$ID" | wc -l)" 1
        ! flock -n "$ROOT/.sandbox/$ID/lock" true || fail 'nobody has the lock'
    done
    run -0 rt delete --force "$ID"
    assert_same_snap
}

# A record as the one of a sandbox whose machine is not there any more, by hand.
forge() { # ID SHIM-PID SHIM-START
    local box=$ROOT/.sandbox/$1
    mkdir -p "$ROOT/$1" "$box"
    chmod 0700 "$ROOT/$1" "$box"
    jq -c --arg id "$1" --argjson pid "$2" --argjson start "$3" \
        '.id = $id | .sandbox = $id | .state = "running" | .shimPid = $pid | .shimStart = $start | .execs = []' \
        "$ROOT/$POD/state.json" >"$ROOT/$1/state.json"
    jq -c --arg id "$1" '.id = $id | .started = true' "$ROOT/.sandbox/$POD/sandbox.json" >"$box/sandbox.json"
}

# No signal, no handle for one, to a process that no record can mean.
assert_no_signal() { # FILE PID...
    local file=$1 pid
    shift
    for pid in "$@"; do
        ! grep -E "(kill|pidfd_open|tgkill|tkill)\\(${pid}[,)]" "$file" || fail "signal to $pid"
    done
    ! grep -E '(kill|tgkill|tkill|pidfd_open)\((-[0-9]|0,|1,)' "$file"
}

@test "A18: recorded pids of 0, -1, 1, of another and of nobody" {
    local pid start verb
    command -v strace >/dev/null || skip 'no strace'
    sleep 1000 3>&- 4>&- &
    local other=$!
    # Without a launcher the monitor descends from the call, so strace sees what it does.
    launcher_stop
    take_snap
    for pid in 0 -1 1 4194305 $other; do
        start=12345
        [ "$pid" != 1 ] || start=$(awk '{ print $22 }' /proc/1/stat)
        new_id "f$pid"
        for verb in "state $ID" "kill $ID KILL" "kill $ID 0" "delete --force $ID"; do
            forge "$ID" "$pid" "$start"
            # shellcheck disable=SC2086
            try timeout 60 strace -f -o "$T/trace" -e trace=kill,tkill,tgkill,pidfd_open,pidfd_send_signal "${RT[@]}" $verb
            case $verb in
            state*) assert_eq "$(jq -r '.status, .pid' <<<"$output" | tr '\n' ' ')" 'stopped 0 ' ;;
            kill*) assert_refused 'container not running' ;;
            delete*) assert_status 0 ;;
            esac
            assert_no_signal "$T/trace" "$other"
        done
        assert_same_snap 10
    done
    kill -0 "$other"
    kill "$other"
    launcher_start
    run -0 rt exec "$POD" true
}

@test "host restart: records of another boot are stopped, 255; the id is usable again" {
    local file
    new_id boot
    take_snap
    mkb "$T/boot" sleep 1000
    in_netns "$T/boot"
    quiet rt run --detach --bundle "$T/boot" "$ID"
    POD=$ID
    member_up second sleep 1000
    local second=$ID
    power_cut_sandbox "$POD"
    for file in "$ROOT/$POD/state.json" "$ROOT/$second/state.json" "$ROOT/.sandbox/$POD/sandbox.json"; do
        jq -c '.bootId = "00000000-1111-2222-3333-444444444444"' "$file" >"$T/json"
        cp "$T/json" "$file"
    done
    assert_eq "$(state_of "$POD")" stopped
    assert_eq "$(pid_of "$second")" 0
    run -0 rt list
    assert_has "$output" stopped
    launcher_start
    run -0 rt gc
    assert_stopped "$POD" 255 host-restarted
    assert_stopped "$second" 255 host-restarted
    run rt kill "$second" KILL
    assert_refused 'container not running'
    run -0 rt delete "$second"
    run -0 rt delete "$POD"
    assert_same_snap
    quiet rt run --detach --bundle "$T/boot" "$POD" || fail "$(cat "$T/out.log")"
    assert_eq "$(state_of "$POD")" running
    run -0 rt delete --force "$POD"
    assert_same_snap
}

# Everything of that sandbox dies, and nobody is there to see it.
power_cut_sandbox() {
    local pid
    kill -KILL "$(launcher_pid)"
    wait_for 10 test ! -d "/proc/$(cat "$WORK/tini.pid")"
    kill -KILL "$(monitor_pid "$1")" "$(vm_pid "$1")"
    for pid in $(pids_naming "$1"); do
        kill -KILL "$pid" 2>/dev/null || true
    done
    wait_for 20 no_domain_of "$1"
}

no_domain_of() { [ -z "$(domain_of "$1")" ]; }

# A machine of somebody else: nothing of ours in it.
foreign_up() {
    cat >"$T/foreign.xml" <<END
<domain type='qemu'><name>foreign-$N</name><memory unit='MiB'>16</memory><os><type>hvm</type></os>
<on_poweroff>destroy</on_poweroff><devices/></domain>
END
    admin create --paused "$T/foreign.xml" >/dev/null
}

@test "gc: a machine without a state, a state without a machine; nothing that lives, foreign or of another root" {
    local other=("$SANDVIRT" --config "$CONF" --root "$WORK/other")
    take_snap
    # Nothing to do while all is well.
    run -0 rt gc --dry-run
    assert_eq "$output" ''
    foreign_up
    mkb "$T/b" sleep 1000
    "${other[@]}" run --detach --bundle "$T/b" "other-$N" </dev/null >"$T/other.log" 2>&1 3>&- 4>&- || fail "$(cat "$T/other.log")"
    new_id lost
    quiet rt run --detach --bundle "$T/b" "$ID"
    # The disk lost its records while everything that knew it died.
    kill -KILL "$(launcher_pid)"
    wait_for 10 test ! -d "/proc/$(cat "$WORK/tini.pid")"
    kill -KILL "$(monitor_pid "$ID")" "$(pid_of "$ID")"
    rm -rf --one-file-system "${ROOT:?}/$ID" "$ROOT/.sandbox/$ID"
    launcher_start
    new_id dead
    forge "$ID" 4194305 1
    run -0 rt gc --dry-run
    assert_has "$output" "would end domain $(domain_of "lost-$N")"
    assert_has "$output" "would remove mounts and files of sandbox lost-$N"
    assert_has "$output" "would take over sandbox dead-$N"
    [[ $output != *"$POD"* && $output != *"other-$N"* && $output != *foreign* ]] || fail "$output"
    assert_eq "$(domains | wc -l)" 3
    # Another root's gc sees nothing of it.
    run -0 "${other[@]}" gc
    assert_eq "$output" ''
    assert_eq "$(domains | wc -l)" 3
    run -0 rt gc
    assert_eq "$(domains | wc -l)" 2
    assert_eq "$(domain_of "lost-$N")" ''
    assert_stopped "dead-$N" 137 domain-crashed
    run -0 rt delete "dead-$N"
    # Who is nobody's, or another's, has not noticed.
    run -0 "${other[@]}" exec "other-$N" true
    run -0 "${other[@]}" delete --force "other-$N"
    run -0 admin domstate "foreign-$N"
    assert_has "$output" paused
    admin destroy "foreign-$N"
    rm -rf "$WORK/other"
    assert_same_snap
    run -0 rt gc
    assert_eq "$output" ''
    run -0 rt exec "$POD" true
}

@test "gc: a power cut: nothing lives, the state folders are gone, files on the disk are left" {
    local hash
    take_snap
    mkb "$T/b" sleep 1000
    new_id cut
    quiet rt run --detach --bundle "$T/b" "$ID"
    power_cut_sandbox "$ID"
    # What a reboot clears: records, sockets, boxes, mounts.
    hash=$(basename "$(dirname "$(grep -l "^$ID$" "$RUN"/.box/*/owner)")")
    awk -v h="/$hash/" 'index($5, h) { print $5 }' /proc/self/mountinfo | sort -r | xargs -r -n 1 umount -l
    rm -rf --one-file-system "${ROOT:?}/$ID" "$ROOT/.sandbox/$ID" "$RUN/.box/$hash" "$RUN/.sock/$hash".*
    [ -e "$WORK/boot/$hash" ]
    launcher_start
    run -0 rt gc --dry-run
    assert_eq "$output" "would remove mounts and files of sandbox $ID"
    run -0 rt gc
    assert_same_snap
    run -0 rt exec "$POD" true
}

@test "gc: records and box are lost: what is left in a namespace, a socket, a cgroup" {
    local net=$NETNS-lost before hash socket cgroup=/svt.${WORK##*.}/lost/one
    take_snap
    ip netns add "$net"
    ip -n "$net" link add eth0 type veth peer name far0
    ip -n "$net" link set far0 addrgenmode none
    ip -n "$net" link set eth0 addrgenmode none
    ip -n "$net" link set eth0 up
    before=$(net_shot "$net")
    mkb "$T/b" sleep 1000
    in_netns "$T/b" "$net"
    jqe "$T/b" '.linux.cgroupsPath = $p' --arg p "$cgroup"
    new_id lost
    quiet rt run --detach --bundle "$T/b" "$ID" || fail "$(cat "$T/out.log")"
    # What lives is let alone.
    run -0 rt gc
    assert_eq "$output" ''
    power_cut_sandbox "$ID"
    hash=$(basename "$(dirname "$(grep -l "^$ID$" "$RUN"/.box/*/owner)")")
    awk -v h="/$hash/" 'index($5, h) { print $5 }' /proc/self/mountinfo | sort -r | xargs -r -n 1 umount -l
    rm -rf --one-file-system "${ROOT:?}/$ID" "$ROOT/.sandbox/$ID" "$RUN/.box/$hash" "${WORK:?}/boot/$hash"
    assert_has "$(net_shot "$net")" 'filter of eth0'
    for socket in monitor owner; do
        [ -e "$RUN/.sock/$hash.$socket" ] || fail "no $socket"
    done
    launcher_start
    run -0 rt gc --dry-run
    assert_has "$output" "would remove mounts and files of sandbox $ID"
    assert_has "$output" "would give back link eth0 of /run/netns/$net"
    run -0 rt gc
    assert_has "$output" "give back link eth0 of /run/netns/$net"
    assert_net_shot "$net" "$before"
    ip netns del "$net"
    # Its logs are libvirt's affair.
    assert_same_snap
    run -0 rt gc
    assert_eq "$output" ''
    run -0 rt exec "$POD" true
}
