#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Under podman, as it is: no limits taken away, no network of its own making.

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=240
    suite_begin
    tar -C "$BUNDLES/base" -c . | pod_man import - "busybox:test" >"$LOG/podman" 2>&1
}
teardown_file() {
    pod_man rm --all --force >/dev/null 2>&1 || true
    pod_man rmi --all --force >/dev/null 2>&1 || true
    umount "$WORK/podman/storage/overlay" 2>/dev/null || true
    suite_end
}
setup() { test_begin; }
teardown() {
    pod_man rm --force --time 0 "p$N" >/dev/null 2>&1 || true
    test_end
}

# podman with its own storage below $WORK and sandvirt as the runtime: as a script, because the clean-up that
# conmon starts does not get --runtime-flag.
pod_man() {
    if [ ! -e "$WORK/sandvirt" ]; then
        { rt_words; printf '#!/bin/sh\nexec %s "$@"\n' "${RT[*]}"; } >"$WORK/sandvirt"
        chmod 0755 "$WORK/sandvirt"
    fi
    podman --root "$WORK/podman/storage" --runroot "$WORK/podman/run" --tmpdir "$WORK/podman/tmp" \
        --cgroup-manager cgroupfs --events-backend none --log-level error --runtime "$WORK/sandvirt" "$@"
}

# The network is what a later step brings.
run_args() { ARGS=(run --network none --name "p$N"); }

@test "run: output and exit status" {
    run_args
    run -0 pod_man "${ARGS[@]}" --rm busybox:test echo hello
    assert_eq "$output" hello
    run pod_man "${ARGS[@]}" --rm busybox:test sh -c 'echo err >&2; exit 42'
    assert_status 42
    assert_eq "$output" err
    run pod_man "${ARGS[@]}" --rm busybox:test sh -c 'payload die 9; exit $?'
    assert_status 137
}

@test "run --rm leaves nothing" {
    run_args
    wait_for 10 no_domains # what ends by --rm ends a little later than podman
    take_snap
    pod_man "${ARGS[@]}" --rm busybox:test true
    assert_same_snap 10
    assert_eq "$(pod_man ps --all --quiet)" ''
}

@test "run -i: input to its end" {
    run_args
    assert_eq "$(seq 1 50000 | pod_man "${ARGS[@]}" --rm -i busybox:test sha256sum)" "$(seq 1 50000 | sha256sum)"
    assert_eq "$(pod_man "${ARGS[@]}" --rm -i busybox:test cat </dev/null)" ''
}

@test "an executable that is not in the image: 127; not executable: 126" {
    local program
    run_args
    run pod_man "${ARGS[@]}" --rm busybox:test nosuch
    assert_status 127
    run pod_man "${ARGS[@]}" --rm busybox:test /etc/origin
    assert_status 126
    assert_eq "$(rt list -q)" ''
    pod_man "${ARGS[@]}" --detach busybox:test sleep 1000 >"$T/out"
    for program in nosuch:127 /no/such:127 /etc/origin:126 /etc:126; do
        run pod_man exec "p$N" "${program%:*}"
        assert_status "${program#*:}"
    done
    pod_man rm --force --time 0 "p$N"
}

@test "volumes: read-write and read-only" {
    run_args
    mkdir "$T"/{rw,ro}
    echo kept >"$T/ro/file"
    run pod_man "${ARGS[@]}" --rm -v "$T/rw:/rw" -v "$T/ro:/ro:ro" busybox:test \
        sh -c 'cat /ro/file; echo made >/rw/file; echo x >/ro/new || echo refused'
    assert_status 0
    assert_has "$output" kept
    assert_has "$output" refused
    assert_eq "$(cat "$T/rw/file")" made
    [ ! -e "$T/ro/new" ]
}

@test "the engine's files, host name, environment, user, working folder" {
    run_args
    run -0 pod_man "${ARGS[@]}" --rm --hostname name --env A=1 --user 1000 --workdir /tmp busybox:test \
        sh -c 'hostname; echo $A; id -u; pwd; grep -c name /etc/hosts; cat /etc/hostname'
    assert_eq "$output" $'name\n1\n1000\n/tmp\n1\nname'
}

