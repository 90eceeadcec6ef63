#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Under conmon, with the line that CRI-O uses; who descends from whom.

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=180
    suite_begin
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() {
    pod_down_all
    test_end
}

# ancestors PID: comm of each, from the parent up to 1.
ancestors() {
    local pid=$1
    while [ "$pid" -gt 1 ]; do
        pid=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status")
        [ "$pid" -gt 0 ] && cat "/proc/$pid/comm"
    done
}

@test "create, start, output, exit file" {
    mkb "$T/b" sh -c 'echo out; echo err >&2; exit 5'
    new_id c
    take_snap
    cm "$ID" "$T/b"
    assert_eq "$(cat "$T/b/pidfile")" "$(pid_of "$ID")"
    assert_eq "$(state_of "$ID")" created
    rt start "$ID"
    assert_eq "$(cm_status "$ID" "$T/b")" 5
    assert_eq "$(cm_log "$T/b" stdout)" out
    assert_eq "$(cm_log "$T/b" stderr)" err
    # CRI-O asks again after the exit.
    assert_eq "$(state_of "$ID")" stopped
    rt delete --force "$ID"
    assert_same_snap
}

@test "an engine's stop: kill 15, kill KILL, delete --force" {
    mkb "$T/b" sh -c 'trap "" TERM; while :; do sleep 0.2; done'
    new_id c
    cm "$ID" "$T/b"
    rt start "$ID"
    sleep 0.5
    rt kill "$ID" 15
    sleep 1
    assert_eq "$(state_of "$ID")" running
    rt kill "$ID" KILL
    assert_eq "$(cm_status "$ID" "$T/b" 5)" 137
    run -0 rt delete --force "$ID"
}

