# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of run and of the helpers of the integration tests
# What the sections of tests/bench/run share: figures and tables, pods and bare domains.

# ---------------------------------------------------------------- figures

declare -A figures=()

# note NAME NUMBER
note() {
    [[ $2 =~ ^-?[0-9.]+$ ]] || die "$1: no figure: $2"
    figures["$1"]+=" $2"
}

# ms_since EPOCHREALTIME-WITHOUT-POINT: milliseconds with two digits.
ms_since() {
    local us=$((${EPOCHREALTIME/./} - $1))
    printf '%d.%02d' $((us / 1000)) $((us % 1000 / 10))
}

# clock NAME COMMAND...: notes how long it took, in ms; it is in MS too.
clock() {
    local name=$1 from=${EPOCHREALTIME/./} status=0
    shift
    "$@" </dev/null >"$WORK/clock.out" 2>&1 || status=$?
    MS=$(ms_since "$from")
    note "$name" "$MS"
    [ $status = 0 ] || die "$name: status $status: $(tail -n 3 "$WORK/clock.out")"
}

# median NAME: of what was noted; empty when nothing was.
median() {
    [ -n "${figures[$1]:-}" ] || return 0
    tr ' ' '\n' <<<"${figures[$1]}" | grep . | sort -g |
        awk '{ v[NR] = $1 } END { m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
            printf m < 100 ? "%.1f" : "%.0f", m }'
}

ratio() { # A B: A / B
    [ -n "$1" ] && [ -n "$2" ] || return 0
    awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b }'
}

calc() { awk "BEGIN { printf \"%.2f\", $* }"; }

# most VALUE LIMIT, least VALUE LIMIT: the last cell of a row.
most() { reached "$1" "$2" '<='; }
least() { reached "$1" "$2" '>='; }
reached() {
    [ -n "$1" ] && [ -n "$2" ] || return 0
    if awk "BEGIN { exit !($1 $3 $2) }"; then echo yes; else echo NO; fi
}

# ---------------------------------------------------------------- tables

# row CELL...: the first row after `table` is the head.
table() { head=1; }
row() {
    if [ -n "$markdown" ]; then
        printf '|'
        printf ' %s |' "$@"
        printf '\n'
        if [ -n "$head" ]; then
            printf '|'
            printf ' --- |%.0s' "$@"
            printf '\n'
        fi
    else
        printf '%-40s' "$1"
        shift
        printf ' %14s' "$@"
        printf '\n'
    fi
    head=''
}
title() { if [ -n "$markdown" ]; then printf '\n### %s\n\n' "$1"; else printf '\n%s\n' "$1"; fi; }

# ---------------------------------------------------------------- memory of processes

# kib PID...: their PSS in KiB, with FIELD=Private_Dirty that.
kib() {
    local pid total=0
    for pid in "$@"; do
        total=$((total + $(awk -v f="${FIELD:-Pss}:" '$1 == f { print $2 }' "/proc/$pid/smaps_rollup")))
    done
    echo $total
}
mib() { awk -v k="$1" 'BEGIN { printf "%.2f", k / 1024 }'; }

# ---------------------------------------------------------------- bundles and containers

bench_bundle() {
    [ -d "$BUNDLES/bench" ] || mkb "$BUNDLES/bench" sleep 100000
    in_netns "$BUNDLES/bench"
}

# gone_with ID...: killed and deleted, the last with its machine.
gone_with() {
    local id
    for id in "$@"; do
        rt kill "$id" KILL
        wait_state "$id" stopped
        rt delete "$id"
    done
}

# phase ID NAME...: what these phases of its create took together, ms.
phase() {
    local id=$1
    shift
    jq -r '[.phases[] | select(.name as $n | $ARGS.positional | index($n)) | .lengthUs] | add // 0 | . / 1000' \
        "$ROOT/$id/timeline.json" --args -- "$@"
}

# In a mount namespace of its own without the v2 part of a hybrid tree of cgroups: crun refuses that.
hidden() {
    unshare --mount --propagation private bash -c \
        'umount -l /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' bash "$@"
}

# ---------------------------------------------------------------- bare domains

# What makes a kernel start fastest, whatever else it costs.
fast_arguments='panic=-1 reboot=t quiet 8250.nr_uarts=1 console=ttyS0 cryptomgr.notests nokaslr lsm= init_on_alloc=0 audit=0 tsc=reliable no_timer_check mitigations=off'

