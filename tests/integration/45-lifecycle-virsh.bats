#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The administrator's virsh: what it does to a machine is right for its containers.

load lib
load lifecycle

setup_file() {
    export BATS_TEST_TIMEOUT=240
    suite_begin
    # From TERM to KILL when a machine is told to shut down.
    write_conf timeouts.grace_ms=2000
}
teardown_file() { suite_end; }
setup() {
    test_begin
    take_snap
    pod_up "virsh$BATS_TEST_NUMBER"
    DOMAIN=$(domain_of "$POD")
}
teardown() {
    pod_down_all
    test_end
}

# three_up: members READY, RUNNING and PAUSED.
three_up() {
    member_up ready sleep 1000
    member_up running sleep 1000
    rt start "$ID"
    member_up paused sleep 1000
    rt start "$ID"
    rt pause "$ID"
}

# three_stopped CAUSE: and the pod's own, all seen by their engine; deleted without force, nothing left.
three_stopped() {
    local name
    for name in ready running paused; do
        assert_stopped "$name-$N" 137 "$1" 20
        assert_eq "$(cm_status "$name-$N" "$T/$name")" 137
        run -0 rt delete "$name-$N"
    done
    assert_stopped "$POD" 137 "$1"
    run -0 rt delete "$POD"
    assert_same_snap
}

@test "virsh destroy: all stopped, at once" {
    three_up
    run -0 admin destroy "$DOMAIN"
    three_stopped domain-destroyed
}

@test "virsh reset: the machine is not another one behind our back" {
    three_up
    run admin reset "$DOMAIN" # QEMU may end before it has answered: virsh then says so
    three_stopped domain-destroyed
}

@test "virsh shutdown: containers get TERM, KILL after the grace time, their status is kept" {
    member_up term sh -c 'trap "echo bye; exit 7" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    local term=$ID
    member_up stubborn sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done'
    rt start "$ID"
    wait_for 20 grep -q up "$T/term/log"
    wait_for 20 grep -q up "$T/stubborn/log"
    run -0 admin shutdown "$DOMAIN"
    assert_stopped "$term" 7 exited 20
    assert_eq "$(cm_status "$term" "$T/term")" 7
    assert_has "$(cm_log "$T/term")" bye
    wait_state "$ID" stopped 30
    assert_eq "$(record_of "$ID" exitStatus)" 137
    assert_eq "$(cm_status "$ID" "$T/stubborn")" 137
    wait_for 20 eval '[ -z "$(domain_of "$POD")" ]'
    wait_state "$POD" stopped
    run -0 rt delete "$term"
    run -0 rt delete "$ID"
    run -0 rt delete "$POD"
    assert_same_snap
}

@test "virsh reboot ends the machine: a pod does not start again by itself" {
    member_up c sleep 1000
    rt start "$ID"
    run -0 admin reboot "$DOMAIN"
    wait_state "$ID" stopped 30
    wait_for 20 eval '[ -z "$(domain_of "$POD")" ]'
    assert_eq "$(cm_status "$ID" "$DIR")" "$(record_of "$ID" exitStatus)"
    [ "$(record_of "$ID" exitStatus)" != 0 ]
    wait_state "$POD" stopped
    run -0 rt delete "$ID"
    run -0 rt delete "$POD"
    assert_same_snap
}

@test "virsh edit or define of a pod's machine: it stays transient, nothing of it outlives the pod" {
    member_up c sleep 1000
    rt start "$ID"
    admin dumpxml --inactive "$DOMAIN" >"$T/domain.xml"
    run -0 admin define "$T/domain.xml"
    wait_for 10 eval '[ "$(admin list --all --persistent --name | grep -cxF "$DOMAIN")" = 0 ]'
    assert_eq "$(state_of "$ID")" running
    # with nobody who listens
    kill -STOP "$(launcher_pid)"
    kill -KILL "$(monitor_pid "$POD")"
    run -0 admin define "$T/domain.xml"
    kill -CONT "$(launcher_pid)"
    run -0 rt exec "$ID" true
    wait_for 10 eval '[ "$(admin list --all --persistent --name | grep -cxF "$DOMAIN")" = 0 ]'
    assert_eq "$(state_of "$ID")" running
}

