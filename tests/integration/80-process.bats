#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# What config.json and exec say of processes, and of Linux (cases A40, A41, A43).

load lib

setup_file() {
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

# with FILTER [JQ-OPTION... --] ARG...: runs ARG... as a member of the pod, whose config.json FILTER has edited.
with() {
    local dir=$T/with.$RANDOM$RANDOM filter=$1 options=()
    shift
    while [[ $1 == --* ]]; do
        [ "$1" != -- ] || break
        options+=("${@:1:3}")
        shift 3
    done
    [ "$1" != -- ] || shift
    mkm "$dir" "$@"
    jqe "$dir" "$filter" "${options[@]}"
    new_id "w$RANDOM"
    try rt run --bundle "$dir" "$ID"
}

@test "user, groups, umask, environment, oom_score_adj, no_new_privs" {
    with '.process.user = {uid: 1000, gid: 1000, additionalGids: [5, 6], umask: 63} | .process.oomScoreAdj = -500
        | .process.noNewPrivileges = true | .process.env += ["A=b c", "EMPTY="]' \
        sh -c 'id -u; id -G; umask; cat /proc/self/oom_score_adj; grep NoNewPrivs /proc/self/status; echo "$A$EMPTY"'
    assert_status 0
    assert_eq "$output" $'1000\n1000 5 6\n0077\n-500\nNoNewPrivs:\t1\nb c'
}

@test "A41: rlimits, of the first process and of exec, above what this host allows" {
    with '.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 1024, hard: 4096}, {type: "RLIMIT_CORE", soft: 0, hard: 0},
        {type: "RLIMIT_NPROC", soft: 100, hard: 200}, {type: "RLIMIT_MEMLOCK", soft: 99999744, hard: 99999744}]' \
        awk '/open files|core file|Max processes|locked memory/ { print $(NF - 2), $(NF - 1) }' /proc/self/limits
    assert_eq "$output" $'0 0\n100 200\n1024 4096\n99999744 99999744'
    with '.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 1073741816, hard: 1073741816}]' sh -c 'ulimit -n'
    assert_eq "$output" 1073741816
    with '.process.rlimits = [{type: "RLIMIT_FOO", soft: 1, hard: 1}]' true
    assert_refused RLIMIT_FOO
    jq '.process | .args = ["sh", "-c", "ulimit -n"] | .terminal = false
        | .rlimits = [{type: "RLIMIT_NOFILE", soft: 77, hard: 99}]' "$BUNDLES/config.json" >"$T/p.json"
    assert_eq "$(rt exec --process "$T/p.json" "$POD")" 77
    assert_eq "$(rt exec --process <(cat "$T/p.json") "$POD")" 77
    assert_eq "$(rt exec --process - "$POD" <"$T/p.json")" 77
}

@test "capabilities: five sets, one that nobody knows" {
    with '.process.capabilities = (["bounding", "effective", "permitted", "inheritable", "ambient"]
        | map({key: ., value: ["CAP_CHOWN"]}) | from_entries)' grep -c 'Cap.*0000000000000001$' /proc/self/status
    assert_eq "$output" 5
    # A warning since 1.1 of the specification, an error before.
    with '.ociVersion = "1.1.0" | .process.capabilities.bounding += ["CAP_NEW"]' true
    assert_status 0
    assert_has "$stderr" 'unknown capability "CAP_NEW"'
    with '.ociVersion = "1.0.2" | .process.capabilities.bounding += ["CAP_NEW"]' true
    assert_refused 'process.capabilities.bounding' CAP_NEW
}

