# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run
# Section lifecycle: how fast ends are seen; `lifecycle` measures.

part_lifecycle() {
    local name value limit rest
    say 'life cycle'
    title 'Ends, milliseconds'
    table
    row what median goal reached range
    while read -r name value _ rest; do
        limit=250
        [[ $name != *delete ]] || limit=1000
        row "$name" "$value" "< $limit" "$(most "$value" $((limit - 1)))" "$rest"
    done < <("$here/lifecycle" --rounds "$rounds")
}
