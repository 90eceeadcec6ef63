#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Machines run as users of their own: what one QEMU cannot reach of another's, and what monitor and shim
# have given up.

load lib

setup_file() {
    suite_begin
    FIRST=$((1910000000 + (RANDOM * 32768 + RANDOM) % 80000000))
    export FIRST
    local i
    for i in 0 1; do
        useradd -M -d /nonexistent -s /usr/sbin/nologin -U -G kvm,libvirt-qemu -K UID_MAX=2000000000 \
            -u $((FIRST + i)) "svt-${WORK##*.}-$i"
    done
    write_conf "hypervisor.uid_first=$FIRST" "hypervisor.uid_last=$((FIRST + 1))"
}
teardown_file() {
    local status=0
    pod_down_all
    rm -rf "$RUN/.uid"
    suite_end || status=1
    userdel "svt-${WORK##*.}-0"
    userdel "svt-${WORK##*.}-1"
    return $status
}
setup() { test_begin; }
teardown() {
    pod_down_all
    test_end
}

uid_of() { awk '/^Uid:/ { print $2 }' "/proc/$1/status"; }
field() { awk -v f="$2:" '$1 == f { print $2 }' "/proc/$1/status"; }

# as_qemu PID COMMAND...: with user, groups and mount namespace of that QEMU.
as_qemu() {
    local pid=$1 gid groups
    shift
    gid=$(awk '/^Gid:/ { print $2 }' "/proc/$pid/status")
    groups=$(sed -n 's/^Groups:[ \t]*//p' "/proc/$pid/status" | sed 's/ *$//' | tr ' ' ,)
    nsenter -t "$pid" -m setpriv --reuid "$(uid_of "$pid")" --regid "$gid" --groups "$groups" \
        --bounding-set -all --inh-caps -all "$@"
}

# refused PID COMMAND...: that QEMU cannot do it.
refused() {
    local out
    ! out=$(as_qemu "$@" 2>&1) || fail "QEMU $1 can ${*:2}: $out"
}

@test "one machine's QEMU reaches nothing of another's" {
    take_snap
    local owner a b vm_a vm_b before domain
    before=$(stat -Lc '%U %n' "$SV_IMAGES"/vmlinux "$SV_IMAGES"/initramfs.img)
    pod_up one
    a=$POD
    pod_up two
    b=$POD
    vm_a=$(vm_pid "$a") vm_b=$(vm_pid "$b")
    [ "$(uid_of "$vm_a")" != "$(uid_of "$vm_b")" ] || fail 'both have one user'
    for owner in "$vm_a" "$vm_b"; do
        [ "$(uid_of "$owner")" -ge "$FIRST" ] && [ "$(uid_of "$owner")" -le $((FIRST + 1)) ]
    done
    # its own folder it can enter, so a refusal below means something
    domain=$(echo /var/lib/libvirt/qemu/domain-*-"$(domain_of "$a" | cut -c1-20)")
    as_qemu "$vm_a" busybox ls "$domain" >/dev/null
    domain=$(echo /var/lib/libvirt/qemu/domain-*-"$(domain_of "$b" | cut -c1-20)")
    [ -S "$domain/monitor.sock" ] || fail "no $domain"
    refused "$vm_a" busybox ls "$domain"
    refused "$vm_a" busybox cat "$domain/master-key.aes"
    refused "$vm_a" busybox stat "$domain/monitor.sock"
    refused "$vm_a" busybox stat "$domain/fs0-fs.sock"
    refused "$vm_a" busybox ls "$RUN/.sock"
    refused "$vm_a" busybox ls "$RUN/.box"
    refused "$vm_a" busybox ls "$ROOT"
    refused "$vm_a" busybox head -c 1 "/proc/$vm_b/mem"
    refused "$vm_a" busybox ls "/proc/$vm_b/fd"
    refused "$vm_a" busybox ls "/proc/$vm_b/root/"
    refused "$vm_a" busybox ls "/proc/$(share_pid "$b")/root/"
    refused "$vm_a" busybox kill -0 "$vm_b"
    refused "$vm_a" busybox dd "of=$(echo "$WORK"/boot/*/kernel | cut -d' ' -f1)" if=/dev/null conv=notrunc
    # both work, on the same kernel and image, which stay root's
    run -0 rt exec "$a" cat /etc/origin
    run -0 rt exec "$b" cat /etc/origin
    assert_eq "$(stat -Lc '%U %n' "$SV_IMAGES"/vmlinux "$SV_IMAGES"/initramfs.img)" "$before"
    # a third machine has no user
    mkb "$T/c" true
    in_netns "$T/c"
    new_id c
    try rt run --bundle "$T/c" "$ID"
    assert_refused 'no user is left for another machine'
    # and gets the first one's when that is gone
    rt delete --force "$a"
    quiet rt run --bundle "$T/c" "$ID"
    rt delete --force "$ID"
    rt delete --force "$b"
    rm -f "$RUN/.uid/lock"
    rmdir "$RUN/.uid" # no claim is left
    assert_same_snap 5
}

@test "a claim whose sandbox is gone counts no more" {
    install -d -m 0700 "$RUN/.uid"
    printf 'gone\n%s' "$ROOT" >"$RUN/.uid/$FIRST"
    printf 'gone\n%s' "$ROOT" >"$RUN/.uid/$((FIRST + 1))"
    pod_up
    assert_eq "$(uid_of "$(vm_pid "$POD")")" "$FIRST"
    # a new monitor knows the user of its machine, and gives it back
    kill -KILL "$(monitor_pid "$POD")"
    run -0 rt exec "$POD" true
    rt delete --force "$POD"
    [ ! -e "$RUN/.uid/$FIRST" ] || fail 'the claim is left'
}

@test "monitor and shim have only what they need, hooks have everything" {
    local shim monitor all
    pod_up
    mkm "$T/b" sleep 1000
    jqe "$T/b" '.hooks.prestart = [{path: "/bin/sh", args: ["sh", "-c", "cat >/dev/null; grep -E \"^(Cap|NoNew|Sec)\" /proc/self/status >$0", $out]}]' \
        --arg out "$T/hook"
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    shim=$(pid_of "$ID") monitor=$(monitor_pid "$POD")
    all=$(field self CapBnd)
    assert_eq "$(field "$shim" CapEff)" 0000000000000004 'capabilities of the shim'
    assert_eq "$(field "$shim" CapPrm)" 0000000000000004 'capabilities that the shim may have'
    assert_eq "$(field "$shim" NoNewPrivs)" 1
    assert_eq "$(field "$shim" Seccomp)" 2
    assert_eq "$(field "$monitor" CapBnd)" "$all"
    [ $((0x$(field "$monitor" CapPrm) & 1 << 16)) = 0 ] || fail 'the monitor can load modules'
    assert_has "$(cat "$T/hook")" "CapEff:"$'\t'"$all"
    assert_has "$(cat "$T/hook")" $'NoNewPrivs:\t0'
}
