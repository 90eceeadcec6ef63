#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Disks: root file systems, devices and volumes on block devices (cases A28 to A31).

load lib
load block

setup_file() {
    export BATS_TEST_TIMEOUT=300
    suite_begin
    write_conf storage.block_volumes=true
    pod_up
}
teardown_file() { suite_end; }
# ---------------------------------------------------------------- root file systems

@test "a root file system on ext4: from create to delete, content on both sides" {
    disk_bundle b ext4 sh -c 'echo from guest >/made; cat /marker; exec sleep 1000'
    new_id ext
    quiet rt create --bundle "$T/b" "$ID"
    assert_eq "$(fstype_at "$T/b/rootfs")" tmpfs 'file system of the host'
    assert_eq "$(ls "$T/b/rootfs")" ''
    run ! touch "$T/b/rootfs/x"
    assert_has "$($VIRSH domblklist "$(domain_of "$POD")")" "$DEV"
    assert_has "$(aliases)" "ua-sv-${ID:0:12}-"
    assert_has "$($VIRSH dumpxml "$(domain_of "$POD")")" "use=\"rootfs\" source=\"$DEV\""
    rt start "$ID"
    wait_for 10 grep -q b "$T/out.log"
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    assert_eq "$(disk_count)" 0 'disks in the machine'
    rt delete "$ID"
    assert_eq "$(fstype_at "$T/b/rootfs")" ext4 'file system of the host'
    assert_eq "$(cat "$T/b/rootfs/made")" 'from guest'
    down "$DEV" "$T/b/rootfs"
    fsck.ext4 -n "$DEV"
}

@test "a root file system on xfs, and a copy of it with the same UUID beside it" {
    local name
    disk_bundle b xfs sleep 1000
    umount "$T/b/rootfs"
    cp --sparse=always "$T/b.img" "$T/c.img"
    mount "$DEV" "$T/b/rootfs"
    attach c
    mkdir -p "$T/c/rootfs"
    mount -o nouuid "$DEV" "$T/c/rootfs"
    echo c >"$T/c/rootfs/marker"
    bundle_config "$T/c" cat /marker
    new_id first
    quiet rt run --detach --bundle "$T/b" "$ID"
    new_id second
    run rt run --bundle "$T/c" "$ID"
    assert_status 0
    assert_eq "$output" c
    rt delete --force "first-$N"
    assert_eq "$(cat "$T/b/rootfs/marker")" b
    for name in b c; do
        DEV=$(losetup -n -O NAME -j "$T/$name.img")
        down "$DEV" "$T/$name/rootfs"
        xfs_repair -n "$DEV"
    done
}

@test "created and never started: killed, or deleted" {
    local how
    disk_bundle b ext4 true
    for how in kill delete force; do
        new_id "$how"
        quiet rt create --bundle "$T/b" "$ID"
        case $how in
        kill)
            rt kill "$ID" KILL
            wait_state "$ID" stopped
            is_free "$DEV"
            rt delete "$ID"
            ;;
        delete) rt delete "$ID" ;;
        force) rt delete --force "$ID" ;;
        esac
        assert_eq "$(fstype_at "$T/b/rootfs")" ext4 "after $how"
        assert_eq "$(disk_count)" 0 "disks after $how"
    done
    down "$DEV" "$T/b/rootfs"
    fsck.ext4 -n "$DEV"
}

@test "when it has stopped the storage can be taken down, though delete comes later" {
    disk_bundle b ext4 true
    new_id gone
    quiet rt run --detach --bundle "$T/b" "$ID"
    wait_state "$ID" stopped
    down "$DEV" "$T/b/rootfs"
    fsck.ext4 -n "$DEV"
    losetup -d "$DEV"
    run ! losetup "$DEV"
    rt delete "$ID"
    run ! mountpoint -q "$T/b/rootfs"
}

