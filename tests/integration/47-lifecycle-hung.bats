#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Deadlines: a guest that hangs (its QEMU stopped), many pods at once (A44), deletes on a healthy one.

load lib
load lifecycle

setup_file() {
    export BATS_TEST_TIMEOUT=300
    [ -z "${SV_LONG:-}" ] || BATS_TEST_TIMEOUT=1500
    suite_begin
}
teardown_file() { suite_end; }
setup() {
    test_begin
    take_snap
}
teardown() {
    pod_down_all
    write_conf
    test_end
}

@test "a hung guest: state at once; kill KILL and delete --force within 5 s in all" {
    pod_up hung
    member_up c sleep 1000
    rt start "$ID"
    kill -STOP "$(vm_pid "$POD")"
    took state_of "$ID"
    within 300 state
    took rt list
    within 500 list
    took rt kill "$ID" KILL
    assert_eq "$STATUS" 0
    local killed=$MS
    took rt delete --force "$ID"
    assert_eq "$STATUS" 0
    MS=$((MS + killed))
    within 5000 'kill KILL and delete --force of a member'
    assert_eq "$(cm_status "$ID" "$DIR" 5)" 137
    took rt delete --force "$POD"
    assert_eq "$STATUS" 0
    within 5000 'delete --force of the pod'
    assert_same_snap
}

@test "a hung guest with one container: delete --force alone" {
    mkb "$T/b" sleep 1000
    new_id c
    cm "$ID" "$T/b"
    rt start "$ID"
    kill -STOP "$(vm_pid "$ID")"
    took rt delete --force "$ID"
    assert_eq "$STATUS" 0
    within 5000 'delete --force of a hung machine'
    assert_eq "$(cm_status "$ID" "$T/b" 5)" 137
    assert_same_snap
}

@test "a stopped monitor: calls that need it end soon and name it; state, list and the pod do not care" {
    pod_up held
    local monitor
    monitor=$(monitor_pid "$POD")
    kill -STOP "$monitor"
    took state_of "$POD"
    within 300 state
    took rt list
    within 500 list
    local verb i=0 from=${EPOCHREALTIME/./} pids=()
    for verb in 'kill %s KILL' 'stop --time 0 %s' 'delete --force %s' 'pause %s' 'ps %s'; do
        i=$((i + 1))
        # shellcheck disable=SC2059,SC2046
        timeout 60 "${RT[@]}" $(printf "$verb" "$POD") </dev/null >"$T/call$i" 2>&1 3>&- 4>&- &
        pids+=($!)
    done
    for i in 1 2 3 4 5; do
        STATUS=0
        wait "${pids[i - 1]}" || STATUS=$?
        assert_eq "$STATUS" 1 "$(cat "$T/call$i")"
        assert_has "$(cat "$T/call$i")" "process $monitor is stopped"
        assert_eq "$(grep -c . "$T/call$i")" 1 "lines: $(cat "$T/call$i")"
    done
    MS=$(((${EPOCHREALTIME/./} - from) / 1000))
    within 7000 'all of them'
    kill -CONT "$monitor"
    run -0 rt delete --force "$POD"
    assert_same_snap 5
}

@test "a guest that comes to itself again is not killed for having been slow" {
    pod_up slow
    kill -STOP "$(vm_pid "$POD")"
    sleep 3
    kill -CONT "$(vm_pid "$POD")"
    assert_eq "$(state_of "$POD")" running
    run -0 rt exec "$POD" true
}

@test "delete of a READY container, and of the last one with its machine" {
    local domain
    mkb "$T/b" sleep 1000
    new_id c
    quiet rt create --bundle "$T/b" "$ID"
    domain=$(domain_of "$ID")
    took rt delete "$ID"
    assert_eq "$STATUS" 0
    within 1000 'delete of READY with its machine'
    took wait_for 5 eval "! $VIRSH domid '$domain' >/dev/null 2>&1"
    within 1000 'machine gone after the last delete'
    assert_same_snap
}

