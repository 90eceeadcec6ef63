#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Root file system and mounts (cases A32, A34, A35, A36).

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=120
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

# bind DESTINATION SOURCE OPTION...: into $T/b.
bind() {
    local destination=$1 source=$2
    shift 2
    jqe "$T/b" '.mounts += [{destination: $d, type: "bind", source: $s, options: (["rbind"] + $ARGS.positional)}]' \
        --arg d "$destination" --arg s "$source" --args "$@"
}

# says SCRIPT: what a member with bundle $T/b prints for it.
says() {
    jqe "$T/b" '.process.args = ["sh", "-c", $s]' --arg s "$1"
    new_id "s$RANDOM"
    rt run --bundle "$T/b" "$ID" 2>&1
}

# all_capabilities: the container of $T/b has them all, and the machine's pid namespace.
all_capabilities() {
    jqe "$T/b" '.process.capabilities |= map_values($caps) | .process.noNewPrivileges = false' --argjson caps '["CAP_SYS_ADMIN",
        "CAP_SYS_PTRACE", "CAP_SYS_CHROOT", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_CHOWN", "CAP_FOWNER", "CAP_KILL",
        "CAP_MKNOD", "CAP_NET_ADMIN", "CAP_SETUID", "CAP_SETGID"]'
    jqe "$T/b" 'del(.linux.seccomp, .linux.maskedPaths, .linux.readonlyPaths)
        | .linux.resources.devices = [{allow: true, access: "rwm"}]'
}

# Software emulation keeps the code that it has translated for as long as it sees nobody write to its memory, and it does
# not see virtiofsd: the next file in the same memory must not run as the last one.
@test "each program is its own, at the same address and in the same memory as the last one" {
    mkdir "$T/code"
    python3 - "$T/code" 60 <<'END'
import sys
for number in range(1, int(sys.argv[2]) + 1):
    page = b'\xb8' + number.to_bytes(4, 'little') + b'\xc3' # mov $number, %eax; ret
    with open(f'{sys.argv[1]}/{number}', 'wb') as file:
        file.write(page.ljust(4096, b'\xcc') * 256)
END
    mkm "$T/b" payload code /code 60
    bind /code "$T/code" rw
    new_id c
    run -0 rt run --bundle "$T/b" "$ID"
}

@test "the root file system is the bundle's, writable, and seen from both sides" {
    mkm "$T/b" true
    all_capabilities
    run says 'cat /etc/origin; echo from guest >/tmp/made; chmod 640 /tmp/made; chown 1000:1000 /tmp/made; ln -s made /tmp/link'
    assert_eq "$output" image
    assert_eq "$(cat "$T/b/rootfs/tmp/made")" 'from guest'
    assert_eq "$(stat -c '%a %u %g' "$T/b/rootfs/tmp/made")" '640 1000 1000'
    assert_eq "$(readlink "$T/b/rootfs/tmp/link")" made
    echo from host >"$T/b/rootfs/tmp/made"
    run says 'cat /tmp/link'
    assert_eq "$output" 'from host'
}

@test "a read-only root file system" {
    mkm "$T/b" true
    jqe "$T/b" '.root.readonly = true'
    run says 'echo x >/tmp/made; echo $?; mount -o remount,rw / ; echo x >/tmp/made'
    assert_has "$output" 'ead-only file system'
    [ ! -e "$T/b/rootfs/tmp/made" ]
}

@test "binds: read-write and read-only, folder and file, each by its own flags" {
    mkm "$T/b" true
    mkdir "$T"/{rw,ro}
    echo one >"$T/rw/file"
    echo two >"$T/ro/file"
    echo single >"$T/single"
    echo locked >"$T/locked"
    bind /rw "$T/rw"
    bind /ro "$T/ro" ro
    bind /same "$T/rw" ro
    bind /etc/single "$T/single"
    bind /etc/locked "$T/locked" ro
    run says 'cat /rw/file /ro/file /same/file /etc/single /etc/locked
        echo 1 >/rw/new; echo 2 >>/etc/single
        echo 3 >/ro/new; echo 4 >>/etc/locked; echo 5 >/same/new; echo end'
    assert_has "$output" $'one\ntwo\none\nsingle\nlocked'
    assert_eq "$(grep -c 'ead-only file system' <<<"$output")" 3 'refusals'
    assert_eq "$(cat "$T/rw/new")" 1
    assert_eq "$(cat "$T/single")" $'single\n2'
    [ ! -e "$T/ro/new" ]
    assert_eq "$(cat "$T/locked")" locked
}

