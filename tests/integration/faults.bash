# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # variables of lib.bash and of faults
# The cells of the matrix: what is killed, when, and what must follow. Loaded by faults behind lib.bash.

# ---------------------------------------------------------------- steps at which is cut

# rows FILE TABLE WORD: the steps of core's table, the word before each.
rows() {
    sed -n "/ $2\\[\\] = {/,/^};/s/^ *{\"\\([^\"]*\\)\".*/$3 \\1/p" "$SV_SOURCE/src/core/$1.c"
}
mapfile -t CREATE_STEPS < <(rows container-create create_steps create)
mapfile -t MACHINE_STEPS < <(rows machine-up up_steps machine)
mapfile -t STOP_STEPS < <(rows container-stop stop_steps stop)
mapfile -t END_STEPS < <(rows machine-down down_steps end)

# behind STEP STEP...: those after the first.
behind() {
    local first=$1 step found=''
    shift
    for step in "$@"; do
        [ -z "$found" ] || echo "$step"
        [ "$step" != "$first" ] || found=1
    done
}

# steps_of VICTIM MOMENT: sets STEPS to those at which the victim is there.
steps_of() {
    case $2 in
    creating)
        STEPS=("${MACHINE_STEPS[@]}" "${CREATE_STEPS[@]}")
        case $1 in
        # From the domain on there is one.
        qemu | virtiofsd)
            mapfile -t STEPS < <(behind 'machine domain' "${MACHINE_STEPS[@]}" && behind 'create machine' "${CREATE_STEPS[@]}")
            ;;
        # Who breaks the guest from within is there before: a further member of its pod.
        agent | panic) mapfile -t STEPS < <(behind 'create machine' "${CREATE_STEPS[@]}") ;;
        esac
        ;;
    stopping) STEPS=("${STOP_STEPS[@]}") ;;
    deleting)
        STEPS=("${STOP_STEPS[@]}" "${END_STEPS[@]}")
        case $1 in
        shim | agent | panic) STEPS=("${STOP_STEPS[@]}") ;;
        qemu | virtiofsd) STEPS=("${STOP_STEPS[@]}" 'end shutdown') ;;
        esac
        ;;
    *) STEPS=('') ;;
    esac
}

# step_line STEP: what the monitor logs when it begins it with $ID.
step_line() {
    case $1 in
    create*) echo "create $ID: ${1#create }" ;;
    machine*) echo "start the machine: ${1#machine }" ;;
    stop*) echo "stop $ID: ${1#stop }" ;;
    end*) echo "end the machine: ${1#end }" ;;
    esac
}

# choose KEY N: sets CHOICE below N, the same with the same seed.
choose() { CHOICE=$(($(cksum <<<"$seed $VICTIM $1" | cut -d' ' -f1) % $2)); }

# ---------------------------------------------------------------- what else of the host is in it

# host_begin: a link in the pods' network namespace, which each machine takes, and a disk for each of the
# containers that live at the same time.
host_begin() {
    local i
    ip netns add "$NETNS-far"
    ip -n "$NETNS" link add eth0 type veth peer name far netns "$NETNS-far"
    ip -n "$NETNS" link set eth0 addrgenmode none
    ip -n "$NETNS" link set eth0 up
    ip -n "$NETNS-far" link set far up
    ip -n "$NETNS" address add 10.88.0.2/24 dev eth0
    for i in 1 2 3; do
        truncate -s 16M "$WORK/disk$i.img"
        DISKS[i]=$(losetup -f --show "$WORK/disk$i.img")
    done
}
host_end() {
    local disk
    for disk in "${DISKS[@]}"; do
        losetup -d "$disk" 2>/dev/null
    done
    ip netns del "$NETNS-far" 2>/dev/null
    ip netns del "$NETNS" 2>/dev/null
}
declare -a DISKS=()

# host_shot: what the namespace looks like, and which disks somebody has open.
host_shot() {
    local disk
    net_shot "$NETNS" | sed 's/^/network /'
    for disk in "${DISKS[@]}"; do
        disk_is_free "$disk" || echo "disk $disk is open"
    done
}

