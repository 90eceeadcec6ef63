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
    timeout -s INT 12 "${RT[@]}" top --json >"$T/live" || true
    [ "$(wc -l <"$T/live")" -ge 2 ] || fail "$(cat "$T/live")"
}

# exits CAUSE: as metrics counts them.
exits() { rt metrics | awk -v cause="cause=\"$1\"" 'index($0, "sandvirt_exits_total{") == 1 && index($0, cause) { n = $2 } END { print n + 0 }'; }

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
    assert_has "$output" "sandvirt_vcpus{sandbox=\"$POD\",pod=\"space/$POD\"} 1"
    assert_has "$output" 'sandvirt_containers{state="stopped"} 1'
    assert_eq "$(exits exited)" $((exited + 1))
    assert_has "$output" "sandvirt_monitor_restarts_total{sandbox=\"$POD\",pod=\"space/$POD\"} 0"
    assert_has "$output" "sandvirt_start_phase_seconds{container=\"$POD\""
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
    assert_has "$output" "sandvirt_monitor_restarts_total{sandbox=\"$POD\",pod=\"space/$POD\"} 1"
    # every line is a comment or NAME{LABELS} NUMBER
    run -1 grep -vE '^(# (HELP|TYPE) [a-z_]+ .*|sandvirt_[a-z_]+(\{[^}]*\})? [0-9.]+)$' <<<"$output"
}
