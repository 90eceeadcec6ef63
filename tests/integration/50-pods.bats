#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sandboxes of several containers: who belongs to whom, what is shared.

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=180
    suite_begin
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() {
    pod_down_all
    test_end
}

# namespace_path TYPE PATH: the spec of $T/b joins that namespace (empty: has one of its own).
namespace_path() {
    jqe "$T/b" '.linux.namespaces |= (map(select(.type != $t)) + [{type: $t} + (if $p == "" then {} else {path: $p} end)])' \
        --arg t "$1" --arg p "$2"
}

@test "one machine per pod; its end with the last delete" {
    take_snap
    pod_up
    mkm "$T/b" sleep 1000
    local i
    for i in 1 2 3; do
        new_id "c$i"
        quiet rt run --detach --bundle "$T/b" "$ID"
    done
    assert_eq "$(domains | wc -l)" 1
    assert_eq "$(pgrep -x sandvirt-monito | while read -r pid; do grep -zlF "$ROOT" "/proc/$pid/cmdline"; done | wc -l)" 1
    assert_eq "$(rt list -q | wc -l)" 4
    for i in 1 2 3; do rt delete --force "c$i-$N"; done
    assert_eq "$(domains | wc -l)" 1
    rt kill "$POD" KILL
    wait_state "$POD" stopped
    took rt delete "$POD"
    wait_for 2 no_domains
    assert_same_snap
}

@test "the sandbox's container may stop first: its siblings go on" {
    pod_up
    mkm "$T/b" sleep 1000
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    rt kill "$POD" KILL
    wait_state "$POD" stopped
    run -0 rt exec "$ID" cat /etc/origin
    assert_eq "$output" image
    rt delete "$POD"
    run -0 rt exec "$ID" cat /etc/origin
    rt delete --force "$ID"
    wait_for 5 no_domains
}

@test "without a pause container the first of a SandboxID makes the sandbox" {
    take_snap
    POD=bare-${WORK##*.}-$N
    mkm "$T/b" sh -c 'echo $$ >/dev/shm/x; exec sleep 1000'
    mkm "$T/d" sleep 1000
    # what CRI-O says of the pod then
    jqe "$T/b" '.annotations["io.kubernetes.cri-o.SandboxName"] = "k8s_web_team_uid-1_0"'
    new_id one
    local one=$ID
    quiet rt run --detach --bundle "$T/b" "$one"
    assert_eq "$($VIRSH desc --title "$(domains)")" team/web title
    new_id two
    quiet rt run --detach --bundle "$T/d" "$ID"
    assert_eq "$(domains | wc -l)" 1
    # The first goes, another comes: the sandbox lives as long as anything is in it.
    rt delete --force "$one"
    quiet rt run --detach --bundle "$T/b" "$one"
    assert_eq "$(domains | wc -l)" 1
    rt delete --force "$one"
    rt delete --force "$ID"
    assert_same_snap 5
}

@test "without a pause container the next one after the machine's end has another machine" {
    take_snap
    POD=again-${WORK##*.}-$N
    mkm "$T/b" sleep 1000
    mkm "$T/d" sleep 1000
    new_id one
    local one=$ID how boot
    quiet rt run --detach --bundle "$T/b" "$one"
    boot=$(rt exec "$one" cat /proc/sys/kernel/random/boot_id)
    # what has ended before stays, as engines leave it, and deletes later
    for how in destroy kill; do
        case $how in
        destroy) $VIRSH destroy "$(domains)" ;;
        kill) kill -KILL "$(vm_pid "$POD")" ;;
        esac
        wait_state "$ID" stopped
        new_id "after-$how"
        quiet rt run --detach --bundle "$T/d" "$ID" || fail "$(cat "$T/out.log")"
        [ "$(rt exec "$ID" cat /proc/sys/kernel/random/boot_id)" != "$boot" ]
        assert_eq "$(state_of "$one")" stopped
        assert_eq "$(domains | wc -l)" 1
    done
    rt delete "$one"
    rt delete "after-destroy-$N"
    run -0 rt exec "$ID" cat /etc/origin
    rt delete --force "$ID"
    assert_same_snap 5
}

@test "a pause container's end with its machine is the sandbox's" {
    pod_up
    mkm "$T/b" sleep 1000
    $VIRSH destroy "$(domains)"
    wait_state "$POD" stopped
    new_id late
    try rt run --bundle "$T/b" "$ID"
    assert_refused 'has ended'
}

