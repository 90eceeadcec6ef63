#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
# Hooks: what they get, when they run, what their failure does (case A42).

load lib

setup_file() {
    suite_begin
    pod_up
}
teardown_file() { suite_end; }
setup() { test_begin; }
teardown() { test_end; }

# hooks DIR KIND HOOK: one hook, as JSON.
hooks() {
    jqe "$1" '.hooks[$kind] = [$hook]' --arg kind "$2" --argjson hook "$3"
}

@test "A42: the full state, arguments, environment, folder; the pid's network is the pod's" {
    cat >"$T/hook" <<'END'
#!/bin/sh
cat >"$DIR/$1.json"
{ echo "$2"; pwd; pid=$(jq .pid "$DIR/$1.json"); [ "$pid" = 0 ] || stat -L -c %i "/proc/$pid/ns/net"; } >"$DIR/$1.out"
END
    chmod +x "$T/hook"
    mkm "$T/b" sh -c 'cat /start.json'
    for kind in prestart createRuntime createContainer poststart poststop; do
        hooks "$T/b" "$kind" "{\"path\": \"$T/hook\", \"args\": [\"hook\", \"$kind\", \"two words\"],
            \"env\": [\"DIR=$T\", \"PATH=$PATH\"]}"
    done
    hooks "$T/b" startContainer '{"path": "/bin/sh", "args": ["sh", "-c", "cat >/start.json"]}'
    jqe "$T/b" '.annotations.some = "thing"'
    new_id hooked
    try rt run --bundle "$T/b" "$ID"
    assert_status 0
    assert_eq "$(jq -r '.id, .annotations.some' <<<"$output")" "$ID"$'\n'thing
    local pair
    for pair in prestart:created createRuntime:creating createContainer:creating poststart:running poststop:stopped; do
        local kind=${pair%:*}
        jq -e --arg id "$ID" --arg status "${pair#*:}" --arg bundle "$T/b" '.id == $id and .status == $status
            and .bundle == $bundle and .annotations.some == "thing" and (.ociVersion | length) > 0' \
            "$T/$kind.json" >/dev/null || fail "$kind: $(cat "$T/$kind.json")"
        assert_eq "$(sed -n 1,2p "$T/$kind.out")" $'two words\n'"$T/b" "$kind"
        [ "$kind" = poststop ] || assert_eq "$(sed -n 3p "$T/$kind.out")" "$(stat -L -c %i "/run/netns/$NETNS")" "$kind"
    done
}

@test "A42: a failure or a time-out before start fails the create and leaves nothing" {
    local kind
    mkm "$T/b" true
    take_snap
    for kind in prestart createRuntime createContainer; do
        cp "$T/b/config.json" "$T/kept"
        hooks "$T/b" "$kind" '{"path": "/bin/sh", "args": ["sh", "-c", "echo because >&2; exit 3"]}'
        new_id fails
        try rt run --bundle "$T/b" "$ID"
        assert_refused "$kind" 'status 3' because
        hooks "$T/b" "$kind" '{"path": "/bin/sleep", "args": ["sleep", "20"], "timeout": 1}'
        try rt run --bundle "$T/b" "$ID"
        assert_refused "$kind" /bin/sleep
        mv "$T/kept" "$T/b/config.json"
    done
    assert_same_snap
}

@test "start answers when the program runs, not before" {
    mkm "$T/b" sleep 1000
    hooks "$T/b" startContainer '{"path": "/bin/sleep", "args": ["sleep", "1"]}'
    new_id slow
    quiet rt create --bundle "$T/b" "$ID"
    took rt start "$ID"
    assert_eq "$STATUS" 0
    [ "$MS" -ge 900 ] || fail "answered after $MS ms"
}

@test "start and delete answer when their hooks have run, though one before failed" {
    local kind
    mkm "$T/b" sleep 1000
    for kind in poststart poststop; do
        jqe "$T/b" '.hooks[$kind] = [{path: "/bin/false"}, {path: "/none"},
            {path: "/bin/sh", args: ["sh", "-c", "sleep 1; echo ran >\($file)"]}]' \
            --arg kind $kind --arg file "$T/$kind"
    done
    new_id waits
    quiet rt create --bundle "$T/b" "$ID"
    rt start "$ID"
    assert_eq "$(cat "$T/poststart")" ran
    [ ! -e "$T/poststop" ]
    rt delete --force "$ID"
    assert_eq "$(cat "$T/poststop")" ran
}

@test "A42: a failure of startContainer ends the container, of poststart and poststop nothing" {
    mkm "$T/b" echo ran
    cp "$T/b/config.json" "$T/kept"
    hooks "$T/b" startContainer '{"path": "/bin/false"}'
    new_id start
    try rt run --bundle "$T/b" "$ID"
    assert_eq "$status" 1
    [[ $output != *ran* ]]
    cp "$T/kept" "$T/b/config.json"
    hooks "$T/b" poststart '{"path": "/bin/false"}'
    hooks "$T/b" poststop '{"path": "/bin/false"}'
    try rt run --bundle "$T/b" "$ID"
    assert_status 0
    assert_eq "$output" ran
}