@test "pods whose first container is on a disk; beside them what has stopped can be taken down (A28, A31)" {
    local n i member_dev
    n=$(rounds 10)
    for ((i = 1; i <= n; i++)); do
        # mounted while the other machine starts: libvirt gives QEMU a copy of the host's mounts
        disk_bundle "member$i" ext4 cat /marker
        member_dev=$DEV
        disk_bundle "own$i" xfs sh -c 'cat /marker; exec sleep 1000'
        jqe "$T/own$i" 'del(.annotations)'
        new_id "own$i"
        quiet rt run --detach --bundle "$T/own$i" "$ID"
        wait_for 10 grep -qx "own$i" "$T/out.log"
        assert_has "$($VIRSH domblklist "$(domain_of "$ID")")" "$DEV"
        new_id "member$i"
        quiet rt run --detach --bundle "$T/member$i" "$ID"
        wait_state "$ID" stopped
        assert_eq "$(cat "$T/out.log")" "member$i"
        down "$member_dev" "$T/member$i/rootfs"
        fsck.ext4 -n "$member_dev"
        losetup -d "$member_dev"
        run ! losetup "$member_dev"
        rt delete "$ID"
        # and the first container's own, whose machine lives as long as it is not deleted
        ID=own$i-$N
        rt kill "$ID" KILL
        wait_state "$ID" stopped
        down "$DEV" "$T/own$i/rootfs"
        xfs_repair -n "$DEV"
        losetup -d "$DEV"
        run ! losetup "$DEV"
        rt delete "$ID"
    done
}

@test "a device-mapper device: taken down as soon as its container has stopped" {
    local name i n before
    [ -e /dev/mapper/control ] || skip 'this kernel has no device-mapper'
    n=$(rounds 20)
    disk_bundle b ext4 sh -c 'echo made >/made'
    umount "$T/b/rootfs"
    name=${N//./-}
    before=$(dmsetup ls | grep -c .)
    for ((i = 0; i < n; i++)); do
        dmsetup create "$name" --table "0 $(blockdev --getsz "$DEV") linear $DEV 0"
        mount "/dev/mapper/$name" "$T/b/rootfs"
        new_id "dm$i"
        quiet rt run --detach --bundle "$T/b" "$ID"
        wait_state "$ID" stopped
        assert_eq "$(dmsetup info -c --noheadings -o open "$name")" 0 'users of the device'
        down "/dev/mapper/$name" "$T/b/rootfs"
        fsck.ext4 -n "/dev/mapper/$name"
        dmsetup remove "$name"
        rt delete "$ID"
    done
    assert_eq "$(dmsetup ls | grep -c .)" "$before"
    assert_eq "$(disk_count)" 0
}

@test "while it is in the machine the host cannot mount it, not even when it is only read there" {
    local only_read
    disk_bundle b ext4 sleep 1000
    mkdir "$T/mnt"
    for only_read in false true; do
        jqe "$T/b" ".root.readonly = $only_read"
        new_id "held-$only_read"
        quiet rt run --detach --bundle "$T/b" "$ID"
        run ! mount "$DEV" "$T/mnt"
        run ! mount -o ro "$DEV" "$T/mnt"
        run ! is_free "$DEV"
        rt delete --force "$ID"
    done
}

@test "a folder that only lies on a disk is shared, not plugged (A29)" {
    local kind
    disk d ext4
    mkdir -p "$T/d/sub/rootfs" "$T/mnt" "$T/other"
    mount "$DEV" "$T/mnt"
    for kind in folder bind twice below needed; do
        rm -rf --one-file-system "$T/b"
        mkdir -p "$T/b/rootfs"
        case $kind in
        folder)
            cp -a "$BUNDLES/base/." "$T/mnt/"
            rmdir "$T/b/rootfs"
            mkdir "$T/mnt/sub"
            cp -a "$BUNDLES/base" "$T/mnt/sub/rootfs"
            ln -s "$T/mnt/sub/rootfs" "$T/b/rootfs"
            ;;
        bind) mount --bind "$T/mnt/sub/rootfs" "$T/b/rootfs" ;;
        twice) mount --bind "$T/mnt" "$T/b/rootfs" ;;
        below)
            umount "$T/mnt"
            mount "$DEV" "$T/b/rootfs"
            mount -t tmpfs none "$T/b/rootfs/tmp"
            ;;
        needed) mount "$DEV" "$T/b/rootfs" ;;
        esac
        bundle_config "$T/b" sleep 1000
        # which would be away with it
        [ $kind != needed ] || bound "$T/b/rootfs/sub" /tmp
        new_id "$kind"
        quiet rt run --detach --bundle "$T/b" "$ID"
        assert_eq "$(disk_count)" 0 "disks for $kind"
        rt delete --force "$ID"
        umount -q "$T/b/rootfs/tmp" || true
        umount -q "$T/b/rootfs" || true
    done
}

