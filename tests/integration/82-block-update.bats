#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Block devices added to and taken from running containers, volumes, and what is told of disks.

load lib
load block

setup_file() {
    export BATS_TEST_TIMEOUT=300
    suite_begin
    write_conf "storage.block_volume_paths=$WORK/volumes"
    mkdir "$WORK/volumes"
    pod_up
}
teardown_file() { suite_end; }

# running ARG...: a member with bundle $T/b runs ARG...
running() {
    mkm "$T/b" "$@"
    new_id "r$RANDOM"
    quiet rt run --detach --bundle "$T/b" "$ID"
}

@test "a device is added to a running container and taken again" {
    running sleep 1000
    disk d raw 64M
    echo 'from host' | dd of="$DEV" conv=notrunc status=none
    rt update --device-add "$DEV" "$ID"
    run rt exec "$ID" head -c 9 "$DEV"
    assert_status 0
    assert_eq "$output" 'from host'
    run rt exec "$ID" stat -c '%F %a' "$DEV"
    assert_eq "$output" 'block special file 660'
    run rt exec "$ID" sh -c "echo 'from guest' | dd of=$DEV bs=512 seek=8 conv=notrunc"
    assert_status 0
    run ! is_free "$DEV"
    rt update --device-remove "$DEV" "$ID"
    run rt exec "$ID" ls "$DEV"
    assert_status 1
    is_free "$DEV"
    assert_eq "$(disk_count)" 0
    assert_eq "$(dd if="$DEV" bs=512 skip=8 count=1 iflag=direct status=none | head -c 10)" 'from guest'
    # the container's other devices still work
    run rt exec "$ID" head -c 1 /dev/zero
    assert_status 0
}

@test "an added device has another name and is read-only on request; the stop takes it" {
    running sleep 1000
    disk d raw 16M
    rt update --device-add "$DEV:/dev/deep/data:rm" "$ID"
    run rt exec "$ID" sh -c 'blockdev --getro /dev/deep/data; dd if=/dev/zero of=/dev/deep/data bs=512 count=1 2>&1'
    assert_status 1
    assert_has "$($VIRSH dumpxml "$(domain_of "$POD")")" '<readonly/>'
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    is_free "$DEV"
    assert_eq "$(disk_count)" 0
}

@test "updates of devices that are refused change nothing" {
    local first
    running sleep 1000
    disk d raw 16M
    run rt update --device-add /dev/missing "$ID"
    assert_refused '"/dev/missing"' 'No such file'
    run rt update --device-add /dev/null "$ID"
    assert_refused '"/dev/null"' 'character device'
    run rt update --device-add "$DEV:relative" "$ID"
    assert_refused "$DEV:relative"
    run rt update --device-remove "$DEV" "$ID"
    assert_refused "\"$DEV\""
    rt update --device-add "$DEV:/dev/data" "$ID"
    first=$DEV
    run rt update --device-add "$DEV:/dev/other" "$ID"
    assert_refused "\"$first\""
    disk e raw 16M
    run rt update --device-add "$DEV:/dev/data" "$ID"
    assert_refused '"/dev/data"'
    run rt update --device-add "$DEV:/bin/sh/x" "$ID"
    assert_refused /bin/sh/x
    is_free "$DEV"
    assert_eq "$(disk_count)" 1
    # nor does what comes after them, or before: the second device, limits that the kernel refuses
    run rt update --device-add "$DEV:/dev/more" --device-add /dev/null "$ID"
    assert_refused '"/dev/null"'
    run rt update --device-add "$DEV:/dev/more" --pids-limit 55 --cpu-quota 5 "$ID"
    assert_refused cpu.max
    is_free "$DEV"
    run rt update --device-remove /dev/data --pids-limit 55 --cpu-quota 5 "$ID"
    assert_refused cpu.max
    run rt exec "$ID" sh -c 'ls /dev/more; head -c 1 /dev/data | wc -c'
    assert_eq "${lines[-1]}" 1 '/dev/data'
    assert_has "${lines[0]}" 'No such file'
    assert_eq "$(disk_count)" 1
    # all of it: the new one takes the place of the old
    echo second | dd of="$DEV" conv=notrunc status=none
    rt update --device-remove /dev/data --device-add "$DEV:/dev/data" --pids-limit 55 "$ID"
    run rt exec "$ID" head -c 6 /dev/data
    assert_eq "$output" second
    is_free "$first"
    assert_eq "$(disk_count)" 1
}

@test "a device that the container has mounted is not taken, nor is anything else of that update done" {
    disk d ext4
    mkm "$T/b" sleep 1000
    jqe "$T/b" '.process.capabilities[] += ["CAP_SYS_ADMIN"]'
    new_id mounts
    quiet rt run --detach --bundle "$T/b" "$ID"
    rt update --device-add "$DEV:/dev/data" "$ID"
    rt exec --cap CAP_SYS_ADMIN "$ID" mount -t ext4 /dev/data /home
    local first=$DEV
    disk e raw 16M
    run rt update --device-add "$DEV:/dev/more" --device-remove /dev/data --pids-limit 55 "$ID"
    assert_refused 'mounted it'
    is_free "$DEV"
    run rt exec "$ID" sh -c 'ls -d /home/lost+found /dev/data /dev/more'
    assert_has "$output" /home/lost+found
    assert_has "$output" /dev/data
    assert_has "$output" 'No such file'
    rt exec --cap CAP_SYS_ADMIN "$ID" umount /home
    rt update --device-add "$DEV:/dev/more" --device-remove /dev/data "$ID"
    is_free "$first"
    fsck.ext4 -n "$first"
}

