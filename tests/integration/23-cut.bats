#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# `create` killed in the middle (case A07).

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=600
    suite_begin
    mkb "$BUNDLES/b" sleep 1000
    take_snap
    export TEST_SNAP
}
teardown_file() { suite_end; }
setup() {
    local snap=$TEST_SNAP
    test_begin
    TEST_SNAP=$snap
}
teardown() { test_end; }

@test "A07: killed at any time, delete --force removes it and the id is usable" {
    local time times ms
    new_id c
    # From the first steps to past the whole create, each round with the same id.
    if [ -n "${SV_LONG:-}" ]; then
        times=$(seq 50 100 5000)
    else
        times='50 300 900 1800 3000'
    fi
    echo "# cut at $(wc -w <<<"$times") of 50 points" >&3
    for time in $times; do
        ms=$(printf '%d.%03d' $((time / 1000)) $((time % 1000)))
        quiet timeout -s KILL "$ms" "${RT[@]}" create --bundle "$BUNDLES/b" "$ID" || true
        run rt delete --force "$ID"
        [ "$status" = 0 ] || fail "cut at $time ms: delete --force: $status $output"
        run rt state "$ID"
        assert_refused 'does not exist'
        assert_same_snap || fail "cut at $time ms"
    done
    quiet rt create --bundle "$BUNDLES/b" "$ID"
    rt start "$ID"
    assert_eq "$(state_of "$ID")" running
    rt delete --force "$ID"
    assert_same_snap
}

@test "A07: nobody deletes: what a killed create began ends by itself" {
    new_id c
    quiet timeout -s KILL 0.5 "${RT[@]}" create --bundle "$BUNDLES/b" "$ID" || true
    assert_same_snap 20
}

@test "A07: the second container of a pod" {
    local time
    pod_up cut
    take_snap
    mkm "$T/b" sleep 1000
    new_id c
    for time in 0.03 0.1 0.2 0.3 0.5; do
        quiet timeout -s KILL $time "${RT[@]}" create --bundle "$T/b" "$ID" || true
        run -0 rt delete --force "$ID"
        assert_same_snap || fail "cut at $time s"
    done
    run -0 rt exec "$POD" true
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_eq "$(state_of "$ID")" running
    pod_down_all
}
