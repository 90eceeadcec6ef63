#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Engines that end, or are killed, under running containers and come back.

load lib
load engines

setup_file() {
    export BATS_TEST_TIMEOUT=300
    engines_begin
}
teardown_file() { engines_end; }
setup() {
    test_begin
    # Ends with 5 when it is told to, and with 4 when the file is there.
    UNTIL_TERM='trap "exit 5" TERM; n=0; while :; do n=$((n + 1)); echo $n; sleep 0.2; done'
    UNTIL_FILE='while [ ! -e /go ]; do sleep 0.1; done; exit 4'
}
teardown() {
    # What a failed test has left is not the next one's.
    [ -n "${BATS_TEST_COMPLETED:-}" ] || forget_all
    test_end
}

forget_all() {
    local file
    while read -r file; do
        file=${file%/state.json}
        direct "${file%/*}" delete --force "${file##*/}" || true
    done < <(find "$ROOT" "$WORK/dk/exec" -name state.json 2>/dev/null)
}

# direct ROOT VERB...: sandvirt itself, while there is no engine.
direct() {
    local root=$1
    shift
    "$SANDVIRT" --config "$CONF" --root "$root" "$@"
}
direct_is() { [ "$(direct "$1" state "$2" | jq -r .status)" = "$3" ]; }

# ends_alone ROOT ID: it ends while its engine is away.
ends_alone() {
    direct "$1" exec "$2" touch /go
    wait_for 20 direct_is "$1" "$2" stopped
}

# writes_more LINES COMMAND...: COMMAND prints more lines than that.
writes_more() { [ "$("${@:2}" | wc -l)" -gt "$1" ]; }

@test "containerd (ctr): killed, and ended: containers go on, statuses are true" {
    have containerd ctr
    local signal
    containerd_up
    take_snap
    quiet ctr_run --detach localhost/busybox:test c1 sh -c "$UNTIL_TERM"
    quiet ctr_run --detach localhost/busybox:test c2 sleep 1000
    for signal in KILL TERM; do
        quiet ctr_run --detach localhost/busybox:test "c$signal" sh -c "$UNTIL_FILE"
        engine_down containerd $signal
        run -0 direct "$ROOT/default" exec c1 cat /etc/origin
        assert_eq "$output" image
        ends_alone "$ROOT/default" "c$signal"
        containerd_up
        wait_for 20 task_is "c$signal" STOPPED
        task_is c1 RUNNING
        task_is c2 RUNNING
        task_rm "c$signal" 4
        run -0 ctr_ task exec --exec-id "e$signal" c1 cat /etc/origin
        assert_eq "$output" image
        run ctr_ task exec --exec-id "f$signal" c2 sh -c 'exit 9'
        assert_status 9
    done
    run -0 ctr_ task kill --signal TERM c1
    wait_for 20 task_is c1 STOPPED
    task_rm c1 5
    run -0 ctr_ task kill --signal KILL c2
    wait_for 20 task_is c2 STOPPED
    task_rm c2 137
    root_is_empty default
    assert_same_snap 10
}

@test "containerd (ctr): its shim is killed: the container ends, nothing is left" {
    have containerd ctr
    containerd_up
    take_snap
    quiet ctr_run --detach localhost/busybox:test c3 sleep 1000
    kill -KILL "$(pgrep -f "^[^ ]*containerd-shim-runc-v2 .*-id c3 .*$WORK/")"
    wait_for 20 eval '! task_is c3 RUNNING'
    run ctr_ task rm --force c3
    run -0 ctr_ container rm c3
    root_is_empty default
    assert_same_snap 10
}

