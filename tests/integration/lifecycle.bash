# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of lib.bash and of the tests
# What the tests of the life cycle share. Loaded behind lib.bash.

# record_of ID FIELD: what is written down, whoever lives.
record_of() { jq -r ".$2" "$ROOT/$1/state.json"; }
has_record() { [ "$(record_of "$1" "$2" 2>/dev/null)" = "$3" ]; }

# assert_stopped ID STATUS CAUSE [SECONDS]: stopped, pid 0, recorded so.
assert_stopped() {
    wait_state "$1" stopped "${4:-15}"
    assert_eq "$(pid_of "$1")" 0 pid
    wait_for 10 has_record "$1" state stopped || fail "recorded state of $1: $(record_of "$1" state)"
    assert_eq "$(record_of "$1" exitStatus)" "$2" "status of $1"
    # Libvirt's word may correct the cause a little later.
    wait_for 3 has_record "$1" cause "$3" || assert_eq "$(record_of "$1" cause)" "$3" "cause of $1"
}

# within LIMIT-MS WHAT: MS (of took) is below it; on a machine with more to do than it has
# processors, so much later.
within() {
    local limit
    limit=$(awk -v n="$(nproc)" -v ms="$1" '{ f = $1 / n; if (f < 1) f = 1; print int(ms * f) }' /proc/loadavg)
    echo "# $2: $MS ms" >&3
    [ "$MS" -le "$limit" ] || fail "$2 took $MS ms, more than $1 ms (load allows $limit)"
}

# member_up NAME ARG...: a member of $POD under conmon, created: ID, DIR.
member_up() {
    new_id "$1"
    DIR=$T/$1
    shift
    mkm "$DIR" "$@"
    cm "$ID" "$DIR" || fail "create: $CM_MESSAGE"
}

# kill_monitor SANDBOX: SIGKILL, and another one is there.
kill_monitor() {
    local before
    before=$(monitor_pid "$1")
    [ -n "$before" ]
    kill -KILL "$before"
    wait_for 20 monitor_changed "$1" "$before" || fail "no new monitor of $1"
}
monitor_changed() {
    local pid
    pid=$(monitor_pid "$1")
    [ -n "$pid" ] && [ "$pid" != "$2" ]
}

# As a power cut: nothing of this file lives, nobody starts anything again.
power_cut() {
    local pid
    kill -KILL "$(launcher_pid)" 2>/dev/null || true
    wait_for 10 test ! -d "/proc/$(cat "$WORK/tini.pid")" || true
    for pid in $(pids_naming "$WORK/") $(pids_naming "${WORK##*.}"); do
        kill -KILL "$pid" 2>/dev/null || true
    done
    wait_for 20 no_domains
}

# admin VERB...: as an administrator types it.
admin() { $VIRSH "$@"; }
