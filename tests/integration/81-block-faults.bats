#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Disks that must not be given, and what happens when something dies in the middle.

load lib
load block

setup_file() {
    export BATS_TEST_TIMEOUT=300
    suite_begin
    mkdir "$WORK/pictures"
    chmod 0755 "$WORK/pictures"
    write_conf "storage.image_folders=$WORK/pictures" timeouts.device_ms=5000
    pod_up
}
teardown_file() { suite_end; }

# refused PART...: a member with bundle $T/b is refused in one line with these words; nothing is left.
refused() {
    local before after
    before=$(aliases)
    new_id "x$RANDOM"
    run rt create --bundle "$T/b" "$ID"
    assert_refused "$@"
    [ "$(grep -c . <<<"$output")" -eq 1 ] || fail "more than one line: $output"
    run ! rt state "$ID"
    after=$(aliases)
    assert_eq "$after" "$before" 'disks in the machine'
}

# ---------------------------------------------------------------- what is refused

@test "devices that are none" {
    fresh
    MAJ=7 MIN=9999 DEV=none device /dev/data rwm
    refused 'linux.devices[0]' '7:9999' '/dev/data' 'does not exist'
    # One that nobody may open is a mere name.
    jqe "$T/b" '.linux.resources.devices = [{allow: false, access: "rwm"}] | .process.args = ["sh", "-c",
        "stat -c %t:%T /dev/data; head -c 1 /dev/data"]'
    new_id name
    run rt run --bundle "$T/b" "$ID"
    assert_status 1
    assert_has "$output" 7:270f
    assert_has "$output" 'peration not permitted'
    fresh
    DEV=$(losetup -f) MAJ=7
    MIN=${DEV#/dev/loop}
    device /dev/data rwm
    refused "\"$DEV\"" 'size 0'
    fresh
    typed ext4 /dev/null
    refused '"/dev/null" is a character device'
    fresh
    typed ext4 /dev/missing
    refused '"/dev/missing" does not exist'
    fresh
    disk d ext4
    mknod "$T/node" b "$MAJ" "$MIN"
    typed ext4 "$T/node"
    refused "\"$T/node\" is not below /dev"
    is_free "$DEV"
}

@test "file systems that are none" {
    fresh
    disk d raw 16M
    typed ext4 "$DEV"
    refused "block device \"$DEV\"" 'mount'
    fresh
    typed xfs "$DEV"
    refused "block device \"$DEV\"" 'mount'
    fresh
    typed foofs "$DEV"
    refused 'foofs'
    mkfs.ext4 -q -F "$DEV"
    dd if=/dev/urandom of="$DEV" bs=1k seek=1 count=1 conv=notrunc,fsync status=none
    fresh
    typed ext4 "$DEV"
    refused "block device \"$DEV\"" 'mount'
    is_free "$DEV"
}

@test "a device that the host uses" {
    fresh
    disk d ext4
    mkdir "$T/mnt"
    mount "$DEV" "$T/mnt"
    device /dev/data rwm
    refused "\"$DEV\"" "mounted at \"$T/mnt\""
    down "$DEV" "$T/mnt"
    # in another mount namespace
    unshare -m sh -c "mount $DEV $T/mnt; echo; exec sleep 1000" >"$T/up" &
    local pid=$!
    wait_for 5 test -s "$T/up"
    refused "\"$DEV\"" "mounted at \"$T/mnt\"" "process $pid"
    kill $pid
    wait $pid || true
    # by itself, not by our lock
    python3 -c 'import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL); print("held", flush=True); time.sleep(1000)' "$DEV" >"$T/held" &
    pid=$!
    wait_for 5 test -s "$T/held"
    refused "\"$DEV\"" 'in use'
    kill $pid
    wait $pid || true
    # as the file of a loop device, which no exclusive open keeps from it
    local loop
    loop=$(losetup -f --show "$DEV")
    refused "\"$DEV\"" "part of block device \"$loop\""
    losetup -d "$loop"
    is_free "$DEV"
}

