#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Standard streams without a terminal: every byte, both ends, and who holds them (A21, A22, A23).

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=300
    suite_begin
    pod_up
    mkm "$BUNDLES/seq" sh -c 'seq 1 200000; echo err >&2; printf END'
    mkm "$BUNDLES/cat" cat
    mkm "$BUNDLES/true" true
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

sum() { sha256sum | cut -d' ' -f1; }
wanted_sum() { { seq 1 200000; printf END; } | sum; }

# held_by PID: what the descriptors of a process lead to.
held_by() {
    local fd
    for fd in "/proc/$1/fd"/*; do
        readlink "$fd" || true
    done
}

@test "A21: run: no byte of the output is lost at the exit" {
    local i n wanted
    n=$(rounds 100)
    wanted=$(wanted_sum)
    for ((i = 1; i <= n; i++)); do
        new_id "c$i"
        assert_eq "$(rt run --bundle "$BUNDLES/seq" "$ID" 2>"$T/err" | sum)" "$wanted" "round $i"
        assert_eq "$(cat "$T/err")" err "round $i, stderr"
    done
}

@test "A21: exec: no byte of stdout and stderr is lost" {
    local i n wanted
    n=$(rounds 100)
    wanted=$(wanted_sum)
    for ((i = 1; i <= n; i++)); do
        rt exec "$POD" sh -c '{ seq 1 200000; printf END; } >&2; seq 1 200000; printf END' 2>"$T/err" >"$T/out"
        assert_eq "$(sum <"$T/out")" "$wanted" "round $i, stdout"
        assert_eq "$(sum <"$T/err")" "$wanted" "round $i, stderr"
    done
}

@test "A21: conmon: the log has every line" {
    new_id c
    cp -a "$BUNDLES/seq" "$T/b"
    cm "$ID" "$T/b"
    rt start "$ID"
    assert_eq "$(cm_status "$ID" "$T/b" 60)" 0
    wait_for 10 gone "$(cat "$T/b/conmon-pidfile")"
    assert_eq "$(cm_log "$T/b" stdout | head -n 200000 | sum)" "$(seq 1 200000 | sum)"
    assert_eq "$(cm_log "$T/b" stdout | tail -n 1)" END
    assert_eq "$(cm_log "$T/b" stderr)" err
}

@test "A21: a slow reader, and one that stops: only its own stream waits" {
    new_id slow
    rt run --bundle "$BUNDLES/seq" "$ID" 2>/dev/null | { sleep 3; sum >"$T/sum"; } &
    local call=$!
    # Meanwhile another container of the pod is as quick as ever.
    sleep 1
    run -0 rt exec "$POD" echo meanwhile
    assert_eq "$output" meanwhile
    wait $call
    assert_eq "$(cat "$T/sum")" "$(wanted_sum)"
}

@test "A21: nobody reads 64 MiB: the container waits, the machine's memory does not grow" {
    mkfifo "$T/fifo"
    exec {hold}<>"$T/fifo"
    mkm "$T/b" payload stream 67108864 5
    new_id c
    rt run --bundle "$T/b" "$ID" >"$T/fifo" 2>/dev/null {hold}>&- 3>&- &
    local call=$!
    wait_state "$ID" running
    sleep 2
    is_state "$ID" running
    run -0 rt exec "$POD" echo meanwhile
    local pss
    pss=$(awk '/^Pss:/ { print $2 }' "/proc/$(monitor_pid "$POD")/smaps_rollup")
    # sanitizers keep freed memory
    [ -n "${ASAN_OPTIONS:-}" ] || [ "$pss" -lt 40000 ] || fail "the monitor holds $pss KiB"
    head -c 67108864 <&$hold | sum >"$T/sum"
    wait $call
    exec {hold}>&-
    assert_eq "$(cat "$T/sum")" "$("$PAYLOAD" stream 67108864 5 | sum)"
}

@test "A21: 64 MiB in one line, through run and through conmon" {
    local size=67108864
    [ -n "${SV_LONG:-}" ] || size=8388608
    echo "# $size bytes" >&3
    mkm "$T/b" payload line $size
    new_id c
    assert_eq "$(rt run --bundle "$T/b" "$ID" | sum)" "$("$PAYLOAD" line $size | sum)"
    new_id d
    cm "$ID" "$T/b"
    rt start "$ID"
    assert_eq "$(cm_status "$ID" "$T/b" 120)" 0
    wait_for 20 gone "$(cat "$T/b/conmon-pidfile")"
    assert_eq "$(cm_log "$T/b" stdout | tr -d '\n' | sum)" "$("$PAYLOAD" line $size | sum)"
}

@test "A22: end of input: a word, nothing, closed, 60 MiB" {
    new_id a
    assert_eq "$(echo hi | rt run --bundle "$BUNDLES/cat" "$ID")" hi
    new_id b
    assert_eq "$(rt run --bundle "$BUNDLES/cat" "$ID" </dev/null)" ''
    new_id c
    timeout -s KILL 30 "${RT[@]}" run --bundle "$BUNDLES/cat" "$ID" <&- >"$T/out"
    [ ! -s "$T/out" ]
    new_id d
    local size=62914560
    "$PAYLOAD" stream $size 3 >"$T/data"
    assert_eq "$(rt run --bundle "$BUNDLES/cat" "$ID" <"$T/data" | sum)" "$(sum <"$T/data")"
    assert_eq "$("$PAYLOAD" stream $size 3 | rt exec "$POD" sha256sum | cut -d' ' -f1)" "$(sum <"$T/data")"
}

@test "A22: empty input ends many times over" {
    local i n
    n=$(rounds 200)
    for ((i = 0; i < n; i++)); do
        assert_eq "$(timeout 20 "${RT[@]}" exec "$POD" cat </dev/null)" '' "round $i"
        assert_eq "$(: | timeout 20 "${RT[@]}" exec "$POD" wc -c)" 0 "round $i"
    done
}

@test "A22: a program that ignores its input is not kept by it" {
    new_id c
    mkfifo "$T/fifo"
    exec {hold}<>"$T/fifo"
    took timeout 20 "${RT[@]}" run --bundle "$BUNDLES/true" "$ID" <"$T/fifo" {hold}>&-
    exec {hold}>&-
    assert_eq "$STATUS" 0
    [ "$MS" -lt 10000 ] || fail "took $MS ms"
}

@test "A22: input that comes late, and in pieces" {
    assert_eq "$({ sleep 1; printf a; sleep 0.3; printf b; } | rt exec "$POD" cat)" ab
    # The program reads one line and goes on reading after the rest.
    assert_eq "$(printf 'one\ntwo\n' | rt exec "$POD" sh -c 'read a; sleep 0.3; read b; echo "$b $a"')" 'two one'
}

@test "closed streams are passed on both ways" {
    # The reader goes away: the program is told.
    run timeout 30 bash -c '"$@" 2>"$0" | head -c 1000 >/dev/null' "$T/err" "${RT[@]}" exec "$POD" payload epipe
    wait_for 20 grep -q EPIPE "$T/err"
    # The program closes its output: the reader is told, although it goes on running.
    mkm "$T/b" payload closing 1
    new_id c
    mkfifo "$T/fifo"
    rt create --bundle "$T/b" "$ID" </dev/null >"$T/fifo" 2>/dev/null 3>&- &
    {
        wait_state "$ID" created
        rt start "$ID"
    } &
    run -0 timeout 20 cat "$T/fifo"
    assert_eq "$(state_of "$ID")" running
}

@test "stdout and stderr closed by the caller" {
    new_id c
    local status=0
    mkm "$T/b" sh -c 'echo lost; echo lost >&2; exit 4'
    rt run --bundle "$T/b" "$ID" >&- 2>&- || status=$?
    assert_eq "$status" 4
    # A closed stream must not turn into another file of the runtime.
    new_id d
    status=0
    rt run --bundle "$T/b" "$ID" <&- >"$T/out" 2>&- || status=$?
    assert_eq "$status" 4
    assert_eq "$(cat "$T/out")" lost
}

@test "streams may be files, opened for appending too" {
    mkm "$T/b" sh -c 'cat; echo more'
    echo before >"$T/out"
    echo input >"$T/in"
    new_id c
    rt run --bundle "$T/b" "$ID" <"$T/in" >>"$T/out" 2>&1
    assert_eq "$(cat "$T/out")" $'before\ninput\nmore'
}

@test "A23: create's caller sees the end of its own streams" {
    # The container's streams are those of create: with files there, a pipe of the caller ends.
    mkm "$T/b" sleep 1000
    new_id c
    run timeout 30 bash -c '{ "$@" </dev/null >"$0" 2>&1; } 8>&1 | cat' "$T/out" "${RT[@]}" create --bundle "$T/b" "$ID"
    assert_status 0
    rt start "$ID"
    assert_eq "$(state_of "$ID")" running
}

@test "A23: who holds descriptors of the caller" {
    local pid role shim
    pod_up holders
    mkm "$T/b" sleep 1000
    new_id c
    exec 9>"$T/foreign"
    rt create --bundle "$T/b" "$ID" </dev/null >"$T/stream" 2>&1 3>&-
    exec 9>&-
    shim=$(pid_of "$ID")
    assert_has "$(held_by "$shim")" "$T/stream" shim
    [[ $(held_by "$shim") != *"$T/foreign"* ]] || fail 'the shim holds a foreign descriptor'
    for role in vm_pid share_pid monitor_pid; do
        for pid in $($role "$POD"); do
            [ -d "/proc/$pid" ] || fail "no process for $role"
            [[ $(held_by "$pid") != *"$T/"* ]] || fail "$role holds $(held_by "$pid" | grep "$T/")"
        done
    done
    # The pod's first container was made by this file too.
    [[ $(held_by "$(monitor_pid "$POD")") != *"$LOG/$POD"* ]] || fail 'monitor'
    rt start "$ID"
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    wait_for 5 gone "$shim"
}

@test "A23: inside only 0, 1 and 2 are open; --preserve-fds gives more" {
    run -0 in_pod payload descriptors
    assert_eq "$output" '0 1 2'
    run -0 rt exec "$POD" payload descriptors
    assert_eq "$output" '0 1 2'
    # Those are streams: what the caller's pipe has, what its file is to get.
    seq 1 100000 >"$T/in"
    rt exec --preserve-fds 2 "$POD" sh -c 'trap "" PIPE; payload descriptors; cat <&3 >&4; echo x >&3; exit 5' \
        3< <(cat "$T/in") 4>"$T/four" >"$T/out" 2>"$T/err" || status=$?
    assert_status 5
    assert_eq "$(cat "$T/out")" '0 1 2 3 4'
    assert_eq "$(sum <"$T/four")" "$(sum <"$T/in")"
    assert_has "$(cat "$T/err")" 'roken pipe'
    run rt exec --preserve-fds 20 "$POD" true
    assert_status 255
    assert_has "$output" 'is not open'
}

@test "--preserve-fds: a socket, both ways, of exec and of run; its end is told" {
    mkm "$T/b" sh -c 'read word <&3; echo "got $word" >&3; cat <&3'
    new_id socket
    cat >"$T/talk" <<'END'
import fcntl, os, socket, subprocess, sys
pair = [fcntl.fcntl(s, fcntl.F_DUPFD_CLOEXEC, 10) for s in socket.socketpair()]
ours = socket.socket(fileno=pair[0])
os.dup2(pair[1], 3)
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, pass_fds=[3])
os.close(pair[1])
os.close(3)
ours.sendall(b"word\n")
print(ours.recv(100).decode(), end="", flush=True)
ours.shutdown(socket.SHUT_WR)
print(ours.recv(100), child.wait())
END
    run python3 "$T/talk" "${RT[@]}" run --preserve-fds 1 --bundle "$T/b" "$ID"
    assert_eq "$output" $'got word\nb\'\' 0'
    run python3 "$T/talk" "${RT[@]}" exec --preserve-fds 1 "$POD" sh -c 'read word <&3; echo "got $word" >&3; cat <&3; exit 4'
    assert_eq "$output" $'got word\nb\'\' 4'
}

@test "exec: descriptors do not pile up" {
    local i n before after
    n=$(rounds 100)
    before=$(find "/proc/$(monitor_pid "$POD")/fd" | wc -l)
    for ((i = 0; i < n; i++)); do
        rt exec "$POD" true
        rt exec "$POD" nosuch 2>/dev/null || true
    done
    after=$(find "/proc/$(monitor_pid "$POD")/fd" | wc -l)
    assert_eq "$after" "$before"
}