@test "exec: options one by one" {
    assert_eq "$(rt exec --cwd /tmp "$POD" pwd)" /tmp
    assert_eq "$(rt exec --user 1000:1000 --additional-gids 5 -g 6 "$POD" id -G)" '1000 5 6'
    assert_eq "$(rt exec --env A=b -e C=d "$POD" sh -c 'echo $A$C')" bd
    local cap
    cap=$(rt exec --cap CAP_SYS_ADMIN "$POD" awk '/CapEff/ { print $2 }' /proc/self/status)
    assert_eq $((0x$cap >> 21 & 1)) 1
    assert_eq "$(rt exec --no-new-privs "$POD" awk '/NoNewPrivs/ { print $2 }' /proc/self/status)" 1
    try rt exec --cwd /not/there "$POD" true
    assert_eq "$status" 255
    assert_has "$stderr" /not/there
    try rt exec --user nobody "$POD" true
    assert_eq "$status" 255
    quiet rt exec --detach --pid-file "$T/pid" "$POD" sleep 1000
    local pid
    pid=$(cat "$T/pid")
    assert_eq "$(cat "/proc/$pid/comm")" sandvirt-shim
    kill "$pid"
    wait_for 10 test ! -d "/proc/$pid"
}

@test "exec: what the container's process has the further one has too" {
    mkm "$T/b" sleep 1000
    jqe "$T/b" '.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 111, hard: 222}] | .process.oomScoreAdj = 300
        | .process.user = {uid: 1000, gid: 1000, umask: 63, additionalGids: [7]} | .process.noNewPrivileges = true'
    new_id same
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_eq "$(rt exec "$ID" sh -c 'ulimit -Sn; ulimit -Hn; id -u; id -G; umask; cat /proc/self/oom_score_adj
        awk "/NoNewPrivs/ { print \$2 }" /proc/self/status')" $'111\n222\n1000\n1000 7\n0077\n300\n1'
    assert_eq "$(rt exec "$POD" cat /proc/self/oom_score_adj)" 0
    jq '.process | .args = ["cat", "/proc/self/oom_score_adj"] | .terminal = false | .oomScoreAdj = -400' \
        "$BUNDLES/config.json" >"$T/p.json"
    assert_eq "$(rt exec --process "$T/p.json" "$ID")" -400
}

@test "exec: what it ignores it tells, when it was asked on the command line" {
    try rt exec --apparmor x --process-label y --cap CAP_NEW "$POD" true
    assert_status 0
    assert_has "$stderr" --apparmor
    assert_has "$stderr" --process-label
    assert_has "$stderr" CAP_NEW
}

@test "exec in a cgroup below the container's" {
    mkm "$T/b" sleep 1000
    jqe "$T/b" '(.mounts[] | select(.destination == "/sys/fs/cgroup").options) -= ["ro"]'
    new_id sub
    quiet rt run --detach --bundle "$T/b" "$ID"
    rt exec "$ID" mkdir -p /sys/fs/cgroup/one/two
    assert_eq "$(rt exec --cgroup /one/two "$ID" cat /proc/self/cgroup)" 0::/one/two
    assert_eq "$(rt exec --cgroup one "$ID" cat /proc/self/cgroup)" 0::/one
    assert_eq "$(rt exec "$ID" cat /proc/self/cgroup)" 0::/
    for cgroup in /none /../x cpu:/one; do
        try rt exec --cgroup "$cgroup" "$ID" true
        assert_status 255
        assert_has "$stderr" "${cgroup#/}"
    done
}

