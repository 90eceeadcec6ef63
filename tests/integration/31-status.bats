#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Exit statuses and signals (cases A19, A20, A25, A26).

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=300
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

# status_of COMMAND...
status_of() {
    local status=0
    "$@" >/dev/null 2>&1 || status=$?
    echo "$status"
}

@test "A19: run and exec return the number that the process returned" {
    local n
    for n in 0 1 42 126 127 255; do
        assert_eq "$(status_of in_pod sh -c "exit $n")" $n run
        assert_eq "$(status_of rt exec "$POD" sh -c "exit $n")" $n exec
    done
}

@test "A19: 128 and the number for a death by signal" {
    local n
    for n in 9 15 11 6; do
        # Pid 1 of a namespace is not killed by itself: so in the machine's own.
        mkm "$T/b$n" payload die $n
        jqe "$T/b$n" '.linux.namespaces |= map(select(.type != "pid"))'
        new_id "d$n"
        assert_eq "$(status_of rt run --bundle "$T/b$n" "$ID")" $((128 + n)) "run, $n"
        assert_eq "$(status_of in_pod sh -c "payload die $n; exit \$?")" $((128 + n)) "run, child, $n"
        assert_eq "$(status_of rt exec "$POD" payload die $n)" $((128 + n)) "exec, $n"
    done
    assert_eq "$(status_of rt exec "$POD" sh -c 'kill -9 $$')" 137
}

@test "A19: killed by the runtime: run's status, conmon's exit file" {
    mkm "$T/b" sleep 1000
    new_id c
    rt run --bundle "$T/b" "$ID" >/dev/null 2>&1 3>&- &
    local call=$!
    wait_state "$ID" running
    rt kill "$ID" KILL
    local status=0
    wait $call || status=$?
    assert_eq "$status" 137
    new_id d
    cm "$ID" "$T/b"
    rt start "$ID"
    rt kill "$ID" KILL
    assert_eq "$(cm_status "$ID" "$T/b" 10)" 137
}

@test "A19: conmon's exit files for statuses and signals" {
    local n
    for n in 0 7 255; do
        new_id "e$n"
        mkm "$T/b$n" sh -c "exit $n"
        cm "$ID" "$T/b$n"
        rt start "$ID"
        assert_eq "$(cm_status "$ID" "$T/b$n" 20)" $n
    done
    new_id term
    mkm "$T/term" payload die 15
    jqe "$T/term" '.linux.namespaces |= map(select(.type != "pid"))'
    cm "$ID" "$T/term"
    rt start "$ID"
    assert_eq "$(cm_status "$ID" "$T/term" 20)" 143
}

