# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What tests/quickstart, tests/all and tests/bench/run share: packages, build, guest image, the
# machine's mounts and services. To be sourced; sets SV_SOURCE, SV_BUILD, SV_IMAGES.

SV_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SV_BUILD=${SANDVIRT_BUILD:-$SV_SOURCE/build}
SV_IMAGES=${SANDVIRT_IMAGES:-/var/lib/sandvirt/images}
SV_SERVICES=$SV_SOURCE/tests/host/services
sv_started=()
sv_begin=$EPOCHREALTIME

# Seconds with one digit since the time given (default: since the beginning).
since() {
    local now=$EPOCHREALTIME from=${1:-$sv_begin}
    local ms=$(((${now/./} - ${from/./}) / 1000))
    printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}

say() {
    printf '[%6s s] %s\n' "$(since)" "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# step TITLE COMMAND...: runs it with its output in a log and says how long it took. A command that
# has nothing to do sets `skipped` to the reason (functions only, which run with errexit off: they
# return what fails).
step() {
    local title=$1 from=$EPOCHREALTIME log=$SV_LOGS/step.log skipped=''
    shift
    mkdir -p "$SV_LOGS"
    if ! "$@" >"$log" 2>&1 </dev/null; then
        say "$title: failed after $(since "$from") s"
        tail -n 40 "$log" | sed 's/^/    /'
        exit 1
    fi
    if [ -n "$skipped" ]; then
        say "$title: $skipped"
    else
        say "$title: done in $(since "$from") s"
    fi
}

# The comment that FILE begins with, but its licence and what is for shellcheck.
show_help() { # FILE
    sed -n -e 1d -e '/^#/!q' -e '/SPDX-License\|shellcheck/d' -e 's/^# \{0,1\}//p' "$1"
}

# value_of OPTION [VALUE...]: the value, which must be there.
value_of() {
    [ -n "${2:-}" ] || die "$1 needs a value"
    printf '%s\n' "$2"
}

need_root() {
    [ "$(id -u)" = 0 ] || die 'must run as root'
}

# install_packages GROUP...: those of tests/packages that are missing.
install_packages() {
    local name group want=" $* " missing=()
    local -A have=()
    while read -r name; do
        have[$name]=1
    done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii  //p')
    while read -r name group; do
        case $name in '' | '#'*) continue ;; esac
        [[ $want != *" $group "* || -n ${have[$name]:-} ]] || missing+=("$name")
    done <"$SV_SOURCE/tests/packages"
    if [ ${#missing[@]} = 0 ]; then
        skipped='all there'
        return 0
    fi
    echo "missing: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q || return
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# build_in DIR MESON-OPTION...
build_in() {
    local dir=$1
    shift
    if [ ! -f "$dir/build.ninja" ]; then
        meson setup "$dir" "$SV_SOURCE" "$@" || return
    fi
    ninja -C "$dir" || return
    ! tail -n 1 "$SV_LOGS/step.log" | grep -q 'no work to do' || skipped='nothing to do'
}

build_image() {
    local before after
    before=$(image_name)
    "$SV_SOURCE/conf/guest/build" --agent "$SV_BUILD/src/agent/sandvirt-agent" --output "$SV_IMAGES" || return
    after=$(image_name)
    [ "$before" != "$after" ] || skipped='unchanged'
}

image_name() {
    readlink -f "$SV_IMAGES/vmlinux" "$SV_IMAGES/initramfs.img" 2>/dev/null || true
}

# As systemd does it on machines that have it: / shared, /dev/kvm for the group kvm.
prepare_machine() {
    local first
    skipped='as they should be'
    # Not every process may look at the first one.
    first=$(readlink /proc/1/ns/mnt) || first=$(readlink /proc/self/ns/mnt)
    if [ "$(readlink /proc/self/ns/mnt)" != "$first" ]; then
        echo 'not in the mount namespace of the machine, which libvirt and the engines are in'
        return 1
    fi
    if [ "$(findmnt -n -o PROPAGATION / | tail -n 1)" != shared ]; then
        mount --make-rshared / || return
        skipped=''
    fi
    # The first network namespace with a name makes this a mount, which stays: before things are counted.
    if ! mountpoint -q /run/netns; then
        ip netns add sv-first && ip netns del sv-first || return
        skipped=''
    fi
    if [ -c /dev/kvm ] && [ "$(stat -c '%G %a' /dev/kvm)" != 'kvm 660' ]; then
        chgrp kvm /dev/kvm && chmod 660 /dev/kvm || return
        skipped=''
    fi
}

# Starts what does not run and remembers it in sv_started.
start_services() {
    local started name
    started=$("$SV_SERVICES" start) || return
    for name in $started; do
        sv_started+=("$name")
    done
    skipped=${started:+started ${started//$'\n'/, }}
    skipped=${skipped:-running already}
}

start_launcher() {
    local started
    started=$("$SV_SERVICES" start-launcher "$SV_BUILD/src/launcher/sandvirt-launcher" "$@") || return
    [ -z "$started" ] || sv_started+=(launcher)
    skipped=${started:+started}
    skipped=${skipped:-running already}
}

# In the reverse order of the start.
stop_services() {
    local i
    for ((i = ${#sv_started[@]} - 1; i >= 0; i--)); do
        "$SV_SERVICES" stop "${sv_started[i]}" || true
    done
    sv_started=()
}

# One line: what sandboxes consist of, counted on this machine.
count_everything() {
    local domains
    domains=$(virsh -c qemu:///system list --all --name | grep -c . || true)
    # A process may end between the listing and the reading: no failure.
    { cat /proc/[0-9]*/comm 2>/dev/null || true; } | awk -v domains="$domains" -v mounts="$(wc -l </proc/self/mountinfo)" \
        -v loops="$(losetup -n -l | wc -l)" -v links="$(ip -o link | wc -l)" '
        /^qemu-system-/ { machines++ }
        /^virtiofsd$/ { shares++ }
        /^sandvirt/ && !/^sandvirt-launch/ { ours++ }
        END { printf "domains %d, sandvirt processes %d, QEMU %d, virtiofsd %d, mounts %d, loop devices %d, links %d\n",
            domains, ours, machines, shares, mounts, loops, links }'
}

# same_counts BEFORE: shows what is there now; fails when it differs for 5 s.
same_counts() {
    local now end=$((SECONDS + 5))
    now=$(count_everything)
    while [ "$now" != "$1" ] && [ $SECONDS -lt $end ]; do
        sleep 0.1
        now=$(count_everything)
    done
    say "after:  $now"
    [ "$now" = "$1" ]
}
