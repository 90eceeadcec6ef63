#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# containerd (ctr) and Docker from Debian's packages, without systemd, each with folders of its own.

load lib
load engines

setup_file() {
    export BATS_TEST_TIMEOUT=300
    engines_begin
}
teardown_file() { engines_end; }
setup() { test_begin; }
teardown() { test_end; }

@test "containerd: output, status, exec, kill, and nothing is left" {
    have containerd ctr
    containerd_up
    take_snap
    run -0 ctr_run --rm localhost/busybox:test c1 sh -c 'echo hello; uname -r'
    assert_has "$output" hello
    assert_has "$output" cloud
    run ctr_run --rm localhost/busybox:test c2 sh -c 'exit 42'
    assert_status 42
    quiet ctr_run --detach localhost/busybox:test c3 sleep 1000
    assert_has "$(ctr_ task ls)" RUNNING
    run -0 ctr_ task exec --exec-id e1 c3 cat /etc/origin
    assert_eq "$output" image
    run ctr_ task exec --exec-id e2 c3 sh -c 'exit 9'
    assert_status 9
    run -0 ctr_ task ps c3
    run -0 ctr_ task pause c3
    assert_has "$(ctr_ task ls)" PAUSED
    run -0 ctr_ task resume c3
    run -0 ctr_ task metrics c3
    run -0 ctr_ task kill --signal KILL c3
    wait_for 20 eval 'ctr_ task ls | grep -q STOPPED'
    run ctr_ task rm c3
    run -0 ctr_ container rm c3
    root_is_empty default
    assert_same_snap 10
}

@test "containerd's CRI plug-in: a pod's life, as a kubelet has it" {
    have containerd ctr
    cri_possible
    containerd_up
    take_snap
    local pod init a b stats
    mkdir "$T/volume"
    : >"$T/termination"
    jq -n --arg t "$T" '[{container_path: "/vol", host_path: ($t + "/volume")},
        {container_path: "/ro", host_path: ($t + "/volume"), readonly: true},
        {container_path: "/dev/termination-log", host_path: ($t + "/termination")}]' >"$T/mounts.json"
    pod=$(cri_pod p1)
    assert_has "$($VIRSH list --title)" space/p1
    init=$(cri_run "$pod" p1 init sh -c 'echo prepared >/vol/file')
    wait_for 20 cri_is "$init" 'exited 0'
    a=$(cri_create "$pod" p1 a sh -c 'echo out; echo err >&2; cat /vol/file >/dev/termination-log; trap "exit 5" TERM; while :; do sleep 0.2; done')
    assert_eq "$(cri_state "$a")" 'created 0'
    cri StartContainer "$(cri_ref container "$a")"
    b=$(cri_run "$pod" p1 b payload tcp-serve :: 7000)
    assert_eq "$(domains | wc -l)" 1 machines
    assert_eq "$(cri_state "$a")" 'running 0'
    assert_eq "$(cri_exec "$a" sh -c 'cat /etc/origin; hostname; exit 9')" $'image\np1\nstatus 9'
    assert_eq "$(cri_exec "$a" sh -c 'echo x 2>/dev/null >/ro/file || cat /ro/file')" prepared
    wait_for 20 test -s "$T/termination"
    wait_for 20 eval '[ "$(cut -d" " -f2,4 "$T/p1/a.log" | sort)" = "stderr err
