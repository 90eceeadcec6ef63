#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sizes of machines, limits, update, events, ps (cases A39, A41 and OOM).

load lib

setup_file() {
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

MIB=1048576
CGROUP=/sys/fs/cgroup

limits() { # DIR QUOTA MIB
    jqe "$1" '.linux.resources.cpu = {quota: $quota, period: 100000} | .linux.resources.memory = {limit: $limit}' \
        --argjson quota "$2" --argjson limit "$(($3 * MIB))"
}

# What the machine has in the eyes of a process of @ID: CPUs and MiB.
cpus() { rt exec "$1" nproc; }
memory() { rt exec "$1" awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo; }

# between VALUE LOW HIGH
between() {
    if [ "$1" -lt "$2" ] || [ "$1" -gt "$3" ]; then
        fail "$1 is not between $2 and $3"
    fi
}

@test "A39: a machine is as big as its container's limits, its cgroup has them exactly" {
    mkb "$T/b" sleep 1000
    in_netns "$T/b"
    limits "$T/b" 170000 512
    new_id big
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_eq "$(cpus "$ID")" 2
    # 512 and 64 for the guest, less what its kernel keeps for itself
    between "$(memory "$ID")" 512 576
    run rt exec "$ID" cat $CGROUP/cpu.max $CGROUP/memory.max
    assert_eq "$output" "170000 100000"$'\n'$((512 * MIB))
    rt delete --force "$ID"
}

@test "A39: the pod's annotations decide, a limit above the host is clamped" {
    mkb "$T/b" sleep 1000
    in_netns "$T/b"
    jqe "$T/b" '.annotations += {"io.kubernetes.cri-o.ContainerType": "sandbox",
        "io.kubernetes.cri-o.SandboxID": $id,
        "io.kubernetes.cri-o.PodLinuxResources":
            "{\"cpu_period\":100000,\"cpu_quota\":150000,\"memory_limit_in_bytes\":419430400}"}' \
        --arg id "sized-$N"
    limits "$T/b" -1 $((1024 * 1024))
    new_id sized
    quiet rt run --detach --bundle "$T/b" "$ID"
    assert_eq "$(cpus "$ID")" 2
    between "$(memory "$ID")" 400 464
    assert_eq "$(rt exec "$ID" cat $CGROUP/memory.max)" $((1024 * 1024 * MIB))
    rt delete --force "$ID"
}

@test "A39: a further container makes the machine grow before it runs" {
    local before
    before=$(memory "$POD")
    assert_eq "$(cpus "$POD")" 1
    mkm "$T/b" sh -c "nproc; cat $CGROUP/cpuset.cpus.effective; awk '/MemTotal/ { print int(\$2 / 1024) }' /proc/meminfo"
    limits "$T/b" 110000 400
    # half of it is not there: clamped
    jqe "$T/b" '.linux.resources.cpu.cpus = "0-63"'
    new_id more
    run rt run --bundle "$T/b" "$ID"
    assert_status 0
    assert_eq "${lines[0]} ${lines[1]}" '2 0-1'
    between "${lines[2]}" $((before + 150)) $((before + 210))
    assert_eq "$(cpus "$POD")" 2
}

@test "update: limits, from options, a file and standard input; the machine grows" {
    local before
    before=$(memory "$POD")
    rt update --memory 600m --memory-reservation 10m --cpu-quota 30000 --cpu-period 50000 --pids-limit 99 \
        --cpu-share 512 --cpuset-cpus 0 "$POD"
    run rt exec "$POD" sh -c "cd $CGROUP; cat memory.max memory.low cpu.max pids.max cpu.weight cpuset.cpus"
    assert_eq "$output" "$((600 * MIB))"$'\n'"$((10 * MIB))"$'\n'"30000 50000"$'\n'99$'\n'20$'\n'0
    between "$(memory "$POD")" $((before + 20)) 2000
    echo '{"pids": {"limit": 77}}' >"$T/r.json"
    rt update --resources "$T/r.json" "$POD"
    assert_eq "$(rt exec "$POD" cat $CGROUP/pids.max)" 77
    rt update --resources <(echo '{"pids": {"limit": 66}}') "$POD"
    assert_eq "$(rt exec "$POD" cat $CGROUP/pids.max)" 66
    echo '{"pids": {"limit": 88}, "cpu": {"quota": 60000, "period": 100000, "burst": 2000}}' | rt update -r - "$POD"
    assert_eq "$(rt exec "$POD" cat $CGROUP/pids.max $CGROUP/cpu.max $CGROUP/cpu.max.burst)" \
        $'88\n60000 100000\n2000'
}

