#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# The main path: a bundle, its life by the OCI verbs, its output and its status.

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=120
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

@test "run: output, status, and nothing left" {
    take_snap
    mkb "$T/b" sh -c 'echo to stdout; echo to stderr >&2; exit 7'
    new_id c
    run --separate-stderr rt run --bundle "$T/b" "$ID"
    assert_status 7
    assert_eq "$output" 'to stdout'
    # shellcheck disable=SC2154
    assert_eq "$stderr" 'to stderr'
    assert_same_snap
    # nor what libvirt has written about QEMU and virtiofsd
    assert_eq "$(find /var/log/libvirt/qemu -name "sandvirt-$ID*")" ''
}

@test "create, state, start, state, kill, state, delete" {
    take_snap
    mkb "$T/b" sleep 1000
    new_id c
    quiet rt create --bundle "$T/b" --pid-file "$T/pid" "$ID"
    run -0 rt state "$ID"
    assert_eq "$(jq -r .status <<<"$output")" created
    assert_eq "$(jq -r .id <<<"$output")" "$ID"
    assert_eq "$(jq -r .bundle <<<"$output")" "$T/b"
    assert_eq "$(jq -r .pid <<<"$output")" "$(cat "$T/pid")"
    jq -e '.ociVersion | startswith("1.")' <<<"$output" >/dev/null
    jq -e 'has("initPid") or has("initStartTime") or has("exitCode") | not' <<<"$output" >/dev/null
    kill -0 "$(cat "$T/pid")"

    run -0 rt start "$ID"
    assert_eq "$output" ''
    assert_eq "$(state_of "$ID")" running
    assert_eq "$(pid_of "$ID")" "$(cat "$T/pid")"
    run rt start "$ID"
    assert_refused 'cannot start a running container'
    run rt delete "$ID"
    assert_refused 'cannot delete a running container'

    run -0 rt kill "$ID" KILL
    wait_state "$ID" stopped 5
    assert_eq "$(pid_of "$ID")" 0
    run rt start "$ID"
    assert_refused 'cannot start a stopped container'
    run rt exec "$ID" true
    assert_refused 'cannot exec in a stopped container'
    run rt pause "$ID"
    assert_refused 'container not running'
    run rt resume "$ID"
    assert_refused 'container not paused'
    run -0 rt ps "$ID"
    assert_eq "${#lines[@]}" 1
    assert_eq "$(rt ps --format json "$ID")" '[]'
    run -0 rt delete "$ID"
    assert_eq "$output" ''
    run rt state "$ID"
    assert_refused 'does not exist'
    assert_same_snap
}

@test "annotations and times are in the state" {
    mkm "$T/b" true
    jqe "$T/b" '.annotations += {"io.example.key": "value é"}'
    new_id c
    quiet rt create --bundle "$T/b" "$ID"
    run -0 rt state "$ID"
    assert_eq "$(jq -r '.annotations["io.example.key"]' <<<"$output")" 'value é'
    jq -e '.created | fromdateiso8601? // (sub("\\.[0-9]+"; "") | sub("\\+00:00"; "Z") | fromdateiso8601)' \
        <<<"$output" >/dev/null
}

@test "the container has the spec's environment, folder, user, host name and arguments" {
    mkm "$T/b" sh -c 'pwd; id -u; id -g; id -G; hostname; echo "$VAR"; echo "$0|$1|$2"; umask' a0 'two words' 'quo"te'
    jqe "$T/b" '.process.env = ["PATH=/bin", "VAR=a b=c"] | .process.cwd = "/tmp"
        | .process.user = {uid: 1000, gid: 1000, additionalGids: [5, 7], umask: 23}'
    new_id c
    run -0 rt run --bundle "$T/b" "$ID"
    assert_eq "$output" $'/tmp\n1000\n1000\n1000 5 7\ntest\na b=c\na0|two words|quo"te\n0027'
}

