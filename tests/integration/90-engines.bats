#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# containerd (ctr) and Docker from Debian's packages, without systemd, each with folders of its own.

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=300
    suite_begin
    # --config is not a flag that engines give: as a script.
    rt_words
    printf '#!/bin/sh\nexec %s "$@"\n' "$SANDVIRT --config $CONF" >"$WORK/sandvirt"
    chmod 0755 "$WORK/sandvirt"
}
teardown_file() {
    local pid
    for pid in docker containerd; do
        [ ! -e "$WORK/$pid.pid" ] || stop_pid "$(cat "$WORK/$pid.pid")"
    done
    [ ! -e "$WORK/docker.ns" ] || ip netns del "$(cat "$WORK/docker.ns")"
    awk -v w="$WORK/" 'index($5, w) == 1 { print $5 }' /proc/self/mountinfo | grep -v /boot/ | sort -r | xargs -r umount -l
    suite_end
}
setup() { test_begin; }
teardown() { test_end; }

stop_pid() {
    kill -TERM "$1" 2>/dev/null || true
    wait_for 20 test ! -d "/proc/$1" || kill -KILL "$1"
}

have() {
    # shellcheck disable=SC2230
    which "$@" >/dev/null 2>&1 || skip "$* not installed"
}

image() { # FILE: an image archive with the tests' root file system, as `docker save` writes it
    [ ! -e "$1" ] || return 0
    mkdir -p "$WORK/image/l"
    tar -C "$BUNDLES/base" -cf "$WORK/image/l/layer.tar" .
    local sum
    sum=$(sha256sum "$WORK/image/l/layer.tar" | cut -d' ' -f1)
    jq -n --arg s "sha256:$sum" '{architecture: "amd64", os: "linux", config: {Cmd: ["sh"]},
        rootfs: {type: "layers", diff_ids: [$s]}}' >"$WORK/image/config.json"
    echo '[{"Config": "config.json", "RepoTags": ["localhost/busybox:test"], "Layers": ["l/layer.tar"]}]' >"$WORK/image/manifest.json"
    tar -C "$WORK/image" -cf "$1" manifest.json config.json l
}

containerd_up() {
    [ ! -e "$WORK/containerd.pid" ] || return 0
    cat >"$WORK/containerd.toml" <<TOML
version = 2
root = "$WORK/cd/root"
state = "$WORK/cd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "$WORK/cd.sock"
[ttrpc]
  address = "$WORK/cd.ttrpc"
TOML
    setsid containerd --config "$WORK/containerd.toml" </dev/null >"$LOG/containerd" 2>&1 3>&- 4>&- &
    echo $! >"$WORK/containerd.pid"
    wait_for 20 ctr_ version || fail "$(tail "$LOG/containerd")"
    image "$WORK/image.tar"
    ctr_ images import --snapshotter native "$WORK/image.tar" >/dev/null
}

ctr_() { ctr --address "$WORK/cd.sock" "$@"; }
ctr_run() { # the options of ctr run
    ctr_ run --snapshotter native --runc-binary "$WORK/sandvirt" --runc-root "$ROOT" "$@"
}

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
    wait_for 10 no_domains
    # containerd's namespace is a root of its own
    wait_for 5 rmdir "$ROOT/default/.sandbox" "$ROOT/default" || fail "left: $(find "$ROOT/default")"
    assert_same_snap 10
}

docker_up() {
    [ ! -e "$WORK/docker.pid" ] || return 0
    # Its bridges and ports are in a namespace of its own. Debian's client; another one may come first in PATH.
    ip netns add "svd-$$"
    ip -n "svd-$$" link set lo up
    echo "svd-$$" >"$WORK/docker.ns"
    setsid nsenter "--net=/run/netns/svd-$$" dockerd --data-root "$WORK/dk/data" --exec-root "$WORK/dk/exec" --pidfile "$WORK/dk.pid" \
        --host "unix://$WORK/dk.sock" --bridge none --iptables=false --ip6tables=false --storage-driver vfs \
        --exec-opt native.cgroupdriver=cgroupfs --add-runtime "sandvirt=$WORK/sandvirt" \
        </dev/null >"$LOG/docker" 2>&1 3>&- 4>&- &
    echo $! >"$WORK/docker.pid"
    wait_for 60 dk version || fail "$(tail "$LOG/docker")"
    image "$WORK/image.tar"
    dk load --input "$WORK/image.tar" >/dev/null
}

dk() { /usr/bin/docker --host "unix://$WORK/dk.sock" "$@"; }

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
    ns=$(cat "$WORK/docker.ns")
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