@test "two disks with one serial" {
    local serial domain
    domain=$(domain_of "$POD")
    disk e raw 16M
    new_id twin
    # that which the next disk of the container will have
    serial=$(printf '%s/%s/%s' "$POD" "$ID" "$(jq .nextDisk "$ROOT/.sandbox/$POD/sandbox.json")" | sha256sum | cut -c1-20)
    $VIRSH attach-disk "$domain" "$DEV" sdz --targetbus scsi --serial "$serial"
    disk d raw 16M
    fresh
    device /dev/data rwm
    run rt create --bundle "$T/b" "$ID"
    $VIRSH detach-disk "$domain" sdz
    assert_refused "block device \"$DEV\"" 'another disk' "$serial"
    is_free "$DEV"
    wait_for 5 eval '[ "$(disk_count)" = 0 ]'
}

@test "a disk that does not come up in the guest is told of in time, and taken back (A28)" {
    autoprobe 0
    disk d raw 16M
    fresh
    device /dev/data rwm
    local from=$EPOCHREALTIME
    refused "block device \"$DEV\"" 'in time'
    local ms=$(((${EPOCHREALTIME/./} - ${from/./}) / 1000))
    autoprobe 1
    fresh
    device /dev/data rwm
    [ $ms -lt 12000 ] || fail "after $ms ms"
    is_free "$DEV"
    assert_eq "$(disk_count)" 0
    run says 'blockdev --getro /dev/data'
    assert_eq "$output" 0 'the next one'
}

@test "a device with a swap area in use, or a partition in use" {
    disk d raw 64M
    mkswap -q "$DEV"
    swapon "$DEV" 2>/dev/null || skip 'swap is not allowed here'
    fresh
    device /dev/data rwm
    refused "\"$DEV\"" swap
    swapoff "$DEV"
}

@test "a disk is refused while a partition of it is mounted, and the other way round" {
    truncate -s 64M "$T/p.img"
    attach p -P
    # told to the kernel, which need not know any partition table
    addpart "$DEV" 1 2048 32768
    addpart "$DEV" 2 34816 32768
    local whole=$DEV
    mkfs.ext4 -q -F "${whole}p1"
    mkdir "$T/mnt"
    mount "${whole}p1" "$T/mnt"
    fresh
    device /dev/data rwm
    refused "\"$whole\"" "mounted at \"$T/mnt\""
    down "$whole" "$T/mnt"
    # a loop device on one, which no exclusive open of the other would meet
    local loop
    loop=$(losetup -f --show "${whole}p1")
    refused "\"$whole\"" "part of block device \"$loop\""
    losetup -d "$loop"
    # a container has the first partition: not the whole, but the second
    fresh
    MAJ=$((0x$(stat -c %t "${whole}p1"))) MIN=$((0x$(stat -c %T "${whole}p1")))
    device /dev/one rwm
    new_id one
    mv "$T/b" "$T/one"
    quiet rt run --detach --bundle "$T/one" "$ID"
    fresh
    MAJ=$((0x$(stat -c %t "$whole"))) MIN=$((0x$(stat -c %T "$whole")))
    device /dev/data rwm
    refused "\"$whole\"" "container \"one-$N\""
    fresh
    MAJ=$((0x$(stat -c %t "${whole}p2"))) MIN=$((0x$(stat -c %T "${whole}p2")))
    device /dev/two rwm
    new_id two
    quiet rt run --detach --bundle "$T/b" "$ID"
}

@test "one device for two: containers of a pod, pods, rootfs and device" {
    disk d raw 16M
    local shared=$DEV
    fresh
    device /dev/data rwm
    new_id first
    mv "$T/b" "$T/first"
    quiet rt run --detach --bundle "$T/first" "$ID"
    fresh
    device /dev/data rwm
    refused "\"$shared\"" "container \"first-$N\""
    fresh
    device /dev/data rm
    refused "\"$shared\"" "container \"first-$N\""
    # another pod
    fresh
    by_itself
    device /dev/data rwm
    new_id other
    run rt create --bundle "$T/b" "$ID"
    assert_refused "\"$shared\"" "container \"first-$N\""
    assert_eq "$(domain_of "$ID")" ''
    rt delete --force "first-$N"
    # the container's own root file system
    disk_bundle r ext4 sleep 1000
    mv "$T/r/config.json" "$T/r/config.json.one"
    jq '.linux.devices += [{path: "/dev/root", type: "b", major: $a, minor: $b}]' \
        "$T/r/config.json.one" --argjson a "$MAJ" --argjson b "$MIN" >"$T/r/config.json"
    new_id own
    run rt create --bundle "$T/r" "$ID"
    assert_refused "\"$DEV\"" rootfs
    assert_eq "$(fstype_at "$T/r/rootfs")" ext4
    # twice in one list is one device
    fresh
    DEV=$shared MAJ=$((0x$(stat -c %t "$shared"))) MIN=$((0x$(stat -c %T "$shared")))
    device /dev/a rwm
    device /dev/b rwm
    says 'stat -c %t:%T /dev/a /dev/b' >"$T/two"
    assert_eq "$(sort -u "$T/two" | grep -c .)" 1
}