# own_disk: DISK, that of a container at this moment.
own_disk() {
    case ${MOMENT:-} in
    running) DISK=${DISKS[2]} ;;
    paused) DISK=${DISKS[3]} ;;
    *) DISK=${DISKS[1]} ;;
    esac
}

# ---------------------------------------------------------------- the log

# A descriptor that never has anything to read: waiting without a process.
exec {never}<> <(:)

# The log begins anew; what was in it is kept beside it.
log_begin() {
    cat "$LOG/launcher" >>"$LOG/launcher.old"
    : >"$LOG/launcher"
    [ -z "${log_fd:-}" ] || exec {log_fd}<&-
    exec {log_fd}<"$LOG/launcher"
    log_part='' log_monitor=''
}

# log_wait LINE SECONDS [PID]: until the monitor has logged a line that ends so; not found when the
# process has ended a while ago, or after so many seconds.
log_wait() {
    local line deadline=$((${EPOCHREALTIME/./} + $2 * 1000000)) ended=''
    while :; do
        if IFS= read -r -u "$log_fd" line; then
            line=$log_part$line
            log_part=''
            [[ ! $line =~ "is process "([0-9]+)$ ]] || log_monitor=${BASH_REMATCH[1]}
            [[ $line != *": $1" ]] || return 0
            continue
        fi
        log_part+=$line
        [ "${EPOCHREALTIME/./}" -lt $deadline ] || return 1
        if [ -n "${3:-}" ] && [ ! -d "/proc/$3" ]; then
            [ -n "$ended" ] || ended=${EPOCHREALTIME/./}
            [ $((${EPOCHREALTIME/./} - ended)) -lt 2000000 ] || return 1
        fi
        read -r -t 0.002 -u "$never" line || true
    done
}

# ---------------------------------------------------------------- victims

shim_pid() {
    local pid='' i
    for i in {1..200}; do
        pid=$(sed -n 's/.*"shimPid":\([0-9]*\).*/\1/p' "$ROOT/$ID/state.json" 2>/dev/null)
        [ "${pid:-0}" -le 1 ] || break
        sleep 0.005
    done
    echo "${pid:-0}"
}

launcher_gone() { [ ! -d "/proc/$(launcher_pid)" ]; }
libvirtd_pid() { pgrep -o -x libvirtd; }
libvirtd_is() { [ "$(libvirtd_pid)" = "$1" ]; }
libvirtd_may_die() {
    [ -n "${SV_LIBVIRTD_KEPT:-}" ] || "$SV_SERVICES" kept libvirtd
}

# aim: finds the victim beforehand where it is there already, so that the cut is quick.
aim() {
    AIMED=''
    case $VICTIM in
    shim) [ "$MOMENT" = creating ] || AIMED=$(shim_pid) ;;
    monitor) [ "$MOMENT" = creating ] || AIMED=$(monitor_pid "$SANDBOX") ;;
    launcher) AIMED=$(launcher_pid) ;;
    libvirtd) AIMED=$(libvirtd_pid) ;;
    qemu | virtiofsd) [ "$MOMENT" = creating ] || AIMED=$(machine_pids) ;;
    esac
}

machine_pids() {
    case $VICTIM in
    qemu) pgrep -f "^/[^ ]*qemu-system-.*$WORK/" ;;
    virtiofsd) pgrep -f "^/[^ ]*virtiofsd .*$WORK/" ;;
    esac
}

# kill_victim: KILLED is the time at which it happened, in microseconds.
kill_victim() {
    if [ -z "$AIMED" ]; then
        case $VICTIM in
        shim) AIMED=$(shim_pid) ;;
        monitor) AIMED=$log_monitor ;;
        qemu | virtiofsd) AIMED=$(machine_pids) ;;
        call) AIMED=$CALL ;;
        esac
    fi
    KILLED=${EPOCHREALTIME/./}
    case $VICTIM in
    agent | panic) echo now >&"$saboteur" ;;
    *)
        # shellcheck disable=SC2086
        kill -KILL ${AIMED:-none} 2>/dev/null || not_there
        ;;
    esac
}