@test "virsh suspend and resume: paused and running, two flags" {
    member_up c sleep 1000
    rt start "$ID"
    run -0 admin suspend "$DOMAIN"
    wait_state "$ID" paused 5
    wait_state "$POD" paused 5
    try timeout 20 "${RT[@]}" exec "$ID" true
    assert_refused
    run -0 admin resume "$DOMAIN"
    wait_state "$ID" running 5
    run -0 rt exec "$ID" true
    # Frozen and suspended: running only when neither.
    rt pause "$ID"
    run -0 admin suspend "$DOMAIN"
    wait_state "$POD" paused 5
    run -0 admin resume "$DOMAIN"
    wait_state "$POD" running 5
    assert_eq "$(state_of "$ID")" paused
    rt resume "$ID"
    assert_eq "$(state_of "$ID")" running
    rt delete --force "$ID"
}

@test "a monitor that comes to a suspended machine" {
    member_up c sleep 1000
    rt start "$ID"
    run -0 admin suspend "$DOMAIN"
    wait_state "$ID" paused 5
    kill_monitor "$POD"
    assert_eq "$(state_of "$ID")" paused
    run -0 admin resume "$DOMAIN"
    wait_state "$ID" running 10
    run -0 rt exec "$ID" true
    rt delete --force "$ID"
}

@test "KILL of one of two in a suspended machine resumes it, the other goes on" {
    member_up c sleep 1000
    rt start "$ID"
    run -0 admin suspend "$DOMAIN"
    wait_state "$ID" paused 5
    took rt kill "$ID" KILL
    assert_eq "$STATUS" 0
    within 5000 'kill KILL in a suspended machine'
    assert_stopped "$ID" 137 signalled
    assert_eq "$(cm_status "$ID" "$DIR")" 137
    wait_state "$POD" running 5
    run -0 rt delete "$ID"
    run -0 rt exec "$POD" true
}

# in_guest TEXT: a process of the machine has it in its command line; $WATCHER sees them all.
in_guest() { rt exec "$WATCHER" ps -o args | grep -q -- "^$1"; }
not_in_guest() { ! in_guest "$1"; }

@test "what ended in a suspended machine does not live on when the machine does" {
    local how
    new_id watcher
    WATCHER=$ID
    mkm "$T/watcher" sleep 1000
    jqe "$T/watcher" '.linux.namespaces |= map(select(.type != "pid"))'
    run -0 quiet rt run --detach --bundle "$T/watcher" "$WATCHER"
    for how in shim stop delete; do
        member_up "$how" sh -c 'trap "" TERM; while :; do sleep 0.4321; done'
        rt start "$ID"
        wait_for 10 in_guest 'sleep 0.4321' || fail 'the watcher does not see it'
        run -0 admin suspend "$DOMAIN"
        wait_state "$ID" paused 5
        case $how in
        shim) kill -KILL "$(pid_of "$ID")" ;;
        stop) run -0 rt stop --time 1 "$ID" ;;
        delete) run -0 rt delete --force "$ID" ;;
        esac
        if [ $how != delete ]; then
            assert_stopped "$ID" 137 "$([ $how = shim ] && echo shim-killed || echo signalled)"
        fi
        assert_eq "$(cm_status "$ID" "$T/$how")" 137
        # Only the shim's death leaves the machine as the administrator wants it.
        if [ $how = shim ]; then
            assert_eq "$(state_of "$POD")" paused
            run -0 admin resume "$DOMAIN"
        fi
        wait_state "$POD" running 5
        wait_for 10 not_in_guest 'sh -c trap' || fail "$how: it lives on: $(rt exec "$WATCHER" ps)"
        [ $how = delete ] || run -0 rt delete "$ID"
    done
    run -0 rt delete --force "$WATCHER"
}