@test "a pidfd of the container and of an exec for who asks" {
    cat >"$T/receive" <<'END'
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
with s.accept()[0] as c:
    text, more = c.recvmsg(100, socket.CMSG_SPACE(4))[:2]
fd = array.array("i", more[0][2])[0]
pid = [line.split()[1] for line in open("/proc/self/fdinfo/%d" % fd) if line.startswith("Pid:")]
print(text.decode(), *pid)
END
    mkm "$T/b" sleep 1000
    new_id watched
    python3 "$T/receive" "$T/create.sock" >"$T/create.out" 3>&- 4>&- &
    wait_for 10 test -S "$T/create.sock"
    quiet rt create --bundle "$T/b" --pidfd-socket "$T/create.sock" "$ID"
    wait $!
    assert_eq "$(cat "$T/create.out")" "pidfd $(pid_of "$ID")"
    python3 "$T/receive" "$T/exec.sock" >"$T/exec.out" 3>&- 4>&- &
    wait_for 10 test -S "$T/exec.sock"
    quiet rt exec --detach --pid-file "$T/pid" --pidfd-socket "$T/exec.sock" "$ID" sleep 1000
    wait $!
    assert_eq "$(cat "$T/exec.out")" "pidfd $(cat "$T/pid")"
    take_snap
    new_id none
    try rt create --bundle "$T/b" --pidfd-socket "$T/none.sock" "$ID"
    assert_refused 'pidfd socket' "$T/none.sock"
    assert_same_snap
}

# held CONTAINER: descriptors of the monitor and, seen from a container that shares its process ids, of the
# agent; processes of the machine that are none of its kernel's, zombies too.
held() {
    echo "monitor $(find "/proc/$(monitor_pid "$POD")/fd" | wc -l)" \
        "agent $(rt exec "$1" ls /proc/1/fd | wc -l)" \
        "processes $(rt exec "$1" sh -c "exec awk '{ sub(/.*\) /, \"\"); n += \$2 != 2 } END { print n }' /proc/[0-9]*/stat")"
}

# A container from which all of the machine is seen.
overseer() {
    mkm "$T/overseer" sleep 100000
    jqe "$T/overseer" '.linux.namespaces |= map(select(.type != "pid"))
        | .process.capabilities |= map_values(. + ["CAP_SYS_PTRACE"])'
    new_id overseer
    quiet rt run --detach --bundle "$T/overseer" "$ID"
    held "$ID" >"$T/warm"
}

@test "64 execs at once: each has its own input, output and status, nothing of them is left" {
    local i pids=() status before
    overseer
    take_snap
    before=$(held "$ID")
    for ((i = 1; i <= 64; i++)); do
        echo "input $i" | rt exec "$POD" sh -c "cat; echo error $i >&2; exit $i" >"$T/$i.out" 2>"$T/$i.err" 3>&- &
        pids+=($!)
    done
    for ((i = 1; i <= 64; i++)); do
        status=0
        wait "${pids[i - 1]}" || status=$?
        assert_eq "$status" "$i" status
        assert_eq "$(cat "$T/$i.out" "$T/$i.err")" "input $i"$'\n'"error $i"
    done
    run -0 rt ps --format json "$POD"
    assert_eq "$(jq length <<<"$output")" 1 'processes left'
    assert_same_snap
    assert_eq "$(held "$ID")" "$before"
}

@test "many execs with a terminal at once: each has its own, nothing of them is left" {
    local i n pids=() others=() status before
    n=$(rounds 64)
    overseer
    take_snap
    before=$(held "$ID")
    for ((i = 1; i <= n; i++)); do
        "$SV_SOURCE/tests/integration/terminal" receive "$T/$i.sock" "wait=ask $i" "send=word $i\\n" >"$T/$i.out" 3>&- &
        others+=($!)
    done
    for ((i = 1; i <= n; i++)); do
        wait_for 20 test -S "$T/$i.sock"
        rt exec --tty --console-socket "$T/$i.sock" "$POD" \
            sh -c "stty -echo; echo ask $i; read x; echo got \$x on \$(tty); exit $i" 3>&- &
        pids+=($!)
    done
    for ((i = 1; i <= n; i++)); do
        status=0
        wait "${pids[i - 1]}" || status=$?
        assert_eq "$status" "$i" status
    done
    wait "${others[@]}"
    for ((i = 1; i <= n; i++)); do
        assert_has "$(tr -d '\r' <"$T/$i.out")" "got word $i on /dev/pts/"
    done
    assert_same_snap
    assert_eq "$(held "$ID")" "$before"
}