@test "a read-only volume cannot be written from outside the container in the guest either" {
    mkm "$T/b" true
    mkdir "$T/ro"
    echo kept >"$T/ro/file"
    bind /ro "$T/ro" ro
    # With every capability: by mounting anew ...
    all_capabilities
    run says 'payload remount-write /ro; echo status $?'
    assert_has "$output" 'status 0'
    # ... and through the root of the machine's first process, where the share is mounted.
    jqe "$T/b" '.linux.namespaces |= map(select(.type != "pid"))'
    run says 'n=0; for d in /proc/1/root/run/sandvirt/share/c/*/* /proc/1/root/run/sandvirt/share/c/*/*/*; do
        if [ -e $d/file ] && [ "$(cat $d/file)" = kept ]; then n=$((n + 1)); echo x >$d/written; echo y >$d/file; fi
        done; echo seen $n'
    assert_has "$output" 'seen 1'
    assert_has "$output" 'ead-only file system'
    [ ! -e "$T/ro/written" ]
    [ ! -e "$T/ro/written-by-guest" ]
    assert_eq "$(cat "$T/ro/file")" kept
}

@test "no folder of the share itself can be written by the guest" {
    mkm "$T/b" true
    all_capabilities
    jqe "$T/b" '.linux.namespaces |= map(select(.type != "pid"))'
    run says 's=/proc/1/root/run/sandvirt/share; ls $s; touch $s/x $s/c/x; mkdir $s/c/new; echo done'
    assert_has "$output" "done"
    assert_eq "$(grep -c 'ead-only file system' <<<"$output")" 3
}

@test "volumes do what programs expect: mmap, locks, rename over an open file" {
    mkm "$T/b" true
    mkdir "$T/v"
    bind /v "$T/v"
    run says 'payload mmap /v/map && payload mmap /tmp/map && payload flock /v/lock && payload flock /tmp/lock \
        && payload rename /v && payload rename /tmp && echo all well'
    assert_eq "$output" 'all well'
}

@test "a bind of folders with mounts below: rbind takes them, bind does not" {
    mkm "$T/b" true
    mkdir -p "$T/tree/sub"
    mount -t tmpfs none "$T/tree/sub"
    echo below >"$T/tree/sub/file"
    jqe "$T/b" '.mounts += [{destination: "/r", type: "bind", source: $s, options: ["rbind", "ro"]},
        {destination: "/p", type: "bind", source: $s, options: ["bind"]}]' --arg s "$T/tree"
    run says 'cat /r/sub/file; ls /p/sub; echo x >/r/sub/new; echo end'
    umount "$T/tree/sub"
    assert_has "$output" $'below\n'
    assert_has "$output" 'ead-only file system'
}

@test "mounts made later below a volume stay on their side, and the host can unmount its own" {
    mkm "$T/b" sleep 1000
    mkdir -p "$T/tree"
    mount -t tmpfs tree "$T/tree"
    mount --make-shared "$T/tree"
    mkdir "$T/tree/sub"
    bind /tree "$T/tree" rslave
    new_id looks
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_has "$(cat "$T/out.log")" 'option "rslave": mounts made later do not pass'
    mount -t tmpfs later "$T/tree/sub"
    echo later >"$T/tree/sub/file"
    run rt exec "$ID" cat /tree/sub/file
    assert_has "$output" 'No such file'
    umount "$T/tree/sub"
    rt delete --force "$ID"
    umount "$T/tree"
}

@test "A34: single files as engines give them" {
    mkm "$T/b" true
    printf 'nameserver 192.0.2.1\n' >"$T/resolv.conf"
    printf '192.0.2.2 other\n' >"$T/hosts"
    : >"$T/empty"
    echo secret >"$T/secret"
    chmod 0400 "$T/secret"
    chown 1000:1000 "$T/secret"
    bind /etc/resolv.conf "$T/resolv.conf"
    bind /etc/hosts "$T/hosts"
    bind /etc/x/y/new.conf "$T/empty"
    bind /etc/secret "$T/secret"
    run says 'cat /etc/resolv.conf /etc/hosts; stat -c "%F %a %u" /etc/x/y/new.conf /etc/secret; hostname'
    assert_eq "$output" $'nameserver 192.0.2.1\n192.0.2.2 other\nregular empty file 644 0\nregular file 400 1000\ntest'
}

@test "A34: what the host appends is seen, a replaced file keeps its old content" {
    mkm "$T/b" sh -c 'cat; exec sleep 1000'
    echo first >"$T/appended"
    echo old >"$T/replaced"
    bind /etc/appended "$T/appended"
    bind /etc/replaced "$T/replaced"
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_eq "$(rt exec "$ID" cat /etc/appended /etc/replaced)" $'first\nold'
    echo second >>"$T/appended"
    echo new >"$T/replaced.new"
    mv "$T/replaced.new" "$T/replaced"
    # Attributes are cached for a second by the guest.
    wait_for 5 eval '[ "$(rt exec "$ID" cat /etc/appended)" = "first
second" ]'
    assert_eq "$(rt exec "$ID" cat /etc/replaced)" old
}

