#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The Debian package: built, put in, used, taken out again, in a root folder of its own whose /run, /dev,
# /sys and /proc are the machine's.

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=900 # it builds everything
    suite_begin
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

@test "the package has everything in place, works after installation and leaves nothing" {
    local deb root=$WORK/chroot file
    deb=$("$SV_SOURCE/conf/package/build-deb" "$WORK/deb" 2>"$LOG/deb" | tail -n 1) || fail "$(tail -n 20 "$LOG/deb")"
    run -0 dpkg-deb --contents "$deb"
    for file in usr/bin/sandvirt usr/lib/sandvirt/sandvirt-{monitor,shim,launcher,agent} \
        usr/lib/sandvirt/build-guest-image etc/sandvirt/sandvirt.conf usr/share/man/man8/sandvirt.8.gz \
        usr/share/man/man5/sandvirt.conf.5.gz usr/share/bash-completion/completions/sandvirt \
        usr/lib/systemd/system/sandvirt-launcher.{socket,service} usr/lib/sysusers.d/sandvirt.conf \
        usr/share/sandvirt/engines/{10-sandvirt.conf,containerd.toml,containers.conf,docker-daemon.json,runtimeclass.yaml}; do
        assert_has "$output" "./$file" 'package'
    done
    # Of the machine's own system everything is seen, nothing of it is written; all mounts go with the namespace.
    mkdir -p "$root"
    cat >"$T/inside" <<'SCRIPT'
set -eux
mount -t tmpfs -o mode=0755 layer "$1"
mkdir "$1/up" "$1/work" "$1/top"
mount -t overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" root "$1/top"
for dir in dev sys proc; do mount --rbind "/$dir" "$1/top/$dir"; done
mount -t tmpfs run "$1/top/run"
mkdir -p "$1/top/run/libvirt"
mount --bind /run/libvirt "$1/top/run/libvirt"
cp "$2" "$1/top/var/sandvirt.deb"
chroot "$1/top" dpkg --force-depends --install /var/sandvirt.deb
chroot "$1/top" sandvirt --version
chroot "$1/top" sandvirt list
chroot "$1/top" sh -c 'cd /tmp && rm -f config.json && sandvirt spec && test -s config.json'
chroot "$1/top" sandvirt check --quick || true
chroot "$1/top" bash -c '. /usr/share/bash-completion/completions/sandvirt; COMP_WORDS=(sandvirt st); COMP_CWORD=1; _sandvirt; echo "complete: ${COMPREPLY[*]}"'
chroot "$1/top" man --warnings -l /usr/share/man/man8/sandvirt.8.gz | head -n 3
chroot "$1/top" dpkg --purge sandvirt
if find "$1/top/usr" "$1/top/etc/sandvirt" -path "$1/top/usr/src" -prune -o -name '*sandvirt*' -print 2>/dev/null | grep .; then exit 1; fi
echo all gone
SCRIPT
    try unshare --mount --propagation private bash "$T/inside" "$root" "$deb"
    [ "$status" = 0 ] || fail "status $status: $output $stderr"
    assert_has "$output" 'sandvirt version'
    assert_has "$output" 'pass  libvirt'
    assert_has "$output" 'pass  firmware'
    assert_has "$output" 'complete: start state stop'
    assert_has "$output" 'all gone'
}
