#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Cgroups on the host: who is in which, that nothing stays, that a machine still grows.

load lib

setup_file() { suite_begin; }
teardown_file() { suite_end; }
setup() {
    test_begin
    CG=/svt.${WORK##*.}/t$BATS_TEST_NUMBER
}
teardown() {
    pod_down_all
    test_end
}

# Folders of all hierarchies.
hierarchies() {
    local h
    if [ -e /sys/fs/cgroup/cgroup.procs ]; then
        echo /sys/fs/cgroup
        return
    fi
    for h in /sys/fs/cgroup/*/cgroup.procs; do
        [ -L "${h%/cgroup.procs}" ] || echo "${h%/cgroup.procs}"
    done
}

# assert_in CGROUP PID [BUT]: the process is in it in every hierarchy (but that one).
assert_in() {
    local h
    for h in $(hierarchies); do
        [ "${h##*/}" != "${3:-}" ] || continue
        grep -qx "$2" "$h$1/cgroup.procs" || fail "$(cat "/proc/$2/comm") ($2) is not in $h$1: $(cat "/proc/$2/cgroup")"
    done
}

in_cgroup() { jqe "$1" '.linux.cgroupsPath = $p' --arg p "$2"; }
none_left() { [ -z "$(find /sys/fs/cgroup -path "*${CG#/}*" -print -quit 2>/dev/null)" ]; }

@test "a container without a pod: all that belongs to it is in its cgroup" {
    take_snap
    mkb "$T/b" sleep 1000
    in_netns "$T/b"
    in_cgroup "$T/b" "$CG/a/one"
    new_id one
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_in "$CG/a/one" "$(pid_of "$ID")"
    assert_in "$CG/a/one" "$(monitor_pid "$ID")"
    assert_in "$CG/a/one" "$(vm_pid "$ID")" devices
    assert_in "$CG/a/one" "$(share_pid "$ID")" devices
    # what an engine reads there is about what the machine takes
    local memory
    memory=$(cat /sys/fs/cgroup/memory"$CG"/a/one/memory.usage_in_bytes 2>/dev/null || cat "/sys/fs/cgroup$CG/a/one/memory.current")
    [ "$memory" -gt $((60 << 20)) ] || fail "only $memory bytes are accounted"
    rt exec --detach --pid-file "$T/pid" "$ID" sleep 1000 </dev/null >/dev/null 2>&1
    assert_in "$CG/a/one" "$(cat "$T/pid")"
    # a new monitor goes there too
    kill -KILL "$(monitor_pid "$ID")"
    run -0 rt exec "$ID" true
    assert_in "$CG/a/one" "$(monitor_pid "$ID")"
    rt delete --force "$ID"
    wait_for 3 none_left || fail "left: $(find /sys/fs/cgroup -path "*${CG#/}*")"
    assert_same_snap
}

@test "a create cut off with its monitor leaves no cgroup" {
    local created=0 top
    pod_up cut
    top=$(hierarchies | head -n 1)
    mkm "$T/b" sleep 1000
    in_cgroup "$T/b" "$CG/a/one"
    new_id one
    # Nobody to take it back: the caller goes with the monitor.
    "${RT[@]}" create --bundle "$T/b" "$ID" </dev/null >"$T/out" 2>&1 3>&- &
    wait_for 20 grep -q . "$top$CG/a/one/cgroup.procs"
    kill -KILL $! "$(monitor_pid "$POD")"
    wait $! || created=$?
    assert_eq "$created" 137
    run -0 rt exec "$POD" true
    run rt state "$ID"
    assert_refused 'does not exist'
    wait_for 5 none_left || fail "left: $(find /sys/fs/cgroup -path "*${CG#/}*")"
}

@test "a pod: machine in the sandbox's, shims in their own; parents of the engine stay" {
    local h
    for h in $(hierarchies); do
        mkdir -p "$h$CG/pod"
    done
    POD=pod-$N
    echo "$POD" >>"$WORK/pods"
    mkm "$T/s" sleep 1000
    jqe "$T/s" '.annotations["io.kubernetes.cri-o.ContainerType"] = "sandbox"'
    in_cgroup "$T/s" "$CG/pod/crio-$POD"
    mkm "$T/c" sleep 1000
    new_id c
    in_cgroup "$T/c" "$CG/pod/crio-$ID"
    quiet rt run --detach --bundle "$T/s" "$POD"
    quiet rt run --detach --bundle "$T/c" "$ID"
    assert_in "$CG/pod/crio-$POD" "$(vm_pid "$POD")" devices
    assert_in "$CG/pod/crio-$POD" "$(pid_of "$POD")"
    assert_in "$CG/pod/crio-$ID" "$(pid_of "$ID")"
    # the sandbox's own container goes first
    rt delete --force "$POD"
    assert_in "$CG/pod/crio-$POD" "$(vm_pid "$POD")" devices
    rt delete --force "$ID"
    for h in $(hierarchies); do
        [ -d "$h$CG/pod" ] || fail "the engine's $h$CG/pod is gone"
        wait_for 3 rmdir "$h$CG/pod" || fail "left in $h$CG/pod: $(ls "$h$CG/pod")"
        rmdir "$h$CG" "$h${CG%/*}" || true
    done
}

@test "without a pause container the machine has a cgroup beside the first one's" {
    POD=bare-$N
    mkm "$T/c" sleep 1000
    new_id c
    in_cgroup "$T/c" "$CG/pod/crio-$ID"
    quiet rt run --detach --bundle "$T/c" "$ID"
    local vm
    vm=$(grep -ao "sandvirt-[0-9a-f]*$" "/proc/$(vm_pid "$POD")/cgroup" | head -1)
    assert_in "$CG/pod/$vm" "$(vm_pid "$POD")" devices
    rt delete --force "$ID"
    wait_for 3 none_left || fail "left: $(find /sys/fs/cgroup -path "*${CG#/}*")"
}

@test "SLICE:PREFIX:NAME: libvirt starts the machine in the slice" {
    [ ! -d /run/systemd/system ] || skip 'slices are systemd'\''s here'
    mkb "$T/b" sleep 1000
    in_netns "$T/b"
    new_id s
    local slice=svt${WORK##*.}.slice scope
    scope=/$slice/svt${WORK##*.}-pod.slice/crio-$ID.scope
    in_cgroup "$T/b" "svt${WORK##*.}-pod.slice:crio:$ID"
    quiet rt --systemd-cgroup run --detach --bundle "$T/b" "$ID"
    assert_in "$scope" "$(pid_of "$ID")"
    assert_in "$scope" "$(monitor_pid "$ID")"
    grep -q "/$slice/svt${WORK##*.}-pod.slice/" "/proc/$(vm_pid "$ID")/cgroup" || fail "$(cat "/proc/$(vm_pid "$ID")/cgroup")"
    rt delete --force "$ID"
}

@test "a machine gets more CPUs where it is" {
    [ "$(nproc)" -ge 2 ] || skip 'one CPU'
    mkb "$T/b" sleep 1000
    in_netns "$T/b"
    in_cgroup "$T/b" "$CG/grow"
    new_id g
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_eq "$(rt exec "$ID" nproc)" 1
    rt update --cpu-period 100000 --cpu-quota 200000 "$ID"
    assert_eq "$(rt exec "$ID" nproc)" 2
    assert_in "$CG/grow" "$(vm_pid "$ID")" devices
    rt delete --force "$ID"
}

@test "a path that leads out is refused" {
    mkb "$T/b" true
    in_netns "$T/b"
    in_cgroup "$T/b" "/a/../../etc"
    new_id x
    try rt run --bundle "$T/b" "$ID"
    assert_refused 'linux.cgroupsPath'
}
