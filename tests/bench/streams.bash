# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run
# Section streams: stdout of a container beside an unframed copy from a pipe into the port of a bare domain, and
# many execs at the same time.

stream_bytes=$((256 * 1024 * 1024))

stream_round() {
    note 'stream own' "$(rt exec "$POD" payload line $stream_bytes </dev/null | "$FLOOR" meter)"
    note 'stream bare' "$(bare "meter $stream_bytes")"
    note 'stream plain' "$(bare "meter $stream_bytes plain")"
}

# Each says its number; all must have said it.
many_execs() {
    local i from=${EPOCHREALTIME/./} pids=() right=0
    for ((i = 1; i <= 64; i++)); do
        rt exec "$POD" echo "number $i" </dev/null >"$WORK/exec.$i" 2>&1 &
        pids+=($!)
    done
    for ((i = 1; i <= 64; i++)); do
        ! wait "${pids[i - 1]}" || [ "$(cat "$WORK/exec.$i")" != "number $i" ] || right=$((right + 1))
    done
    note 'execs right' $right
    note 'execs ms' "$(ms_since "$from")"
}

part_streams() {
    local round value
    pod_up streams
    bare_up
    for ((round = 1; round <= rounds; round++)); do
        say "streams: round $round of $rounds"
        stream_round
    done
    bare_down
    say 'streams: 64 execs at the same time'
    many_execs
    pod_down_all
    title "Streams (medians of $rounds rounds)"
    table
    row what figure beside goal reached
    value=$(ratio "$(median 'stream own')" "$(median 'stream bare')")
    row 'stdout, MiB/s' "$(median 'stream own')" "bare $(median 'stream bare')" '' ''
    row 'unframed, writer in no cgroup' "$(median 'stream plain')" '' '' ''
    row 'stdout beside an unframed copy' "$value" '' '>= 0.60' "$(least "$value" 0.6)"
    value=$(tr -d ' ' <<<"${figures['execs right']}")
    row '64 execs at the same time, right' "$value" "$(median 'execs ms') ms" 64 "$(least "$value" 64)"
}