@test "a device added by one monitor is taken by the next" {
    running sleep 1000
    disk d raw 16M
    rt update --device-add "$DEV:/dev/data" "$ID"
    kill -KILL "$(monitor_pid "$POD")"
    run rt exec "$ID" head -c 1 /dev/data
    assert_status 0
    run ! is_free "$DEV"
    rt update --device-remove /dev/data "$ID"
    is_free "$DEV"
}

@test "the monitor dies while it adds a device: it is taken away again, and can be added" {
    local target
    autoprobe 0
    running sleep 1000
    target=$ID
    disk d raw 16M
    "${RT[@]}" update --device-add "$DEV:/dev/data" "$ID" </dev/null >"$T/out.log" 2>&1 3>&- 4>&- &
    local update=$!
    wait_for 10 eval 'aliases | grep -q "ua-sv-${ID:0:12}-"'
    kill -KILL "$(monitor_pid "$POD")"
    run wait $update
    autoprobe 1
    wait_for 20 eval '[ "$(disk_count)" = 0 ]'
    is_free "$DEV"
    rt update --device-add "$DEV:/dev/data" "$target"
    run rt exec "$target" blockdev --getsize64 /dev/data
    assert_eq "$output" $((16 << 20))
}

@test "a device is taken while it is written to" {
    running sleep 1000
    disk d raw 8G
    rt update --device-add "$DEV:/dev/data" "$ID"
    quiet rt exec --detach "$ID" dd if=/dev/zero of=/dev/data bs=64k
    wait_for 20 eval '[ "$(stat -c %b "$T/d.img")" -gt 8192 ]'
    rt update --device-remove /dev/data "$ID"
    is_free "$DEV"
    assert_eq "$(disk_count)" 0
    rt update --device-add "$DEV:/dev/data" "$ID"
    run rt exec "$ID" sh -c 'head -c 1 /dev/data | wc -c'
    assert_eq "$output" 1
}

@test "the list of disks" {
    disk_bundle b ext4 sleep 1000
    new_id listed
    quiet rt run --detach --bundle "$T/b" "$ID"
    local root=$DEV
    disk d raw 16M
    rt update --device-add "$DEV:/dev/data:r" "$ID"
    run rt list --disks
    assert_status 0
    assert_has "$output" "$root"
    run rt list --disks --format json
    assert_eq "$(jq -r --arg id "$ID" '.[] | select(.id == $id) | "\(.use) \(.source) \(.target) \(.readOnly) \(.path)"' <<<"$output")" \
        "rootfs $root vda false /
device $DEV vdb true /dev/data"
    assert_eq "$($VIRSH domblklist "$(domain_of "$POD")" | awk '{ print $2, $1 }')" "$root vda
$DEV vdb"
}

@test "a volume on a disk of its own, where the administrator wants it" {
    local volume=$WORK/volumes/$BATS_TEST_NUMBER
    disk d ext4
    mkdir "$volume"
    mount -o noatime "$DEV" "$volume"
    mkdir "$volume/data"
    mkm "$T/b" sh -c 'echo from guest >/vol/made; grep " /vol " /proc/mounts; exec sleep 1000'
    bound "$volume" /vol nosuid
    new_id vol
    quiet rt run --detach --bundle "$T/b" "$ID"
    wait_for 10 grep -q /vol "$T/out.log"
    assert_has "$(cat "$T/out.log")" 'ext4'
    assert_has "$(cat "$T/out.log")" 'noatime'
    assert_eq "$(fstype_at "$volume")" tmpfs
    # a second one would find an empty folder
    cp -a "$T/b" "$T/c"
    new_id second
    run rt create --bundle "$T/c" "$ID"
    assert_refused "\"$volume\"" "ua-sv-vol-"
    ID=vol-$N
    rt kill "$ID" KILL
    wait_state "$ID" stopped
    is_free "$DEV"
    rt delete "$ID"
    assert_eq "$(cat "$volume/made")" 'from guest'
    # a folder of it is shared as ever, and so is the volume for a second container
    jqe "$T/b" '.mounts[-1].source += "/data"'
    new_id folder
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_eq "$(disk_count)" 0
    rt delete --force "$ID"
    # only read
    fresh sh -c 'cat /vol/made; touch /vol/x 2>/dev/null || echo refused; exec sleep 1000'
    bound "$volume" /vol ro
    new_id ro
    quiet rt run --detach --bundle "$T/b" "$ID"
    wait_for 10 grep -q refused "$T/out.log"
    assert_eq "$(head -n 1 "$T/out.log")" 'from guest'
    assert_has "$($VIRSH dumpxml "$(domain_of "$POD")")" '<readonly/>'
    rt delete --force "$ID"
    down "$DEV" "$volume"
    fsck.ext4 -n "$DEV"
    # elsewhere nobody asked for it
    mkdir "$T/elsewhere"
    mount "$DEV" "$T/elsewhere"
    fresh cat /vol/made
    bound "$T/elsewhere" /vol
    new_id shared
    run rt run --bundle "$T/b" "$ID"
    assert_eq "$output" 'from guest'
    assert_eq "$(fstype_at "$T/elsewhere")" ext4
}