@test "one device for several: when it is only read, or when the configuration says so; cache and I/O modes" {
    local access name other pictures="storage.image_folders=$WORK/pictures"
    disk d raw 16M
    for access in rm rwm; do
        if [ $access = rwm ]; then
            write_conf "$pictures" storage.shareable=true storage.discard=false \
                storage.disk_cache=writeback storage.disk_io=threads
            pod_up shares
        fi
        # two of one pod: one disk of its machine
        for name in one two; do
            fresh
            device /dev/data $access
            mv "$T/b" "$T/$name-$access"
            new_id "$name-$access"
            quiet rt run --detach --bundle "$T/$name-$access" "$ID"
        done
        assert_eq "$(disk_count)" 1
        assert_driver "$([ $access = rm ] && echo none native unmap || echo writeback threads)"
        fresh
        device /dev/data "$([ $access = rm ] && echo rwm || echo rm)"
        refused "\"$DEV\""
        # another pod
        [ $access = rm ] || write_conf "$pictures" storage.shareable=true \
            storage.disk_cache=directsync storage.disk_io=io_uring
        fresh
        by_itself
        device /dev/data $access
        new_id "other-$access"
        other=$ID
        quiet rt run --detach --bundle "$T/b" "$ID"
        run rt exec "$ID" sh -c "blockdev --getro /dev/data; echo $access | dd of=/dev/data conv=notrunc,fsync 2>/dev/null"
        assert_eq "${lines[0]}" "$([ $access = rm ] && echo 1 || echo 0)"
        # the second one keeps it when the first has gone
        rt delete --force "one-$access-$N"
        run ! is_free "$DEV"
        run rt exec "two-$access-$N" head -c 1 /dev/data
        assert_status 0
        rt delete --force "two-$access-$N"
        assert_eq "$(disk_count)" 0
        # and so does the other pod
        wait_for 10 holds "$(monitor_pid "$other")" "$DEV"
        run ! is_free "$DEV"
        rt delete --force "$other"
        is_free "$DEV"
    done
    rt delete --force "$POD"
    assert_eq "$(head -c 3 "$DEV")" rwm 'what the last one wrote'
    write_conf "$pictures" timeouts.device_ms=5000
}
holds() { [ -n "$(find "/proc/$1/fd" -lname "$2")" ]; } # PID DEVICE: has it open
# assert_driver "CACHE IO [DISCARD]": of the pod's only disk.
assert_driver() {
    local xml name found=''
    xml=$($VIRSH dumpxml "$(domain_of "$POD")" | grep '<driver name=.qemu.')
    for name in cache io discard; do
        found+=" $(grep -o "$name=['\"][a-z_]*" <<<"$xml" | cut -d= -f2 | tr -d "'\"")"
    done
    assert_eq "$(xargs <<<"$found")" "$1" "cache, io, discard"
}

# ---------------------------------------------------------------- image files

@test "image files: raw and qcow2, by their stated format, below their folder" {
    local dir=$WORK/pictures format
    image d ext4 64M
    cp --sparse=always "$T/d.img" "$dir/d.img"
    qemu-img convert -f raw -O qcow2 "$T/d.img" "$dir/d.qcow2"
    for format in raw qcow2; do
        fresh
        typed ext4 "$dir/d.$([ $format = raw ] && echo img || echo qcow2)" "x-sandvirt.format=$format" noatime
        run says 'echo here >/mnt/made; sync; grep " /mnt " /proc/mounts'
        assert_status 0
        assert_has "$output" ext4
        assert_has "$output" noatime
    done
    assert_eq "$(debugfs -R 'cat made' "$dir/d.img" 2>/dev/null)" here
    qemu-img convert -f qcow2 -O raw "$dir/d.qcow2" "$T/back.img"
    assert_eq "$(debugfs -R 'cat made' "$T/back.img" 2>/dev/null)" here
    assert_eq "$(stat -c %u "$dir/d.img")" 0 owner
}