# Some end by themselves at the end of a stop: nothing was cut then.
not_there() {
    LATE=' too late'
    case $VICTIM-$MOMENT in
    *-stopping | *-deleting) ;;
    *) problem "there was no $VICTIM to kill (${AIMED:-none})" ;;
    esac
}

# What an administrator's system does: services start again.
revive() {
    case $VICTIM in
    launcher)
        wait_for 10 launcher_gone || problem 'the launcher did not die'
        wait_for 10 test ! -d "/proc/$(cat "$WORK/tini.pid")" || true
        launcher_start || problem 'the launcher does not start'
        ;;
    libvirtd) wait_for 60 eval "$VIRSH list >/dev/null 2>&1" || problem 'libvirtd does not come back' ;;
    esac
}

machine_dies() {
    case $VICTIM in qemu | virtiofsd | agent | panic) return 0 ;; *) return 1 ;; esac
}

# The cause that is recorded when nothing else ended the container first.
cause_of() {
    case $VICTIM in
    shim) echo shim-killed ;;
    qemu) echo domain-crashed ;;
    virtiofsd) echo share-lost ;;
    agent | panic) echo guest-panic ;;
    *) echo signalled ;;
    esac
}

# ---------------------------------------------------------------- making

problem() { PROBLEMS+=("$*"); }

bundle() { # NAME [POD]: DIR
    DIR=$T/$1
    mkb "$DIR" sleep 1000000
    if [ -n "${2:-}" ]; then member "$DIR" "$2"; else in_netns "$DIR"; fi
    own_disk
    give_disk "$DIR" "$DISK"
}

# A member of $SANDBOX under conmon: ID, DIR.
make_member() { # NAME
    ID=$1-$N
    bundle "$1" "$SANDBOX"
    cm "$ID" "$DIR" || problem "create $ID: $CM_MESSAGE"
}

# A pod; its own container breaks the guest at a word on its input when the victim wants that.
make_pod() {
    local script='read -r x'
    SANDBOX=pod-$N
    mkb "$T/pod" sh -c 'true'
    case $VICTIM in
    # From the machine's own pid namespace: the text of PID 1 becomes zeros.
    agent) script='r=$(grep -m1 r-xp /proc/1/maps); r=${r%% *}; s=$((0x${r%-*} / 4096)); e=$((0x${r#*-} / 4096)); echo ready
        read -r x; dd if=/dev/zero of=/proc/1/mem bs=4096 seek=$s count=$((e - s)) conv=notrunc; sleep 1' ;;
    panic) script='echo ready; read -r x; echo c >/proc/sysrq-trigger' ;;
    *) script='echo ready; exec sleep 1000000' ;;
    esac
    jqe "$T/pod" '.process.args[2] = $script | del(.linux.readonlyPaths, .linux.maskedPaths)
        | .process.capabilities |= map_values(["CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_DAC_OVERRIDE", "CAP_SYS_BOOT", "CAP_KILL"])
        | .linux.namespaces |= map(select(.type != "pid"))
        | .annotations += {"io.kubernetes.cri-o.ContainerType": "sandbox", "io.kubernetes.cri-o.SandboxID": $pod}' \
        --arg script "$script" --arg pod "$SANDBOX"
    in_netns "$T/pod"
    rm -f "$T/word"
    mkfifo "$T/word"
    [ -z "${saboteur:-}" ] || exec {saboteur}>&-
    exec {saboteur}<>"$T/word"
    if ! rt run --detach --bundle "$T/pod" "$SANDBOX" <&"$saboteur" >"$T/pod.out" 2>"$T/pod.err" {saboteur}>&-; then
        problem "the pod does not come up: $(cat "$T/pod.err")"
        return 1
    fi
    wait_for 20 grep -q ready "$T/pod.out" || problem "the pod's container says nothing: $(cat "$T/pod.out")"
}

# ---------------------------------------------------------------- looking

# Process ids aside: a new monitor is no difference.
shot() {
    snap | sed -E 's/^(process [^ ]+) .*/\1/'
    host_shot
}
same_shot() { [ "$(shot)" = "$BEFORE" ]; }
# A monitor that is killed when it has done everything is started again all the same.
no_monitor_comes() {
    [ -d "$ROOT/.sandbox/$SANDBOX" ] ||
        [[ $(grep "monitor of sandbox \"$SANDBOX\"" "$LOG/launcher" | tail -n 1) == *' has ended with status 0' ]]
}