@test "update: the options that runc has besides" {
    run -0 rt update --memory 600m --memory-swap 700m --cpu-quota 30000 --cpu-period 50000 --cpu-burst 3000 \
        --cpuset-mems 0 --blkio-weight 100 --cpu-rt-period 1000000 --cpu-rt-runtime 0 --kernel-memory 100m \
        --kernel-memory-tcp 100m --l3-cache-schema '' "$POD"
    assert_eq "$(rt exec "$POD" cat $CGROUP/memory.swap.max $CGROUP/cpu.max.burst)" "$((100 * MIB))"$'\n3000'
    rt update --memory-swap -1 "$POD"
    assert_eq "$(rt exec "$POD" cat $CGROUP/memory.swap.max)" max
    rt update --cpu-idle 1 "$POD"
    assert_eq "$(rt exec "$POD" cat $CGROUP/cpu.idle)" 1
    rt update --cpu-idle 0 "$POD"
    rt update --cpu-share 1024 "$POD"
    assert_eq "$(rt exec "$POD" cat $CGROUP/cpu.idle $CGROUP/cpu.weight)" $'0\n39'
}

# What files of $POD's cgroup say, in a line.
values() { rt exec "$POD" sh -c "cd $CGROUP; cat $*" | tr '\n' ' '; }

@test "update: of limits that belong together what is left out is as it was" {
    rt update --cpu-quota 30000 --cpu-period 50000 "$POD"
    rt update --cpu-quota 20000 "$POD"
    assert_eq "$(values cpu.max)" '20000 50000 '
    rt update --cpu-period 40000 "$POD"
    assert_eq "$(values cpu.max)" '20000 40000 '
    rt update --memory 600MiB "$POD"
    rt update --memory-swap 700m "$POD"
    assert_eq "$(values memory.max memory.swap.max)" "$((600 * MIB)) $((100 * MIB)) "
    rt update --memory -1 "$POD"
    assert_eq "$(values memory.max memory.swap.max)" 'max max '
    rt update --cpu-quota -1 "$POD"
    assert_eq "$(values cpu.max)" 'max 40000 '
    rt update --cpu-period 0 "$POD"
    assert_eq "$(values cpu.max)" 'max 100000 '
    rt update --cpu-quota 50000 --pids-limit 55 "$POD"
    rt update --cpu-quota 0 --pids-limit 0 "$POD"
    assert_eq "$(values cpu.max pids.max)" '50000 100000 55 '
    # Zeros say nothing: those of runc's own example, which were a limit of no memory at all.
    rt update --memory 500m --cpu-quota 50000 --cpu-share 512 "$POD"
    echo '{"memory": {"limit": 0, "reservation": 0, "swap": 0}, "cpu": {"shares": 0, "quota": 0, "period": 0,
        "realtimeRuntime": 0, "realtimePeriod": 0, "cpus": "", "mems": ""}, "blockIO": {"weight": 0}}' | rt update -r - "$POD"
    assert_eq "$(values memory.max cpu.max cpu.weight)" "$((500 * MIB)) 50000 100000 20 "
}

