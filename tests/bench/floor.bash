# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run
# Section floor: the same machine started by a bare libvirt client, with our image and with a minimal init, and
# create of a first container beside it.

# Each of the two is first in every other round: what the machine still does of the last one is not always the same
# one's to bear.
floor_round() {
    local name created heard line id=f$RANDOM names='floor mini'
    [ $((round % 2)) = 1 ] || names='mini floor'
    for name in $names; do
        line=$("$FLOOR" boot "$WORK/floor/svt-$name-$$.xml" "$WORK/floor/svt-$name-$$.sock" 1) ||
            die "$name: $(tail -n 5 "$WORK/floor/svt-$name-$$.log")"
        read -r created heard <<<"$line"
        note "$name created" "$created"
        note "$name" "$heard"
    done
    clock 'first create' rt create --bundle "$BUNDLES/bench" $id
    note 'first crun' "$(phase $id crun)"
    rt delete $id
    wait_for 5 no_domains
}

part_floor() {
    local round value
    floor_prepare
    floor_xml "svt-floor-$$" "$WORK/boot.floor/initramfs.img"
    floor_xml "svt-mini-$$" "$WORK/boot.floor/mini.img"
    bench_bundle
    for ((round = 1; round <= rounds; round++)); do
        say "floor: round $round of $rounds"
        floor_round
    done
    title "Start of a machine, milliseconds (medians of $rounds rounds)"
    table
    row what time beside goal reached
    row 'minimal init, same kernel, modules' "$(median mini)" '' '' ''
    value=$(ratio "$(median floor)" "$(median mini)")
    row 'floor: our image, bare client' "$(median floor)" "ratio $value" '<= 1.10' "$(most "$value" 1.10)"
    row 'of it virDomainCreateXML' "$(median 'floor created')" '' '' ''
    value=$(calc "1.25 * $(median floor) + $(median 'first crun')")
    row 'create of a first container' "$(median 'first create')" "crun $(median 'first crun')" "<= $value" \
        "$(most "$(median 'first create')" "$value")"
}