nothing_left() { # SECONDS
    [ "$VICTIM" != libvirtd ] || drop_stillborn || problem 'what libvirt keeps could not be removed'
    [ "$VICTIM" != monitor ] || wait_for "$1" no_monitor_comes || problem 'a monitor comes or has not ended'
    wait_for "$1" same_shot ||
        problem "left (>) or missing (<): $(diff <(echo "$BEFORE") <(shot) | grep '^[<>]' | tr '\n' ' ')"
}

record_of() { jq -r ".$1" "$ROOT/$ID/state.json" 2>/dev/null; }
has_cause() { [ "$(record_of cause)" = "$1" ]; }
gone() { ! rt state "$ID" >/dev/null 2>&1; }
ended() { gone || is_state "$ID" stopped; }

expect() { # GOT WANTED WHAT
    [ "$1" = "$2" ] || problem "$3 is '$1', not '$2'"
}

# order SECONDS ARG...: a call that must succeed within a time.
order() {
    local limit=$1 text status=0
    shift
    text=$(timeout -k 1 "$limit" "${RT[@]}" "$@" 2>&1 </dev/null) || status=$?
    [ $status = 0 ] || problem "$1: status $status: $text"
    return $status
}

# In the end: stopped, once, with that status and cause; the engine saw the same; delete takes it.
expect_stopped() { # STATUS CAUSE
    local answer
    wait_for 15 is_state "$ID" stopped || problem "state is $(state_of "$ID" 2>&1), not stopped"
    [ -n "${STOPPED_MS:-}" ] || STOPPED_MS=$(((${EPOCHREALTIME/./} - KILLED) / 1000))
    wait_for 10 eval '[ "$(record_of state)" = stopped ]' || problem "recorded state is $(record_of state)"
    wait_for 3 has_cause "$2" || expect "$(record_of cause)" "$2" cause
    expect "$(record_of exitStatus)" "$1" status
    expect "$(pid_of "$ID")" 0 pid
    if answer=$(cm_status "$ID" "$DIR" 10 2>&1); then
        expect "$answer" "$1" "conmon's exit file"
    else
        problem "$answer"
    fi
    order 20 delete "$ID" && { gone || problem 'still there after delete'; }
}

# ---------------------------------------------------------------- moments

# call VERB...: runs it behind; CALL is its process.
call() {
    "${RT[@]}" "$@" </dev/null >"$T/call.out" 2>&1 &
    CALL=$!
}
call_ended() { # SECONDS: CALL_STATUS
    wait_for "$1" eval '! kill -0 "$CALL" 2>/dev/null' || {
        problem "the call does not end"
        kill -KILL "$CALL"
    }
    CALL_STATUS=0
    wait "$CALL" 2>/dev/null || CALL_STATUS=$?
}

cut_at() { # STEP: kills the victim at it
    log_wait "$(step_line "$1")" 120 "${CALL:-}" || problem "step $1 was never begun"
    kill_victim
}

# A child of it that is about to become the shim looks like it for a moment.
create_call() { pgrep -o -f "/sandvirt .*create .* $ID\$"; }

# The create that runs behind; its sandvirt is CALL.
begin_create() {
    rm -f "$T/created"
    (
        if cm "$ID" "$DIR"; then echo ok >"$T/created.new"; else echo "failed: $CM_MESSAGE" >"$T/created.new"; fi
        mv "$T/created.new" "$T/created"
    ) &
    CREATE=$!
    CALL=''
    if [ "$VICTIM" = call ]; then
        wait_for 10 eval 'CALL=$(create_call)' || problem 'no sandvirt create'
    fi
}