@test "a mount on the host that is busy stays there" {
    disk_bundle b ext4 cat /marker
    exec {held}<"$T/b/rootfs/marker"
    new_id busy
    run rt run --bundle "$T/b" "$ID"
    exec {held}<&-
    assert_status 0
    assert_has "$output" b
    assert_eq "$(fstype_at "$T/b/rootfs")" ext4
    is_free "$DEV" && fail 'it is not mounted any more'
    true
}

@test "mount options go with it and come back with it" {
    local before
    disk_bundle b ext4 sh -c 'grep " / " /proc/mounts'
    umount "$T/b/rootfs"
    mount -o noatime,nodev,errors=remount-ro,commit=17 "$DEV" "$T/b/rootfs"
    before=$(awk -v p="$T/b/rootfs" '$5 == p { $1 = $2 = $7 = ""; print }' /proc/self/mountinfo)
    new_id options
    run rt run --bundle "$T/b" "$ID"
    assert_has "$output" noatime
    assert_has "$output" errors=remount-ro
    assert_has "$output" commit=17
    rt delete --force "$ID"
    assert_eq "$(awk -v p="$T/b/rootfs" '$5 == p { $1 = $2 = $7 = ""; print }' /proc/self/mountinfo)" "$before"
}

@test "discard reaches the disk of the host" {
    local before
    disk_bundle b ext4 sleep 1000
    umount "$T/b/rootfs"
    mount -o discard "$DEV" "$T/b/rootfs"
    new_id discard
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_has "$($VIRSH dumpxml "$(domain_of "$POD")")" "discard='unmap'"
    rt exec "$ID" sh -c 'dd if=/dev/zero of=/big bs=1M count=32 2>/dev/null; sync'
    before=$(stat -c %b "$T/b.img")
    rt exec "$ID" sh -c 'rm /big; sync'
    wait_for 10 eval '[ "$(stat -c %b "$T/b.img")" -lt $((before - 32 * 1024)) ]'
}

@test "a log to be replayed is left alone on a disk that cannot be written (A30)" {
    local type
    mkdir "$T/mnt"
    for type in ext4 xfs; do
        disk "clean$type" $type
        mount "$DEV" "$T/mnt"
        echo kept >"$T/mnt/file"
        umount "$T/mnt"
        mount "$DEV" "$T/mnt"
        echo more >"$T/mnt/other"
        sync -f "$T/mnt"
        # as after a power cut
        cp --sparse=always "$T/clean$type.img" "$T/cut$type.img"
        umount "$T/mnt"
        attach "cut$type" --read-only
        fresh
        typed $type "$DEV" ro
        run says 'cat /mnt/file; echo x 2>/dev/null >/mnt/new || echo refused'
        assert_status 0
        assert_eq "$output" $'kept\nrefused' $type
    done
    assert_has "$(dumpe2fs -h "$T/cutext4.img" 2>/dev/null)" needs_recovery
    assert_has "$(xfs_repair -n "$T/cutxfs.img" 2>&1)" log
}

# ---------------------------------------------------------------- volumes