@test "A19: many short containers at once, no status mixed up" {
    local i n calls=()
    n=$(rounds 100)
    for ((i = 1; i <= n; i++)); do
        mkm "$T/b$i" sh -c "exit $i"
        new_id "m$i"
        rt run --bundle "$T/b$i" "$ID" >/dev/null 2>&1 3>&- &
        calls+=($!)
        # Four at a time.
        if [ ${#calls[@]} = 4 ] || [ $i = "$n" ]; then
            local j status first=$((i - ${#calls[@]} + 1))
            for ((j = 0; j < ${#calls[@]}; j++)); do
                status=0
                wait "${calls[j]}" || status=$?
                assert_eq "$status" $((first + j))
            done
            calls=()
        fi
        rm -rf "$T/b$((i - 4))"
    done
}

@test "A20: every signal arrives, by number, by name, with and without SIG" {
    local n name names=() wanted
    mkm "$T/b" payload signals
    new_id c
    rt run --bundle "$T/b" "$ID" >"$T/out" 2>"$T/err" 3>&- &
    local call=$!
    wait_for 30 grep -q ready "$T/out"
    wanted=1
    for n in {1..31} {34..64}; do
        case $n in 9 | 19) continue ;; esac
        [ "$n" != 15 ] || continue
        rt kill "$ID" "$n"
        wanted=$((wanted + 1))
        wait_for 5 eval '[ "$(wc -l <"$T/out")" = "$wanted" ]' || fail "signal $n: $(tail -n 3 "$T/out")"
        assert_eq "$(tail -n 1 "$T/out")" "$n"
    done
    for name in HUP SIGUSR1 usr2 sigwinch RTMIN+1 SIGRTMAX-1; do
        rt kill "$ID" "$name"
        wanted=$((wanted + 1))
        wait_for 5 eval '[ "$(wc -l <"$T/out")" = "$wanted" ]' || fail "signal $name"
        names+=("$(tail -n 1 "$T/out")")
    done
    assert_eq "${names[*]}" '1 10 12 28 35 63'
    rt kill "$ID" 0
    for name in SIGSIGTERM 65 -1 FOO ''; do
        run rt kill "$ID" -- "$name"
        assert_refused
    done
    assert_eq "$(wc -l <"$T/out")" "$wanted"
    # TERM is the default.
    rt kill "$ID"
    wait_for 5 grep -qx 15 "$T/out"
    rt kill "$ID" TERM
    wait $call
}

@test "kill --all reaches every process of the container" {
    mkm "$T/b" sh -c 'sleep 1000 & sleep 1000 & wait; wait'
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    rt exec "$ID" sh -c 'echo up; sleep 1000' >"$T/out" 2>&1 3>&- &
    wait_for 30 grep -q up "$T/out"
    rt kill --all "$ID" KILL
    wait_state "$ID" stopped 10
    local status=0
    wait $! || status=$?
    assert_eq "$status" 137
}

@test "A25: exec that fails is told from a command that returns 1" {
    mkm "$T/b" sleep 1000
    new_id c
    assert_eq "$(status_of rt exec "$POD" sh -c 'exit 1')" 1
    quiet rt run --detach --bundle "$T/b" "$ID"
    run rt exec "$ID" nosuch
    [ "$status" = 255 ] || [ "$status" = 127 ] || fail "status $status"
    run rt exec --user nosuchuser "$ID" true
    assert_status 255
    run rt exec --process /no/such/file "$ID"
    assert_refused /no/such/file
    echo '{"args": 5}' >"$T/bad.json"
    run rt exec --process "$T/bad.json" "$ID"
    assert_refused
    rt pause "$ID"
    run rt exec "$ID" true
    assert_status 255
    assert_has "$output" 'cannot exec in a paused container'
    rt resume "$ID"
    assert_eq "$(status_of rt exec "$ID" sh -c 'exit 255')" 255
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    run rt exec "$ID" true
    assert_status 255
    assert_has "$output" 'cannot exec in a stopped container'
    run rt exec nosuch true
    assert_has "$output" 'does not exist'
}

# only_zombies PID: whatever it started has ended.
only_zombies() {
    local pid
    for pid in $(pgrep -P "$1"); do
        grep -q "^State:.Z" "/proc/$pid/status" || return 1
    done
}

@test "an exec that is over before its pid file is written returns its status" {
    local call status=0
    truncate -s 8M "$T/img"
    mkfs.ext4 -q -F "$T/img"
    mkdir "$T/slow"
    mount -o loop "$T/img" "$T/slow"
    fsfreeze -f "$T/slow"
    "${RT[@]}" exec --pid-file "$T/slow/pid" "$POD" sh -c 'echo done >/over; exit 5' 3>&- &
    call=$!
    wait_for 20 rt exec "$POD" test -e /over
    wait_for 20 only_zombies $call
    fsfreeze -u "$T/slow"
    wait $call || status=$?
    umount "$T/slow"
    assert_eq $status 5
}

@test "A26: exec of a missing command ends soon, fifty times" {
    local i n
    n=$(rounds 50)
    for ((i = 0; i < n; i++)); do
        took rt exec "$POD" /no/such 2>/dev/null
        [ "$STATUS" != 0 ]
        [ "$MS" -lt 4000 ] || fail "round $i took $MS ms"
    done
    assert_eq "$(state_of "$POD")" running
}

@test "A27: orphans are reaped, and no status is stolen meanwhile" {
    local i n
    n=$(rounds 500)
    rt exec "$POD" sh -c "i=0; while [ \$i -lt $n ]; do sh -c '(sleep 0.05 &) ; exit 0'; i=\$((i + 1)); done" &
    local call=$!
    for ((i = 0; i < 10; i++)); do
        assert_eq "$(status_of rt exec "$POD" sh -c "exit $((i + 20))")" $((i + 20))
    done
    wait $call
    # Without a pid namespace of its own a container's orphans are those of the machine's first process.
    mkm "$T/b" sh -c "i=0; while [ \$i -lt $n ]; do sh -c '(sleep 0.05 &) ; exit 0'; i=\$((i + 1)); done
        payload zombies 50; i=0
        zombies() { awk '/^State:/ { z = \$2 == \"Z\" } /^PPid:/ { n += z && \$2 == 1 } END { print n + 0 }' \
            /proc/[0-9]*/status 2>/dev/null; }
        # a process that ends while it is looked at leaves no number
        while left=\$(zombies); [ \$i -lt 40 ] && [ \"\$left\" != 0 ]; do sleep 0.05; i=\$((i + 1)); done; echo \$left"
    jqe "$T/b" '.linux.namespaces |= map(select(.type != "pid"))'
    new_id machine
    run -0 rt run --bundle "$T/b" "$ID"
    assert_eq "$output" 0 'zombies left'
}
