#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The libvirt daemon restarted, away, frozen, killed in the middle (case A45).

load lib
load lifecycle
load block

setup_file() {
    export BATS_TEST_TIMEOUT=300
    "$SV_SERVICES" kept libvirtd || return 0
    suite_begin
    pod_up daemon
}
teardown_file() {
    [ -z "${WORK:-}" ] || suite_end
}
setup() {
    need_kept libvirtd
    test_begin
    take_snap
}
teardown() {
    "$SV_SERVICES" kept libvirtd || return 0
    "$SV_SERVICES" release libvirtd
    drop_stillborn
    drop_disks
    test_end
}

daemon_pid() { cat /run/sandvirt-services/libvirtd.daemon; }

# The pod and what is in it work, as if nothing had happened.
all_well() {
    local ID
    run -0 rt exec "$POD" cat /etc/origin
    assert_eq "$output" image
    local dir=$T/well.$RANDOM
    mkm "$dir" sh -c 'exit 5'
    new_id "well$RANDOM"
    run rt run --bundle "$dir" "$ID"
    assert_status 5
}

@test "A45: restarted: workloads untouched, events again" {
    mkb "$T/own" sleep 1000
    new_id own
    cm "$ID" "$T/own"
    rt start "$ID"
    local own=$ID shim
    member_up c sleep 1000
    rt start "$ID"
    shim=$(pid_of "$ID")
    daemon_restart libvirtd
    assert_eq "$(state_of "$ID")" running
    assert_eq "$(pid_of "$ID")" "$shim"
    all_well
    # Suspend is seen only by an event of the new connection.
    wait_for 30 eval '$VIRSH suspend "$(domain_of "$POD")" >/dev/null 2>&1'
    wait_state "$ID" paused 10
    $VIRSH resume "$(domain_of "$POD")"
    wait_state "$ID" running 10
    rt delete --force "$ID"
    # A further member with a disk, and a machine that dies.
    disk_bundle disk ext4 cat /marker
    new_id disk
    run -0 rt run --bundle "$T/disk" "$ID"
    assert_eq "$output" disk
    down "$DEV" "$T/disk/rootfs"
    losetup -d "$DEV"
    kill -KILL "$(vm_pid "$own")"
    wait_state "$own" stopped 10
    assert_eq "$(cm_status "$own" "$T/own")" 137
    run -0 rt delete "$own"
    assert_same_snap 5
}

@test "A45: away for 20 s: state, list, kill and exec answer; what needs it says so in time" {
    local seconds=20
    [ -n "${SV_LONG:-}" ] || seconds=6
    member_up c sleep 1000
    rt start "$ID"
    "$SV_SERVICES" hold libvirtd
    "$SV_SERVICES" kill libvirtd TERM
    local gone=$SECONDS
    wait_for 20 test ! -S /run/libvirt/libvirt-sock || true
    took state_of "$ID"
    within 300 'state without libvirtd'
    run -0 rt list -q
    run -0 rt exec "$ID" true
    rt kill "$ID" KILL
    assert_stopped "$ID" 137 signalled
    run -0 rt delete "$ID"
    # A machine of its own cannot be had now.
    mkb "$T/own" true
    new_id own
    took try timeout 120 "${RT[@]}" create --bundle "$T/own" "$ID"
    assert_refused libvirt
    run rt state "$ID"
    assert_refused 'does not exist'
    while [ $((SECONDS - gone)) -lt $seconds ]; do sleep 0.2; done
    "$SV_SERVICES" release libvirtd
    all_well
    quiet rt run --bundle "$T/own" "$ID" || fail "$(cat "$T/out.log")"
    assert_same_snap 5
}

@test "A45: frozen for a while" {
    member_up c sleep 1000
    rt start "$ID"
    kill -STOP "$(daemon_pid)"
    took state_of "$ID"
    within 300 'state with a frozen libvirtd'
    run -0 timeout 30 "${RT[@]}" exec "$ID" true
    rt kill "$ID" KILL
    assert_stopped "$ID" 137 signalled
    run -0 timeout 60 "${RT[@]}" delete "$ID"
    sleep 6
    kill -CONT "$(daemon_pid)"
    wait_for 30 eval "$VIRSH list >/dev/null 2>&1"
    all_well
    assert_same_snap
}