do_creating() { # STEP
    if [ "$VICTIM" = agent ] || [ "$VICTIM" = panic ]; then
        make_pod || return 0
        ID=c-$N
        bundle c "$SANDBOX"
    else
        ID=c-$N SANDBOX=c-$N
        bundle c
    fi
    log_begin
    aim
    begin_create
    cut_at "$1"
    CALL=''
    wait_for 100 test -e "$T/created" || problem 'create does not end'
    wait "$CREATE"
    revive
    STOPPED_MS=$(((${EPOCHREALTIME/./} - KILLED) / 1000))
    if [ "$(cat "$T/created")" = ok ]; then
        created_all_the_same
    else
        case $VICTIM in launcher) problem "create: $(cat "$T/created")" ;; esac
        [[ $(cat "$T/created") == *[a-z]* ]] || problem 'create failed without a word'
        # What the victim's end did not leave time for is done by the next monitor, unasked. READY was recorded
        # when its caller died: that is a container, and the engine's to delete.
        if [ "$VICTIM-$1" = 'call-create ready' ]; then
            wait_for 25 ended || problem "state is $(state_of "$ID")"
            gone || order 20 delete "$ID"
        fi
        wait_for 25 gone || problem "still there: $(state_of "$ID")"
    fi
    [ "$SANDBOX" = "c-$N" ] || pod_stopped
    nothing_left 5
}

# The victim came too late for this create, or is nothing that it needs.
created_all_the_same() {
    case $VICTIM in
    launcher | libvirtd | monitor | call)
        [ "$VICTIM" != call ] || problem 'the create that was killed has succeeded'
        expect "$(state_of "$ID")" created state
        order 20 delete "$ID"
        expect "$(cm_status "$ID" "$DIR" 10)" 137 "conmon's exit file"
        ;;
    *) expect_stopped 137 "$(cause_of)" ;;
    esac
}

# READY, RUNNING and PAUSED where the machine lives on; in a pod that serves all of these.
do_alive() {
    local before
    make_member "$MOMENT"
    prepare_moment
    log_begin
    if [ "$VICTIM" = call ]; then
        kill_in_call
    else
        before=$(monitor_pid "$SANDBOX")
        aim
        kill_victim
    fi
    case $VICTIM in
    shim) ;;
    monitor) wait_for 20 new_monitor "$before" || problem 'no new monitor' ;;
    *) revive ;;
    esac
    if [ "$VICTIM" != shim ]; then
        went_on
        order 10 kill "$ID" KILL
        KILLED=${EPOCHREALTIME/./}
    fi
    expect_stopped 137 "$(cause_of)"
    sibling_lives
    nothing_left 5
}

prepare_moment() {
    case $MOMENT in
    running | stopping) order 30 start "$ID" ;;
    paused) order 30 start "$ID" && order 30 pause "$ID" ;;
    esac
}

new_monitor() { # OLD
    local pid
    pid=$(monitor_pid "$SANDBOX")
    [ -n "$pid" ] && [ "$pid" != "$1" ]
}

oci_state() {
    case $MOMENT in ready) echo created ;; *) echo "$MOMENT" ;; esac
}

# The order that is killed half way: whatever it did, it did wholly or not at all.
kill_in_call() {
    local verb
    case $MOMENT in ready) verb=start ;; running) verb=pause ;; paused) verb=resume ;; esac
    call "$verb" "$ID"
    choose "$MOMENT" 30
    read -r -t "0.0$(printf %02d $CHOICE)" -u "$never" || true
    KILLED=${EPOCHREALTIME/./}
    kill -KILL "$CALL" 2>/dev/null || true
    call_ended 5
}

went_on() {
    local state
    state=$(state_of "$ID")
    if [ "$VICTIM" = call ]; then
        case $MOMENT-$state in
        ready-created | ready-running | running-running | running-paused | paused-paused | paused-running) ;;
        *) problem "state is $state after a cut call" ;;
        esac
        # The guest may still be at it.
        order 30 exec "$SANDBOX" true
        state=$(state_of "$ID")
    else
        expect "$state" "$(oci_state)" state
    fi
    case $state in
    created) order 30 start "$ID" ;;
    paused) order 30 resume "$ID" ;;
    esac
    expect "$(state_of "$ID")" running state
    [ "$(timeout 30 "${RT[@]}" exec "$ID" sh -c 'head -c 512 /dev/data | wc -c; cat /etc/origin' 2>&1 </dev/null)" = $'512\nimage' ] ||
        problem 'exec does not work, or its disk does not'
}