@test "image files that are refused" {
    local dir=$WORK/pictures
    image d ext4 64M
    fresh
    typed ext4 "$T/d.img" x-sandvirt.format=raw
    refused "\"$T/d.img\"" image_folders
    cp --sparse=always "$T/d.img" "$dir/d.img"
    fresh
    typed ext4 "$dir/d.img"
    refused "\"$dir/d.img\"" format
    fresh
    typed ext4 "$dir/d.img" x-sandvirt.format=qcow2
    refused "\"$dir/d.img\"" qcow2
    ln -sf "$T/d.img" "$dir/link.img"
    fresh
    typed ext4 "$dir/link.img" x-sandvirt.format=raw
    refused "\"$dir/link.img\"" 'symbolic link'
    mkdir "$dir/real"
    mv "$dir/d.img" "$dir/real/"
    ln -s real "$dir/folder"
    fresh
    typed ext4 "$dir/folder/d.img" x-sandvirt.format=raw
    refused "\"$dir/folder/d.img\"" 'symbolic link'
    fresh
    typed ext4 "$dir/../pictures/../../../$T/d.img" x-sandvirt.format=raw
    refused 'cannot be opened'
    mv "$dir/real/d.img" "$dir/"
    qemu-img create -q -f qcow2 -F raw -b /etc/shadow "$dir/backed.qcow2" 64M
    fresh
    typed ext4 "$dir/backed.qcow2" x-sandvirt.format=qcow2
    refused "\"$dir/backed.qcow2\"" 'backing file'
    qemu-img create -q -f qcow2 -o "data_file=$T/d.img,data_file_raw=on" "$dir/data.qcow2" 64M
    fresh
    typed ext4 "$dir/data.qcow2" x-sandvirt.format=qcow2
    refused "\"$dir/data.qcow2\"" 'data file'
    local loop
    loop=$(losetup -f --show "$dir/d.img")
    fresh
    typed ext4 "$dir/d.img" x-sandvirt.format=raw
    refused "\"$dir/d.img\"" "in use as block device \"$loop\""
    losetup -d "$loop"
    # one image for two
    fresh
    typed ext4 "$dir/d.img" x-sandvirt.format=raw
    mv "$T/b" "$T/first"
    new_id first
    quiet rt run --detach --bundle "$T/first" "$ID"
    ln "$dir/d.img" "$dir/same.img"
    fresh
    typed ext4 "$dir/same.img" x-sandvirt.format=raw
    refused "\"$dir/same.img\"" "container \"first-$N\""
    # what its name means later is nobody's business
    mv "$dir/d.img" "$dir/moved.img"
    rt delete --force "first-$N"
    assert_eq "$(stat -c %u "$dir/moved.img")" 0 owner
}

# ---------------------------------------------------------------- deaths in the middle

# stuck: create of $T/b waits between plug and create, in the background: the machine is suspended. Sets
# ID, and CREATE to its pid.
stuck() {
    new_id "k$RANDOM"
    $VIRSH suspend "$(domain_of "$POD")"
    "${RT[@]}" create --bundle "$T/b" "$ID" </dev/null >"$T/out.log" 2>&1 3>&- 4>&- &
    CREATE=$!
    wait_for 10 has_alias "ua-sv-${ID:0:12}-"
    assert_eq "$(fstype_at "$T/b/rootfs")" tmpfs 'the host, while it is in the guest'
}
has_alias() { aliases | grep -q -- "$1"; }
back() {
    wait_for 20 not_there || fail "still there: $(rt state "$ID")"
    assert_eq "$(disk_count)" 0 'disks in the machine'
    assert_eq "$(fstype_at "$T/b/rootfs")" ext4 'file system of the host'
    assert_eq "$(cat "$T/b/rootfs/marker")" b
    new_id again
    run rt run --bundle "$T/b" "$ID"
    assert_status 0
    assert_eq "$output" b
    down "$DEV" "$T/b/rootfs"
    fsck.ext4 -n "$DEV"
}
not_there() { ! rt state "$ID" >/dev/null 2>&1; }