stdout out" ]' || fail "$(cat "$T/p1/a.log")"
    # the pod's address, and localhost between its containers
    wait_for 20 eval '[ "$(echo direct | ip netns exec "$(engine_ns)" "$PAYLOAD" tcp \
        "$(cri PodSandboxStatus "$(cri_ref pod "$pod")" | jq -r .status.network.ip)" 7000)" = direct ]'
    assert_eq "$(cri_exec "$a" sh -c 'echo inner | payload tcp 127.0.0.1 7000')" inner
    cri UpdateContainerResources "$(jq -nc --arg id "$a" '{container_id: $id, linux: {memory_limit_in_bytes: 201326592}}')"
    # the machine is in the pod's numbers
    stats=$(cri PodSandboxStats "$(cri_ref pod "$pod")")
    [ "$(jq -r .stats.linux.memory.working_set_bytes.value <<<"$stats")" -gt $((40 << 20)) ] || fail "$stats"
    stats=$(cri ContainerStats "$(cri_ref container "$a")")
    [ "$(jq -r .stats.memory.working_set_bytes.value <<<"$stats")" -gt 0 ] || fail "$stats"
    # one stops, the others go on; another one comes
    cri StopContainer "$(cri_ref container "$a" 10)"
    assert_eq "$(cri_state "$a")" 'exited 5'
    cri RemoveContainer "$(cri_ref container "$a")"
    a=$(cri_run "$pod" p1 a2 sleep 1000)
    cri StopContainer "$(cri_ref container "$a" 1)"
    assert_eq "$(cri_state "$a")" 'exited 137'
    assert_eq "$(cri_exec "$b" echo still)" still
    cri_remove "$pod"
    root_is_empty k8s.io
    assert_same_snap 10
}

@test "Docker: output, status, exec, logs, stop, stats" {
    have dockerd
    [ -x /usr/bin/docker ] || skip 'no client'
    docker_up
    run -0 dk run --rm --runtime sandvirt --network none localhost/busybox:test sh -c 'echo hello; uname -r'
    assert_has "$output" hello
    assert_has "$output" cloud
    run dk run --rm --runtime sandvirt --network none localhost/busybox:test sh -c 'exit 42'
    assert_status 42
    run -0 dk run --detach --name d1 --runtime sandvirt --network none localhost/busybox:test \
        sh -c 'echo up; trap "exit 3" TERM; while :; do sleep 0.2; done'
    wait_for 20 eval '[ "$(dk logs d1)" = up ]'
    run -0 dk exec d1 cat /etc/origin
    assert_eq "$output" image
    run dk exec d1 sh -c 'exit 9'
    assert_status 9
    run -0 dk stats --no-stream --format '{{.MemUsage}}' d1
    [[ $output != 0B* ]] || fail "statistics: $output"
    run -0 dk stop --time 20 d1
    assert_eq "$(dk inspect --format '{{.State.ExitCode}}' d1)" 3
    run -0 dk rm d1
    wait_for 10 no_domains
}

@test "Docker: a network that a hook makes, and a published port" {
    have dockerd
    [ -x /usr/bin/docker ] || skip 'no client'
    docker_up
    local ns address
    ns=$(engine_ns)
    dk network create --driver bridge --subnet 10.66.3.0/24 net1 >/dev/null
    run -0 dk run --detach --name d2 --hostname named --runtime sandvirt --network net1 --publish 7777:7000 \
        localhost/busybox:test payload tcp-serve :: 7000
    address=$(dk inspect d2 | jq -r '.[0].NetworkSettings.Networks.net1.IPAddress')
    assert_eq "$(dk exec d2 ip -o -4 addr show dev eth0 | grep -o 'inet [0-9.]*')" "inet $address"
    assert_has "$(dk exec d2 ip route)" 'default via 10.66.3.1'
    assert_has "$(dk exec d2 cat /etc/hosts)" "$address"
    assert_eq "$(dk exec d2 hostname)" named
    wait_for 20 eval '[ "$(echo direct | ip netns exec "$ns" "$PAYLOAD" tcp "$address" 7000)" = direct ]'
    assert_eq "$(echo published | ip netns exec "$ns" "$PAYLOAD" tcp 127.0.0.1 7777)" published
    # it is connected to another network while it runs
    dk network create --driver bridge --subnet 10.66.4.0/24 net2 >/dev/null
    dk network connect net2 d2
    wait_for 20 eval 'dk exec d2 ip -o -4 addr | grep -q 10.66.4.'
    dk network disconnect net2 d2
    wait_for 20 eval '! dk exec d2 ip -o -4 addr | grep -q 10.66.4.'
    run -0 dk rm --force d2
    dk network rm net1 net2
    wait_for 10 no_domains
}