@test "run -d, ps, logs, exec, inspect, stop, rm" {
    run_args
    take_snap
    pod_man "${ARGS[@]}" -d busybox:test sh -c 'trap "echo bye; exit 3" TERM; echo up; while :; do sleep 0.1; done' >"$T/id"
    run -0 pod_man ps --format '{{.Names}} {{.Status}}'
    assert_has "$output" "p$N Up "
    wait_for 10 eval '[ "$(pod_man logs p$N)" = up ]'
    run -0 pod_man exec "p$N" cat /etc/origin
    assert_eq "$output" image
    run pod_man exec "p$N" sh -c 'exit 9'
    assert_status 9
    assert_eq "$(echo in | pod_man exec -i "p$N" cat)" in
    assert_eq "$(pod_man inspect --format '{{.State.Pid}}' "p$N")" "$(rt list --format json | jq -r '.[0].pid')"
    took pod_man stop --time 10 "p$N"
    [ "$MS" -lt 8000 ] || fail "stop took $MS ms"
    assert_eq "$(pod_man inspect --format '{{.State.ExitCode}}' "p$N")" 3
    assert_eq "$(pod_man logs "p$N")" $'up\nbye'
    run pod_man ps --quiet
    assert_eq "$output" ''
    pod_man rm "p$N"
    assert_same_snap 5
}

@test "stop of a program that ignores TERM: 137" {
    run_args
    pod_man "${ARGS[@]}" -d busybox:test sh -c 'trap "" TERM; while :; do sleep 0.1; done' >"$T/id"
    pod_man stop --time 1 "p$N"
    assert_eq "$(pod_man inspect --format '{{.State.ExitCode}}' "p$N")" 137
}

@test "kill, wait, start again" {
    run_args
    pod_man "${ARGS[@]}" -d busybox:test sleep 1000 >"$T/id"
    pod_man kill --signal KILL "p$N"
    assert_eq "$(pod_man wait "p$N")" 137
    pod_man start "p$N"
    assert_eq "$(pod_man inspect --format '{{.State.Status}}' "p$N")" running
    pod_man rm --force --time 0 "p$N"
}

@test "create without start, then rm" {
    run_args
    take_snap
    pod_man create --network none --name "p$N" busybox:test true
    pod_man init "p$N"
    pod_man rm "p$N"
    wait_for 5 eval '! pod_man container exists "p$N"'
    assert_same_snap 5
}

@test "cp both ways on a running container; a path of the host is not found" {
    run_args
    pod_man "${ARGS[@]}" -d busybox:test sleep 1000 >"$T/id"
    echo 'from host' >"$T/in"
    pod_man cp "$T/in" "p$N:/tmp/in"
    assert_eq "$(pod_man exec "p$N" cat /tmp/in)" 'from host'
    pod_man exec "p$N" sh -c 'mkdir /tmp/d; echo inside >/tmp/d/out; echo deep >/root/deep'
    pod_man cp "p$N:/tmp/d" "$T/d"
    assert_eq "$(cat "$T/d/out")" inside
    mkdir -p "$T/hostonly"
    echo hostonly >"$T/hostonly/file"
    run pod_man cp "p$N:$T/hostonly/file" "$T/stolen"
    [ "$status" != 0 ]
    [ ! -e "$T/stolen" ]
    # /etc/origin is the image's, the host has none.
    pod_man cp "p$N:/etc/origin" "$T/origin"
    assert_eq "$(cat "$T/origin")" image
}

@test "a read-only container, and a tmpfs" {
    run_args
    run pod_man "${ARGS[@]}" --rm --read-only --tmpfs /scratch:size=4m busybox:test \
        sh -c 'echo x >/new || echo refused; echo y >/scratch/y && df -m /scratch | tail -n 1 | awk "{ print \$2 }"'
    assert_status 0
    assert_has "$output" refused
    assert_eq "$(tail -n 1 <<<"$output")" 4
}

@test "the host's network: no entry in the spec" {
    run_args
    run pod_man run --rm --network host --name "p$N" busybox:test echo alive
    # Either refused with a reason, or without the host's network.
    if [ "$status" = 0 ]; then
        assert_eq "$output" alive
    else
        assert_has "$output" network
    fi
}

@test "two at a time, by themselves" {
    run_args
    pod_man "${ARGS[@]}" -d busybox:test sleep 1000 >"$T/id"
    run -0 pod_man run --rm --network none busybox:test hostname
    [ "$output" != "$(pod_man exec "p$N" hostname)" ]
    assert_eq "$(domains | wc -l)" 1
}