@test "volumes on disks of their own, when the configuration wants all of them" {
    local ext xfs held
    disk e ext4
    ext=$DEV
    disk x xfs
    xfs=$DEV
    disk h ext4 16M
    mkdir "$T/e" "$T/x" "$T/h"
    mount -o noatime "$ext" "$T/e"
    mount "$xfs" "$T/x"
    mount "$DEV" "$T/h"
    mkdir "$T/h/folder"
    echo kept | tee "$T/x/file" >"$T/h/folder/file"
    fresh sh -c 'echo from guest >/e/made; cat /x/file /h/file; touch /x/new 2>/dev/null || echo refused
        grep -E " /(e|x|h) " /proc/mounts | cut -d" " -f2-4; exec sleep 1000'
    bound "$T/e" /e noexec
    bound "$T/x" /x ro
    # no mount of its own, though it lies on one
    bound "$T/h/folder" /h
    new_id volumes
    quiet rt run --detach --bundle "$T/b" "$ID"
    wait_for 10 grep -q '/h ' "$T/out.log"
    assert_eq "$(head -n 3 "$T/out.log")" $'kept\nkept\nrefused'
    assert_has "$(grep '^/e ext4 rw' "$T/out.log")" noatime
    assert_has "$(grep '^/e ext4 rw' "$T/out.log")" noexec
    grep -q '^/x xfs ro' "$T/out.log"
    grep -q '^/h virtiofs' "$T/out.log"
    assert_eq "$(disk_count)" 2
    assert_eq "$(fstype_at "$T/e") $(fstype_at "$T/x") $(fstype_at "$T/h")" 'tmpfs tmpfs ext4'
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    is_free "$ext"
    is_free "$xfs"
    rt delete "$ID"
    assert_eq "$(cat "$T/e/made") $(cat "$T/x/file")" 'from guest kept'
    # one that a process of the host has open is shared
    exec {held}<"$T/e/made"
    fresh cat /e/made
    bound "$T/e" /e
    new_id shared
    run rt run --bundle "$T/b" "$ID"
    exec {held}<&-
    assert_eq "$output" 'from guest'
    assert_eq "$(fstype_at "$T/e")" ext4
    rt delete --force "$ID"
    down "$ext" "$T/e"
    fsck.ext4 -n "$ext"
    down "$xfs" "$T/x"
    xfs_repair -n "$xfs"
}

# ---------------------------------------------------------------- devices

@test "a device has the name, mode and owner of the spec, and the guest's numbers" {
    mkm "$T/b" true
    disk d raw 64M
    echo 'from host' | dd of="$DEV" conv=notrunc status=none
    device /dev/data rwm '{"fileMode": 432, "uid": 0, "gid": 6}'
    run says 'stat -c "%F %a %u %g %t:%T" /dev/data; head -c 9 /dev/data; echo; blockdev --getro /dev/data
        blockdev --getsize64 /dev/data; echo "from guest" | dd of=/dev/data bs=512 seek=8 conv=notrunc,fsync 2>/dev/null
        cat /proc/partitions'
    assert_status 0
    assert_has "${lines[0]}" 'block special file 660 0 6'
    assert_eq "${lines[1]}" 'from host'
    assert_eq "${lines[2]}" 0 'read-only'
    assert_eq "${lines[3]}" $((64 << 20)) size
    assert_eq "$(dd if="$DEV" bs=512 skip=8 count=1 iflag=direct status=none | head -c 10)" 'from guest'
    is_free "$DEV"
}

@test "a limit of the disk's speed holds under the guest's numbers; update changes it, a foreign one is told" {
    local major minor
    mkm "$T/b" true
    disk d raw 64M
    major=$((0x$(stat -c %t "$DEV"))) minor=$((0x$(stat -c %T "$DEV")))
    device /dev/data rwm '{}'
    jqe "$T/b" '.linux.resources.blockIO = {throttleReadBpsDevice: [
            {major: $a, minor: $b, rate: 4194304}, {major: 7, minor: 9999, rate: 1}],
        throttleWriteIOPSDevice: [{major: $a, minor: $b, rate: 77}]}' --argjson a $major --argjson b $minor
    jqe "$T/b" '.process.args = ["sleep", "1000"]'
    new_id slow
    "${RT[@]}" run --detach --bundle "$T/b" "$ID" >"$T/out" 2>&1 3>&- 4>&-
    assert_has "$(cat "$T/out")" 'blockIO: limits of 1 disks hold only if these are in the machine'
    assert_eq "$(rt exec "$ID" cat /sys/fs/cgroup/io.max)" \
        "$(rt exec "$ID" sh -c 'printf "%d:%d" 0x$(stat -c %t /dev/data) 0x$(stat -c %T /dev/data)') rbps=4194304 wbps=max riops=max wiops=77"
    # 12 MiB in three seconds, the first of which may be given at once.
    took rt exec "$ID" dd if=/dev/data of=/dev/null bs=1M count=12 iflag=direct
    [ "$MS" -gt 1500 ] || fail "$MS ms"
    jq -n '{blockIO: {throttleReadBpsDevice: [{major: $a, minor: $b, rate: 1073741824}]}}' --argjson a $major --argjson b $minor |
        rt update -r - "$ID"
    assert_has "$(rt exec "$ID" cat /sys/fs/cgroup/io.max)" 'rbps=1073741824 '
    rt delete --force "$ID"
    is_free "$DEV"
}