@test "conmon killed: the container and its siblings go on, exec and the engine's stop work" {
    take_snap
    POD=orphan-${WORK##*.}-$N
    mkm "$T/a" sh -c 'while :; do echo x; sleep 0.1; done'
    mkm "$T/b" sleep 1000
    new_id a
    local a=$ID conmon
    cm "$a" "$T/a"
    rt start "$a"
    new_id b
    cm "$ID" "$T/b"
    rt start "$ID"
    conmon=$(cat "$T/a/conmon-pidfile")
    kill -KILL "$conmon"
    wait_for 5 gone "$conmon"
    # nobody reads what it writes, which is the workload's affair; it is pid 1, so SIGPIPE does not end it
    assert_eq "$(state_of "$a")" running
    run -0 rt exec "$a" echo on
    assert_eq "$output" on
    run -0 rt exec "$ID" echo on
    run -0 rt kill "$a" KILL
    wait_state "$a" stopped
    run -0 rt delete --force "$a"
    assert_eq "$(state_of "$ID")" running
    rt delete --force "$ID"
    assert_same_snap 5
}

@test "input through conmon" {
    mkb "$T/b" cat
    new_id c
    cm "$ID" "$T/b" -i
    rt start "$ID"
    python3 - "$T/b/sockets/$ID/attach" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(b'from the engine\n')
s.shutdown(socket.SHUT_WR)
END
    assert_eq "$(cm_status "$ID" "$T/b")" 0
    assert_eq "$(cm_log "$T/b" stdout)" 'from the engine'
}

@test "exec through conmon: pid file, output, status" {
    pod_up
    jq '.process | .args = ["sh", "-c", "echo sync; exit 6"] | .terminal = false' "$BUNDLES/config.json" >"$T/process.json"
    local call=0
    mkdir -p "$T/e"
    env -i "$(command -v conmon)" -c "$POD" -u "exec-$N" -n "$POD" -r "$SANDVIRT" --runtime-arg "--root=$ROOT" \
        --runtime-arg "--config=$CONF" -b "$T/e" -l "$T/e/log" -P "$T/e/conmon-pidfile" -p "$T/e/pidfile" \
        --exit-dir "$T/e" --socket-dir-path "$T/e" -e --exec-process-spec "$T/process.json" --sync \
        </dev/null >"$T/e/out" 2>&1 3>&- 4>&- || call=$?
    # conmon's own status is the command's.
    assert_eq "$call" 6
    assert_eq "$(cm_log "$T/e" stdout)" sync
    [ -s "$T/e/pidfile" ]
}

@test "the conmon of a pod's first container goes with its shim, exit command and all" {
    local conmon shim
    POD=first-${WORK##*.}-$N
    mkm "$T/a" sleep 1000
    mkm "$T/b" sleep 1000
    new_id a
    local a=$ID
    cm "$a" "$T/a" --exit-command /bin/touch --exit-command-arg "$T/exit-command-ran"
    rt start "$a"
    new_id b
    cm "$ID" "$T/b"
    rt start "$ID"
    conmon=$(cat "$T/a/conmon-pidfile")
    shim=$(pid_of "$a")
    [ -d "/proc/$conmon" ]
    rt kill "$a" KILL
    wait_for 10 gone "$shim"
    took wait_for 10 gone "$conmon"
    [ "$MS" -lt 1000 ] || fail "conmon stayed for $MS ms"
    wait_for 5 test -e "$T/exit-command-ran"
    assert_eq "$(cat "$T/a/exits/$a")" 137
    # The sibling, its conmon and the machine live.
    assert_eq "$(state_of "$ID")" running
    [ -d "/proc/$(cat "$T/b/conmon-pidfile")" ]
    run -0 rt exec "$ID" true
}

@test "the monitor descends from nothing of the caller, the shim from conmon" {
    new_id c
    mkb "$T/b" sleep 1000
    # As engines do: conmon in a cgroup of its own.
    local cg=/sys/fs/cgroup/unified/svt-$N monitor shim pid
    [ -d /sys/fs/cgroup/unified ] || cg=/sys/fs/cgroup/svt-$N
    mkdir "$cg"
    (
        echo $BASHPID >"$cg/cgroup.procs"
        cm "$ID" "$T/b"
    )
    rt start "$ID"
    monitor=$(monitor_pid "$ID")
    shim=$(pid_of "$ID")
    [ -n "$monitor" ]
    # The launcher was started by this file; nothing of the call stands between.
    run ancestors "$monitor"
    assert_eq "${lines[0]}" sandvirt-launch "parent of the monitor"
    run ancestors "$shim"
    assert_has "$output" conmon
    # What is left in the engine's cgroup is killed with it: no monitor, no QEMU, no virtiofsd.
    while read -r pid; do
        case $(cat "/proc/$pid/comm") in
        conmon | sandvirt-shim) ;;
        *) fail "in the caller's cgroup: $(cat "/proc/$pid/comm")" ;;
        esac
    done <"$cg/cgroup.procs"
    # Not in its session and not on its terminal either.
    [ "$(ps -o sid= -p "$monitor")" != "$(ps -o sid= -p $$)" ]
    [ "$(ps -o sid= -p "$shim" | tr -d ' ')" = "$shim" ]
    rt delete --force "$ID"
    wait_for 5 rmdir "$cg"
}

@test "the shim: pid 1 of its own pid namespace, an empty mount namespace, the rootfs as its root" {
    new_id c
    mkb "$T/b" sleep 1000
    take_snap
    quiet rt run --detach --bundle "$T/b" "$ID"
    local shim
    shim=$(pid_of "$ID")
    assert_eq "$(awk '/^NSpid:/ { print $NF }' "/proc/$shim/status")" 1
    [ "$(readlink "/proc/$shim/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]
    assert_eq "$(cat "/proc/$shim/root/etc/origin")" image
    [ ! -e "/proc/$shim/root$T" ]
    assert_eq "$(awk '{ print $5 }' "/proc/$shim/mountinfo" | sort | xargs)" '/ /proc'
    rt delete --force "$ID"
    assert_same_snap
}
