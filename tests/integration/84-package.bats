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

# What the pod of the installed programs needs, in $WORK/pod, a mount that namespaces share with nothing else.
make_pod_folder() {
    local pod=$WORK/pod
    mkdir -p "$pod"
    mount --bind "$pod" "$pod"
    mount --make-private "$pod"
    mount --make-shared "$pod"
    mkdir "$pod/images"
    cp -L "$SV_IMAGES"/{vmlinux,initramfs.img} "$pod/images/"
    printf '%s\n' '[hypervisor]' accel=tcg '[machine]' "image_dir=$pod/images" '[paths]' "run_dir=$pod/run" >"$pod/sandvirt.conf"
    mkb "$pod/bundle" sh -c 'echo in the machine; exit 7'
}

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
    # what it depends on can be had on this Debian
    run -0 apt-get --simulate --option Debug::NoLocking=1 satisfy "$(dpkg-deb --field "$deb" Depends)"
    make_pod_folder
    # Of the machine's own system everything is seen, nothing of it is written; all mounts go with the
    # namespace, but those below pod/, which libvirt's daemon has to see.
    mkdir -p "$root"
    cat >"$T/inside" <<'SCRIPT'
set -eux
pod=$3
while read -r _ _ _ _ point _; do
    [ "$point" = "$pod" ] || mount --make-private "$point" || true
done </proc/self/mountinfo
mount -t tmpfs -o mode=0755 layer "$1"
mkdir "$1/up" "$1/work" "$1/top"
mount -t overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" root "$1/top"
for dir in dev sys proc; do mount --rbind "/$dir" "$1/top/$dir"; done
mount -t tmpfs run "$1/top/run"
mkdir -p "$1/top/run/libvirt" "$1/top$pod"
for dir in run/libvirt var/log/libvirt "$pod"; do mount --bind "/$dir" "$1/top/$dir"; done
cp "$2" "$1/top/var/sandvirt.deb"
chroot "$1/top" dpkg --force-depends --install /var/sandvirt.deb
chroot "$1/top" sandvirt --version
chroot "$1/top" sandvirt list
chroot "$1/top" sh -c 'cd /tmp && rm -f config.json && sandvirt spec && test -s config.json'
chroot "$1/top" sandvirt check --quick || true
chroot "$1/top" bash -c '. /usr/share/bash-completion/completions/sandvirt; COMP_WORDS=(sandvirt st); COMP_CWORD=1; _sandvirt; echo "complete: ${COMPREPLY[*]}"'
chroot "$1/top" man --warnings -l /usr/share/man/man8/sandvirt.8.gz | head -n 3
# a pod of the installed programs
chroot "$1/top" /usr/lib/sandvirt/sandvirt-launcher --config "$pod/sandvirt.conf" --log "$pod/launcher.log" &
launcher=$!
until [ -S "$pod/run/.sock/launcher" ]; do
    kill -0 $launcher
    sleep 0.02
done
status=0
chroot "$1/top" sandvirt --config "$pod/sandvirt.conf" --root "$pod/root" run --bundle "$pod/bundle" "$4" || status=$?
kill $launcher
[ ! -s "$pod/launcher.log" ] || { cat "$pod/launcher.log" && exit 1; }
echo "the pod: $status"
# as if a pod still ran
mkdir -p "$1/top/var/lib/sandvirt/boot/pod"
mount -t tmpfs boot "$1/top/var/lib/sandvirt/boot/pod"
: >"$1/top/var/lib/sandvirt/boot/pod/kernel"
chroot "$1/top" dpkg --purge sandvirt
test -e "$1/top/var/lib/sandvirt/boot/pod/kernel"
umount "$1/top/var/lib/sandvirt/boot/pod"
chroot "$1/top" dpkg --force-depends --install /var/sandvirt.deb
chroot "$1/top" dpkg --purge sandvirt
if find "$1/top/usr" "$1/top/etc/sandvirt" "$1/top/var/lib/sandvirt" -path "$1/top/usr/src" -prune -o -name '*sandvirt*' -print 2>/dev/null | grep .; then exit 1; fi
if grep sandvirt "$1/top/etc/passwd" "$1/top/etc/group"; then exit 1; fi
echo all gone
SCRIPT
    new_id installed
    take_snap
    try unshare --mount --propagation unchanged bash "$T/inside" "$root" "$deb" "$WORK/pod" "$ID"
    [ "$status" = 0 ] || fail "status $status: $output $stderr"
    assert_has "$output" 'sandvirt version'
    assert_has "$output" 'pass  libvirt'
    assert_has "$output" 'pass  firmware'
    assert_has "$output" 'complete: start state stop'
    assert_has "$output" 'in the machine'
    assert_has "$output" 'the pod: 7'
    assert_has "$stderr" '/var/lib/sandvirt is left'
    assert_has "$output" 'all gone'
    assert_same_snap
    umount "$WORK/pod"
}
