# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2086,SC2154 # numbers; variables of run
# Section memory: PSS of every process of idle pods, beside bare domains and bare libvirt clients, and how often
# the idle processes wake up.

# Starts PROGRAM... with a pipe as its input and waits for "ready".
held=() hold_fds=()
hold() {
    local out=$WORK/held.${#held[@]}
    mkfifo "$out.in"
    "$@" <"$out.in" >"$out" 2>&1 &
    held+=($!)
    exec {hold_fd}>"$out.in"
    hold_fds+=("$hold_fd")
    wait_for 120 grep -q ready "$out" || die "$1 $2: $(cat "$out")"
}
release_held() {
    local fd pid
    for fd in "${hold_fds[@]}"; do exec {fd}>&-; done
    for pid in "${held[@]}"; do wait "$pid" || true; done
    held=() hold_fds=()
    rm -f "$WORK"/held.*
}

# switches PID...: voluntary and other switches of all their threads.
switches() {
    local pid
    for pid in "$@"; do cat "/proc/$pid/task"/*/status; done | awk '/ctxt_switches/ { n += $2 } END { print n }'
}

# wakeups NAME PID...: of these processes in a minute, for each pod; beside it, as "NAME shims", of the shims.
wakeups() {
    local name=$1 before before_shims
    shift
    before=$(switches "$@")
    before_shims=$(switches "${shims[@]}")
    sleep 60
    note "$name" "$(calc "($(switches "$@") - $before) / $pods")"
    note "$name shims" "$(calc "($(switches "${shims[@]}") - $before_shims) / $pods")"
}

# quiet_libvirtd start|stop: a libvirtd that does not ask its clients whether they live, in the place of the
# other, if that is run by tests/host/services; the monitors connect again.
quiet_libvirtd() {
    if [ "$1" = start ]; then
        "$SV_SERVICES" kept libvirtd || return 1
        printf 'keepalive_interval = -1\n' >"$WORK/libvirtd.conf"
        "$SV_SERVICES" hold libvirtd
        "$SV_SERVICES" kill libvirtd
        wait_for 20 eval '! virsh -q -c qemu:///system list >/dev/null 2>&1'
        setsid tini -s -- libvirtd -f "$WORK/libvirtd.conf" </dev/null >"$WORK/libvirtd.log" 2>&1 &
        quiet_pid=$!
        wait_for 60 eval 'virsh -q -c qemu:///system list >/dev/null 2>&1' || die "$(cat "$WORK/libvirtd.log")"
    elif [ -n "$quiet_pid" ]; then
        kill -TERM "$quiet_pid"
        wait "$quiet_pid" || true
        quiet_pid=''
        "$SV_SERVICES" release libvirtd
    fi
}

part_memory() {
    local i monitors=() shims=() shares=() machines=() bare=() clients
    floor_prepare
    for ((i = 1; i <= pods; i++)); do
        say "memory: pod $i of $pods"
        pod_up "m$i"
        monitors+=("$(monitor_pid "$POD")")
        shims+=("$(pid_of "$POD")")
        machines+=("$(vm_pid "$POD")")
        # virtiofsd has a child of the same name.
        mapfile -t -O ${#shares[@]} shares < <(printf "%s\n" "$(share_pid "$POD")" && pgrep -P "$(share_pid "$POD")")
    done
    say 'memory: settling for 20 s, then 60 s of wakeups'
    sleep 20
    wakeups 'wakeups' "${monitors[@]}" "${shims[@]}"
    local monitor shim share machine dirty
    monitor=$(($(kib "${monitors[@]}") / pods))
    dirty=$(($(FIELD=Private_Dirty kib "${monitors[@]}") / pods))
    shim=$(($(kib "${shims[@]}") / pods))
    share=$(($(kib "${shares[@]}") / pods))
    machine=$(($(kib "${machines[@]}") / pods))
    if quiet_libvirtd start; then
        say 'memory: the same with a libvirtd without keepalive'
        sleep 30
        wakeups 'wakeups quiet' "${monitors[@]}" "${shims[@]}"
        quiet_libvirtd stop
    fi
    pod_down_all
    for ((i = 1; i <= pods; i++)); do hold "$FLOOR" idle; done
    sleep 1
    clients=$(($(kib "${held[@]}") / pods))
    release_held
    for ((i = 1; i <= pods; i++)); do
        say "memory: bare domain $i of $pods"
        floor_xml "svt-bare$i-$$" "$WORK/boot.floor/initramfs.img"
        hold "$FLOOR" hold "$WORK/floor/svt-bare$i-$$.xml" "$WORK/floor/svt-bare$i-$$.sock"
        bare+=("$(cat "/run/libvirt/qemu/svt-bare$i-$$.pid")")
    done
    sleep 20
    local bare_machine=$(($(kib "${bare[@]}") / pods))
    release_held
    memory_tables
}

memory_tables() {
    local all=$((monitor + shim + share + machine)) size
    title "Memory of an idle pod, MiB PSS (of $pods pods, each)"
    table
    row process MiB beside goal reached
    row monitor "$(mib $monitor)" "client $(mib $clients)" "<= $(mib $((clients + 2048)))" \
        "$(most $monitor $((clients + 2048)))"
    row 'monitor, private dirty' "$(mib $dirty)" '' '<= 4' "$(most $dirty 4096)"
    row shim "$(mib $shim)" '' '<= 1' "$(most $shim 1024)"
    row virtiofsd "$(mib $share)" '' '' ''
    row QEMU "$(mib $machine)" "bare $(mib $bare_machine)" '' ''
    row 'pod in all' "$(mib $all)" "bare $(mib $bare_machine)" "<= $(mib $((bare_machine + 15360)))" \
        "$(most $all $((bare_machine + 15360)))"
    title 'Other sizes'
    table
    row what value goal reached
    row 'wakeups a minute a pod' "$(median wakeups)" '<= 6' "$(most "$(median wakeups)" 6)"
    row 'of them the shim' "$(median 'wakeups shims')" '' ''
    row 'libvirtd without keepalive' "$(median 'wakeups quiet')" '<= 6' "$(most "$(median 'wakeups quiet')" 6)"
    size=$(($(stat -L -c %s "$SV_IMAGES/initramfs.img") / 1024))
    row 'initramfs, MiB' "$(mib $size)" '<= 16' "$(most $size 16384)"
    row 'kernel, MiB' "$(mib $(($(stat -L -c %s "$SV_IMAGES/vmlinux") / 1024)))" '' ''
}
