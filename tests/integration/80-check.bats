#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# sandvirt check: what it sees, what it says, and that it leaves nothing.

load lib

setup_file() { suite_begin; }
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

# line NAME: "result text" of that check in $output.
line() { jq -r --arg n "$1" '.checks[] | select(.name == $n) | .result + " " + .text' <<<"$output"; }

@test "this host is fit: a machine comes up, and nothing is left of it" {
    take_snap
    try rt check --json
    assert_status 0
    local name
    for name in kernel memory 'guest image' firmware launcher libvirt virtlogd mounts qemu virtiofsd boot; do
        assert_has "$(line "$name")" 'pass ' "$name"
    done
    assert_has "$(line boot)" 'a machine is ready after'
    assert_has "$(line kvm)" 'warn software emulation'
    jq -e '[.checks[] | select(.result != "pass" and (.advice | not))] == []' <<<"$output"
    assert_same_snap
}

@test "what an advice names is there" {
    local path
    try rt check --quick --json
    while read -r path; do
        [ -e "$path" ] || fail "there is no $path"
    done < <(jq -r '.checks[].advice // empty' <<<"$output" | sed -n 's/^copy \([^ ]*\) .*/\1/p')
}

@test "--quick starts no machine; text has a line each, and colour only on a terminal" {
    try rt check --quick
    assert_status 0
    assert_has "$output" 'pass  libvirt'
    assert_has "$output" 'this host is fit'
    [[ $output != *'  boot '* ]] || fail "boot in: $output"
    [[ $output != *$'\033'* ]] || fail 'colours in a file'
    run -0 script -qec "${RT[*]} check --quick" /dev/null
    assert_has "$output" $'\033[32mpass'
}

@test "what is not fit fails, with what to do" {
    write_conf "machine.kernel=$T/none" hypervisor.uri=qemu+unix:///system?socket=/nowhere \
        hypervisor.virtiofsd=/nowhere/virtiofsd hypervisor.uid_first=3000001 hypervisor.uid_last=3000002
    try rt check --json
    write_conf
    assert_status 1
    assert_has "$(line 'guest image')" 'fail no guest image is installed'
    assert_has "$(jq -r '.checks[] | select(.name == "guest image").advice' <<<"$output")" '[machine] kernel'
    assert_has "$(line libvirt)" 'fail connect to libvirt'
    assert_has "$(line virtiofsd)" 'fail /nowhere/virtiofsd'
    assert_has "$(line separation)" 'fail there is no user with uid 3000001'
    assert_eq "$(jq -r .result <<<"$output")" fail
    jq -e '[.checks[] | select(.result == "fail" and (.advice | not))] == []' <<<"$output"
}