@test "A40: sysctls with dots and slashes, of the container and of the machine" {
    with '.linux.sysctl = {"net.ipv4.ip_forward": "1", "kernel.shmmax": "12345678", "fs/mqueue/queues_max": "77",
        "vm.max_map_count": "70000"}' \
        sh -c 'cd /proc/sys; cat net/ipv4/ip_forward kernel/shmmax fs/mqueue/queues_max vm/max_map_count'
    assert_eq "$output" $'1\n12345678\n77\n70000'
    with '.linux.sysctl = {"no.such.key": "1"}' true
    assert_refused no.such.key
    with '.linux.sysctl = {"kernel.core_pattern": "|/bin/x"}' true
    assert_refused kernel.core_pattern
}

@test "A43: a user namespace: mapped as asked, or refused" {
    with '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 1000}]
        | .linux.gidMappings = [{containerID: 0, hostID: 100000, size: 1000}]' \
        sh -c 'id -u; echo $(cat /proc/self/uid_map); touch /tmp/owned; stat -c %u /tmp/owned'
    assert_status 0
    assert_eq "$output" $'0\n0 100000 1000\n0'
    # Which file that was: of the first of the folders.
    assert_eq "$(stat -c %u "$T"/with.*/rootfs/tmp/owned)" 100000
    with '.linux.namespaces += [{type: "user"}]' true
    assert_refused uidMappings
    with '.linux.namespaces += [{type: "user", path: "/proc/self/ns/user"}]' true
    assert_refused 'user namespace'
    with '.linux.namespaces += [{type: "time"}]' true
    assert_refused 'time namespace'
}

@test "masked and read-only paths, devices, personality, propagation, names" {
    with '.linux.maskedPaths = ["/etc/passwd", "/tmp", "/nonexistent"] | .linux.readonlyPaths = ["/etc"]
        | .linux.devices = [{path: "/dev/fuse", type: "c", major: 10, minor: 229, fileMode: 384, uid: 5, gid: 6},
            {path: "/dev/pipe", type: "p"}]
        | .linux.personality = {domain: "LINUX32"} | .linux.rootfsPropagation = "shared"
        | .hostname = "one" | .domainname = "two"' \
        sh -c 'wc -c </etc/passwd; ls /tmp | wc -l; touch /etc/x 2>/dev/null || echo ro
            stat -c "%a %u %g %t:%T" /dev/fuse; [ -p /dev/pipe ] && echo pipe; uname -m; hostname
            cat /proc/sys/kernel/domainname; grep -c "rootfs / .* shared:" /proc/self/mountinfo'
    assert_status 0
    assert_eq "$output" $'0\n0\nro\n600 5 6 a:e5\npipe\ni686\none\ntwo\n1'
    with '.linux.rootfsPropagation = "sideways"' true
    assert_refused rootfsPropagation
}

@test "seccomp: a call fails with the asked number; an agent for it is refused" {
    with '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", architectures: ["SCMP_ARCH_X86_64"],
        syscalls: [{names: ["mkdir"], action: "SCMP_ACT_ERRNO", errnoRet: 99}]}' mkdir /tmp/x
    assert_has "$stderr" 'Cannot assign requested address'
    with '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", listenerPath: "/run/x"}' true
    assert_refused linux.seccomp.listenerPath
}

@test "cgroup: unified, weights, burst; the guest's own view" {
    with '.linux.resources = {unified: {"memory.low": "4194304"},
        cpu: {shares: 512, quota: 50000, period: 100000, burst: 1000}}' \
        sh -c 'cd /sys/fs/cgroup; cat memory.low cpu.weight cpu.max cpu.max.burst; cat /proc/self/cgroup'
    assert_eq "$output" $'4194304\n20\n50000 100000\n1000\n0::/'
}