@test "two pods are two machines" {
    pod_up first
    local first=$POD
    pod_up second
    assert_eq "$(domains | wc -l)" 2
    rt exec "$POD" sh -c 'echo x >/tmp/only-here'
    run -0 rt exec "$first" ls /tmp
    assert_eq "$output" ''
    # Boot ids of the kernels.
    [ "$(rt exec "$first" cat /proc/sys/kernel/random/boot_id)" != "$(rt exec "$POD" cat /proc/sys/kernel/random/boot_id)" ]
}

@test "shared: network always, ipc and host name as the namespaces' paths say" {
    pod_up
    local pause
    pause=$(pid_of "$POD")
    mkm "$T/b" sleep 1000
    # As engines do it: the paths of the pause container's process.
    namespace_path ipc "/proc/$pause/ns/ipc"
    namespace_path uts "/proc/$pause/ns/uts"
    new_id a
    quiet rt run --detach --bundle "$T/b" "$ID" || fail "$(cat "$T/out.log")"
    assert_eq "$(rt exec "$ID" readlink /proc/self/ns/ipc)" "$(rt exec "$POD" readlink /proc/self/ns/ipc)" ipc
    assert_eq "$(rt exec "$ID" readlink /proc/self/ns/uts)" "$(rt exec "$POD" readlink /proc/self/ns/uts)" uts
    assert_eq "$(rt exec "$ID" readlink /proc/self/ns/net)" "$(rt exec "$POD" readlink /proc/self/ns/net)" net
    [ "$(rt exec "$ID" readlink /proc/self/ns/pid)" != "$(rt exec "$POD" readlink /proc/self/ns/pid)" ]
    [ "$(rt exec "$ID" readlink /proc/self/ns/mnt)" != "$(rt exec "$POD" readlink /proc/self/ns/mnt)" ]
    run -0 rt exec "$ID" ip -o link show lo
    assert_has "$output" UP
}

@test "a container's own host name and ipc when the spec asks for them" {
    pod_up
    mkm "$T/b" sh -c 'hostname; readlink /proc/self/ns/ipc'
    jqe "$T/b" '.hostname = "own"'
    namespace_path ipc ''
    namespace_path uts ''
    new_id a
    run -0 rt run --bundle "$T/b" "$ID"
    assert_eq "${lines[0]}" own
    [ "${lines[1]}" != "$(rt exec "$POD" readlink /proc/self/ns/ipc)" ]
    assert_eq "$(rt exec "$POD" hostname)" test
}

@test "a pid namespace shared by a container that names another's" {
    pod_up
    mkm "$T/b" sh -c 'ps'
    namespace_path pid "/proc/$(pid_of "$POD")/ns/pid"
    new_id a
    run -0 rt run --bundle "$T/b" "$ID"
    assert_has "$output" 'sleep 1000000'
}

@test "a pod whose containers all share the machine's pid namespace" {
    pod_up
    mkm "$T/b" sleep 1234
    jqe "$T/b" '.linux.namespaces |= map(select(.type != "pid"))'
    new_id a
    quiet rt run --detach --bundle "$T/b" "$ID"
    mkm "$T/c" ps
    jqe "$T/c" '.linux.namespaces |= map(select(.type != "pid"))'
    new_id b
    run -0 rt run --bundle "$T/c" "$ID"
    assert_has "$output" 'sleep 1234'
}

@test "joining is refused with another network namespace" {
    pod_up
    ip netns add "$NETNS-b"
    mkm "$T/b" true
    in_netns "$T/b" "$NETNS-b"
    new_id other
    try rt run --bundle "$T/b" "$ID"
    ip netns del "$NETNS-b"
    assert_refused namespace
    # The host's is another one too.
    jqe "$T/b" '.linux.namespaces |= map(select(.type != "network"))'
    try rt run --bundle "$T/b" "$ID"
    assert_refused namespace
    namespace_path network "/run/netns/$NETNS"
    run -0 rt run --bundle "$T/b" "$ID"
    # An entry without a path means the pod's.
    mkm "$T/c" sleep 1000
    jqe "$T/c" '(.linux.namespaces[] | select(.type == "network")) |= {type: "network"}'
    new_id pathless
    quiet rt create --bundle "$T/c" "$ID"
    assert_eq "$(readlink "/proc/$(pid_of "$ID")/ns/net")" "$(readlink "/proc/$(pid_of "$POD")/ns/net")"
    # Without the type that engines of pods write, and nobody else may, it means one of the container's own.
    jqe "$T/c" 'del(.annotations["io.kubernetes.cri-o.ContainerType"]) | .process.args = ["cat", "/etc/origin"]'
    new_id tenant
    try rt run --bundle "$T/c" "$ID"
    assert_refused "cannot join sandbox \"$POD\"" namespace
    # podman's way: no type, but the path.
    in_netns "$T/c"
    new_id podman
    run -0 rt run --bundle "$T/c" "$ID"
    assert_eq "$output" image
    # The shims are in the pod's namespace: engines and CNI look there.
    assert_eq "$(readlink "/proc/$(pid_of "$POD")/ns/net")" "$(ip netns exec "$NETNS" readlink /proc/self/ns/net)"
}

