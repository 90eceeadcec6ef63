# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2119,SC2120 # variables for the tests; arguments of the tests' calls
# Helpers of the integration tests (bats). Every test file has a state root, a run folder, a
# configuration and a launcher of its own below $WORK, so that files do not meet each other.
#
#   setup_file()    { suite_begin; }      teardown_file() { suite_end; }
#   setup()         { test_begin; }       teardown()      { test_end; }
#
# Environment: SANDVIRT_BUILD (build folder), SANDVIRT_IMAGES (guest image), SV_LONG=1 (full counts of
# repeated tests, else a twentieth), SV_IN_MEMORY (names of folders of $WORK that are to be tmpfs), SV_PEER=PROGRAM (another
# OCI runtime in sandvirt's place, to see that the tests say what runtimes do; only files that need no machine).

bats_require_minimum_version 1.5.0 # BATS_TEST_TIMEOUT needs 1.8

SV_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SV_BUILD=${SANDVIRT_BUILD:-$SV_SOURCE/build}
SV_IMAGES=${SANDVIRT_IMAGES:-/var/lib/sandvirt/images}
SV_SERVICES=$SV_SOURCE/tests/host/services
SANDVIRT=${SV_PEER:-$SV_BUILD/src/cli/sandvirt}
PAYLOAD=$SV_BUILD/tests/integration/payload
VIRSH="virsh -q -c qemu:///system"
export LC_ALL=C.UTF-8

# ---------------------------------------------------------------- suites and tests

suite_begin() {
    WORK=$(mktemp -d /run/svt.XXXXXX)
    chmod 0755 "$WORK"
    echo $$ >"$WORK/owner"
    ROOT=$WORK/root RUN=$WORK/run CONF=$WORK/sandvirt.conf BUNDLES=$WORK/bundles LOG=$WORK/log
    export WORK ROOT RUN CONF BUNDLES LOG
    mkdir -p "$RUN" "$BUNDLES" "$LOG"
    in_memory
    # The folder beside it, where the machines' kernels are bound, is then ours too.
    ln -s "$SV_IMAGES" "$WORK/images"
    write_conf
    # The pods' network namespace, which an engine would make.
    NETNS=svt-${WORK##*.}
    export NETNS
    ip netns add "$NETNS"
    make_base "$BUNDLES/base"
    (cd "$BUNDLES" && "$SANDVIRT" spec)
    launcher_start
}

# A tmpfs in place of some folders, as /run is one on a host with systemd, whatever it is here.
in_memory() {
    local name
    for name in ${SV_IN_MEMORY:-}; do
        mkdir -p "$WORK/$name"
        mount -t tmpfs -o mode=0755,size=256m svt-memory "$WORK/$name"
    done
}

# write_conf [SECTION.KEY=VALUE...]: the configuration of this file, with these lines besides.
write_conf() {
    local section line
    for section in hypervisor machine paths network log timeouts storage; do
        echo "[$section]"
        case $section in
        hypervisor) echo accel=tcg ;;
        machine) echo "image_dir=$WORK/images" ;;
        paths) echo "run_dir=$RUN" ;;
        log) echo log_level=debug ;;
        esac
        for line in "$@"; do
            [[ $line != "$section".* ]] || echo "${line#*.}"
        done
    done >"$CONF"
}

suite_end() {
    local left
    pod_down_all
    left=$(snap)
    launcher_stop
    ip netns del "$NETNS"
    sweep "$WORK"
    if [ -n "$left" ]; then
        echo "left after the last test of the file:" >&2
        echo "$left" >&2
        return 1
    fi
}

