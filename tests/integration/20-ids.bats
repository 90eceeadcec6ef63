#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Ids, roots, pid files, unknown and damaged entries (cases A01, A05, A06, A08, A09, A10).

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=180
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

@test "A01: delete --force of an unknown id succeeds, delete does not" {
    run --separate-stderr rt delete --force nosuch
    assert_status 0
    assert_eq "$output" ''
    [[ $stderr != *error* ]] || fail "$stderr"
    run rt delete nosuch
    assert_refused 'does not exist'
    mkm "$T/b" true
    new_id c
    quiet rt run --bundle "$T/b" --detach "$ID"
    wait_state "$ID" stopped
    run -0 rt delete "$ID"
    run rt delete "$ID"
    assert_refused 'does not exist'
    run -0 rt delete --force "$ID"
    run -0 rt delete -f "$ID"
}

@test "A05: every verb says of an unknown id that it does not exist, in the log too" {
    local verb args
    for verb in state start kill delete exec pause resume ps update events; do
        case $verb in
        exec) args=(true) ;;
        update) args=(--memory 100000000) ;;
        *) args=() ;;
        esac
        [ $verb != events ] || args=()
        rm -f "$T/log"
        if [ $verb = events ]; then
            run --separate-stderr rt --log "$T/log" --log-format json events --stats nosuch
        elif [ $verb = update ]; then
            run --separate-stderr rt --log "$T/log" --log-format json update "${args[@]}" nosuch
        else
            run --separate-stderr rt --log "$T/log" --log-format json $verb nosuch "${args[@]}"
        fi
        if [ "$status" = 0 ]; then fail "$verb succeeded"; fi
        assert_eq "$output" '' "$verb: stdout"
        assert_eq "$(wc -l <<<"$stderr")" 1 "$verb: lines on stderr"
        assert_has "$stderr" nosuch "$verb"
        assert_has "$stderr" 'does not exist' "$verb"
        assert_eq "$(jq -r 'select(.level == "error") | .msg' "$T/log" | grep -c 'nosuch.*does not exist\|does not exist.*nosuch')" 1 "$verb: log"
    done
}

@test "A06: a damaged entry is named and hides nothing" {
    mkm "$T/b" sleep 1000
    new_id good
    quiet rt run --detach --bundle "$T/b" "$ID"
    echo plain >"$ROOT/plain-file"
    mkdir "$ROOT"/{bad-empty,bad-zero,bad-random,bad-half}
    : >"$ROOT/bad-zero/state.json"
    head -c 500 /dev/urandom >"$ROOT/bad-random/state.json"
    head -c $(($(stat -c %s "$ROOT/$ID/state.json") / 2)) "$ROOT/$ID/state.json" >"$ROOT/bad-half/state.json"
    local args
    for args in '' '--format json' '-q'; do
        # shellcheck disable=SC2086
        run --separate-stderr rt list $args
        assert_status 0
        assert_has "$output" "$ID"
        assert_has "$output" "$POD"
    done
    run --separate-stderr rt list
    for args in bad-zero bad-random bad-half; do
        assert_has "$stderr" $args 'warnings'
    done
    assert_eq "$(state_of "$ID")" running
    run -0 rt kill "$ID" KILL
    wait_state "$ID" stopped
    for args in bad-empty bad-zero bad-random bad-half; do
        run rt state $args
        assert_refused $args
        run -0 rt delete --force $args
        [ ! -e "$ROOT/$args" ] || fail "$args is still there"
    done
    rm "$ROOT/plain-file"
}

@test "A06: a container whose entry is damaged while it runs is ended by delete --force" {
    mkm "$T/b" sleep 1000
    new_id live
    quiet rt run --detach --bundle "$T/b" "$ID"
    local shim
    shim=$(pid_of "$ID")
    echo '{' >"$ROOT/$ID/state.json"
    run -0 rt delete --force "$ID"
    wait_for 5 gone "$shim"
    [ ! -e "$ROOT/$ID" ]
    assert_eq "$(state_of "$POD")" running
    assert_eq "$(rt ps --format json "$POD" | jq length)" 1
    quiet rt run --detach --bundle "$T/b" "$ID"
    run -0 rt delete --force "$ID"
}