@test "the host's network replaced: such a pod's containers join it, no other pod" {
    local name infra
    pod_up
    write_conf network.host_network_substitute=true
    # As podman writes them for pod create --network host.
    for name in infra member tenant; do
        new_id "$name"
        mkb "$T/$name" cat /etc/origin
        jqe "$T/$name" '.linux.namespaces |= map(select(.type != "network"))
            | .annotations["io.kubernetes.cri-o.SandboxID"] = $id' --arg id "${infra:-$ID}"
        infra=${infra:-$ID}
    done
    jqe "$T/infra" '.process.args = ["sleep", "1000"]'
    quiet rt run --detach --bundle "$T/infra" "$infra"
    run -0 rt run --bundle "$T/member" "member-$N"
    assert_eq "$output" image
    run -0 rt create --bundle "$T/member" "member-$N" </dev/null
    assert_eq "$(jq -r .sandbox "$ROOT/member-$N/state.json")" "$infra"
    jqe "$T/tenant" '.annotations["io.kubernetes.cri-o.SandboxID"] = $id' --arg id "$POD"
    try rt run --bundle "$T/tenant" "tenant-$N"
    write_conf
    assert_refused "cannot join sandbox \"$POD\"" "host's network"
}

@test "a pod that got a new network namespace is joined by its process's" {
    POD=own-${WORK##*.}-$N
    echo "$POD" >>"$T/ids"
    mkb "$T/p" sleep 1000
    jqe "$T/p" '.annotations += {"io.kubernetes.cri-o.ContainerType": "sandbox", "io.kubernetes.cri-o.SandboxID": $p}' --arg p "$POD"
    quiet rt run --detach --bundle "$T/p" "$POD"
    [ "$(readlink "/proc/$(pid_of "$POD")/ns/net")" != "$(readlink /proc/self/ns/net)" ]
    mkm "$T/b" cat /etc/origin
    namespace_path network "/proc/$(pid_of "$POD")/ns/net"
    new_id c
    run -0 rt run --bundle "$T/b" "$ID"
    assert_eq "$output" image
    rt delete --force "$ID"
    rt delete --force "$POD"
    wait_for 5 no_domains
}

@test "annotations of two families: the first family's decide" {
    pod_up
    # A tenant's containerd keys on a CRI-O container are ignored.
    mkm "$T/b" cat /etc/origin
    jqe "$T/b" '.annotations += {"io.kubernetes.cri.container-type": "sandbox", "io.kubernetes.cri.sandbox-id": "elsewhere"}'
    new_id a
    run -0 rt run --bundle "$T/b" "$ID"
    assert_eq "$(domains | wc -l)" 1
    jqe "$T/b" '.annotations["io.kubernetes.cri-o.SandboxID"] = "../escape"'
    new_id b
    run rt run --bundle "$T/b" "$ID"
    assert_refused
}

@test "containerd's and dockershim's annotations" {
    local family pod
    for family in 'io.kubernetes.cri.container-type io.kubernetes.cri.sandbox-id sandbox' \
        'io.kubernetes.docker.type io.kubernetes.sandbox.id podsandbox'; do
        # shellcheck disable=SC2086
        set -- $family
        pod=fam-${3}-${WORK##*.}
        echo "$pod" >>"$T/ids"
        mkb "$T/p$3" sleep 1000
        in_netns "$T/p$3"
        jqe "$T/p$3" '.annotations += {($t): $v, ($i): $p}' --arg t "$1" --arg i "$2" --arg v "$3" --arg p "$pod"
        quiet rt run --detach --bundle "$T/p$3" "$pod"
        mkb "$T/c$3" cat /etc/origin
        in_netns "$T/c$3"
        jqe "$T/c$3" '.annotations += {($t): "container", ($i): $p}' --arg t "$1" --arg i "$2" --arg p "$pod"
        new_id "m$3"
        run -0 rt run --bundle "$T/c$3" "$ID"
        assert_eq "$output" image
        assert_eq "$(domains | wc -l)" 1
        rt delete --force "$ID"
        rt delete --force "$pod"
        wait_for 5 no_domains
    done
}

@test "a container of a sandbox that is not there any more" {
    pod_up
    mkm "$T/b" true
    rt delete --force "$POD"
    wait_for 5 no_domains
    # It makes the sandbox anew, as without a pause container.
    new_id late
    run -0 rt run --bundle "$T/b" "$ID"
    wait_for 5 no_domains
}