@test "delete --force of the last in a suspended machine: the machine ends" {
    run -0 admin suspend "$DOMAIN"
    wait_state "$POD" paused 5
    took rt delete --force "$POD"
    assert_eq "$STATUS" 0
    within 5000 'delete --force in a suspended machine'
    assert_same_snap
}

# told ID [ATTRIBUTE...]: the domain's metadata has that container, with these attributes (none: it has not).
told() {
    local line attribute
    line=$($VIRSH metadata "$DOMAIN" https://sandvirt.org/xmlns/domain/1.0 | grep -F "id=\"$1\"") || true
    [ $# -gt 1 ] || { [ -z "$line" ] && return 0; }
    [ -n "$line" ] || return 1
    for attribute in "${@:2}"; do
        [[ $line == *" $attribute"* ]] || return 1
    done
}

@test "virsh metadata: containers and their states as they are; title, description, statistics" {
    member_up a sleep 1000
    wait_for 5 told "$ID" 'state="created"'
    rt start "$ID"
    wait_for 5 told "$ID" 'state="running"'
    rt pause "$ID"
    wait_for 5 told "$ID" 'state="paused"'
    rt resume "$ID"
    wait_for 5 told "$ID" 'state="running"'
    rt kill "$ID" KILL
    wait_for 10 told "$ID" 'state="stopped"' 'cause="signalled"' ||
        fail "$($VIRSH metadata "$DOMAIN" https://sandvirt.org/xmlns/domain/1.0)"
    rt delete "$ID"
    wait_for 5 told "$ID"
    told "$POD" 'state="running"'
    assert_eq "$($VIRSH desc --title "$DOMAIN")" "space/$POD"
    assert_has "$($VIRSH desc "$DOMAIN")" "sandvirt sandbox $POD"
    run -0 virsh -c qemu:///system domstats "$DOMAIN"
    assert_has "$output" state.state=1
    assert_has "$output" vcpu.current=1
}

# console STEP...: what virsh shows of the machine's console while the steps are made (tests/integration/terminal).
console() {
    timeout 60 "$SV_SOURCE/tests/integration/terminal" around 24 80 virsh -c qemu:///system console --force "$DOMAIN" -- "$@" \
        </dev/null >"$T/console" 2>&1 3>&- 4>&-
}

@test "virsh console: the agent's log, and no shell" {
    console 'wait=: Exec' 'send=\recho shell-$((40+2))\r' 'wait=: Exec' 'send=\x1d' &
    wait_for 20 grep -q 'Escape character' "$T/console"
    rt exec "$POD" true
    wait_for 20 grep -q ': Exec' "$T/console"
    rt exec "$POD" true
    wait $! || fail "$(cat "$T/console")"
    assert_has "$(cat "$T/console")" 'sandvirt-agent: request'
    [[ $(cat "$T/console") != *shell-42* ]] || fail 'there is a shell'
}

@test "virsh console: a shell where the configuration says so, and another one after it" {
    write_conf log.console_shell=true log.log_level=warning
    pod_up shell
    write_conf timeouts.grace_ms=2000
    DOMAIN=$(domain_of "$POD")
    console 'wait=Escape character' 'enter=guest:' 'send=echo shell-$((40+2)); tty; ls /run/sandvirt\r' 'wait=shell-42' \
        'wait=/dev/ttyS0' 'wait=share' 'wait=guest:' 'send=exit\r' 'wait=guest:' 'send=exit\r' 'wait=guest:' 'send=echo again-$((1+1))\r' 'wait=again-2' 'send=\x1d' ||
        fail "$(cat "$T/console")"
    assert_has "$(cat "$T/console")" shell-42
    assert_has "$(cat "$T/console")" again-2
}
