#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What goes wrong while a container is made: told clearly, in time, and nothing is left (A14, A15).

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=180
    suite_begin
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() {
    write_conf
    test_end
}

# broken PART...: create of $T/b fails within 30 s, says PART..., is not listed, leaves nothing; then
# the configuration is put right, and the same id works.
broken() {
    new_id c
    take_snap
    try timeout -s KILL 30 "${RT[@]}" create --bundle "$T/b" "$ID"
    echo "stderr: $stderr"
    assert_refused "$@"
    [[ $(tail -n 1 <<<"$stderr") == sandvirt:* ]] || fail "no error line: $stderr"
    assert_eq "$(rt list -q)" ''
    assert_same_snap
}

# exec_refused PROGRAM TEXT: with 255, the status of an exec that did not come about.
exec_refused() {
    run rt exec "$POD" "$1"
    assert_status 255
    assert_has "$output" "$2"
}

works_again() {
    write_conf
    rm -rf "$T/b"
    mkb "$T/b" echo works
    run -0 rt run --bundle "$T/b" "$ID"
    assert_eq "$output" works
    assert_same_snap
}

@test "A14: a command that is not there, first container" {
    take_snap
    mkb "$T/b" /no/such
    new_id c
    run rt run --bundle "$T/b" "$ID"
    assert_refused 'no such file or directory'
    assert_eq "$(rt list -q)" ''
    assert_same_snap
    mkb "$T/d" echo fine
    run -0 rt run --bundle "$T/d" "$ID"
    assert_eq "$output" fine
}

@test "A14: not found, not executable, a folder; in a pod, by create and by exec" {
    pod_up errors
    take_snap
    mkm "$T/b" nosuch
    new_id c
    run rt run --bundle "$T/b" "$ID"
    assert_refused 'executable file not found in $PATH'
    jqe "$T/b" '.process.args = ["/etc/origin"]'
    run rt run --bundle "$T/b" "$ID"
    assert_refused 'exec: "/etc/origin": permission denied'
    jqe "$T/b" '.process.args = ["/etc"]'
    run rt run --bundle "$T/b" "$ID"
    assert_refused 'exec: "/etc": permission denied'
    # What the path leads to is of no use: not found, as runc has it.
    echo text >"$T/b/rootfs/bin/plain"
    jqe "$T/b" '.process.args = ["plain"]'
    run rt run --bundle "$T/b" "$ID"
    assert_refused 'exec: "plain": executable file not found in $PATH'
    jqe "$T/b" '.process.args = ["/etc/origin/x"]'
    run rt run --bundle "$T/b" "$ID"
    assert_refused 'exec: "/etc/origin/x": stat /etc/origin/x: not a directory'
    jqe "$T/b" '.process.args = [""]'
    run rt run --bundle "$T/b" "$ID"
    assert_refused 'exec: "": executable file not found in $PATH'
    assert_eq "$(rt list -q)" "$POD"
    assert_same_snap
    exec_refused nosuch 'exec: "nosuch": executable file not found in $PATH'
    exec_refused /no/such 'exec: "/no/such": stat /no/such: no such file or directory'
    exec_refused /etc/origin 'exec: "/etc/origin": permission denied'
    exec_refused /etc 'exec: "/etc": permission denied'
    exec_refused etc 'exec: "etc": executable file not found in $PATH'
    exec_refused /etc/origin/x 'exec: "/etc/origin/x": stat /etc/origin/x: not a directory'
    exec_refused '' 'exec: "": executable file not found in $PATH'
    assert_same_snap
    assert_eq "$(state_of "$POD")" running
    pod_down_all
}

@test "A14: through conmon, the message reaches the engine" {
    mkb "$T/b" nosuch
    new_id c
    take_snap
    if cm "$ID" "$T/b"; then
        run rt start "$ID"
        assert_refused 'executable file not found in $PATH'
    else
        assert_has "$CM_MESSAGE" 'executable file not found in $PATH'
    fi
    rt delete --force "$ID"
    wait_for 5 gone "$(cat "$T/b/conmon-pidfile")"
    assert_same_snap
}

@test "A15: a bind source is missing" {
    mkb "$T/b" true
    jqe "$T/b" '.mounts += [{destination: "/data", type: "bind", source: "/no/such/source", options: ["rbind"]}]'
    broken /no/such/source
    works_again
}

@test "A15: the network namespace is missing" {
    mkb "$T/b" true
    jqe "$T/b" '(.linux.namespaces[] | select(.type == "network")).path = "/run/netns/nosuch"'
    broken /run/netns/nosuch
    works_again
}

@test "A15: the guest kernel is missing, unreadable, not one" {
    mkb "$T/b" true
    write_conf machine.kernel=/no/such/kernel
    broken /no/such/kernel
    # QEMU runs as a user of its own.
    install -m 0600 "$SV_IMAGES/vmlinux" "$WORK/kernel"
    write_conf "machine.kernel=$WORK/kernel"
    broken "$WORK/kernel"
    head -c 100000 /dev/urandom >"$WORK/kernel"
    chmod 644 "$WORK/kernel"
    write_conf "machine.kernel=$WORK/kernel" timeouts.boot_ms=5000
    broken
    rm "$WORK/kernel"
    works_again
}

@test "A15: virtiofsd is missing" {
    mkb "$T/b" true
    write_conf hypervisor.virtiofsd=/no/such/virtiofsd
    broken /no/such/virtiofsd
    works_again
}

@test "A15: libvirt is not there" {
    mkb "$T/b" true
    write_conf 'hypervisor.uri=qemu+unix:///system?socket=/no/such/libvirt-sock'
    broken libvirt
    works_again
}