# floor_xml NAME IMAGE [ARGUMENTS]: the domain of a bare client, in $WORK/floor/NAME.xml.
floor_xml() {
    local ports='' i
    for i in 1 2 3 4 5 6 7 8; do
        ports+="<controller type='pci' index='$i' model='pcie-root-port'/>"
    done
    sed -e "s|@TYPE@|qemu|; s|@NAME@|$1|; s|@KERNEL@|$WORK/boot.floor/vmlinux|; s|@IMAGE@|$2|" \
        -e "s|@CHANNEL@|org.sandvirt.agent.0|" \
        -e "s|@CONSOLE@|$WORK/floor/$1.log|; s|@SOCKET@|$WORK/floor/$1.sock|; s|@PORTS@|$ports|" \
        -e "s|@FEATURES@|<tcg><tb-cache unit='MiB'>32</tb-cache></tcg>|" \
        -e "s|@CPU@|<cpu mode='custom' match='exact' check='none'><model fallback='forbid'>qemu64</model><feature policy='require' name='ssse3'/><feature policy='require' name='sse4.1'/><feature policy='require' name='sse4.2'/><feature policy='require' name='popcnt'/></cpu>|" \
        -e "s|@CMDLINE@|${3:-$fast_arguments}|" \
        "$here/floor.xml" >"$WORK/floor/$1.xml"
}

# pack_tree DIR FILE
pack_tree() { (cd "$1" && find . -mindepth 1 | cpio --quiet -o -H newc | lz4 -l -9 -c) >"$2"; }

# The kernel, our image, one with the minimal init and the same modules, and one that takes commands, where
# QEMU can read them and libvirt's change of owner does no harm.
floor_prepare() {
    [ ! -d "$WORK/floor" ] || return 0
    local path mini=$WORK/mini.tree bare=$WORK/bare.tree
    mkdir -p "$WORK/floor" "$WORK/boot.floor" "$WORK/image.tree" "$mini/dev" "$bare"/{bin,cg,dev,proc,sys,tmp}
    cp "$SV_IMAGES/vmlinux" "$SV_IMAGES/initramfs.img" "$WORK/boot.floor/"
    lz4 -dc <"$SV_IMAGES/initramfs.img" 2>/dev/null |
        (cd "$WORK/image.tree" && cpio -i --quiet --make-directories)
    sed -n 's/^channel //p' "$WORK/image.tree/etc/sandvirt/modules" >"$mini/modules"
    sed -n 's/^\(channel\|late\) //p' "$WORK/image.tree/etc/sandvirt/modules" >"$bare/modules"
    while read -r path; do install -D "$WORK/image.tree/$path" "$mini/$path"; done <"$mini/modules"
    while read -r path; do install -D "$WORK/image.tree/$path" "$bare/$path"; done <"$bare/modules"
    install "$SV_BUILD/tests/bench/mininit" "$mini/init"
    install "$SV_BUILD/tests/bench/bareinit" "$bare/init"
    install /bin/busybox "$PAYLOAD" "$bare/bin/"
    strip "$mini/init" "$bare/init"
    pack_tree "$mini" "$WORK/boot.floor/mini.img"
    pack_tree "$bare" "$WORK/boot.floor/bare.img"
    chmod -R a+rX "$WORK/boot.floor"
    rm -rf "$WORK/image.tree" "$mini" "$bare"
}

# bare_up: a bare domain that takes commands, held by a coprocess; its name is in BARE_NAME. Its kernel is told
# what that of the pod is told, its memory is of the same kind (a shared folder needs that), and it has as many places for
# CPUs: with more than one neither the kernel nor QEMU leaves out what they need among each other.
bare_up() {
    local pod
    floor_prepare
    BARE_NAME=svt-bare-$$
    pod=$($VIRSH dumpxml "$(domain_of "$POD")")
    floor_xml "$BARE_NAME" "$WORK/boot.floor/bare.img" "$(sed -n 's:.*<cmdline>\(.*\)</cmdline>.*:\1:p' <<<"$pod")"
    sed -i -e "s|</memory>|&<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>|" \
        -e "s|<vcpu>.*</vcpu>|$(grep -o '<vcpu .*</vcpu>' <<<"$pod")|" "$WORK/floor/$BARE_NAME.xml"
    coproc BARE { exec "$SV_BUILD/tests/bench/bare" "$WORK/floor/$BARE_NAME.xml" "$WORK/floor/$BARE_NAME.sock" 2>&1; }
    bare_pid=$BARE_PID
    bare_answer >/dev/null
}

# bare COMMAND: prints its answer; dies when it fails. See bare.c for the commands.
bare() {
    printf '%s\n' "$*" >&"${BARE[1]}"
    bare_answer
}
bare_answer() {
    local line text=''
    while IFS= read -r -t 120 -u "${BARE[0]}" line; do
        case $line in
        '#done 0')
            printf '%s' "$text"
            return 0
            ;;
        '#done '* | 'bare: '*)
            die "bare domain: $text$line"
            ;;
        esac
        text+=$line$'\n'
    done
    die "the bare domain says no more: $text"
}

bare_down() {
    local out=${BARE[1]}
    exec {out}>&-
    wait "$bare_pid" || true
}