sibling_lives() {
    local ID=$SANDBOX
    expect "$(state_of "$SANDBOX")" running "the sibling's state"
    [ "$(timeout 30 "${RT[@]}" exec "$SANDBOX" cat /etc/origin 2>&1 </dev/null)" = image ] ||
        problem "the sibling does not answer"
}

# Where the machine dies: one machine with a container in each of the three states.
do_dead() {
    local id ids=()
    make_pod || return 0
    for MOMENT in ready running paused; do
        make_member "$MOMENT"
        prepare_moment
        ids+=("$MOMENT")
    done
    log_begin
    aim
    kill_victim
    for MOMENT in "${ids[@]}"; do
        begin_cell "$MOMENT"
        ID=$MOMENT-$N DIR=$T/$MOMENT
        expect_stopped 137 "$(cause_of)"
        [ "$MOMENT" != paused ] || { pod_stopped; nothing_left 5; }
        end_cell
    done
}

# The pod's own container, which conmon does not know.
pod_stopped() {
    local ID=$SANDBOX
    wait_for 15 is_state "$ID" stopped || problem "the pod's state is $(state_of "$ID" 2>&1), not stopped"
    wait_for 3 has_cause "$(cause_of)" || problem "the pod's cause is $(record_of cause)"
    expect "$(record_of exitStatus)" 137 "the pod's status"
    order 20 delete "$ID"
}

do_stopping() { # STEP
    if machine_dies; then
        make_pod || return 0
    fi
    make_member stopping
    prepare_moment
    log_begin
    aim
    call kill "$ID" KILL
    cut_at "$1"
    call_ended 30
    case $VICTIM in
    call) [ "$CALL_STATUS" = 137 ] || [ "$CALL_STATUS" = 0 ] || problem "the call: $CALL_STATUS" ;;
    *) expect "$CALL_STATUS" 0 "status of kill ($(cat "$T/call.out"))" ;;
    esac
    revive
    expect_stopped 137 signalled
    if machine_dies; then
        pod_stopped
    else
        sibling_lives
    fi
    nothing_left 5
}

do_deleting() { # STEP
    if [ "$VICTIM" = agent ] || [ "$VICTIM" = panic ]; then
        make_pod || return 0
        make_member c
    else
        ID=c-$N SANDBOX=c-$N
        bundle c
        cm "$ID" "$DIR" || problem "create: $CM_MESSAGE"
    fi
    log_begin
    aim
    call delete "$ID"
    cut_at "$1"
    call_ended 60
    revive
    STOPPED_MS=$(((${EPOCHREALTIME/./} - KILLED) / 1000))
    case $VICTIM in
    call) wait_for 20 gone || order 20 delete "$ID" ;;
    # The machine cannot be ended without libvirt: then it says so, and the next delete does it.
    libvirtd)
        if [ "$CALL_STATUS" != 0 ]; then
            assert_has "$(cat "$T/call.out")" 'still runs' || problem "delete: $(cat "$T/call.out")"
            order 30 delete --force "$ID"
        fi
        ;;
    *) expect "$CALL_STATUS" 0 "status of delete ($(cat "$T/call.out"))" ;;
    esac
    gone || problem "still there: $(state_of "$ID")"
    expect "$(cm_status "$ID" "$DIR" 10 2>&1)" 137 "conmon's exit file"
    # The record is gone with its cause; it was recorded, and once.
    case $(grep -c "container $ID: stopped with status 137 (signalled)" "$LOG/launcher") in
    1) ;;
    0) [ "$VICTIM" = monitor ] || problem 'the stop was not logged' ;;
    *) problem 'stopped more than once' ;;
    esac
    [ "$SANDBOX" = "$ID" ] || pod_stopped
    nothing_left 8
}

# ---------------------------------------------------------------- cells

begin_cell() { # MOMENT
    PROBLEMS=() STOPPED_MS='' CALL='' LATE=''
}