@test "A15: the guest is silent: the end of its console is in the message" {
    mkb "$T/b" true
    mkdir "$T/initramfs"
    cp /bin/busybox "$T/initramfs/init-busybox"
    printf '#!/init-busybox sh\necho the last words of the guest\nwhile :; do /init-busybox sleep 1; done\n' \
        >"$T/initramfs/init"
    chmod 755 "$T/initramfs/init"
    (cd "$T/initramfs" && find . | cpio -o -H newc --quiet) >"$WORK/image"
    write_conf "machine.image=$WORK/image" timeouts.boot_ms=12000
    took broken 'last words of the guest'
    [ "$STATUS" = 0 ]
    [ "$MS" -lt 25000 ] || fail "took $MS ms"
    rm "$WORK/image"
    works_again
}

@test "A15: the guest ends at once" {
    mkb "$T/b" true
    mkdir "$T/initramfs"
    (cd "$T/initramfs" && find . | cpio -o -H newc --quiet) >"$WORK/image"
    write_conf "machine.image=$WORK/image"
    took broken
    [ "$STATUS" = 0 ]
    [ "$MS" -lt 25000 ] || fail "took $MS ms: a dead machine is waited for"
    rm "$WORK/image"
    works_again
}

@test "A15: the state folder is read-only, or full" {
    mkb "$T/b" true
    mkdir -p "$ROOT"
    mount -t tmpfs -o ro,size=1m none "$ROOT"
    new_id c
    try rt create --bundle "$T/b" "$ID"
    umount "$ROOT"
    assert_refused "$ROOT"
    mount -t tmpfs -o size=1m none "$ROOT"
    head -c 2097152 /dev/zero >"$ROOT/fill" 2>/dev/null || true
    try rt create --bundle "$T/b" "$ID"
    assert_refused 'o space left'
    rm "$ROOT/fill"
    run -0 rt run --bundle "$T/b" "$ID"
    wait_for 5 umount "$ROOT"
    take_snap
    works_again
}

@test "not root: one line, at once" {
    mkb "$T/b" true
    try setpriv --reuid 65534 --regid 65534 --clear-groups "${RT[@]}" create --bundle "$T/b" "x$N"
    assert_refused root
    assert_eq "$(grep -c . <<<"$stderr")" 1
}

@test "a mount namespace that libvirt does not see is refused" {
    mkb "$T/b" true
    new_id c
    take_snap
    try timeout -s KILL 30 unshare --mount --propagation private "${RT[@]}" create --bundle "$T/b" "$ID"
    assert_refused namespace
    assert_same_snap
}

@test "what no longer reaches virtiofsd is refused, whoever made the host's mounts private" {
    pod_up private
    mkm "$T/b" true
    new_id c
    local share
    share=$(echo "$RUN"/.box/*/share)
    take_snap
    # as mount --make-rprivate / does it to all
    mount --make-private "$share"
    try timeout -s KILL 30 "${RT[@]}" create --bundle "$T/b" "$ID"
    assert_refused 'does not reach virtiofsd'
    assert_eq "$(grep -c . <<<"$stderr")" 1
    assert_same_snap
    run -0 rt exec "$POD" cat /etc/origin
    run -0 rt delete --force "$POD"
    pod_up again
    member "$T/b"
    run -0 rt run --bundle "$T/b" "$ID"
    pod_down_all
}

@test "without a launcher: a warning, and it works" {
    launcher_stop
    mkb "$T/b" echo alone
    new_id c
    run --separate-stderr rt run --bundle "$T/b" "$ID"
    launcher_start
    assert_status 0
    assert_eq "$output" alone
    assert_has "$stderr" launcher
}

@test "a wrong key, a wrong value: file, line and key are named" {
    mkb "$T/b" true
    new_id c
    write_conf machine.nosuchkey=1
    try rt create --bundle "$T/b" "$ID"
    assert_refused "$CONF" nosuchkey
    write_conf machine.memory_mib=lots
    try rt create --bundle "$T/b" "$ID"
    assert_refused "$CONF" memory_mib lots
    try "$SANDVIRT" --config /no/such/file --root "$ROOT" create --bundle "$T/b" "$ID"
    assert_refused /no/such/file
}

@test "a configuration that has gone keeps nobody from the pods that were made with it" {
    take_snap
    mkb "$T/b" sleep 1000
    new_id c
    local plain=("$SANDVIRT" --root "$T/root")
    printf '[hypervisor]\naccel = tcg\n' >"$T/gone.conf"
    run -0 "${plain[@]}" --config "$T/gone.conf" run --detach --bundle "$T/b" "$ID" </dev/null >/dev/null 2>&1
    run -0 "${plain[@]}" exec "$ID" echo with
    assert_eq "$output" with
    rm "$T/gone.conf"
    run --separate-stderr "${plain[@]}" exec "$ID" echo without
    assert_status 0
    assert_eq "$output" without
    assert_has "$stderr" "$T/gone.conf"
    run -0 "${plain[@]}" delete --force "$ID"
    assert_eq "$("${plain[@]}" list -q)" ''
    assert_same_snap
}

@test "a hook that fails, or that takes too long, fails the create" {
    mkb "$T/b" true
    jqe "$T/b" '.hooks.createRuntime = [{path: "/bin/sh", args: ["sh", "-c", "echo hook says no >&2; exit 3"]}]'
    broken hook
    jqe "$T/b" '.hooks.createRuntime = [{path: "/bin/sleep", args: ["sleep", "50"], timeout: 1}]'
    broken hook
    jqe "$T/b" '.hooks.createRuntime = [{path: "/no/such/hook"}]'
    broken /no/such/hook
    works_again
}
