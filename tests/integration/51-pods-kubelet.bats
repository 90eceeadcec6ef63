#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What a kubelet makes of a pod through CRI-O and conmon: init containers, volumes and files that it keeps
# on the host, containers that come and go. One pod for all tests.

load lib
load lifecycle

setup_file() {
    export BATS_TEST_TIMEOUT=180
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

# volume DIR SOURCE DESTINATION [OPTION...]: a mount as CRI-O writes it.
volume() {
    local dir=$1 source=$2 destination=$3
    shift 3
    [ $# -gt 0 ] || set -- rw
    jqe "$dir" '.mounts += [{destination: $d, type: "bind", source: $s, options: (["rbind", "rprivate"] + $ARGS.positional)}]' \
        --arg d "$destination" --arg s "$source" --args -- "$@"
}

# up NAME VOLUME-COMMAND -- ARG...: a running member with what VOLUME-COMMAND adds to its bundle $DIR.
up() {
    local name=$1 change=$2
    shift 3
    new_id "$name"
    DIR=$T/$name
    mkm "$DIR" "$@"
    "$change"
    cm "$ID" "$DIR" || fail "create of $name: $CM_MESSAGE"
    rt start "$ID"
}

# atomic DIR NAME TEXT: NAME in DIR as the kubelet's writer of config maps and secrets does it.
atomic() {
    local stamp=..$RANDOM$RANDOM
    mkdir "$1/$stamp"
    echo "$3" >"$1/$stamp/$2"
    ln -s "$stamp" "$1/..data_tmp"
    mv -T "$1/..data_tmp" "$1/..data"
    [ -L "$1/$2" ] || ln -s "..data/$2" "$1/$2"
}

sees() { [ "$(rt exec "$1" cat "$2" 2>/dev/null)" = "$3" ]; }

@test "an init container runs to its end before the others, and is gone" {
    local first
    mkdir "$T/shared"
    first_volumes() { volume "$DIR" "$T/shared" /shared; }
    up init first_volumes -- sh -c 'echo prepared >/shared/file; exit 0'
    first=$ID
    assert_eq "$(cm_status "$first" "$DIR")" 0
    rt delete "$first"
    up main first_volumes -- sleep 1000
    run -0 rt exec "$ID" cat /shared/file
    assert_eq "$output" prepared
    run rt state "$first"
    assert_has "$output" 'does not exist'
    # One that fails keeps its status, and the pod goes on.
    up failing first_volumes -- sh -c 'exit 3'
    assert_eq "$(cm_status "$ID" "$DIR")" 3
    sees "main-$N" /shared/file prepared
}

@test "emptyDir on disk and in memory: both containers, both ways" {
    local a
    mkdir "$T/disk" "$T/memory"
    mount -t tmpfs -o size=8m tmpfs "$T/memory"
    volumes() {
        volume "$DIR" "$T/disk" /disk
        volume "$DIR" "$T/memory" /memory
    }
    up a volumes -- sleep 1000
    a=$ID
    up b volumes -- sleep 1000
    rt exec "$a" sh -c 'echo from a >/disk/file; echo from a >/memory/file'
    run -0 rt exec "$ID" cat /disk/file /memory/file
    assert_eq "$output" $'from a\nfrom a'
    rt exec "$ID" sh -c 'echo from b >>/disk/file; rm /memory/file'
    run -0 rt exec "$a" cat /disk/file
    assert_eq "$output" $'from a\nfrom b'
    run rt exec "$a" test -e /memory/file
    assert_eq "$status" 1
    # The volume's size is its limit.
    run rt exec "$a" sh -c 'dd if=/dev/zero of=/memory/big bs=1M count=16'
    assert_has "$output" 'No space left'
    rt delete --force "$a"
    rt delete --force "$ID"
    umount "$T/memory"
}

@test "a config map and a secret: the new content is seen live, writing is refused" {
    mkdir "$T/map" "$T/secret"
    mount -t tmpfs tmpfs "$T/secret"
    atomic "$T/map" key one
    atomic "$T/secret" token alpha
    volumes() {
        volume "$DIR" "$T/map" /etc/map ro
        volume "$DIR" "$T/secret" /var/run/secrets ro
    }
    up a volumes -- sleep 1000
    run -0 rt exec "$ID" cat /etc/map/key /var/run/secrets/token
    assert_eq "$output" $'one\nalpha'
    atomic "$T/map" key two
    atomic "$T/secret" token beta
    wait_for 5 sees "$ID" /etc/map/key two || fail 'the config map is old'
    wait_for 5 sees "$ID" /var/run/secrets/token beta || fail 'the secret is old'
    run rt exec "$ID" sh -c 'echo x >/etc/map/key'
    assert_has "$output" 'Read-only'
    rt delete --force "$ID"
    umount "$T/secret"
}

@test "subPath: a folder and a file of a volume, each a mount of the kubelet" {
    mkdir -p "$T/volume/sub/deep" "$T/subpaths/0"
    echo deep >"$T/volume/sub/deep/file"
    echo single >"$T/volume/single"
    : >"$T/subpaths/1"
    mount --bind "$T/volume/sub" "$T/subpaths/0"
    mount --bind "$T/volume/single" "$T/subpaths/1"
    volumes() {
        volume "$DIR" "$T/subpaths/0" /sub
        volume "$DIR" "$T/subpaths/1" /etc/single ro
    }
    up a volumes -- sleep 1000
    run -0 rt exec "$ID" cat /sub/deep/file /etc/single
    assert_eq "$output" $'deep\nsingle'
    rt exec "$ID" sh -c 'echo new >/sub/new'
    assert_eq "$(cat "$T/volume/sub/new")" new
    run rt exec "$ID" ls /sub/..
    [[ $output != *single* ]] || fail 'what lies beside the subPath is seen'
    rt delete --force "$ID"
    umount "$T/subpaths/0" "$T/subpaths/1"
}

@test "termination log, hosts, resolv.conf, host name: files of the kubelet" {
    local file
    : >"$T/termination"
    printf '127.0.0.1 localhost\n192.0.2.7 pod.example pod\n' >"$T/hosts"
    echo 'nameserver 192.0.2.1' >"$T/resolv"
    echo pod >"$T/hostname"
    volumes() {
        volume "$DIR" "$T/termination" /dev/termination-log
        for file in hosts resolv hostname; do
            volume "$DIR" "$T/$file" "/etc/${file/resolv/resolv.conf}"
        done
    }
    up a volumes -- sh -c 'cat /etc/hosts /etc/resolv.conf /etc/hostname; echo why it ended >/dev/termination-log; exit 4'
    assert_eq "$(cm_status "$ID" "$DIR")" 4
    assert_eq "$(cat "$T/termination")" 'why it ended'
    assert_eq "$(cm_log "$DIR")" "$(cat "$T/hosts" "$T/resolv" "$T/hostname")"
}

@test "an ephemeral container looks into another's processes, and goes" {
    local app
    nothing() { :; }
    up app nothing -- sleep 4711
    app=$ID
    target() {
        jqe "$DIR" '(.linux.namespaces[] | select(.type == "pid")).path = $p' --arg p "/proc/$(pid_of "$app")/ns/pid"
    }
    up debug target -- sh -c 'ps; cat /proc/1/root/etc/origin'
    assert_eq "$(cm_status "$ID" "$DIR")" 0
    assert_has "$(cm_log "$DIR")" 'sleep 4711'
    assert_has "$(cm_log "$DIR")" image
    rt delete "$ID"
    assert_eq "$(state_of "$app")" running
}

@test "containers come and go ten times while one runs; the pod is one machine" {
    local i stays
    nothing() { :; }
    up stays nothing -- sleep 1000
    stays=$ID
    for i in {1..10}; do
        up "c$i" nothing -- sh -c "exit $i"
        assert_eq "$(cm_status "$ID" "$DIR")" "$i"
        rt delete "$ID"
    done
    assert_eq "$(state_of "$stays")" running
    assert_eq "$(domains | wc -l)" 1
}

@test "a pod is removed with its containers in any order" {
    local id ids
    take_snap
    for ids in 'sandbox a b' 'a sandbox b'; do
        local POD=rm-${WORK##*.}
        mkb "$T/sandbox" sleep 1000
        jqe "$T/sandbox" '.annotations += {"io.kubernetes.cri-o.ContainerType": "sandbox", "io.kubernetes.cri-o.SandboxID": $p}' --arg p "$POD"
        in_netns "$T/sandbox"
        echo "$POD" >>"$T/ids"
        cm "$POD" "$T/sandbox" || fail "$CM_MESSAGE"
        rt start "$POD"
        nothing() { :; }
        up a nothing -- sleep 1000
        up b nothing -- sleep 1000
        for id in $ids; do
            [ "$id" = sandbox ] && id=$POD || id=$id-$N
            rt kill "$id" KILL
            wait_state "$id" stopped
            rt delete "$id"
        done
        rm -r "$T/sandbox" "$T/a" "$T/b"
    done
    assert_same_snap
}