@test "update: limits that the kernel takes in one order only, and back" {
    rt update --cpu-idle 1 "$POD"
    echo '{"cpu": {"idle": 0, "shares": 512}, "unified": {"no.such": "1"}}' >"$T/r.json"
    try rt update -r "$T/r.json" "$POD"
    assert_refused
    assert_eq "$(values cpu.idle)" '1 '
    rt update --cpu-idle 0 --cpu-share 512 "$POD"
    assert_eq "$(values cpu.idle cpu.weight)" '0 20 '
    rt update --cpu-quota 50000 --cpu-period 100000 --cpu-burst 20000 "$POD"
    rt update --cpu-quota 10000 --cpu-burst 5000 "$POD"
    assert_eq "$(values cpu.max cpu.max.burst)" '10000 100000 5000 '
    for burst in 1000 30000; do
        echo "{\"cpu\": {\"quota\": $((burst * 2)), \"burst\": $burst, \"idle\": 1}, \"unified\": {\"no.such\": \"1\"}}" >"$T/r.json"
        try rt update -r "$T/r.json" "$POD"
        assert_refused
        assert_eq "$(values cpu.max cpu.max.burst cpu.idle cpu.weight)" '10000 100000 5000 0 20 '
    done
    rt update --cpu-burst 0 --cpu-quota -1 "$POD"
}

@test "update: what is refused changes nothing" {
    local now
    now=$(rt exec "$POD" sh -c "cd $CGROUP; cat memory.max cpu.max pids.max cpu.weight")
    try rt update --memory 700m --pids-limit 55 --cpu-share 100 --cpu-quota 5 "$POD"
    assert_refused cpu.max
    for schema in --l3-cache-schema=L3:0=1 --mem-bw-schema=MB:0=20; do
        try rt update --memory 700m --pids-limit 55 "$schema" "$POD"
        assert_refused 'not enabled' "${schema%%=*}"
    done
    try rt update --memory 1x "$POD"
    assert_refused --memory
    for bad in --memory=-2 --memory-swap=x --memory-reservation=1kk --cpu-period=-1 --cpu-quota=-2 --cpu-share=-1 \
        --cpu-burst=-1 --cpu-idle=2 --pids-limit=-2 --pids-limit=many --blkio-weight=1001 --cpuset-cpus=x --cpuset-cpus=1-0; do
        try rt update "$bad" "$POD"
        assert_refused "${bad#*=}"
    done
    for bad in '{"memory": {"limit": "x"}}' '{"pids": {"limit": 5}, "cpu": {"cpus": "x"}}' '[]' \
        '{"pids": {"limit": 5}, "unified": {"no.such": "1"}}'; do
        echo "$bad" >"$T/r.json"
        try rt update -r "$T/r.json" "$POD"
        assert_refused
    done
    try rt update -r "$T/none" "$POD"
    assert_refused "$T/none"
    try rt update --device-add /dev/null "$POD"
    [ "$status" != 0 ]
    assert_eq "$(rt exec "$POD" sh -c "cd $CGROUP; cat memory.max cpu.max pids.max cpu.weight")" "$now"
}

@test "A41: the pids limit holds, the agent and others do not notice" {
    mkm "$T/b" sh -c 'i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i + 1)); done; echo all'
    jqe "$T/b" '.linux.resources.pids.limit = 20'
    new_id fork
    run rt run --bundle "$T/b" "$ID"
    [[ $output != *all* ]] || fail "$output"
    assert_has "$output" "can't fork"
    rt exec "$POD" true
}

