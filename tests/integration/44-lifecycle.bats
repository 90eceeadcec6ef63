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

@test "events --state: every change, as lines of JSON" {
    member_up c sleep 1000
    "${RT[@]}" events --state "$ID" >"$T/events" 2>"$T/events.err" 3>&- 4>&- &
    local watcher=$!
    # It has the monitor's ear once it says anything at all: pause and resume until it does.
    rt start "$ID"
    wait_for 30 eval 'rt pause "$ID" && rt resume "$ID" && [ -s "$T/events" ]'
    rt kill "$ID" KILL
    wait_for 10 eval 'jq -e -s --arg id "$ID" "any(.id == \$id and .to == \"stopped\")" "$T/events" >/dev/null'
    run -0 jq -r --arg id "$ID" 'select(.id == $id) | "\(.from) \(.to) \(.exitStatus // "") \(.cause // "")"' "$T/events"
    assert_has "$output" 'running paused'
    assert_has "$output" 'paused running'
    assert_has "$output" 'running stopped 137 signalled'
    assert_eq "$(jq -r '.sandbox' "$T/events" | sort -u)" "$POD"
    assert_eq "$(jq -r 'select(.time | test("^20[0-9-]+T[0-9:.]+Z$") | not)' "$T/events")" ''
    rt delete "$ID"
    kill "$watcher"
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
    wait_for 20 eval '[ -z "$(domain_of "$POD")" ]'
}

@test "gc: a machine without a state, a state without a machine; nothing that lives" {
    local pid
    take_snap
    # Nothing to do while all is well.
    run -0 rt gc --dry-run
    assert_eq "$output" ''
    new_id lost
    mkb "$T/lost" sleep 1000
    quiet rt run --detach --bundle "$T/lost" "$ID"
    # The disk lost its records while everything that knew it died.
    kill -KILL "$(launcher_pid)"
    wait_for 10 test ! -d "/proc/$(cat "$WORK/tini.pid")"
    kill -KILL "$(monitor_pid "$ID")" "$(pid_of "$ID")"
    rm -rf --one-file-system "${ROOT:?}/$ID" "$ROOT/.sandbox/$ID"
    launcher_start
    new_id dead
    forge "$ID" 4194305 1
    run -0 rt gc --dry-run
    assert_has "$output" "would end domain sandvirt-lost-$N"
    assert_has "$output" "would take over sandbox dead-$N"
    [[ $output != *"$POD"* ]]
    assert_eq "$(domains | wc -l)" 2
    # Another root's gc sees nothing of it.
    run -0 "$SANDVIRT" --config "$CONF" --root "$WORK/other" gc
    assert_eq "$output" ''
    assert_eq "$(domains | wc -l)" 2
    run -0 rt gc
    assert_eq "$(domains)" "$(domain_of "$POD")"
    assert_stopped "dead-$N" 137 domain-crashed
    run -0 rt delete "dead-$N"
    assert_same_snap
    rm -rf "$WORK/other"
    run -0 rt gc
    assert_eq "$output" ''
    run -0 rt exec "$POD" true
}
