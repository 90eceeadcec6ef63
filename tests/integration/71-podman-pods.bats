#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# podman's pods: several containers in one machine, and `play kube`.

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=180
    suite_begin
    rt_words
    printf '#!/bin/sh\nexec %s "$@"\n' "${RT[*]}" >"$WORK/sandvirt"
    chmod 0755 "$WORK/sandvirt"
    # No pause image is built or fetched.
    printf '[engine]\ninfra_image = "localhost/busybox:test"\ninfra_command = "sleep 1000000"\n' >"$WORK/containers.conf"
    export CONTAINERS_CONF=$WORK/containers.conf
    tar -C "$BUNDLES/base" -c . | pm import --change 'ENV PATH=/bin:/usr/bin' --change 'CMD ["sleep", "1000000"]' - busybox:test >"$LOG/podman" 2>&1
}
teardown_file() {
    pm pod rm --all --force --time 0 >/dev/null 2>&1 || true
    awk -v w="$WORK/podman" 'index($5, w) == 1 { print $5 }' /proc/self/mountinfo | sort -r | xargs -r umount -l
    suite_end
}
setup() { test_begin; }
teardown() {
    pm pod rm --all --force --time 0 >/dev/null 2>&1 || true
    test_end
}

pm_words() {
    PM=(podman --root "$WORK/podman/storage" --runroot "$WORK/podman/run" --tmpdir "$WORK/podman/tmp"
        --cgroup-manager cgroupfs --events-backend none --log-level error --runtime "$WORK/sandvirt")
}
pm() {
    local PM
    pm_words
    "${PM[@]}" "$@"
}

# service: podman's on $T/podman.sock; its pid in SERVICE.
service() {
    local PM
    pm_words
    rm -f "$T/podman.sock"
    "${PM[@]}" system service --time 0 "unix://$T/podman.sock" </dev/null >"$T/service.log" 2>&1 3>&- 4>&- &
    SERVICE=$!
    wait_for 20 test -S "$T/podman.sock"
}
remote() { podman --remote --url "unix://$T/podman.sock" "$@"; }

@test "a pod of three: one machine, exec, logs, stats, one stops while the others go on" {
    pm pod create --name p1 --network none >"$T/out"
    pm run -d --pod p1 --name a busybox:test sh -c 'echo up; exec sleep 1000' >"$T/out"
    pm run -d --pod p1 --name b busybox:test sleep 1000 >"$T/out"
    assert_eq "$(domains | wc -l)" 1
    run -0 pm exec a cat /etc/origin
    assert_eq "$output" image
    run -0 pm exec b hostname
    assert_eq "$output" p1
    wait_for 10 eval '[ "$(pm logs a)" = up ]'
    run -0 pm stats --no-stream --format '{{.Name}} {{.MemUsage}}'
    assert_has "$output" 'MB / ' # the machine, in the infra container's cgroup
    pm stop --time 0 b
    run -0 pm exec a echo still
    assert_eq "$output" still
    pm pod stop --time 1 p1 >"$T/out"
    pm pod rm p1 >"$T/out"
    wait_for 10 no_domains
}

@test "podman's service killed under a running pod: the next one goes on with it" {
    service
    remote pod create --name s1 --network none >"$T/out"
    remote run -d --pod s1 --name a busybox:test sh -c 'echo up; trap "exit 5" TERM; while :; do sleep 0.2; done' >"$T/out"
    remote run -d --pod s1 --name b busybox:test sleep 1000 >"$T/out"
    kill -KILL "$SERVICE"
    wait "$SERVICE" || true
    # What there is goes on without it.
    run -0 pm exec a cat /etc/origin
    assert_eq "$output" image
    service
    run -0 remote exec b cat /etc/origin
    assert_eq "$output" image
    wait_for 10 eval '[ "$(remote logs a)" = up ]'
    run -0 remote stop --time 5 a
    assert_eq "$(remote inspect a --format '{{.State.Status}} {{.State.ExitCode}}')" 'exited 5'
    run -0 remote pod rm --force --time 0 s1
    kill "$SERVICE"
    wait_for 10 no_domains
}

@test "play kube: two containers, and down" {
    cat >"$T/pod.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: k1}
spec:
  containers:
  - {name: c1, image: localhost/busybox:test, command: [sh, -c, "echo from kube; exec sleep 1000"]}
  - {name: c2, image: localhost/busybox:test, command: [sleep, "1000"]}
YAML
    pm play kube --network none "$T/pod.yaml" >"$T/out" 2>&1 || fail "$(cat "$T/out")"
    assert_eq "$(domains | wc -l)" 1
    wait_for 10 eval '[ "$(pm logs k1-c1)" = "from kube" ]'
    run -0 pm exec k1-c2 cat /etc/origin
    pm play kube --down "$T/pod.yaml" >"$T/out" 2>&1 || fail "$(cat "$T/out")"
    wait_for 10 no_domains
}
