# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of lib.bash
# Disks of the host for the tests of block devices; after lib.bash.

setup() {
    test_begin
}
teardown() {
    local id
    while read -r id; do
        rt delete --force "$id" >/dev/null 2>&1 || true
    done < <(tac "$T/ids")
    drop_disks
    test_end
}

# ---------------------------------------------------------------- disks of the host

# image NAME TYPE [SIZE]: $T/NAME.img with a file system of TYPE ("raw": none).
image() {
    truncate -s "${3:-320M}" "$T/$1.img"
    case $2 in
    ext4) mkfs.ext4 -q -F "$T/$1.img" ;;
    xfs) mkfs.xfs -q -f "$T/$1.img" ;;
    raw) ;;
    esac
}

# disk NAME TYPE [SIZE]: the same as a loop device: sets DEV, MAJ, MIN.
disk() {
    image "$@"
    attach "$1"
}

# attach NAME [LOSETUP-OPTION...]: a loop device on $T/NAME.img.
attach() {
    local name=$1
    shift
    DEV=$(losetup -f --show "$@" "$T/$name.img")
    MAJ=$((0x$(stat -c %t "$DEV"))) MIN=$((0x$(stat -c %T "$DEV")))
}

# disk_bundle NAME TYPE ARG...: bundle $T/NAME of the pod whose rootfs is mounted from a disk of its own,
# with NAME in the file /marker.
disk_bundle() {
    local name=$1 type=$2
    shift 2
    disk "$name" "$type"
    mkdir -p "$T/$name/rootfs"
    mount "$DEV" "$T/$name/rootfs"
    cp -a "$BUNDLES/base/." "$T/$name/rootfs/"
    echo "$name" >"$T/$name/rootfs/marker"
    bundle_config "$T/$name" "$@"
}

# bundle_config DIR ARG...: config.json of a member of the pod.
bundle_config() {
    local dir=$1
    shift
    jq '.process.terminal = false | .process.args = $ARGS.positional | .root.readonly = false
        | .process.cwd = "/"' "$BUNDLES/config.json" --args -- "$@" >"$dir/config.json"
    member "$dir"
}

drop_disks() {
    local path dev
    while read -r path; do
        umount "$path" || umount -l "$path" || true
    done < <(awk -v t="$T/" 'index($5, t) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
    while read -r dev; do
        losetup -d "$dev" || true
    done < <(losetup -n -l -O NAME,BACK-FILE | awk -v t="$T/" 'index($2, t) == 1 { print $1 }')
}

# How many disks the pod's machine has, and the aliases of what was plugged.
disk_count() { $VIRSH domblklist "$(domain_of "$POD")" | grep -c . || true; }
aliases() { $VIRSH dumpxml "$(domain_of "$POD")" | grep -o "ua-sv-[^'\"]*" | sort -u || true; }
fstype_at() { awk -v p="$1" '$5 == p { t = $9; for (i = 7; i < NF; i++) if ($i == "-") t = $(i + 1) } END { print t }' /proc/self/mountinfo; }
# Nobody has it: an exclusive open works.
is_free() { python3 -c 'import os, sys; os.close(os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL))' "$1" 2>/dev/null; }
# down DEVICE FOLDER: unmounts it. A process of somebody else may just have copied the host's mounts into a
# namespace of its own.
down() {
    umount "$2"
    wait_for 20 is_free "$1" || fail "$1 is still in use"
}

# device PATH ACCESS [ATTRIBUTES]: $DEV in linux.devices of $T/b, with a rule.
device() {
    jqe "$T/b" '.linux.devices += [{path: $p, type: "b", major: $a, minor: $b} + $more]
        | .linux.resources.devices += [{allow: true, type: "b", major: $a, minor: $b, access: $access}]' \
        --arg p "$1" --argjson a "$MAJ" --argjson b "$MIN" --arg access "$2" --argjson more "${3:-{\}}"
}

# fresh [ARG...]: $T/b is a bundle of a member anew; ARG...: its process, else one that sleeps.
fresh() {
    [ $# -gt 0 ] || set -- sleep 1000
    rm -rf --one-file-system "$T/b"
    mkm "$T/b" "$@"
}

# typed TYPE SOURCE [OPTION...]: a mount of a file system at /mnt in $T/b.
typed() {
    local type=$1 source=$2
    shift 2
    jqe "$T/b" '.mounts += [{destination: "/mnt", type: $t, source: $s, options: $ARGS.positional}]' \
        --arg t "$type" --arg s "$source" --args "$@"
}

# bound SOURCE DESTINATION [OPTION...]: a bind mount in $T/b.
bound() {
    local source=$1 target=$2
    shift 2
    jqe "$T/b" '.mounts += [{destination: $d, type: "bind", source: $s, options: (["rbind"] + $ARGS.positional)}]' \
        --arg s "$source" --arg d "$target" --args "$@"
}

# by_itself: $T/b is no member, but a pod of its own.
by_itself() { jqe "$T/b" 'del(.annotations)'; }

# autoprobe 0|1: no driver takes new devices in the pod's guest, or they do again.
autoprobe() {
    local dir=$T/autoprobe.$1
    mkm "$dir" sh -c "echo $1 >/sys/bus/virtio/drivers_autoprobe"
    jqe "$dir" '(.mounts[] | select(.destination == "/sys")).options -= ["ro"]'
    new_id "autoprobe$1"
    rt run --bundle "$dir" "$ID"
}

# says SCRIPT: what the container of bundle $T/b prints for it.
says() {
    jqe "$T/b" '.process.args = ["sh", "-c", $s]' --arg s "$1"
    new_id "s$RANDOM"
    rt run --bundle "$T/b" "$ID" 2>&1
}

