#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# conf/guest/build: the same bytes from the same inputs, and nothing old left. TAP. Arguments: the script, the agent.
set -u
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
n=0

is() { # VALUE WANTED WHAT
    n=$((n + 1))
    if [ "$1" = "$2" ]; then echo "ok $n - $3"; else echo "not ok $n - $3: '$1', not '$2'"; fi
}
build() { # FOLDER [OPTION...]
    "$script" --agent "$W/agent" --output "$W/$1" "${@:2}" >>"$W/log" 2>&1 || echo "failed: $(tail -n 1 "$W/log")"
}
images() { find "$W/one" -name 'initramfs-*' | wc -l; }

script=$1
cp "$2" "$W/agent"
is "$(build one)" '' 'it builds'
is "$(build two)" '' 'it builds elsewhere'
is "$(readlink "$W/two/initramfs.img" "$W/two/vmlinux")" "$(readlink "$W/one/initramfs.img" "$W/one/vmlinux")" 'the names are the same'
is "$(cmp "$W/one/initramfs.img" "$W/two/initramfs.img" 2>&1)" '' 'the bytes are the same'
[ "$(stat -L -c %s "$W/one/initramfs.img")" -le $((16 * 1024 * 1024)) ]
is $? 0 'it is not too large'
first=$(readlink "$W/one/initramfs.img")
# Another crun makes another image.
for i in 1 2; do
    { cat /usr/bin/crun && head -c "$i" /dev/zero; } >"$W/crun"
    chmod 0755 "$W/crun"
    is "$(build one --crun "$W/crun")" '' "another image, $i"
done
is "$(images)" 2 'the last two are kept'
is "$(find "$W/one" -name "$first" | wc -l)" 0 'the first is not'
is "$(find "$W/one" "$W/two" -name '.build*' -o -name '*.new')" '' 'nothing is left of the building'
echo "1..$n"
