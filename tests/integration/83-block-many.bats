#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Many disks: one after the other, at the same time, at once in one machine (cases A28, A31).

load lib
load block

setup_file() {
    export BATS_TEST_TIMEOUT=900
    suite_begin
    # twenty runtimes at once in an emulated machine, beside whatever else this one does
    write_conf timeouts.agent_ms=120000 timeouts.unplug_ms=20000
    pod_up
}
teardown_file() { suite_end; }

# marked N: bundles $T/1 .. $T/N whose rootfs are copies of one small disk; /marker tells them apart.
marked() {
    local i
    image seed ext4 24M
    mkdir -p "$T/seed"
    mount -o loop "$T/seed.img" "$T/seed"
    mkdir -p "$T/seed"/{bin,dev,etc,proc,sys,tmp}
    cp -a "$BUNDLES/base/bin/." "$T/seed/bin/"
    rm -f "$T/seed/bin/payload"
    umount "$T/seed"
    for ((i = 1; i <= $1; i++)); do
        cp --sparse=always "$T/seed.img" "$T/$i.img"
        attach "$i"
        mkdir -p "$T/$i/rootfs"
        mount "$DEV" "$T/$i/rootfs"
        echo "$i" >"$T/$i/rootfs/marker"
        bundle_config "$T/$i" cat /marker
    done
}

@test "containers with root file systems of their own, one after the other" {
    local n i
    n=$(rounds 100)
    marked 4
    take_snap
    for ((i = 0; i < n; i++)); do
        new_id "seq$i"
        run rt run --bundle "$T/$((i % 4 + 1))" "$ID"
        assert_status 0
        assert_eq "$output" $((i % 4 + 1)) "round $i"
    done
    assert_eq "$(disk_count)" 0
    assert_same_snap
}

@test "twenty at the same time, each with its own root file system" {
    local i pids=()
    marked 20
    take_snap
    for ((i = 1; i <= 20; i++)); do
        new_id "par$i"
        "${RT[@]}" run --bundle "$T/$i" "$ID" </dev/null >"$T/out$i" 2>&1 3>&- 4>&- &
        pids+=($!)
    done
    for ((i = 1; i <= 20; i++)); do
        wait "${pids[i - 1]}" || fail "container $i: $(cat "$T/out$i")"
        assert_eq "$(cat "$T/out$i")" "$i"
    done
    assert_eq "$(disk_count)" 0
    assert_same_snap
}

@test "a crash loop leaves nothing" {
    local n i
    n=$(rounds 200)
    marked 1
    jqe "$T/1" '.process.args = ["false"]'
    take_snap
    for ((i = 0; i < n; i++)); do
        new_id "crash$i"
        run rt run --bundle "$T/1" "$ID"
        assert_status 1
    done
    assert_eq "$(disk_count)" 0
    assert_same_snap
}

# raw_disks N: that many small ones, which begin with "diskI"; prints them as linux.devices: /dev/dI.
raw_disks() {
    local i
    for ((i = 0; i < $1; i++)); do
        image "$i" raw 1M
        printf '%s' "disk$i" | dd of="$T/$i.img" conv=notrunc status=none
        attach "$i"
        printf '{"path": "/dev/d%s", "type": "b", "major": %s, "minor": %s}\n' "$i" "$MAJ" "$MIN"
    done | jq -sc .
}

@test "sixty-four disks in one machine, and slots that are used again" {
    local n=64 list round
    list=$(raw_disks $n)
    for round in 1 2; do
        # shellcheck disable=SC2016
        fresh sh -c 'for i in $(seq 0 $(($1 - 1))); do [ "$(head -c 7 /dev/d$i | tr -d "\0")" = "disk$i" ] || echo "wrong: $i"; done; echo done' sh "$n"
        jqe "$T/b" '.linux.devices += $l | .linux.resources.devices += [{allow: true, type: "b", access: "rm"}]' --argjson l "$list"
        new_id "sixty$round"
        run rt run --bundle "$T/b" "$ID"
        assert_status 0
        assert_eq "$output" "done"
        assert_eq "$(disk_count)" 0
    done
}

@test "more disks than a machine takes are refused in one line" {
    local list
    list=$(raw_disks 129)
    DEV=$(losetup -n -O NAME -j "$T/128.img")
    mkm "$T/b" true
    jqe "$T/b" '.linux.devices += $l' --argjson l "$list"
    new_id over
    run rt create --bundle "$T/b" "$ID"
    assert_refused "block device \"$DEV\"" "\"$POD\" has 128 disks" 'no room for another'
    assert_eq "$(disk_count)" 0
    is_free "$DEV"
}

@test "under conmon, as CRI-O does" {
    marked 1
    jqe "$T/1" '.process.args = ["sh", "-c", "cat /marker; exit 5"]'
    new_id conmon
    cm "$ID" "$T/1" || fail "$CM_MESSAGE"
    rt start "$ID"
    assert_eq "$(cm_status "$ID" "$T/1")" 5
    assert_eq "$(cm_log "$T/1")" 1
    # the storage is taken down before the delete comes
    down "$DEV" "$T/1/rootfs"
    rt delete "$ID"
    fsck.ext4 -n "$DEV"
    # never started
    mount "$DEV" "$T/1/rootfs"
    new_id never
    cm "$ID" "$T/1" || fail "$CM_MESSAGE"
    rt kill "$ID" KILL
    assert_eq "$(cm_status "$ID" "$T/1")" 137
    down "$DEV" "$T/1/rootfs"
    rt delete "$ID"
    fsck.ext4 -n "$DEV"
}

@test "podman run --rootfs" {
    marked 1
    { rt_words; printf '#!/bin/sh\nexec %s "$@"\n' "${RT[*]}"; } >"$WORK/sandvirt"
    chmod 0755 "$WORK/sandvirt"
    run podman --root "$WORK/podman/storage" --runroot "$WORK/podman/run" --tmpdir "$WORK/podman/tmp" \
        --cgroup-manager cgroupfs --events-backend none --log-level error --runtime "$WORK/sandvirt" \
        run --rm --network none --name "p$N" --rootfs "$T/1/rootfs" cat /marker
    umount "$WORK/podman/storage/overlay" 2>/dev/null || true
    assert_status 0
    assert_eq "$output" 1
    wait_for 20 eval '[ "$(fstype_at "$T/1/rootfs")" = ext4 ]'
    assert_eq "$(cat "$T/1/rootfs/marker")" 1
    down "$DEV" "$T/1/rootfs"
    fsck.ext4 -n "$DEV"
}
