#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What podman's options become in a machine.

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=240
    suite_begin
    # conmon's exit command does not get --runtime-flag: by itself it would delete in the default root
    printf '#!/bin/sh\nexec %s --config %s --root %s "$@"\n' "$SANDVIRT" "$CONF" "$ROOT" >"$WORK/sandvirt"
    chmod +x "$WORK/sandvirt"
    tar -C "$BUNDLES/base" -c . | pod_man import - "busybox:test" >"$LOG/podman" 2>&1
}
teardown_file() {
    pod_man rm --all --force >/dev/null 2>&1 || true
    pod_man rmi --all --force >/dev/null 2>&1 || true
    # cleaned up by conmon's exit command, behind podman's back
    wait_for 10 no_domains || true
    umount "$WORK/podman/storage/overlay" 2>/dev/null || true
    suite_end
}
setup() { test_begin; }
teardown() {
    pod_man rm --force --time 0 "p$N" >/dev/null 2>&1 || true
    test_end
}

# podman with its own storage below $WORK and sandvirt as the runtime.
pod_man() {
    podman --root "$WORK/podman/storage" --runroot "$WORK/podman/run" --tmpdir "$WORK/podman/tmp" \
        --cgroup-manager cgroupfs --events-backend none --log-level error --runtime "$WORK/sandvirt" "$@"
}

@test "podman: limits, capabilities, user, sysctl, device, ulimit" {
    run -0 pod_man run --network none --name "p$N" --rm --memory 300m --cpus 1.5 --pids-limit 50 --cap-drop all \
        --cap-add chown --user 1000:1000 --sysctl kernel.shmmax=12345678 --device /dev/zero:/dev/other \
        --ulimit nofile=2000000:2000000 busybox:test \
        sh -c 'cd /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); nproc; cat memory.max cpu.max pids.max; awk "/CapBnd/ { print \$2 }" /proc/self/status
            id -u; cat /proc/sys/kernel/shmmax; stat -c %t:%T /dev/other; ulimit -n'
    assert_eq "$output" \
        $'2\n314572800\n150000 100000\n50\n0000000000000001\n1000\n12345678\n1:5\n2000000'
}

@test "podman: -t, with a size" {
    local wrap=$T/podman
    {
        echo '#!/bin/bash'
        declare -f pod_man
        echo 'pod_man "$@"'
    } >"$wrap"
    chmod +x "$wrap"
    export WORK
    run "$SV_SOURCE/tests/integration/terminal" around 33 99 "$wrap" run --network none --name "p$N" --rm -t \
        busybox:test sh -c 'sleep 1; stty size; tty; exit 7'
    assert_status 7
    assert_has "$output" '33 99'
    assert_has "$output" /dev/
}

@test "podman: detached: health check, exec, attach, pause, update of nothing, init, hooks" {
    local options=()
    [ -e /usr/libexec/podman/catatonit ] || [ -e /usr/bin/catatonit ] && options+=(--init)
    mkdir "$T/hooks"
    jq -n --arg out "$T/hook.json" '{version: "1.0.0", when: {always: true}, stages: ["prestart", "poststop"],
        hook: {path: "/bin/sh", args: ["sh", "-c", "cat >" + $out]}}' >"$T/hooks/hook.json"
    pod_man --hooks-dir "$T/hooks" run --network none --name "p$N" -d "${options[@]}" --health-cmd 'test -e /healthy' \
        busybox:test sh -c 'trap "exit 3" TERM; i=0; while :; do i=$((i + 1)); echo $i; sleep 0.2; done' >/dev/null
    jq -e '.id and .pid' "$T/hook.json"
    run pod_man healthcheck run "p$N"
    [ "$status" != 0 ]
    pod_man exec "p$N" touch /healthy
    run -0 pod_man healthcheck run "p$N"
    run -0 pod_man exec --user 1000 --workdir /tmp --env A=b "p$N" sh -c 'id -u; pwd; echo $A'
    assert_eq "$output" $'1000\n/tmp\nb'
    pod_man pause "p$N"
    assert_eq "$(pod_man inspect --format '{{.State.Status}}' "p$N")" paused
    pod_man unpause "p$N"
    run timeout 3 "$BASH" -c "$(declare -f pod_man); pod_man attach --no-stdin --sig-proxy=false p$N"
    [ -n "$output" ]
    pod_man kill --signal TERM "p$N"
    assert_eq "$(pod_man wait "p$N")" 3
}

@test "podman: --privileged sees no disk of the host" {
    run -0 pod_man run --network none --name "p$N" --rm --privileged busybox:test \
        sh -c 'find /dev -type b; mount -t tmpfs none /tmp && echo mounted; awk "/CapEff/ { print \$2 }" /proc/self/status'
    assert_has "$output" mounted
    [[ $output != */dev/* ]] || fail "$output"
}