@test "A45: killed in create, killed in delete" {
    mkb "$T/b" sleep 1000
    new_id c
    : >"$LOG/launcher"
    rt create --bundle "$T/b" "$ID" </dev/null >"$T/create.log" 2>&1 3>&- 4>&- &
    local call=$!
    wait_for 30 eval 'grep -q "start the machine: domain" "$LOG/launcher"'
    daemon_restart libvirtd KILL
    STATUS=0
    wait "$call" || STATUS=$?
    echo "# create whose daemon was killed: $STATUS $(cat "$T/create.log")" >&3
    [ "$STATUS" = 0 ] || [ -s "$T/create.log" ]
    run -0 rt delete --force "$ID"
    drop_stillborn
    assert_same_snap 10
    quiet rt run --detach --bundle "$T/b" "$ID" || fail "$(cat "$T/out.log")"
    rt delete --force "$ID" >"$T/delete.log" 2>&1 3>&- 4>&- &
    call=$!
    daemon_restart libvirtd KILL
    STATUS=0
    wait "$call" || STATUS=$?
    echo "# delete whose daemon was killed: $STATUS $(cat "$T/delete.log")" >&3
    run -0 rt delete --force "$ID"
    assert_same_snap 10
    all_well
}

# What libvirt keeps when it is killed after it has written a domain's status and before it has started QEMU (4 ms):
# a domain that nothing ends. Beside it a cgroup and a virtiofsd that it has forgotten.
@test "A45: killed before it has started QEMU: the create fails in time, nothing is left but libvirt's own" {
    local domain file hash place server cgroups=() name
    mkb "$T/b" sleep 1000
    new_id still
    rt create --bundle "$T/b" "$ID"
    domain=$(domain_of "$ID") hash=${domain##*@}
    file=/run/libvirt/qemu/$domain.xml
    sed -E "s/<domstatus .*>/<domstatus state='paused' reason='starting up' pid='0'>/
        s#^  </qemuCaps>#&<job type='none' async='start' flags='0x10' asyncStarted='1'/>#" "$file" >"$T/status.xml"
    grep -q "async='start'" "$T/status.xml"
    run -0 rt delete --force "$ID"
    "$SV_SERVICES" hold libvirtd
    "$SV_SERVICES" kill libvirtd KILL
    cp "$T/status.xml" "$file"
    "$SV_SERVICES" release libvirtd
    wait_for 20 eval '$VIRSH list 2>/dev/null | grep -q "$domain"'
    for place in /sys/fs/cgroup/machine /sys/fs/cgroup/*/machine; do
        name=$place/qemu-99999-$(tr -cd 'a-zA-Z0-9.-' <<<"$domain").libvirt-qemu
        [ ! -d "$place" ] || { mkdir -p "$name/emulator" && cgroups+=("$name"); }
    done
    cp /bin/sh "$T/virtiofsd"
    "$T/virtiofsd" -c 'while :; do sleep 1; done' virtiofsd -o "source=$RUN/.box/$hash/share,x" 3>&- 4>&- &
    server=$!
    local from=$SECONDS
    run -1 rt create --bundle "$T/b" "$ID"
    assert_has "$output" already
    [ $((SECONDS - from)) -lt 15 ] || fail "after $((SECONDS - from)) s"
    assert_has "$(cat "$LOG/launcher")" "it has no process, but libvirt lists it until $file is removed"
    wait "$server" || [ $? = 137 ]
    for name in "${cgroups[@]}"; do
        [ ! -d "$name" ] || fail "left: $name"
    done
    run -0 rt list -q
    [[ $output != *"$ID"* ]]
    wait_for 10 eval '[ ! -d "$ROOT/.sandbox/$ID" ]'
    # As the message says.
    drop_stillborn
    [ ! -e "$file" ]
    quiet rt run --detach --bundle "$T/b" "$ID"
    run -0 rt delete --force "$ID"
    assert_same_snap 10
    all_well
}

@test "A45: QEMU that died while the daemon was away is noticed" {
    mkb "$T/b" sleep 1000
    new_id c
    cm "$ID" "$T/b"
    rt start "$ID"
    local vm
    vm=$(vm_pid "$ID")
    "$SV_SERVICES" hold libvirtd
    "$SV_SERVICES" kill libvirtd KILL
    kill -KILL "$vm"
    wait_state "$ID" stopped 10
    assert_eq "$(cm_status "$ID" "$T/b")" 137
    local domain
    domain=$(basename "$(dirname "$(find /sys/fs/cgroup -path "*qemu-*$ID*/emulator" -print -quit)")")
    "$SV_SERVICES" release libvirtd
    run -0 rt delete "$ID"
    # libvirt itself forgets the cgroups of a QEMU that dies while its daemon is away
    [ "$domain" = . ] || find /sys/fs/cgroup -depth -type d -path "*/$domain*" -exec rmdir {} +
    assert_same_snap 10
}
