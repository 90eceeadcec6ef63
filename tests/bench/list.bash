# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run
# Section list: `list` and `state` with 1000 entries, all of them live.

part_list() {
    local i root=$WORK/many round name
    bench_bundle
    rt create --bundle "$BUNDLES/bench" one </dev/null >/dev/null 2>&1
    for ((i = 1; i <= 1000; i++)); do
        mkdir -p "$root/c$i"
        sed "s|\"id\":\"one\"|\"id\":\"c$i\"|" "$ROOT/one/state.json" >"$root/c$i/state.json"
    done
    for ((round = 1; round <= rounds; round++)); do
        clock 'list' "$SANDVIRT" --root "$root" list
        clock 'list json' "$SANDVIRT" --root "$root" list --format json
        clock 'state of 1000' "$SANDVIRT" --root "$root" state c500
    done
    assert_eq "$("$SANDVIRT" --root "$root" list | grep -c created)" 1000
    rt delete --force one
    wait_for 5 no_domains
    title "1000 entries, milliseconds (medians of $rounds rounds)"
    table
    row what time goal reached
    for name in list 'list json'; do
        row "$name" "$(median "$name")" '<= 50' "$(most "$(median "$name")" 50)"
    done
    row 'state of one of them' "$(median 'state of 1000')" '' ''
}