@test "it runs in a machine of its own, seen by virsh with its title" {
    run -0 in_pod uname -r
    [ "$output" != "$(uname -r)" ] || fail "the host's kernel"
    local domain title
    domain=$(domain_of "$POD")
    [[ $domain == sandvirt-* ]] || fail "domain '$domain'"
    title=$($VIRSH desc --title "$domain")
    assert_eq "$title" "space/$POD"
    run -0 virsh -c qemu:///system list --title
    assert_has "$output" "$domain"
    run -0 virsh -c qemu:///system dominfo "$domain"
    assert_has "$output" 'Persistent:     no'
    run -0 virsh -c qemu:///system dumpxml "$domain"
    assert_has "$output" "$ROOT" metadata
    assert_has "$output" "$POD" metadata
}

@test "exec: output, status, input, environment, folder, user" {
    run --separate-stderr rt exec "$POD" sh -c 'echo out; echo err >&2; exit 42'
    assert_status 42
    assert_eq "$output" out
    assert_eq "$stderr" err
    run -0 rt exec --env A=1 --env B='two words' --cwd /tmp --user 1000:1000 "$POD" sh -c 'echo $A $B; pwd; id -u; id -g'
    assert_eq "$output" $'1 two words\n/tmp\n1000\n1000'
    assert_eq "$(echo through | rt exec "$POD" cat)" through
    # What follows the id belongs to the command.
    run -0 rt exec "$POD" echo -d --detach -- -x
    assert_eq "$output" '-d --detach -- -x'
}

@test "exec --process" {
    jq '.process | .args = ["sh", "-c", "echo $X; pwd; exit 5"] | .env += ["X=from file"] | .cwd = "/tmp"
        | .terminal = false' "$BUNDLES/config.json" >"$T/process.json"
    run rt exec --process "$T/process.json" "$POD"
    assert_status 5
    assert_eq "$output" $'from file\n/tmp'
    # Engines give the options in any order, and the id last.
    run rt exec --pid-file "$T/pid" --process "$T/process.json" --detach "$POD"
    assert_status 0
    [ -s "$T/pid" ]
}

@test "exec --detach answers when the process runs" {
    quiet rt exec --detach --pid-file "$T/pid" "$POD" sh -c 'sleep 1; exit 3'
    kill -0 "$(cat "$T/pid")"
    wait_for 10 gone "$(cat "$T/pid")"
}

@test "exec in a created container" {
    mkm "$T/b" sleep 1000
    new_id c
    quiet rt create --bundle "$T/b" "$ID"
    run -0 rt exec "$ID" cat /etc/origin
    assert_eq "$output" image
    assert_eq "$(state_of "$ID")" created
}

@test "list, list -q, list --format json" {
    mkm "$T/b" sleep 1000
    new_id c
    quiet rt create --bundle "$T/b" "$ID"
    run -0 rt list
    assert_has "${lines[0]}" ID
    assert_has "${lines[0]}" STATUS
    assert_has "$output" "$ID"
    run -0 rt list -q
    assert_eq "$(sort <<<"$output")" "$(printf '%s\n' "$ID" "$POD" | sort)"
    run -0 rt list --format json
    assert_eq "$(jq -r --arg id "$ID" '.[] | select(.id == $id) | .status' <<<"$output")" created
    assert_eq "$(jq -r --arg id "$ID" '.[] | select(.id == $id) | .pid' <<<"$output")" "$(pid_of "$ID")"
    assert_eq "$(jq -r --arg id "$POD" '.[] | select(.id == $id) | .status' <<<"$output")" running
    assert_eq "$(jq -r '.[0] | has("bundle") and has("created") and has("owner") and has("ociVersion")' <<<"$output")" true
    run -0 rt list -f json -q
}

