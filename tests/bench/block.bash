# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run
# Section block: create of a further container with its root file system on a disk beside one on virtiofs and beside
# the bare attach, and input and output of a disk in a container beside the same disk in a bare domain.

disk_seconds=3
modes='read write random-read random-write'

# loop NAME SIZE: sets DEV, and writes NAME.xml for a bare domain, with the same settings.
loop() {
    truncate -s "$2" "$WORK/$1.img"
    DEV=$(losetup -f --show "$WORK/$1.img")
    loops+=("$DEV")
    cat >"$WORK/$1.xml" <<END
<disk type='block' device='disk'>
  <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
  <source dev='$DEV'/><backingStore/><target dev='vdb' bus='virtio'/><serial>$1</serial>
</disk>
END
}

drop_loops() {
    local dev
    for dev in "${loops[@]}"; do
        losetup -d "$dev" || true
        # by the kernel only when the last one has closed it
        wait_for 5 eval '! losetup "$dev" >/dev/null 2>&1' || true
    done
    loops=()
}

# The ms that the guest took for the last disk, by its own clock, from the host's question to its answer.
guest_time() {
    local line
    line=$(grep -h ': there after .* ms in the guest' "$LOG/launcher" | tail -n 1)
    [[ $line =~ after\ ([0-9.]+)\ ms ]] && echo "${BASH_REMATCH[1]}"
}

# A further container in the pod, on virtiofs and on a disk, and the bare attach of that disk.
plug_round() {
    local called node path id=d$round guest
    clock 'create virtiofs' rt create --bundle "$BUNDLES/member" "s$round"
    rt delete "s$round"
    clock 'create disk' rt create --bundle "$BUNDLES/disk" "$id"
    note 'disk plug' "$(phase "$id" disks 'host mounts of disks' 'plug disks' 'disks in the guest')"
    guest=$(guest_time)
    note 'disk guest' "$guest"
    rt delete "$id"
    umount "$BUNDLES/disk/rootfs"
    read -r called node path < <(bare "attach $WORK/rootfs.xml rootfs")
    bare "detach $WORK/rootfs.xml" >/dev/null
    mount "$rootfs_dev" "$BUNDLES/disk/rootfs"
    note 'bare attach' "$called"
    note 'bare node' "$node"
    note 'bare guest' "$(calc "$node - $called")"
    note 'disk share' "$(calc "${figures["disk plug"]##* } - $guest - $called")"
}

# The disk goes from the container to the bare domain and back.
io_round() {
    local mode path
    rt run --detach --bundle "$BUNDLES/device" "i$round" </dev/null >/dev/null 2>&1
    for mode in $modes; do
        note "own $mode" "$(rt exec "i$round" payload disk /dev/bench $disk_seconds "$mode")"
    done
    gone_with "i$round"
    read -r _ _ path < <(bare "attach $WORK/data.xml data")
    for mode in $modes; do
        note "bare $mode" "$(bare "payload disk $path $disk_seconds $mode")"
    done
    bare "detach $WORK/data.xml" >/dev/null
}

block_bundles() {
    local rootfs=$BUNDLES/disk/rootfs
    mkb "$BUNDLES/member" sleep 100000
    member "$BUNDLES/member"
    loop rootfs 64M
    rootfs_dev=$DEV
    mkfs.ext4 -q -F "$DEV"
    mkdir -p "$rootfs"
    mount "$DEV" "$rootfs"
    cp -a "$BUNDLES/base/." "$rootfs/"
    cp "$BUNDLES/member/config.json" "$BUNDLES/disk/config.json"
    jqe "$BUNDLES/disk" '.root = {path: "rootfs"}'
    loop data 256M
    # No hole: the first write of a block would cost more than those after it.
    dd if=/dev/zero of="$DEV" bs=1M count=256 conv=fsync status=none
    mkb "$BUNDLES/device" sleep 100000
    member "$BUNDLES/device"
    jqe "$BUNDLES/device" '.linux.devices += [{path: "/dev/bench", type: "b", major: $a, minor: $b}]
        | .linux.resources.devices += [{allow: true, type: "b", major: $a, minor: $b, access: "rwm"}]' \
        --argjson a $((0x$(stat -c %t "$DEV"))) --argjson b $((0x$(stat -c %T "$DEV")))
}

part_block() {
    local round mode own beside value rootfs_dev
    loops=()
    pod_up block
    block_bundles
    bare_up
    for ((round = 1; round <= rounds; round++)); do
        say "block: round $round of $rounds"
        plug_round
        io_round
    done
    bare_down
    pod_down_all
    umount "$BUNDLES/disk/rootfs"
    drop_loops
    title "A further container and its disk, milliseconds (medians of $rounds rounds)"
    table
    row what time beside goal reached
    row 'create on virtiofs' "$(median 'create virtiofs')" '' '' ''
    row 'create on a disk' "$(median 'create disk')" '' '' ''
    row 'plug, until the guest has the disk' "$(median 'disk plug')" "guest $(median 'disk guest')" '' ''
    row 'bare attach, until the guest has it' "$(median 'bare node')" "guest $(median 'bare guest')" '' ''
    value=$(median 'disk share')
    row 'host work of a plug, without the bare call' "$value" "call $(median 'bare attach')" '<= 30' "$(most "$value" 30)"
    title "A disk in a container and in a bare domain, MiB/s (medians of $rounds rounds)"
    table
    row what container bare ratio goal reached
    for mode in $modes; do
        own=$(median "own $mode") beside=$(median "bare $mode")
        value=$(ratio "$own" "$beside")
        row "$mode" "$own" "$beside" "$value" '>= 0.90' "$(least "$value" 0.9)"
    done
}