# sweep FOLDER: takes away whatever a test file with this $WORK has left: domains, processes, mounts,
# files. By what names the folder; nothing else is touched.
sweep() {
    local work=$1 domain pid dir
    for domain in $($VIRSH list --all --name); do
        ! $VIRSH dumpxml "$domain" 2>/dev/null | grep -qF "$work/" || $VIRSH destroy "$domain" || true
    done >/dev/null 2>&1
    for pid in $(pids_naming "$work/"); do
        kill -KILL "$pid" 2>/dev/null || true
    done
    while read -r dir; do
        umount -l "$dir" 2>/dev/null || true
    done < <(awk -v w="$work/" 'index($5, w) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
    if ! grep -qF " $work/" /proc/self/mountinfo; then
        chattr -R -i "$work" 2>/dev/null || true
        rm -rf --one-file-system "$work"
    fi
}

test_begin() {
    T=$BUNDLES/t$BATS_TEST_NUMBER
    rt_words
    mkdir -p "$T"
    : >"$T/ids"
    TEST_SNAP=''
    # Ids are unique on the machine: domain names carry them.
    N=${WORK##*.}-$BATS_TEST_NUMBER
    watchdog &
    WATCHDOG=$!
}

# Past the time of a test, ends what holds its pipes: bats waits for their end.
watchdog() {
    exec </dev/null >/dev/null 2>&1 3>&- 4>&-
    local pid nap
    trap 'kill $nap; exit' TERM
    sleep $((${BATS_TEST_TIMEOUT:-120} + 2)) &
    nap=$!
    wait $nap
    for pid in $(pids_naming "-$N"); do
        kill -KILL "$pid"
    done
}

test_end() {
    local id
    kill -TERM "$WATCHDOG" 2>/dev/null || true
    if [ -z "${BATS_TEST_COMPLETED:-}" ] && [ -z "${BATS_TEST_SKIPPED:-}" ]; then
        show_logs
    fi
    while read -r id; do
        rt delete --force "$id" >/dev/null 2>&1 || true
    done < <(tac "$T/ids")
    rm -rf --one-file-system "$T"
}

# The ends of everything that may tell why, for a failed test.
show_logs() {
    local file
    for file in "$LOG"/* "$RUN"/.box/*/*.log "$T"/*.log; do
        [ -s "$file" ] || continue
        echo "--- end of $file"
        tail -n 12 "$file" | cut -c1-400 | tr -cd '\11\12\40-\176'
    done
}

# ---------------------------------------------------------------- the runtime

rt() {
    if [ -n "${SV_PEER:-}" ]; then
        "$SANDVIRT" --root "$ROOT" "$@"
    else
        "$SANDVIRT" --config "$CONF" --root "$ROOT" "$@"
    fi
}

# The same as words of a command, for timeout, env and the like.
rt_words() {
    RT=("$SANDVIRT" --root "$ROOT")
    peer || RT+=(--config "$CONF")
}

peer() { [ -n "${SV_PEER:-}" ]; }

# quiet COMMAND...: for calls whose container keeps their streams; what they wrote is in $T/out.log.
quiet() {
    "$@" </dev/null >"$T/out.log" 2>&1 3>&- 4>&-
}

# run [-STATUS] [--separate-stderr] COMMAND...: in the place of bats's own: sets status, output, lines
# and stderr. Through files, so that what a command leaves running cannot keep it waiting.
run() {
    local wanted='' separate=''
    while :; do
        case $1 in
        -[0-9]*) wanted=${1#-} ;;
        --separate-stderr) separate=1 ;;
        *) break ;;
        esac
        shift
    done
    status=0
    : >"$T/run.err"
    if [ -n "$separate" ]; then
        "$@" >"$T/run.out" 2>"$T/run.err" 3>&- 4>&- || status=$?
    else
        "$@" >"$T/run.out" 2>&1 3>&- 4>&- || status=$?
    fi
    output=$(tr -d '\0' <"$T/run.out")
    stderr=$(tr -d '\0' <"$T/run.err")
    mapfile -t lines <<<"$output"
    [ -z "$wanted" ] || [ "$status" = "$wanted" ] || fail "status $status, not $wanted: $* -- $output $stderr"
}

# try COMMAND...: the same, with nothing to read and stderr apart.
try() {
    run --separate-stderr "$@" </dev/null
}

# new_id NAME: sets ID to an id of this test that is deleted after it.
new_id() {
    ID=$1-$N
    echo "$ID" >>"$T/ids"
}

# Members of its own stand in lines of their own there; starting jq takes as long as ten calls of sed.
state_of() { rt state "$1" | sed -n -E 's/^  "status": "(.*)",?$/\1/p'; }
pid_of() { rt state "$1" | sed -n -E 's/^  "pid": ([0-9]+),?$/\1/p'; }
is_state() { [ "$(state_of "$1" 2>/dev/null)" = "$2" ]; }
wait_state() { # ID STATE [SECONDS]
    wait_for "${3:-30}" is_state "$1" "$2" || fail "$1 is $(state_of "$1" 2>&1), not $2"
}

launcher_start() {
    peer && return 0
    [ -S "$RUN/.sock/launcher" ] && [ -d "/proc/$(cat "$WORK/launcher.pid" 2>/dev/null)" ] && return 0
    # That of a launcher which was killed is no sign of this one.
    rm -f "$RUN/.sock/launcher"
    setsid tini -s -- "$SV_BUILD/src/launcher/sandvirt-launcher" --config "$CONF" --debug \
        </dev/null >>"$LOG/launcher" 2>&1 3>&- 4>&- &
    echo $! >"$WORK/tini.pid"
    wait_for 10 test -S "$RUN/.sock/launcher"
    wait_for 10 eval 'pgrep -P "$(cat "$WORK/tini.pid")" >"$WORK/launcher.pid"'
}

launcher_pid() { cat "$WORK/launcher.pid"; }

launcher_stop() {
    peer && return 0
    kill -TERM "$(cat "$WORK/tini.pid")" 2>/dev/null || true
    wait_for 5 test ! -d "/proc/$(cat "$WORK/tini.pid")" || true
}

# ---------------------------------------------------------------- bundles

make_base() { # DIR: a root file system with busybox and the payload
    local dir=$1 applet
    mkdir -p "$dir"/{bin,dev,etc,proc,root,sys,tmp,usr/bin,var,run,home}
    chmod 1777 "$dir/tmp"
    cp /bin/busybox "$dir/bin/"
    for applet in $(/bin/busybox --list); do
        [ "$applet" = busybox ] || ln -sf busybox "$dir/bin/$applet"
    done
    cp "$PAYLOAD" "$dir/bin/payload"
    printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home:/bin/sh\n' >"$dir/etc/passwd"
    printf 'root:x:0:\nuser:x:1000:\n' >"$dir/etc/group"
    echo image >"$dir/etc/origin"
}

# mkb DIR ARG...: bundle with busybox in DIR/rootfs, args ARG..., no terminal.
mkb() {
    local dir=$1
    shift
    mkdir -p "$dir"
    cp -a "$BUNDLES/base" "$dir/rootfs"
    jq '.process.terminal = false | .process.args = $ARGS.positional | .root.readonly = false
        | .hostname = "test" | .process.cwd = "/"' "$BUNDLES/config.json" --args -- "$@" >"$dir/config.json"
}

# jqe DIR FILTER [JQ-OPTION...]: edits DIR/config.json in place.
jqe() {
    local dir=$1 filter=$2
    shift 2
    jq "$filter" "$dir/config.json" "$@" >"$dir/config.json.new"
    mv "$dir/config.json.new" "$dir/config.json"
}

# in_netns DIR [NAME]: the bundle's network namespace is that one (default: the pods').
in_netns() {
    jqe "$1" '(.linux.namespaces[] | select(.type == "network")).path = $path' --arg path "/run/netns/${2:-$NETNS}"
}

# member DIR [POD]: makes the bundle one of the pod, as CRI-O does.
member() {
    in_netns "$1"
    jqe "$1" '.annotations += {"io.kubernetes.cri-o.ContainerType": "container",
        "io.kubernetes.cri-o.SandboxID": $pod}' --arg pod "${2:-$POD}"
}

# mkm DIR ARG...: bundle of a member of $POD.
mkm() {
    mkb "$@"
    member "$1"
}

# give_disk DIR DEVICE: the bundle gets the host's block device as /dev/data.
give_disk() {
    jqe "$1" '.linux.devices += [{path: "/dev/data", type: "b", major: $a, minor: $b}]
        | .linux.resources.devices += [{allow: true, type: "b", major: $a, minor: $b, access: "rwm"}]' \
        --argjson a $((0x$(stat -c %t "$2"))) --argjson b $((0x$(stat -c %T "$2")))
}

# disk_is_free DEVICE: nobody has it open; its first bytes are lost.
disk_is_free() {
    # It opens it for itself alone.
    blkdiscard --offset 0 --length 4096 "$1" 2>/dev/null
}

# pod_up [NAME]: a sandbox whose own container sleeps; sets and exports POD.
pod_up() {
    POD=${1:-pod}-${WORK##*.}
    export POD
    echo "$POD" >>"$WORK/pods"
    mkb "$BUNDLES/$POD" sleep 1000000
    jqe "$BUNDLES/$POD" '.annotations += {"io.kubernetes.cri-o.ContainerType": "sandbox",
        "io.kubernetes.cri-o.SandboxID": $pod, "io.kubernetes.cri-o.Namespace": "space",
        "io.kubernetes.cri-o.KubeName": $pod}' --arg pod "$POD"
    in_netns "$BUNDLES/$POD"
    rt run --detach --bundle "$BUNDLES/$POD" "$POD" </dev/null >"$LOG/$POD" 2>&1 ||
        fail "the pod does not come up: $(cat "$LOG/$POD")"
}

pod_down_all() {
    local pod
    [ -e "$WORK/pods" ] || return 0
    while read -r pod; do
        rt delete --force "$pod" || true
    done < <(tac "$WORK/pods")
    rm -f "$WORK/pods"
    wait_for 5 no_domains || true
}

# in_pod ARG...: runs ARG... as a member of $POD in the foreground (its streams, its status).
in_pod() {
    local dir=$T/in-pod.$RANDOM$RANDOM
    mkm "$dir" "$@"
    new_id "r$RANDOM"
    rt run --bundle "$dir" "$ID"
}

# ---------------------------------------------------------------- conmon

# cm ID DIR [CONMON-OPTION...]: conmon with the line that CRI-O uses, up to the end of create; the
# message of a failed create is in CM_MESSAGE. Logs to DIR/log, exit file DIR/exits/ID.
cm() {
    local id=$1 dir=$2 line sync ours conf=()
    shift 2
    peer || conf=(--runtime-arg "--config=$CONF")
    mkdir -p "$dir/exits" "$dir/persist" "$dir/sockets"
    rm -f "$dir/exits/$id" "$dir/sync" "$dir/log"
    mkfifo "$dir/sync"
    # shellcheck disable=SC2094 # opened for both, so that neither open waits
    exec {sync}<>"$dir/sync" {ours}<"$dir/sync"
    env -i _OCI_SYNCPIPE=7 XDG_RUNTIME_DIR=/run "$(command -v conmon)" \
        -b "$dir" -c "$id" -u "$id" --exit-dir "$dir/exits" -l "$dir/log" -n "$id" \
        -P "$dir/conmon-pidfile" -p "$dir/pidfile" --persist-dir "$dir/persist" -r "$SANDVIRT" \
        --runtime-arg "--root=$ROOT" "${conf[@]}" --socket-dir-path "$dir/sockets" --syslog "$@" \
        </dev/null >"$dir/conmon.log" 2>&1 3>&- 4>&- 7>&$sync {sync}>&- {ours}<&-
    # Its end is seen too.
    exec {sync}>&-
    read -r -t 90 -u "$ours" line || line='{"pid": -1, "message": "conmon said nothing"}'
    exec {ours}<&-
    CM_MESSAGE=''
    [ "$(jq -r '.pid // .data // -1' <<<"$line")" -le 0 ] || return 0
    CM_MESSAGE=$(jq -r '.message // ""' <<<"$line")
    return 1
}

# cm_log DIR [STREAM]: what the container wrote, from conmon's log. Lines marked P go on in the next.
cm_log() {
    awk -v want="${2:-}" 'want == "" || $2 == want {
        text = substr($0, length($1) + length($2) + length($3) + 4)
        printf "%s%s", text, $3 == "P" ? "" : "\n"
    }' "$1/log"
}

# cm_status ID DIR [SECONDS]: waits for the exit file and prints the status.
cm_status() {
    wait_for "${3:-30}" test -s "$2/exits/$1" || fail "no exit file of $1"
    cat "$2/exits/$1"
}

# ---------------------------------------------------------------- what there is

# pids_naming TEXT: processes whose command line has TEXT, ourselves and our shells left out.
pids_naming() {
    local pid comm
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        { read -r comm <"/proc/$pid/comm"; } 2>/dev/null || continue
        case $comm in
        qemu-system* | virtiofsd | sandvirt* | conmon | tini)
            # shellcheck disable=SC2094
            ! tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "$1" || echo "$pid"
            ;;
        esac
    done
}

no_domains() { [ -z "$(domains)" ]; }

# domains: names of those of this file.
domains() {
    local domain
    for domain in $($VIRSH list --all --name 2>/dev/null); do
        [[ $($VIRSH dumpxml "$domain" 2>/dev/null) != *"$RUN/"* ]] || echo "$domain"
    done
}

# domain_of SANDBOX; the sandbox's monitor, its QEMU and its virtiofsd.
domain_of() {
    local domain
    for domain in $(domains); do
        # The metadata element carries the id of the sandbox.
        [[ $($VIRSH dumpxml "$domain") != *"$1"* ]] || echo "$domain"
    done
}
vm_pid() { cat "/run/libvirt/qemu/$(domain_of "$1").pid"; }
# libvirt cuts the name to 20 characters there.
share_pid() { cat /run/libvirt/qemu/*"-$(domain_of "$1" | cut -c1-20)-fs0-fs.pid"; }
monitor_pid() {
    local pid
    for pid in $(pgrep -x sandvirt-monito); do
        # shellcheck disable=SC2094
        ! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -F -- "$ROOT" | grep -qF -- "$1" || echo "$pid"
    done
}

# snap: everything of this file that may be left behind, sorted. Equal before and after: nothing leaked.
snap() {
    local pid comm
    {
        domains | sed 's/^/domain /'
        for pid in /proc/[0-9]*; do
            pid=${pid#/proc/}
            { read -r comm <"/proc/$pid/comm"; } 2>/dev/null || continue
            case $comm in
            qemu-system* | virtiofsd | sandvirt-monito | sandvirt-shim | sandvirt)
                # shellcheck disable=SC2094
                ! { tr '\0' ' ' <"/proc/$pid/cmdline"; tr '\0' ' ' <"/proc/$pid/environ"; } 2>/dev/null |
                    grep -qF -- "$WORK/" || echo "process $comm $pid"
                ;;
            esac
        done
        awk -v w="$WORK/" '!/ svt-memory / && (index($5, w) == 1 || index($4, w) == 1) { print "mount", $5 }' /proc/self/mountinfo
        find "$ROOT" "$RUN" -mindepth 1 ! -path "$RUN/.sock" ! -path "$RUN/.sock/launcher*" \
            ! -path "$RUN/.box" ! -path "$RUN/.disk" ! -path "$ROOT/.sandbox" ! -path "$ROOT/.lock" 2>/dev/null | sed 's/^/file /'
        find "$WORK/boot" -mindepth 1 2>/dev/null | sed 's/^/file /'
        own_taps | sed 's/^/link /'
        find /sys/fs/cgroup -type d -path "*${WORK##*.}*" 2>/dev/null | sed 's/^/cgroup /'
        losetup -n -l --raw -O NAME,BACK-FILE | grep -F "$WORK" | sed 's/^/loop /' || true
    } | sort
}

# Taps have names of their own; other links are somebody else's. So is a tap of a machine of another test
# file, which runs beside this one: its record names it, from before it is made until after it is gone.
own_taps() {
    local taps before tap
    before=$(foreign_records)
    taps=$(ip -o link 2>/dev/null | sed -n -E 's/^[0-9]+: ((sv[0-9a-f]{8}|vnet[0-9]|tap[0-9])[^:@]*).*/\1/p')
    for tap in $taps; do
        grep -qF "\"$tap\"" <<<"$before$(foreign_records)" || echo "$tap"
    done
}

foreign_records() {
    find /run/svt.*/ -maxdepth 6 \( -path "$WORK" -o -path "$WORK/" -o -name bundles -o -name .box \) -prune -o \
        -path '*/.sandbox/*' -name sandbox.json -exec cat {} + 2>/dev/null || true
}

# net_shot NAMESPACE: its links, addresses, routes, rules, queues, filters and tables, for comparing.
net_shot() {
    local link
    # Counters and the lifetimes of what is limited go on.
    ip -n "$1" -d addr | sed -E 's/ (valid|preferred)_lft [0-9]+sec//g; s/_timer +[0-9.]+//g'
    ip -n "$1" route show table all
    ip -n "$1" rule
    ip -n "$1" -6 rule
    ip -n "$1" neigh show nud permanent | sort
    tc -n "$1" qdisc
    for link in $(ip -n "$1" -j link | jq -r '.[].ifname'); do
        tc -n "$1" filter show dev "$link" ingress 2>/dev/null | sed "s/^/filter of $link: /"
    done
    ip netns exec "$1" "$PAYLOAD" nf-tables
}

# assert_net_shot NAMESPACE SHOT: it is as it was then.
assert_net_shot() {
    [ "$(net_shot "$1")" = "$2" ] || fail "$1 differs:"$'\n'"$(diff <(echo "$2") <(net_shot "$1"))"
}

take_snap() { TEST_SNAP=$(snap); }

same_snap() { [ "$(snap)" = "$TEST_SNAP" ]; }

# assert_same_snap [SECONDS]: nothing left since take_snap, at the latest after so many seconds.
assert_same_snap() {
    wait_for "${1:-3}" same_snap ||
        fail "left behind (>) or missing (<):"$'\n'"$(diff <(echo "$TEST_SNAP") <(snap) | grep '^[<>]')"
}

# ---------------------------------------------------------------- waiting, asserting, counting

# wait_for SECONDS COMMAND...: until it succeeds; looks every 20 ms.
wait_for() {
    local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
    shift
    until "$@"; do
        [ "${EPOCHREALTIME/./}" -lt $end ] || return 1
        sleep 0.02
    done
}

# gone PID: ended; a zombie too, whose parent may be slow (the first process of a machine is).
gone() {
    ! grep -qs '^State:.[^ZX]' "/proc/$1/status"
}

# took COMMAND...: runs it; its milliseconds in MS, its status in STATUS.
took() {
    local from=${EPOCHREALTIME/./}
    STATUS=0
    "$@" || STATUS=$?
    MS=$(((${EPOCHREALTIME/./} - from) / 1000))
}

fail() {
    printf '%s\n' "$*" >&2
    return 1
}

assert_eq() { # GOT WANTED [WHAT]
    [ "$1" = "$2" ] || fail "${3:-value}: got '$1', wanted '$2'"
}

assert_has() { # TEXT PART [WHAT]
    [[ $1 == *"$2"* ]] || fail "${3:-text} lacks '$2': $1"
}

assert_status() { # WANTED, after run
    # shellcheck disable=SC2154
    [ "$status" -eq "$1" ] || fail "status $status, not $1; output: $output ${stderr:-}"
}

assert_refused() { # PART..., after run: non-zero, but no signal and no time-out; one line with PARTs
    local part
    if [ "$status" -eq 0 ] || [ "$status" -eq 124 ] || { [ "$status" -gt 127 ] && [ "$status" -lt 193 ]; }; then
        fail "status $status; output: $output ${stderr:-}"
    fi
    for part in "$@"; do
        [[ "$output${stderr:-}" == *"$part"* ]] || fail "no '$part' in: $output ${stderr:-}"
    done
}

# rounds FULL: how often a repeated test runs: FULL with SV_LONG, else a twentieth; told on the terminal.
rounds() {
    local n=$1
    [ -n "${SV_LONG:-}" ] || n=$((($1 + 19) / 20))
    echo "# $n of $1 rounds" >&3
    echo "$n"
}

# ---------------------------------------------------------------- the libvirt daemons

# Tests that end a daemon need one that this project's keeper starts again.
need_kept() { # NAME
    "$SV_SERVICES" kept "$1" || skip "$1 is not run by tests/host/services"
}

daemon_restart() { # NAME [SIGNAL]
    local before
    before=$(cat "/run/sandvirt-services/$1.daemon")
    "$SV_SERVICES" kill "$1" "${2:-TERM}"
    wait_for 20 daemon_changed "$1" "$before" || fail "$1 does not come back"
    wait_for 30 eval "$VIRSH list >/dev/null 2>&1"
}

# What sandvirt's message says of a domain that libvirt was killed before it started QEMU of (some 4 ms of a start): the
# file that libvirt keeps is removed while its daemon does not run. Nothing in the log: nothing to do.
drop_stillborn() {
    local file files=() pid
    while read -r file; do
        [ ! -e "$file" ] || files+=("$file")
    done < <(sed -n 's/.* but libvirt lists it until \(.*\) is removed while .*/\1/p' "$LOG/launcher")
    [ ${#files[@]} -gt 0 ] || return 0
    pid=$(cat /run/sandvirt-services/libvirtd.daemon)
    "$SV_SERVICES" hold libvirtd
    "$SV_SERVICES" kill libvirtd KILL
    wait_for 5 eval '[ ! -d "/proc/$pid" ]' || return 1
    rm -f "${files[@]}"
    "$SV_SERVICES" release libvirtd
}

daemon_changed() { # NAME OLD-PID
    local pid
    pid=$(cat "/run/sandvirt-services/$1.daemon" 2>/dev/null) && [ "$pid" != "$2" ] && [ -d "/proc/$pid" ]
}