@test "the host sees at once what the container writes, the container what the host adds" {
    mkm "$T/b" sleep 1000
    mkdir "$T/v"
    bind /v "$T/v"
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    rt exec "$ID" sh -c 'echo x >/v/a; mkdir /v/d; mv /v/a /v/d/b'
    assert_eq "$(cat "$T/v/d/b")" x
    echo host >"$T/v/h"
    wait_for 3 eval '[ "$(rt exec "$ID" cat /v/h)" = host ]'
}

@test "A32: destinations through links stay inside the root file system" {
    mkm "$T/b" true
    rmdir "$T/b/rootfs/run" "$T/b/rootfs/home"
    mkdir -p "$T/b/rootfs/run" "$T/b/rootfs/deep"
    ln -s /run "$T/b/rootfs/var/run"
    ln -s ../run "$T/b/rootfs/var/rel"
    ln -s /usr/share/x "$T/b/rootfs/etc/localtime"
    ln -s ../../../../tmp "$T/b/rootfs/up"
    mkdir "$T/d1" "$T/d2" "$T/d3"
    touch "$T/d1/one" "$T/d2/two" "$T/d3/three"
    echo zone >"$T/zone"
    bind /var/run/d1 "$T/d1"
    bind /var/rel/d2 "$T/d2"
    bind /up/d3 "$T/d3"
    bind /etc/localtime "$T/zone"
    run says 'ls /run/d1 /run/d2 /tmp/d3; cat /etc/localtime'
    assert_eq "$output" $'/run/d1:\none\n\n/run/d2:\ntwo\n\n/tmp/d3:\nthree\nzone'
    [ ! -e /run/d1 ] && [ ! -e /run/d2 ] && [ ! -e /tmp/d3 ] && [ ! -e /usr/share/x ]
}

@test "A32: links in a circle are an error" {
    mkm "$T/b" true
    ln -s /b "$T/b/rootfs/a"
    ln -s /a "$T/b/rootfs/b"
    mkdir "$T/d"
    bind /a/x "$T/d"
    new_id c
    run rt run --bundle "$T/b" "$ID"
    assert_refused
    assert_eq "$(rt list -q)" "$POD"
}

@test "A32: a source that is a link is followed as a bind mount does" {
    mkm "$T/b" true
    mkdir "$T/real"
    echo real >"$T/real/file"
    ln -s real "$T/link"
    bind /data "$T/link"
    run says 'cat /data/file'
    assert_eq "$output" real
}

@test "A33: a fifo, a socket and a device as volumes never block the create" {
    mkm "$T/b" true
    mkfifo "$T/fifo"
    python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()' "$T/sock"
    bind /fifo "$T/fifo"
    bind /sock "$T/sock"
    bind /dev/mynull /dev/null
    took says 'stat -c %F /fifo /sock /dev/mynull; echo x >/dev/mynull; stat -c %t:%T /dev/mynull'
    [ "$MS" -lt 20000 ]
    run says 'stat -c %F /fifo /sock /dev/mynull; echo x >/dev/mynull && stat -c %t:%T /dev/mynull'
    assert_eq "$output" $'fifo\nsocket\ncharacter special file\n1:3'
}

@test "A33: two containers of a pod talk through a socket's folder and a fifo" {
    mkdir "$T/v"
    mkfifo "$T/v/fifo"
    mkm "$T/b" sh -c 'cat /v/fifo'
    bind /v "$T/v"
    new_id reader
    rt run --bundle "$T/b" "$ID" >"$T/out" 2>&1 3>&- &
    local call=$!
    wait_state "$ID" running
    run -0 says 'timeout 20 sh -c "echo through the fifo >/v/fifo"'
    wait $call
    assert_eq "$(cat "$T/out")" 'through the fifo'
    jqe "$T/b" '.process.args = ["payload", "unix-serve", "/v/sock", "through the socket"]'
    new_id server
    rt run --bundle "$T/b" "$ID" >"$T/out" 2>&1 3>&- &
    call=$!
    wait_for 20 test -S "$T/v/sock"
    run -0 says 'payload unix /v/sock'
    assert_eq "$output" 'through the socket'
    wait $call
}

@test "two containers of a pod with the same volume: locks keep out, mappings agree" {
    mkdir "$T/v"
    mkm "$T/b" payload hold-lock /v/lock /v/state
    bind /v "$T/v"
    new_id holder
    local holder=$ID
    quiet rt run --detach --bundle "$T/b" "$holder"
    wait_for 20 grep -q held "$T/v/state"
    run says 'payload try-lock /v/lock'
    assert_eq "$output" 'kept out'
    rt delete --force "$holder"
}