@test "A08: characters of an id, in every locale alike" {
    local id locale
    mkm "$T/b" true
    for locale in C C.UTF-8; do
        for id in a/b .. .x '' 'a b' 'x%0ay' $'a\nb' é /abs 'a;b' "$(printf 'x%.0s' {1..300})"; do
            LC_ALL=$locale try rt create --bundle "$T/b" "$id"
            assert_refused
            LC_ALL=$locale run rt state "$id"
            assert_refused
        done
    done
    for id in a_b+c.d-e A9; do
        echo "$id" >>"$T/ids"
        quiet rt create --bundle "$T/b" "$id"
        assert_eq "$(state_of "$id")" created
    done
    [ "$(find "$ROOT" -mindepth 1 -maxdepth 1 ! -name '.*' | wc -l)" = 3 ] || fail "$(ls -a "$ROOT")"
}

@test "A09: 64 hex digits below a root of 40, 90 and 200 characters" {
    local length root id dir twin
    id=$(printf '%s' "$N" | sha256sum | cut -c1-64)
    twin=${id%?}
    [[ $id == *0 ]] && twin+=1 || twin+=0
    mkb "$T/b" cat /etc/origin
    for length in 40 90 200; do
        root=$WORK/$(head -c 300 /dev/zero | tr '\0' r)
        root=${root:0:length}
        run -0 "$SANDVIRT" --config "$CONF" --root "$root" run --bundle "$T/b" "$id"
        assert_eq "$output" image "root of $length"
        rm -rf "$root"
    done
    # Two pods whose ids differ in the last character only, and one id in two roots.
    mkb "$T/c" sleep 1000
    dir=$WORK/other-root
    quiet "$SANDVIRT" --config "$CONF" --root "$ROOT" create --bundle "$T/c" "$id"
    echo "$id" >>"$T/ids"
    quiet "$SANDVIRT" --config "$CONF" --root "$ROOT" create --bundle "$T/c" "$twin"
    echo "$twin" >>"$T/ids"
    quiet "$SANDVIRT" --config "$CONF" --root "$dir" create --bundle "$T/c" "$id"
    assert_eq "$(domains | sort -u | wc -l)" 4
    rt delete --force "$id"
    assert_eq "$("$SANDVIRT" --config "$CONF" --root "$dir" state "$id" | jq -r .status)" created
    assert_eq "$(state_of "$twin")" created
    "$SANDVIRT" --config "$CONF" --root "$dir" delete "$id"
    rm -rf "$dir"
}

@test "A09: long ids and long bundle paths" {
    local id long
    long=$T/$(printf 'b%.0s' {1..180})
    mkm "$long" true
    for id in 128 250; do
        id=$(head -c "$id" /dev/zero | tr '\0' i)
        echo "$id" >>"$T/ids"
        quiet rt create --bundle "$long" "$id"
        assert_eq "$(rt state "$id" | jq -r .bundle)" "$long"
    done
    id=$(head -c 251 /dev/zero | tr '\0' i)
    try rt create --bundle "$long" "$id"
    assert_refused 'long'
}

@test "A10: the pid file of create" {
    mkm "$T/b" sleep 1000
    new_id c
    echo 123456789123456789 >"$T/pid"
    # Never empty or half, whenever somebody reads it.
    ( while [ ! -e "$T/done" ]; do [ -s "$T/pid" ] && grep -qx '[0-9]*' "$T/pid" || echo torn >>"$T/torn"; done ) 3>&- &
    local reader=$!
    quiet rt create --bundle "$T/b" --pid-file "$T/pid" "$ID"
    touch "$T/done"
    wait $reader
    [ ! -e "$T/torn" ]
    assert_eq "$(cat "$T/pid")" "$(pid_of "$ID")"
    [ "$(stat -c %s "$T/pid")" = "$(printf %s "$(pid_of "$ID")" | wc -c)" ]
    kill -0 "$(cat "$T/pid")"
}

@test "A10: the pid file of exec, and none" {
    echo 123456789123456789 >"$T/pid"
    quiet rt exec --detach --pid-file "$T/pid" "$POD" sleep 2
    kill -0 "$(cat "$T/pid")"
    assert_has "$(readlink "/proc/$(cat "$T/pid")/exe")" shim
    quiet rt exec --detach "$POD" true
    wait_for 10 gone "$(cat "$T/pid")"
    mkm "$T/b" sleep 1000
    new_id c
    quiet rt create --bundle "$T/b" "$ID"
}

@test "A10: a pid file that cannot be written fails the create, and nothing is left" {
    take_snap
    mkm "$T/b" sleep 1000
    new_id c
    try rt create --bundle "$T/b" --pid-file "$T/missing/pid" "$ID"
    assert_refused "$T/missing"
    run rt state "$ID"
    assert_refused 'does not exist'
    assert_same_snap
    try rt exec --detach --pid-file "$T/missing/pid" "$POD" sleep 1000
    assert_refused "$T/missing"
    assert_same_snap
}