@test "huge pages: the limit holds and can be changed; a size that the machine has not" {
    mkm "$T/b" sh -c 'for i in 1 2 3; do fallocate -l 2M /huge/$i || rm /huge/$i; done; ls /huge; sleep 1000'
    jqe "$T/b" '.linux.sysctl += {"vm.nr_hugepages": "4"}
        | .mounts += [{destination: "/huge", type: "hugetlbfs", source: "hugetlbfs", options: ["pagesize=2M"]}]
        | .linux.resources.hugepageLimits = [{pageSize: "2MB", limit: $limit}, {pageSize: "1GB", limit: 0}]' \
        --argjson limit $((4 * MIB))
    new_id huge
    "${RT[@]}" run --detach --bundle "$T/b" "$ID" >"$T/out" 2>&1 3>&- 4>&-
    wait_for 10 grep -q 2 "$T/out"
    assert_eq "$(grep -c '^[123]$' "$T/out")" 2
    assert_eq "$(rt exec "$ID" cat $CGROUP/hugetlb.2MB.{max,current} | tr '\n' ' ')" "$((4 * MIB)) $((4 * MIB)) "
    assert_eq "$(rt events --stats "$ID" | jq -c '.data.hugetlb["2MB"].usage')" $((4 * MIB))
    echo "{\"hugepageLimits\": [{\"pageSize\": \"2MB\", \"limit\": $((6 * MIB))}]}" | rt update -r - "$ID"
    rt exec "$ID" fallocate -l 2M /huge/3
    rt delete --force "$ID"
    mkm "$T/c" cat $CGROUP/hugetlb.2MB.max
    jqe "$T/c" '.linux.sysctl += {"vm.nr_hugepages": "0"}
        | .linux.resources.hugepageLimits = [{pageSize: "1GB", limit: 1073741824}]'
    new_id giant
    run -0 rt run --bundle "$T/c" "$ID"
    assert_has "$output" 'linux.resources.hugepageLimits: '
    assert_has "$output" max
}

@test "OOM: status 137, the event, the file; the pod lives on" {
    mkm "$T/b" dd if=/dev/zero of=/dev/null bs=200M count=1
    jqe "$T/b" '.linux.resources.memory = {limit: 33554432, swap: 33554432}'
    new_id oom
    quiet rt create --bundle "$T/b" "$ID"
    "${RT[@]}" events --interval 300ms "$ID" >"$T/events" 2>"$T/events.log" 3>&- 4>&- &
    local events=$!
    wait_for 20 test -s "$T/events"
    rt start "$ID"
    wait_state "$ID" stopped
    [ -e "$T/b/oom" ] || fail 'no file'
    wait "$events" || fail "events: $(cat "$T/events.log")"
    assert_eq "$(jq -r 'select(.type == "oom").id' "$T/events")" "$ID"
    [ "$(jq -c 'select(.type == "stats")' "$T/events" | wc -l)" -ge 1 ]
    assert_eq "$(jq .exitStatus "$ROOT/$ID/state.json")" 137
    rt exec "$POD" true
}

@test "OOM: all memory of the machine: the workload is taken, the agent is not" {
    mkm "$T/b" awk 'BEGIN { s = sprintf("%1000000d", 0); while (1) a[i++] = s i }'
    new_id all
    run rt run --bundle "$T/b" "$ID"
    assert_status 137
    [ -e "$T/b/oom" ] || fail 'no file'
    assert_eq "$(state_of "$POD")" running
    assert_eq "$(rt exec "$POD" echo alive)" alive
}

@test "OOM: an event for each kill, status and file once" {
    # Two children are taken, then the first process itself lives on and ends well.
    mkm "$T/b" sh -c 'read go; for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=200M count=1; done; read go; exit 4'
    jqe "$T/b" '.linux.resources.memory = {limit: 33554432, swap: 33554432}'
    new_id ooms
    mkfifo "$T/go"
    exec {go}<>"$T/go"
    quiet rt create --bundle "$T/b" "$ID" <"$T/go"
    "${RT[@]}" events --interval 300ms "$ID" >"$T/events" 2>"$T/events.log" 3>&- 4>&- {go}>&- &
    local events=$!
    rt start "$ID"
    wait_for 20 test -s "$T/events"
    echo >&$go
    wait_for 30 eval '[ "$(grep -c "\"type\":\"oom\"" "$T/events")" = 3 ]' || fail "events: $(cat "$T/events" "$T/events.log")"
    [ -e "$T/b/oom" ] || fail 'no file'
    echo >&$go
    wait_state "$ID" stopped
    wait "$events" || fail "events: $(cat "$T/events.log")"
    assert_eq "$(jq -c 'select(.type == "oom")' "$T/events" | sort | uniq -c | tr -s ' ')" " 3 {\"type\":\"oom\",\"id\":\"$ID\"}"
    assert_eq "$(jq .exitStatus "$ROOT/$ID/state.json")" 4
}