@test "what cannot be honoured is refused with its path" {
    mkm "$T/b" true
    jqe "$T/b" '.linux.intelRdt = {closID: "x"}'
    new_id refused
    try rt run --bundle "$T/b" "$ID"
    assert_refused 'linux.intelRdt: the machine has no resctrl'
    jqe "$T/b" 'del(.linux.intelRdt) | .linux.resources.rdma = {mlx: {hcaHandles: 3}}'
    try rt run --bundle "$T/b" "$ID"
    assert_refused 'linux.resources.rdma: '
    assert_eq "$(rt list -q)" "$POD"
}

@test "what is ignored is told on stderr and in the log" {
    local dir=$T/b
    mkm "$dir" true
    jqe "$dir" '.process.apparmorProfile = "x" | .process.scheduler = {policy: "SCHED_BATCH"}
        | .linux.resources.blockIO = {weight: 10}'
    new_id ignored
    try rt --log "$T/log.json" --log-format json run --bundle "$dir" "$ID"
    assert_status 0
    for field in process.apparmorProfile process.scheduler linux.resources.blockIO; do
        assert_eq "$(jq -r 'select(.level == "warning").msg' "$T/log.json" | grep -c "config.json: $field: ")" 1 "$field"
    done
}

# ---------------------------------------------------------------- features: what it says is so

features() { rt features | jq -c "$1"; }

@test "features: every mount option is taken" {
    mkdir "$T/v"
    local n
    n=$(features '.mountOptions | length')
    [ "$n" -gt 30 ]
    with '.mounts += ($options | to_entries | map({destination: "/m/\(.key)", type: "bind", source: $v,
            options: ["rbind", .value]}) | map(if .options[1] == "tmpcopyup"
            then .type = "tmpfs" | .source = "tmpfs" | .options = ["tmpcopyup"] else . end))' \
        --argjson options "$(features .mountOptions)" --arg v "$T/v" -- sh -c 'grep -c " /m/" /proc/self/mountinfo'
    assert_status 0
    assert_eq "$output" "$n"
    # of mounts that the host makes later a warning tells that they do not come through
    assert_eq "$(grep -vE 'option "r?(shared|slave)": mounts made later' <<<"$stderr")" ''
}

@test "features: every namespace, capability, hook, action of seccomp" {
    with '.process.capabilities |= map_values($f.linux.capabilities)
        | .linux.namespaces = ($f.linux.namespaces | map({type: .}))
        | .linux.uidMappings = [{containerID: 0, hostID: 0, size: 2000}] | .linux.gidMappings = .linux.uidMappings
        | .hooks = ($f.hooks | map({key: ., value: [{path: "/bin/true"}]}) | from_entries)
        | .linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", architectures: $f.linux.seccomp.archs,
            syscalls: ([$f.linux.seccomp.actions, ["acct", "swapon", "swapoff", "reboot", "sysfs", "uselib", "vhangup", "ustat"]]
                | transpose | map({names: [.[1]], action: .[0]})
                + ($f.linux.seccomp.operators | map({names: ["lookup_dcookie"], action: "SCMP_ACT_ERRNO",
                    args: [{index: 0, value: 1, valueTwo: 2, op: .}]})))}' \
        --argjson f "$(rt features)" -- \
        sh -c 'awk "/CapBnd/ { print \$2 }" /proc/self/status; cat /proc/sys/kernel/cap_last_cap; for n in /proc/self/ns/*; do readlink $n; done'
    assert_status 0
    assert_eq "$((0x${lines[0]}))" $(((1 << (lines[1] + 1)) - 1)) capabilities
    local got=$output type
    with '.linux.namespaces |= map(select(.type == "network" or .type == "mount"))' sh -c 'for n in /proc/self/ns/*; do readlink $n; done'
    assert_status 0
    for type in cgroup ipc pid user uts; do
        [[ $(features .linux.namespaces) == *"\"$type\""* ]] || fail "$type is not there"
        [ "$(grep "^$type:" <<<"$got")" != "$(grep "^$type:" <<<"$output")" ] || fail "no $type namespace of its own"
    done
}