@test "the caller dies between plug and create" {
    disk_bundle b ext4 cat /marker
    stuck
    kill -KILL "$CREATE"
    $VIRSH resume "$(domain_of "$POD")"
    wait "$CREATE" || true
    back
}

@test "the monitor dies between plug and create" {
    disk_bundle b ext4 cat /marker
    stuck
    kill -KILL "$(monitor_pid "$POD")"
    # the caller takes its create back, and for that the machine has to run
    run wait "$CREATE"
    run rt delete --force "$ID"
    run $VIRSH resume "$(domain_of "$POD")"
    back
}

@test "the shim dies between plug and create" {
    disk_bundle b ext4 cat /marker
    stuck
    kill -KILL "$(jq .shimPid "$ROOT/$ID/state.json")"
    $VIRSH resume "$(domain_of "$POD")"
    run wait "$CREATE"
    back
}

@test "the monitor dies while a container with disks runs" {
    disk_bundle b ext4 sh -c 'cat /marker; echo made >/made; sync; exec sleep 1000'
    new_id runs
    quiet rt run --detach --bundle "$T/b" "$ID"
    wait_for 10 grep -q b "$T/out.log"
    kill -KILL "$(monitor_pid "$POD")"
    wait_for 10 eval 'rt exec '"$ID"' true'
    run ! is_free "$DEV"
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    is_free "$DEV"
    rt delete "$ID"
    assert_eq "$(cat "$T/b/rootfs/made")" made
}

@test "stopped under load" {
    disk_bundle b ext4 sh -c 'cat /marker; while :; do dd if=/dev/zero of=/big bs=1M count=64; done'
    new_id load
    quiet rt run --detach --bundle "$T/b" "$ID"
    wait_for 10 grep -q b "$T/out.log"
    sleep 1
    took rt kill "$ID" KILL
    wait_state "$ID" stopped
    is_free "$DEV"
    down "$DEV" "$T/b/rootfs"
    fsck.ext4 -n "$DEV"
    rt delete "$ID"
}

@test "a disk that the host has no room for fails for its container, not for the machine" {
    fresh
    mkdir "$T/small"
    mount -t tmpfs -o size=4m none "$T/small"
    image d raw 64M
    mv "$T/d.img" "$T/small/"
    ln -s small/d.img "$T/d.img"
    attach d
    device /dev/data rwm
    new_id full
    quiet rt run --detach --bundle "$T/b" "$ID"
    run rt exec "$ID" dd if=/dev/zero of=/dev/data bs=1M count=32 conv=fsync
    [ "$status" != 0 ] || fail "written: $output"
    assert_eq "$($VIRSH domstate "$(domain_of "$POD")")" running 'the machine'
    rt exec "$POD" true
    rt delete --force "$ID"
    assert_eq "$(disk_count)" 0
    is_free "$DEV"
    losetup -d "$DEV"
}

@test "QEMU dies between plug and create" {
    disk_bundle b ext4 cat /marker
    stuck
    kill -KILL "$(vm_pid "$POD")"
    run wait "$CREATE"
    wait_for 20 not_there
    assert_eq "$(fstype_at "$T/b/rootfs")" ext4 'file system of the host'
    down "$DEV" "$T/b/rootfs"
    fsck.ext4 -n "$DEV"
    rt delete --force "$POD"
    pod_up
}

@test "a guest that hangs: the stop of a container with disks ends in bounded time, the disks are free" {
    disk_bundle b ext4 sleep 1000
    new_id hung
    quiet rt run --detach --bundle "$T/b" "$ID"
    kill -STOP "$(vm_pid "$POD")"
    took rt kill "$ID" KILL
    assert_eq "$STATUS" 0
    local killed=$MS
    took wait_state "$ID" stopped
    [ $((killed + MS)) -lt 12000 ] || fail "stopped after $killed and $MS ms"
    is_free "$DEV"
    rt delete "$ID"
    assert_eq "$(fstype_at "$T/b/rootfs")" ext4 'file system of the host'
    down "$DEV" "$T/b/rootfs"
    # it had no chance to unmount
    fsck.ext4 -p "$DEV" || [ $? = 1 ]
}