end_cell() { # [STEP]
    local cell="$VICTIM x $MOMENT${1:+, at \"$1\"}" key=$VICTIM:$MOMENT text
    ! text=$(grep -E 'CRITICAL|runtime error|Sanitizer|has ended with status (132|134|135|136|139)' "$LOG/launcher") ||
        problem "a program of ours crashed: $text"
    total[$key]=$((${total[$key]:-0} + 1))
    if [ ${#PROBLEMS[@]} = 0 ]; then
        passed[$key]=$((${passed[$key]:-0} + 1))
        echo "ok - $cell ($STOPPED_MS ms$LATE)"
        return
    fi
    bad=$((bad + 1))
    echo "not ok - $cell"
    for text in "${PROBLEMS[@]}"; do
        tr '\n' ' ' <<<"$text" | sed 's/^/#   /'
        echo
    done
    tail -n 30 "$LOG/launcher" | cut -c1-220 | tr -cd '\11\12\40-\176' | sed 's/^/#     /'
}

skip_cell() { # WHY
    echo "ok - $VICTIM x $MOMENT # SKIP $1"
}

wanted() { # MOMENT
    local pattern
    [ ${#only[@]} -gt 0 ] || return 0
    for pattern in "${only[@]}"; do
        [[ $pattern == *:* ]] || pattern+=':*'
        # shellcheck disable=SC2053
        [[ $VICTIM:$1 != $pattern ]] || return 0
    done
    return 1
}

cell_begin_files() {
    cells=$((${cells:-0} + 1))
    N=${WORK##*.}-$cells
    T=$BUNDLES/t$cells
    mkdir -p "$T"
    BEFORE=$(shot)
}

# Whatever a failed cell has left must not fail the next one.
clean_up() {
    local id
    for id in $(rt list -q 2>/dev/null | tac); do
        timeout 30 "${RT[@]}" delete --force "$id" >/dev/null 2>&1
    done
    wait_for 5 no_domains || true
    rm -rf --one-file-system "$T"
}

# One cut in a fresh sandbox, or in the pod that is there.
one_cut() { # MOMENT [STEP]
    MOMENT=$1
    local pod=${SHARED:-}
    if [ -n "$pod" ]; then
        begin_cell "$1"
        "do_$([ "$1" = stopping ] && echo stopping || echo alive)" "${2:-}"
        end_cell "${2:-}"
        return
    fi
    cell_begin_files
    begin_cell "$1"
    "do_$1" "$2"
    end_cell "$2"
    clean_up
}

# every_step MOMENT: each of its steps, or one.
every_step() {
    local step
    wanted "$1" || return 0
    steps_of "$VICTIM" "$1"
    if [ -z "$long" ]; then
        choose "$1" ${#STEPS[@]}
        one_cut "$1" "${STEPS[CHOICE]}"
        return
    fi
    for step in "${STEPS[@]}"; do
        one_cut "$1" "$step"
    done
}

# Victims with which the machine lives on share one pod for what happens in it.
in_shared_pod() {
    local moment n=0
    for moment in ready running paused stopping; do
        ! wanted "$moment" || n=$((n + 1))
    done
    [ $n -gt 0 ] || return 0
    cell_begin_files
    PROBLEMS=()
    make_pod
    local empty=$BEFORE pod=$SANDBOX name=$N i=0
    SHARED=$pod
    for moment in ready running paused stopping; do
        wanted "$moment" || continue
        steps_of "$VICTIM" "$moment"
        choose "$moment" ${#STEPS[@]}
        [ -n "$long" ] || STEPS=("${STEPS[CHOICE]}")
        local step
        for step in "${STEPS[@]}"; do
            i=$((i + 1))
            N=$name-$i SANDBOX=$pod
            BEFORE=$(shot)
            one_cut "$moment" "$step"
        done
    done
    SHARED=''
    BEFORE=$empty N=$name
    clean_up
}

victim() {
    VICTIM=$1
    if [ "$VICTIM" = libvirtd ] && ! libvirtd_may_die; then
        for MOMENT in "${MOMENTS[@]}"; do
            ! wanted "$MOMENT" || skip_cell 'libvirtd is not run by tests/host/services'
        done
        return 0
    fi
    every_step creating
    if machine_dies; then
        if wanted ready || wanted running || wanted paused; then
            cell_begin_files
            PROBLEMS=()
            do_dead
            clean_up
        fi
        every_step stopping
    else
        in_shared_pod
    fi
    every_step deleting
}