@test "A35: /dev/shm of the asked size, full at its limit" {
    mkm "$T/b" true
    jqe "$T/b" '(.mounts[] | select(.destination == "/dev/shm")) |=
        {destination: "/dev/shm", type: "tmpfs", source: "shm", options: ["nosuid", "noexec", "nodev", "mode=1777", "size=8m"]}'
    run says 'df -m /dev/shm | tail -n 1 | awk "{ print \$2 }"; dd if=/dev/zero of=/dev/shm/x bs=1M count=9 2>&1 | grep -o "No space left"; stat -c %a /dev/shm'
    assert_eq "$output" $'8\nNo space left\n1777'
}

@test "A35: an engine's tmpfs at /dev/shm: its size, shared by the containers that name it" {
    mkdir "$T/shm"
    mount -t tmpfs -o size=16m,mode=1777 shm "$T/shm"
    mkm "$T/b" true
    jqe "$T/b" '(.mounts[] | select(.destination == "/dev/shm")) |=
        {destination: "/dev/shm", type: "bind", source: $s, options: ["rw", "bind"]}' --arg s "$T/shm"
    run says 'df -m /dev/shm | tail -n 1 | awk "{ print \$2 }"; echo shared >/dev/shm/file'
    local first=$output
    run says 'cat /dev/shm/file; payload mmap /dev/shm/map && echo mapped'
    umount "$T/shm"
    assert_eq "$first" 16
    assert_eq "$output" $'shared\nmapped'
}

@test "A36: a working folder that the image lacks is made; one that is a file is an error" {
    mkm "$T/b" true
    jqe "$T/b" '.process.cwd = "/does/not/exist"'
    run says 'pwd; stat -c "%a %u" .'
    assert_eq "$output" $'/does/not/exist\n755 0'
    jqe "$T/b" '.process.cwd = "/made/for/user" | .process.user = {uid: 1000, gid: 1000}'
    run says 'pwd'
    assert_eq "$output" /made/for/user
    jqe "$T/b" '.process.cwd = "/etc/origin" | .process.user = {uid: 0, gid: 0}'
    new_id c
    run rt run --bundle "$T/b" "$ID"
    assert_refused /etc/origin
    # As runc does it: made before the root file system becomes read-only.
    jqe "$T/b" '.process.cwd = "/none/here" | .root.readonly = true'
    run says 'pwd; touch x'
    assert_has "$output" /none/here
    assert_has "$output" 'ead-only file system'
}

@test "tmpfs, proc, sysfs, cgroup, devpts and mqueue are the guest's" {
    mkm "$T/b" true
    jqe "$T/b" '.mounts += [{destination: "/t", type: "tmpfs", source: "tmpfs", options: ["size=4m", "mode=700"]}]
        | .linux.namespaces += [{type: "cgroup"}] | .linux.namespaces |= unique'
    run says 'awk "{ print \$2, \$3 }" /proc/mounts; stat -c %a /t; df -m /t | tail -n 1 | awk "{ print \$2 }"; ls /dev/pts/ptmx /dev/null /dev/zero; cat /proc/1/comm'
    local line
    for line in '/proc proc' '/sys sysfs' '/dev tmpfs' '/dev/pts devpts' '/dev/mqueue mqueue' '/t tmpfs' '/sys/fs/cgroup cgroup2'; do
        [[ $output == *"$line"* ]] || fail "no $line in $output"
    done
    assert_has "$output" $'700\n4\n'
}

@test "nothing of the host shows: mounts, processes, paths of the share" {
    run -0 in_pod cat /proc/self/mountinfo
    [[ $output != *"$WORK"* ]] || fail "$output"
    run -0 in_pod sh -c 'ls /proc | grep -c "^[0-9]*$"'
    [ "$output" -lt 10 ] || fail "$output processes"
}

@test "A31 without disks: a stopped container's root file system can be unmounted by its engine" {
    mkdir "$T/b"
    mkm "$T/b" sleep 1000
    mkdir "$T/lower"
    mv "$T/b/rootfs" "$T/lower/rootfs"
    mkdir "$T/b/rootfs"
    mount --bind "$T/lower/rootfs" "$T/b/rootfs"
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    rt exec "$ID" sh -c 'echo x >/tmp/y; cat /bin/busybox >/dev/null'
    local shim
    shim=$(pid_of "$ID")
    rt kill "$ID" KILL
    # Engines unmount the moment the pid is gone.
    wait_for 10 gone "$shim"
    umount "$T/b/rootfs"
    assert_eq "$(state_of "$ID")" stopped
    rt delete "$ID"
}
