#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# timeline, top and metrics.

load lib
load lifecycle

setup_file() {
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

@test "timeline: phases of the machine and of the container, as text and as a drawing" {
    local total name
    run -0 rt timeline --svg "$T/t.svg" "$POD"
    for name in 'libvirt: domain' 'guest: kernel' crun request; do
        assert_has "$output" "$name"
    done
    total=$(sed -n 's/.*ready after \([0-9]*\)\..*/\1/p' <<<"$output")
    [ "$total" -gt 500 ] && [ "$total" -lt 120000 ]
    # phases fill the time
    run -0 jq -r '[.phases[].lengthUs] | add * 100 / ($t | tonumber) / 1000 | floor' --arg t "$total" "$ROOT/$POD/timeline.json"
    [ "$output" -ge 90 ] && [ "$output" -le 110 ] || fail "phases are $output % of it"
    run -0 xmllint --noout "$T/t.svg"
    assert_has "$(cat "$T/t.svg")" 'guest: kernel'
    assert_has "$(cat "$T/t.svg")" "space/$POD: ready after"
    # a second container starts no machine
    mkm "$T/b" sleep 1000
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    run -0 rt timeline "$ID"
    assert_has "$output" 'in a machine that was there'
    [[ $output != *kernel* ]]
    try rt timeline nobody
    assert_refused 'does not exist'
}

@test "top: a table, JSON, and live until it is told to end" {
    run -0 rt top --once
    assert_has "$output" "space/$POD"
    run -0 rt top --once --json
    assert_eq "$(jq -r '.[0] | "\(.sandbox) \(.vcpus) \(.memory) \(.containers[0].state)"' <<<"$output")" \
        "$POD 1 268435456 running"
    [ "$(jq '.[0].memoryUsed' <<<"$output")" -gt $((50 << 20)) ]
    [ "$(jq '.[0].cpuNs' <<<"$output")" -gt 0 ]
    # what goes through the shared folder counts
    local before after
    before=$(jq '.[0].fileWritten' <<<"$output")
    rt exec "$POD" dd if=/dev/zero of=/file bs=1M count=8
    after=$(rt top --once --json | jq '.[0].fileWritten')
    [ "$after" -ge $((before + (8 << 20))) ] || fail "written: $before, then $after"
    # a terminal's width is kept, a suspended machine is told
    run -0 script -qec "stty cols 80 rows 10; ${RT[*]} top --once" /dev/null
    assert_has "$output" '1 pod, 1 of 1 containers run'
    [ "$(tr -d '\r' <<<"$output" | awk '{ if (length > n) n = length } END { print n }')" -le 80 ] || fail "$output"
    $VIRSH suspend "$(domain_of "$POD")"
    run -0 rt top --once
    $VIRSH resume "$(domain_of "$POD")"
    assert_has "$output" '1 pod (1 suspended)'
    timeout -s INT 12 "${RT[@]}" top --json >"$T/live" || true
    [ "$(wc -l <"$T/live")" -ge 2 ] || fail "$(cat "$T/live")"
}

@test "top and metrics of all roots" {
    local other=("$SANDVIRT" --config "$CONF" --root "$WORK/other")
    run -0 "${other[@]}" top --once --json
    assert_eq "$output" '[]'
    run -0 "${other[@]}" top --once --json --all
    assert_eq "$(jq -r --arg pod "$POD" '.[] | select(.sandbox == $pod).root' <<<"$output")" "$ROOT"
    run -0 "${other[@]}" top --once --all
    assert_has "$output" "space/$POD"
    run -0 "${other[@]}" metrics
    [[ $output != *"$POD"* ]] || fail "$output"
    run -0 "${other[@]}" metrics --all
    assert_has "$output" "sandvirt_vcpus{sandbox=\"$POD\",pod=\"space/$POD\",root=\"$ROOT\"} 1"
    assert_has "$output" "sandvirt_container_processes{container=\"$POD\",name=\"\",sandbox=\"$POD\""
    assert_eq "$(grep -c '^# TYPE sandvirt_start_phase_seconds' <<<"$output")" 1
}

# exits CAUSE: as metrics counts them.
exits() { rt metrics | awk -v cause="cause=\"$1\"" 'index($0, "sandvirt_exits_total{") == 1 && index($0, cause) { n = $2 } END { print n + 0 }'; }

# metric NAME CONTAINER: its value.
metric() { rt metrics | sed -n "s/^sandvirt_$1{container=\"$2\",.*} //p"; }

@test "metrics: what Prometheus reads" {
    local exited killed
    exited=$(exits exited)
    killed=$(exits signalled)
    mkm "$T/b" sh -c 'exit 3'
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    wait_state "$ID" stopped
    run -0 rt metrics
    assert_has "$output" 'sandvirt_machines 1'
    assert_has "$output" "sandvirt_vcpus{sandbox=\"$POD\",pod=\"space/$POD\",root=\"$ROOT\"} 1"
    assert_has "$output" 'sandvirt_containers{state="stopped"} 1'
    assert_eq "$(exits exited)" $((exited + 1))
    assert_has "$output" "sandvirt_monitor_restarts_total{sandbox=\"$POD\",pod=\"space/$POD\",root=\"$ROOT\"} 0"
    assert_has "$output" "sandvirt_start_phase_seconds{container=\"$POD\""
    assert_has "$output" "sandvirt_start_seconds{container=\"$POD\",name=\"\",sandbox=\"$POD\",pod=\"space/$POD\",root=\"$ROOT\",machine=\"new\"}"
    [ "$(metric container_memory_bytes "$POD")" -gt $((100 << 10)) ]
    assert_eq "$(metric container_processes "$POD")" 1
    # no name twice, and what a container used agrees with `events`
    assert_eq "$(grep -v '^#' <<<"$output" | sed 's/ [0-9.]*$//' | sort | uniq -d)" ''
    rt exec "$POD" sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done'
    run -0 rt events --stats "$POD"
    awk -v events="$(jq '.data.cpu.usage.total / 1e9' <<<"$output")" -v ours="$(metric container_cpu_seconds_total "$POD")" \
        'BEGIN { exit !(ours >= events && ours < events * 1.5 + 1) }' || fail "$output"
    # a suspended machine is not waited for
    $VIRSH suspend "$(domain_of "$POD")"
    took rt metrics >"$T/suspended"
    $VIRSH resume "$(domain_of "$POD")"
    assert_has "$(cat "$T/suspended")" "sandvirt_vcpus{sandbox=\"$POD\""
    run -1 grep 'sandvirt_container_memory_bytes{' "$T/suspended"
    [ "$MS" -lt 5000 ] || fail "it took $MS ms"
    # what is deleted stays counted, a monitor that took over too
    rt delete "$ID"
    mkm "$T/d" sleep 1000
    new_id d
    quiet rt run --detach --bundle "$T/d" "$ID"
    kill_monitor "$POD"
    rt delete --force "$ID"
    assert_eq "$(exits exited)" $((exited + 1))
    assert_eq "$(exits signalled)" $((killed + 1))
    run -0 rt metrics
    assert_has "$output" "sandvirt_monitor_restarts_total{sandbox=\"$POD\",pod=\"space/$POD\",root=\"$ROOT\"} 1"
    # a container's name in its pod
    mkm "$T/named" sleep 1000
    jqe "$T/named" '.annotations["io.kubernetes.cri-o.Name"] = "k8s_side_pod_space_uid_0"'
    new_id named
    quiet rt run --detach --bundle "$T/named" "$ID"
    assert_has "$(rt metrics)" "sandvirt_container_processes{container=\"$ID\",name=\"side\",sandbox=\"$POD\""
    assert_has "$($VIRSH metadata "$(domain_of "$POD")" https://sandvirt.org/xmlns/domain/1.0)" 'name="side"'
    assert_eq "$(rt top --once --json | jq -r --arg id "$ID" '.[0].containers[] | select(.id == $id).name')" side
    rt delete --force "$ID"
    # every line is a comment or NAME{LABELS} NUMBER
    run -0 rt metrics
    run -1 grep -vE '^(# (HELP|TYPE) [a-z_]+ .*|sandvirt_[a-z_]+(\{[^}]*\})? [0-9.]+)$' <<<"$output"
}