@test "containerd's CRI plug-in: killed, and ended: the pod goes on" {
    have containerd ctr
    cri_possible
    local signal pod a b short count ns
    containerd_up
    take_snap
    pod=$(cri_pod p1)
    ns=$(jq -r '.linux.namespaces[] | select(.type == "network").path' "$(direct "$ROOT/k8s.io" state "$pod" | jq -r .bundle)/config.json")
    [ -e "$ns" ]
    a=$(cri_run "$pod" p1 a sh -c "$UNTIL_TERM")
    b=$(cri_run "$pod" p1 b sleep 1000)
    for signal in KILL TERM; do
        short=$(cri_run "$pod" p1 "short$signal" sh -c "$UNTIL_FILE")
        engine_down containerd $signal
        count=$(wc -l <"$T/p1/a.log")
        ends_alone "$ROOT/k8s.io" "$short"
        containerd_up
        wait_for 20 cri_is "$short" 'exited 4'
        assert_eq "$(cri PodSandboxStatus "$(cri_ref pod "$pod")" | jq .status.state)" 0 'the state of the pod'
        cri_is "$a" 'running 0'
        assert_eq "$(cri_exec "$a" cat /etc/origin)" image
        assert_eq "$(cri_exec "$b" sh -c 'exit 9')" 'status 9'
        wait_for 20 writes_more $((count + 2)) cat "$T/p1/a.log" || fail 'its log does not go on'
        assert_eq "$(domains | wc -l)" 1 machines
    done
    # a new one too
    short=$(cri_run "$pod" p1 late sh -c 'exit 7')
    wait_for 20 cri_is "$short" 'exited 7'
    cri StopContainer "$(cri_ref container "$a" 10)"
    cri_is "$a" 'exited 5'
    cri RemoveContainer "$(cri_ref container "$a")"
    assert_eq "$(cri_exec "$b" echo still)" still
    cri_remove "$pod"
    root_is_empty k8s.io
    [ ! -e "$ns" ] || fail "$ns is left"
    assert_same_snap 10
}

# docker_root: where dockerd has sandvirt keep its records
docker_root() { dirname "$(dirname "$(find "$WORK/dk/exec" -name state.json -path '*moby*' | head -n 1)")"; }

@test "Docker with live-restore: killed, and ended: containers go on, statuses are true" {
    have dockerd
    [ -x /usr/bin/docker ] || skip 'no client'
    local signal root count
    docker_up --live-restore
    take_snap
    dk_run --detach --name d1 localhost/busybox:test sh -c "$UNTIL_TERM" >"$T/out"
    for signal in KILL TERM; do
        dk_run --detach --name "d$signal" localhost/busybox:test sh -c "$UNTIL_FILE" >"$T/out"
        root=$(docker_root)
        count=$(dk logs d1 | wc -l)
        engine_down docker $signal
        ends_alone "$root" "$(cat "$T/out")"
        docker_up --live-restore
        wait_for 20 dk_is "d$signal" 'exited 4' || fail "$(dk_state "d$signal")"
        assert_eq "$(dk_state d1)" 'running 0'
        run -0 dk exec d1 cat /etc/origin
        assert_eq "$output" image
        run dk exec d1 sh -c 'exit 9'
        assert_status 9
        wait_for 20 writes_more $((count + 2)) dk logs d1 || fail 'its log does not go on'
        run -0 dk rm "d$signal"
    done
    run -0 dk stop --time 20 d1
    assert_eq "$(dk_state d1)" 'exited 5'
    run -0 dk rm d1
    engine_down docker TERM
    wait_for 10 no_domains
    assert_same_snap 10
}

@test "Docker without live-restore: killed, and ended: containers are stopped, may be started, come back by their policy" {
    have dockerd
    [ -x /usr/bin/docker ] || skip 'no client'
    local signal
    docker_up
    take_snap
    dk_run --detach --name d1 localhost/busybox:test sh -c "$UNTIL_TERM" >"$T/out"
    dk_run --detach --name d2 --restart always localhost/busybox:test sh -c "$UNTIL_TERM" >"$T/out"
    for signal in TERM KILL; do
        engine_down docker $signal
        [ $signal = KILL ] || wait_for 10 no_domains || fail 'stopped containers have machines'
        docker_up
        # It tells those that outlived it to end when it comes back.
        wait_for 30 dk_is d1 'exited 5' || fail "d1 is $(dk_state d1)"
        wait_for 60 dk_is d2 'running 0' || fail "d2 is $(dk_state d2)"
        run -0 dk exec d2 cat /etc/origin
        assert_eq "$output" image
        assert_eq "$(domains | wc -l)" 1 machines
        run -0 dk start d1
        run -0 dk exec d1 cat /etc/origin
        assert_eq "$output" image
    done
    run -0 dk stop --time 20 d1 d2
    assert_eq "$(dk_state d1) $(dk_state d2)" 'exited 5 exited 5'
    run -0 dk rm d1 d2
    engine_down docker TERM
    wait_for 10 no_domains
    assert_same_snap 10
}