@test "the disk is read-only exactly when something says so (A30)" {
    local what wanted
    disk d raw 16M
    for what in rm rwm setro; do
        rm -rf "$T/b"
        mkm "$T/b" true
        wanted=1
        case $what in
        setro)
            blockdev --setro "$DEV"
            device /dev/data rwm
            ;;
        rwm) device /dev/data rwm && wanted=0 ;;
        *) device /dev/data "$what" ;;
        esac
        run says "blockdev --getro /dev/data; dd if=/dev/zero of=/dev/data bs=512 count=1 conv=fsync 2>/dev/null && echo written"
        [ "$what" = rm ] || assert_eq "${lines[0]}" "$wanted" "read-only with $what"
        if [ $wanted = 1 ]; then
            [[ $output != *written* ]] || fail "written with $what"
        else
            assert_has "$output" written
        fi
    done
    blockdev --setrw "$DEV"
    disk_bundle r ext4 sh -c 'cat /marker; touch /x 2>/dev/null || echo refused; sleep 1000'
    jqe "$T/r" '.root.readonly = true'
    new_id ro
    quiet rt run --detach --bundle "$T/r" "$ID"
    wait_for 10 grep -q refused "$T/out.log"
    assert_has "$($VIRSH dumpxml "$(domain_of "$POD")")" '<readonly/>'
    rt delete --force "$ID"
    umount "$T/r/rootfs"
    mount -o ro "$DEV" "$T/r/rootfs"
    jqe "$T/r" '.root.readonly = false'
    new_id mro
    quiet rt run --detach --bundle "$T/r" "$ID"
    wait_for 10 grep -q refused "$T/out.log"
    assert_has "$($VIRSH dumpxml "$(domain_of "$POD")")" '<readonly/>'
}

@test "a node that is bound is the device itself" {
    local option wanted=0
    disk d raw 16M
    echo 'from host' | dd of="$DEV" conv=notrunc status=none
    for option in rw ro; do
        fresh
        bound "$DEV" /dev/data $option
        jqe "$T/b" '.linux.resources.devices += [{allow: true, type: "b", major: $a, minor: $b, access: "rwm"}]' \
            --argjson a "$MAJ" --argjson b "$MIN"
        run says 'head -c 9 /dev/data; echo; blockdev --getro /dev/data; ls -l /dev/data | cut -c1'
        assert_eq "$output" "from host"$'\n'"$wanted"$'\n'b "bound $option"
        wanted=1
    done
    is_free "$DEV"
}

@test "the whole /dev of the host is not for a privileged container" {
    mkm "$T/b" true
    disk d raw 16M
    jqe "$T/b" '.linux.resources.devices = [{allow: true, access: "rwm"}]'
    device "$DEV" rwm
    run says 'ls -l /dev | grep ^b; echo $?'
    assert_status 0
    assert_eq "$output" 1 'no block devices'
    assert_has "$(cat "$LOG/launcher")" "\"$DEV\" is not in the machine, ignored"
    device /dev/mine rwm
    run says 'blockdev --getro /dev/mine'
    assert_eq "$output" 0 'one under another name'
}
