#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Configurations that are incomplete or broken (case A11).

load lib

setup_file() {
    export BATS_TEST_TIMEOUT=180
    suite_begin
    pod_up
    mkm "$BUNDLES/good" true
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

# bundle FILTER [JQ-OPTION...]: $T/b, a member of the pod, edited.
bundle() {
    rm -rf "$T/b"
    mkdir "$T/b"
    cp "$BUNDLES/good/config.json" "$T/b/"
    jqe "$T/b" '.root.path = $rootfs' --arg rootfs "$BUNDLES/good/rootfs"
    jqe "$T/b" "$@"
}

# refused PART...: create fails with one line, without a crash, and leaves nothing.
refused() {
    new_id "c$RANDOM"
    try timeout 20 "${RT[@]}" create --bundle "$T/b" "$ID"
    assert_refused "$@"
    assert_eq "$(grep -c . <<<"$stderr")" 1 "lines on stderr ($stderr)"
    run rt state "$ID"
    assert_refused 'does not exist'
}

accepted() {
    new_id "c$RANDOM"
    quiet rt create --bundle "$T/b" "$ID" || fail "$(cat "$T/out.log")"
    run -0 rt delete "$ID"
}

@test "no process: create may work, start says so" {
    bundle 'del(.process)'
    new_id c
    if quiet rt create --bundle "$T/b" "$ID"; then
        run rt start "$ID"
        assert_refused process
    else
        assert_has "$(cat "$T/out.log")" process
    fi
}

@test "arguments missing, empty, of the wrong type" {
    take_snap
    bundle 'del(.process.args)' && refused args
    bundle '.process.args = []' && refused args
    bundle '.process.args = [""]' && refused
    bundle '.process.args = "sh"' && refused args
    bundle '.process.args = [1, 2]' && refused args
    bundle '.process.cwd = ""' && refused cwd
    bundle '.process.cwd = "relative"' && refused cwd
    bundle '.process.env = "A=1"' && refused env
    bundle '.process.user.uid = "root"' && refused uid
    assert_same_snap
}

@test "what is optional may be missing" {
    bundle 'del(.linux.resources)' && accepted
    bundle '.mounts = null' && accepted
    bundle 'del(.mounts)' && accepted
    bundle 'del(.hostname) | .hooks = {}' && accepted
    bundle '.unknownMember = {a: [1, 2, {}]} | .linux.unknown = 7' && accepted
    # Nothing to crash at; but there is no network namespace then.
    bundle 'del(.linux)' && refused 'network namespace'
}

@test "wrong types all over" {
    local filter
    for filter in '.root = []' '.root.path = 5' '.root.readonly = "yes"' 'del(.root)' '.mounts = {}' \
        '.mounts = [1]' '.mounts[0].destination = 3' '.mounts[0].options = "ro"' '.linux = 5' \
        '.linux.namespaces = "all"' '.linux.namespaces = [{}]' '.linux.namespaces = [{type: "warp"}]' \
        '.annotations = []' '.annotations.x = 5' '.hooks.prestart = {}' '.hooks.prestart = [{}]' \
        '.process = []' '.process.terminal = "no"' '.ociVersion = 1' '.ociVersion = "9.0.0"' \
        '.mounts += [{destination: "/tmp/x", type: "nosuchfs", source: "x"}]' \
        '.linux.devices = [{path: "/dev/x", type: "zz"}]' '.linux.resources = 3'; do
        echo "$filter"
        bundle "$filter"
        refused
    done
}

@test "cut at each 500th byte, garbage behind, empty, not JSON" {
    local size at
    bundle '.'
    cp "$T/b/config.json" "$T/whole"
    size=$(stat -c %s "$T/whole")
    for ((at = 0; at < size; at += 500)); do
        head -c "$at" "$T/whole" >"$T/b/config.json"
        refused config.json
    done
    { cat "$T/whole"; echo 'garbage'; } >"$T/b/config.json"
    refused config.json
    head -c 4096 /dev/urandom >"$T/b/config.json"
    refused config.json
    head -c 200000 /dev/zero | tr '\0' '[' >"$T/b/config.json"
    refused config.json
}

@test "8 MiB of annotations: a clear answer" {
    bundle '.'
    cp "$T/b/config.json" "$T/whole"
    python3 - "$T/whole" "$T/b/config.json" <<'END'
import json, sys
config = json.load(open(sys.argv[1]))
config['annotations'].update({'k%d' % i: 'v' * 1000 for i in range(8192)})
json.dump(config, open(sys.argv[2], 'w'))
END
    new_id c
    took quiet timeout 60 "${RT[@]}" create --bundle "$T/b" "$ID"
    [ "$STATUS" -lt 124 ] || fail "status $STATUS"
    [ "$STATUS" = 0 ] || [ -s "$T/out.log" ] || fail 'no message'
    run -0 rt list -q
}

@test "config.json or the bundle missing, or not what they should be" {
    bundle '.'
    rm "$T/b/config.json"
    refused config.json
    mkdir "$T/b/config.json"
    refused config.json
    rmdir "$T/b/config.json"
    mkfifo "$T/b/config.json"
    refused config.json
    rm -r "$T/b"
    refused "$T/b"
}

@test "root file system missing, or a file" {
    bundle '.root.path = "nothing"' && refused nothing
    bundle '.root.path = "config.json"' && refused config.json
    bundle '.root.path = ""' && refused
}