@test "events --stats has runc's members" {
    run rt events --stats "$POD"
    assert_status 0
    assert_eq "$(jq -r '[.type, .id] | join(" ")' <<<"$output")" "stats $POD"
    for path in data.cpu.usage.{total,kernel,user} data.cpu.throttling.{periods,throttledPeriods,throttledTime} \
        data.memory.{usage,swap}.{limit,usage,max,failcnt} data.memory.cache data.memory.raw.anon \
        data.pids.{current,limit}; do
        [ "$(jq ".$path | type" <<<"$output")" = '"number"' ] || fail "no number at $path"
    done
    for path in data.blkio.{ioServiceBytesRecursive,ioServicedRecursive}; do
        [ "$(jq ".$path | type" <<<"$output")" = '"array"' ] || fail "no array at $path"
    done
    jq -e '.data.memory.usage.usage > 0 and .data.pids.current >= 1' <<<"$output"
    try rt events --interval x "$POD"
    assert_refused --interval
}

@test "ps: the table, JSON, arguments of ps" {
    local first
    run rt ps "$POD"
    assert_has "${lines[0]}" 'UID'
    assert_has "${lines[1]}" 'sleep 1000000'
    run rt ps --format json "$POD"
    [ "$(jq length <<<"$output")" -ge 1 ]
    run rt ps "$POD" -o pid,args
    assert_has "${lines[0]}" 'PID COMMAND'
    run rt ps "$POD" aux
    assert_eq "$(tr -s ' ' <<<"${lines[0]}")" 'USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND'
    assert_has "${lines[1]}" 'sleep 1000000'
    # This container's alone.
    mkm "$T/b" sh -c 'sleep 1001 & exec sleep 1002'
    new_id ps
    quiet rt run --detach --bundle "$T/b" "$ID"
    wait_for 10 eval '[ "$(rt ps "$ID" -o args= | grep -cx "sleep 100[12]")" = 2 ]'
    first=$(rt ps "$ID" -o pid=,args= | awk '/1002/ { print $1 }')
    run rt ps "$ID" -o ppid=,pgid=,sid=,nlwp=,user=,group=,args=
    assert_eq "${#lines[@]}" 2
    assert_has "$(tr -s ' ' <<<"$output")" "$first $first $first 1 root root sleep 1001"
    try rt ps "$POD" --nonsense
    assert_refused nonsense
}

@test "checkpoint and restore are refused clearly, also to who probes with --help" {
    for verb in checkpoint restore; do
        try rt $verb --help
        assert_refused 'not supported'
        try rt $verb --image-path "$T" "$POD"
        assert_refused 'not supported'
    done
}

# The guest's clock is at most so many milliseconds off.
assert_clock() {
    local before guest after
    before=$(date +%s%3N)
    guest=$(rt exec "$POD" /bin/payload now)
    after=$(date +%s%3N)
    between "$guest" $((before - $1)) $((after + $1))
}

@test "the clock is right, after a suspend and a resume too" {
    local domain
    assert_clock 50
    domain=$(domain_of "$POD")
    $VIRSH suspend "$domain"
    wait_state "$POD" paused
    sleep 3
    $VIRSH resume "$domain"
    wait_state "$POD" running
    assert_clock 1000
}

@test "random numbers come from the host's device" {
    assert_eq "$(rt exec "$POD" cat /sys/class/misc/hw_random/rng_current)" virtio_rng.0
}