@test "the root folder: --root X, --root=X, default in messages" {
    assert_eq "$("$SANDVIRT" --config "$CONF" "--root=$ROOT" list -q)" "$POD"
    assert_eq "$("$SANDVIRT" --config "$CONF" --root "$ROOT" list -q)" "$POD"
    run -0 "$SANDVIRT" --config "$CONF" --root "$T/none" list
    run -0 "$SANDVIRT" --config "$CONF" --root "$T/none" list -f json
    [[ $output == null || $output == '[]' ]] || fail "$output"
    [ ! -e "$T/none" ]
}

@test "an empty environment is enough" {
    run -0 env -i "$SANDVIRT" --config "$CONF" --root "$ROOT" exec "$POD" echo hello
    assert_eq "$output" hello
    mkm "$T/b" echo world
    new_id c
    run -0 env -i "$SANDVIRT" --config "$CONF" --root "$ROOT" run --bundle "$T/b" "$ID"
    assert_eq "$output" world
}

@test "version, features, spec, help" {
    run -0 "$SANDVIRT" --version
    assert_has "$output" version
    assert_has "$output" spec
    run -0 "$SANDVIRT" features
    jq -e '.ociVersionMin | length > 0' <<<"$output" >/dev/null
    jq -e '.ociVersionMax | length > 0' <<<"$output" >/dev/null
    jq -e '.mountOptions | index("ro") and index("rbind")' <<<"$output" >/dev/null
    (cd "$T" && "$SANDVIRT" spec)
    jq -e '.process.args and .root.path == "rootfs"' "$T/config.json" >/dev/null
    run "$SANDVIRT" spec --bundle "$T"
    assert_refused exist
    local verb
    for verb in create start state kill delete run exec list spec features; do
        run -0 "$SANDVIRT" "$verb" --help
        assert_has "$output" "$verb"
    done
    run -0 "$SANDVIRT" --help
    run "$SANDVIRT" frobnicate
    assert_refused frobnicate
}

@test "the log file, as text and as JSON" {
    run rt --log "$T/log.json" --log-format json state nosuch
    assert_refused 'does not exist'
    jq -e 'select(.level == "error") | .msg | contains("does not exist")' "$T/log.json" >/dev/null
    jq -e '.time | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T")' "$T/log.json" >/dev/null
    run rt --log="$T/log.txt" --log-format=text state nosuch
    grep -q 'level=error.*does not exist' "$T/log.txt"
}

@test "bundle: the working folder is the default, relative paths are resolved" {
    mkm "$T/b" cat /etc/origin
    new_id c
    cd "$T/b"
    run -0 rt run "$ID"
    assert_eq "$output" image
    cd "$T"
    new_id d
    quiet rt create --bundle b "$ID"
    assert_eq "$(rt state "$ID" | jq -r .bundle)" "$T/b"
}

@test "a name that is taken is refused and the holder does not notice" {
    mkm "$T/b" sleep 1000
    new_id c
    quiet rt run --detach --bundle "$T/b" "$ID"
    try rt create --bundle "$T/b" "$ID"
    assert_refused 'exist'
    assert_eq "$(state_of "$ID")" running
    run -0 rt exec "$ID" true
}

@test "a foreground run passes signals on" {
    mkm "$T/b" sh -c 'trap "echo got; exit 9" TERM; echo ready; while :; do sleep 0.1; done'
    new_id c
    "${RT[@]}" run --bundle "$T/b" "$ID" >"$T/out" 2>&1 3>&- &
    local call=$!
    wait_for 30 grep -q ready "$T/out"
    kill -TERM $call
    local status=0
    wait $call || status=$?
    assert_eq "$status" 9
    assert_eq "$(tail -n 1 "$T/out")" got
}

@test "memory of the machine is what the configuration says" {
    local kib
    kib=$(in_pod awk '/MemTotal/ { print $2 }' /proc/meminfo)
    if [ "$kib" -lt 150000 ] || [ "$kib" -gt 262144 ]; then
        fail "$kib KiB"
    fi
}
