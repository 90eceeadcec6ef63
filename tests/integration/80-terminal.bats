#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Terminals: the console socket, sizes, raw bytes, several at once (cases A12, A24).

load lib

setup_file() {
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

TERMINAL=$SV_SOURCE/tests/integration/terminal

# receive NAME STEP...: a receiver at $T/NAME.sock; what it got is in $T/NAME.out.
receive() {
    local name=$1
    shift
    "$TERMINAL" receive "$T/$name.sock" "$@" >"$T/$name.out" 2>"$T/$name.log" 3>&- 4>&- &
    RECEIVER=$!
    wait_for 10 test -S "$T/$name.sock"
}

around() { # ROWS COLS ARG-OF-SANDVIRT...
    local rows=$1 cols=$2
    shift 2
    run "$TERMINAL" around "$rows" "$cols" "${RT[@]}" "$@"
    output=${output//$'\r'/}
}

terminal_bundle() { # DIR ARG...
    mkm "$@"
    jqe "$1" '.process.terminal = true'
}

@test "A12: a terminal and nobody to receive it: told, and the id is free" {
    terminal_bundle "$T/b" true
    : >"$T/file"
    new_id t
    try rt create --bundle "$T/b" "$ID"
    assert_refused 'console socket'
    for socket in "$T/none" "$T/file"; do
        try rt create --bundle "$T/b" --console-socket "$socket" "$ID"
        assert_refused 'console socket' "$socket"
        run rt state "$ID"
        assert_refused 'does not exist'
    done
    try rt exec --tty --detach "$POD" true
    assert_refused 'console socket'
    receive t
    quiet rt create --bundle "$T/b" --console-socket "$T/t.sock" "$ID"
    rt start "$ID"
    wait_state "$ID" stopped
    wait "$RECEIVER"
}

@test "A12: a socket that nobody accepts on does not hold the create" {
    terminal_bundle "$T/b" true
    python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(1); time.sleep(20)' "$T/deaf" 3>&- 4>&- &
    local listener=$!
    wait_for 10 test -S "$T/deaf"
    new_id t
    took quiet timeout 30 "${RT[@]}" create --bundle "$T/b" --console-socket "$T/deaf" "$ID"
    [ "$MS" -lt 20000 ] || fail "create took $MS ms"
    rt delete --force "$ID"
    kill "$listener"
}

@test "A12: in the foreground, with no terminal and /dev/null to read: told, as runc and crun do" {
    terminal_bundle "$T/b" sh
    new_id t
    try timeout -s KILL 30 setsid "${RT[@]}" run --bundle "$T/b" "$ID"
    assert_refused terminal --console-socket
    run rt state "$ID"
    assert_refused 'does not exist'
    try timeout -s KILL 30 setsid "${RT[@]}" exec -t "$POD" sh
    assert_status 255
    assert_has "$stderr" --console-socket
}

@test "A26: exec with a terminal: its input is a pipe, its command is missing" {
    took timeout -s KILL 30 bash -c 'printf "exit 3
" | "$@"' bash "${RT[@]}" exec -t "$POD" sh >"$T/out"
    assert_eq "$STATUS" 3
    around 20 20 exec -t "$POD" /no/such
    [ "$status" = 255 ] || [ "$status" = 127 ] || fail "status $status"
    assert_has "$output" /no/such
    rt exec "$POD" true
}

@test "A24: the first size is consoleSize's, later ones arrive with WINCH" {
    terminal_bundle "$T/b" sh -c 'trap "stty size; exit 7" WINCH; stty size; while :; do sleep 0.05; done'
    jqe "$T/b" '.process.consoleSize = {height: 40, width: 120}'
    new_id t
    receive t wait='40 120' size=50x200
    quiet rt create --bundle "$T/b" --console-socket "$T/t.sock" "$ID"
    rt start "$ID"
    wait_state "$ID" stopped
    wait "$RECEIVER"
    assert_eq "$(tr -d '\r' <"$T/t.out")" $'40 120\n50 200'
}

@test "A24: run in the foreground has the size of its terminal" {
    terminal_bundle "$T/b" sh -c 'stty size; sleep 1; stty size; exit 5'
    new_id t
    around 33 99 run --bundle "$T/b" "$ID" -- wait='33 99' size=50x200
    assert_status 5
    assert_has "$output" '33 99'
    assert_has "$output" '50 200'
}

@test "exec with a terminal: size, status, its name, end of the session" {
    around 33 99 exec --tty "$POD" sh -c 'stty size; tty; exit 6'
    assert_status 6
    assert_has "$output" $'33 99\n/dev/pts/'
    around 33 99 exec -t "$POD" sh -c 'trap "stty size; exit 7" WINCH; echo up; while :; do sleep 0.05; done' \
        -- wait=up size=50x200
    assert_status 7
    assert_has "$output" '50 200'
    around 20 20 exec -t "$POD" sh -- wait='#' 'send=exit 3\n'
    assert_status 3
    run "${RT[@]}" exec -t "$POD" sh -c 'exit 4' <<<'input that nobody reads'
    assert_status 4
}

@test "exec through a console socket, several at once" {
    local n pids=()
    for n in 1 2 3; do
        receive "$n" wait="of $n" 'send=word\n'
        pids+=("$RECEIVER")
        quiet rt exec --tty --detach --console-socket "$T/$n.sock" --pid-file "$T/$n.pid" "$POD" \
            sh -c "echo of $n; read x; echo got \$x"
        [ -d "/proc/$(cat "$T/$n.pid")" ]
    done
    wait "${pids[@]}"
    for n in 1 2 3; do
        assert_has "$(tr -d '\r' <"$T/$n.out")" 'got word'
    done
}

@test "raw bytes pass in both ways, control characters act on the guest's terminal" {
    around 10 80 exec -t "$POD" sh -c 'stty raw -echo; printf R; head -c 5 | od -An -tx1' \
        -- wait=R 'send=\x00\x03\xff\r\n'
    assert_status 0
    assert_has "$output" '00 03 ff 0d 0a'
    around 10 80 exec -t "$POD" sh -c 'printf R; sleep 30' -- wait=R 'send=\x03'
    assert_status 130
}

@test "much output through a terminal" {
    around 24 80 exec -t "$POD" sh -c 'seq 1 20000; echo end'
    assert_status 0
    assert_eq "$(grep -c '^[0-9]\+$' <<<"$output")" 20000
    assert_has "$output" end
}