# many_pods: as many as this machine boots at once in a reasonable time, and has memory for: 5 to 30.
many_pods() {
    local by_memory by_cpus n
    by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1024 / 400) }' /proc/meminfo)
    by_cpus=$(($(nproc) * 6))
    n=$((by_memory < by_cpus ? by_memory : by_cpus))
    echo $((n < 5 ? 5 : n > 30 ? 30 : n))
}

@test "A44: many pods at once, one of them stuck: it delays only itself" {
    local pods=3 round rounds=1 i ids=() slow=0 jobs=()
    if [ -n "${SV_LONG:-}" ]; then
        pods=$(many_pods) rounds=5
        write_conf timeouts.boot_ms=300000 # all at once
    fi
    echo "# $rounds of 5 rounds, $pods of $(many_pods) pods" >&3
    for ((i = 1; i <= pods; i++)); do
        mkb "$T/b$i" sleep 1000
        new_id "many$i"
        ids+=("$ID")
    done
    for ((round = 1; round <= rounds; round++)); do
        for ((i = 1; i <= pods; i++)); do
            { rt run --detach --bundle "$T/b$i" "${ids[i - 1]}" </dev/null >"$T/run$i.log" 2>&1 3>&- 4>&- || echo failed >>"$T/run$i.log"; } &
            jobs+=($!)
        done
        wait_for 250 eval '[ "$(rt list --format json | jq "[.[] | select(.status == \"running\")] | length")" = '"$pods"' ]' ||
            fail "$(cat "$T"/run*.log)"
        # Those alone: bats has a child of its own here.
        wait "${jobs[@]}"
        jobs=()
        kill -STOP "$(vm_pid "${ids[0]}")"
        rm -f "$T"/done*
        for ((i = 1; i <= pods; i++)); do
            {
                rt kill "${ids[i - 1]}" KILL
                rt delete --force "${ids[i - 1]}"
                echo $? >"$T/done$i"
            } >"$T/end$i.log" 2>&1 3>&- 4>&- &
            jobs+=($!)
        done
        while [ "$(find "$T" -name 'done*' -size +0c | wc -l)" -lt "$pods" ]; do
            took timeout 5 "${RT[@]}" list -q >/dev/null
            [ "$STATUS" = 0 ] || fail 'list does not answer'
            slow=$((MS > slow ? MS : slow))
            sleep 0.1
        done
        wait "${jobs[@]}"
        jobs=()
        for ((i = 1; i <= pods; i++)); do
            assert_eq "$(cat "$T/done$i")" 0 "delete of pod $i: $(cat "$T/end$i.log")"
        done
        assert_same_snap 5
    done
    echo "# slowest list: $slow ms" >&3
}

@test "a pod that stands still in the middle of its create delays no other" {
    local call monitor
    mkb "$T/b" sleep 1000
    new_id still
    : >"$LOG/launcher" # other tests' machines have started too
    rt create --bundle "$T/b" "$ID" </dev/null >"$T/create.log" 2>&1 3>&- 4>&- &
    call=$!
    wait_for 30 grep -q 'start the machine: domain' "$LOG/launcher"
    monitor=$(monitor_pid "$ID")
    kill -STOP "$monitor"
    local still=$ID
    mkb "$T/o" sleep 1000
    new_id other
    quiet timeout 60 "${RT[@]}" run --detach --bundle "$T/o" "$ID" || fail "$(cat "$T/out.log")"
    run -0 timeout 20 "${RT[@]}" exec "$ID" true
    run -0 timeout 20 "${RT[@]}" delete --force "$ID"
    took rt list
    within 500 list
    kill -CONT "$monitor"
    wait "$call" || fail "$(cat "$T/create.log")"
    assert_eq "$(state_of "$still")" created
    run -0 rt delete "$still"
    assert_same_snap
}
