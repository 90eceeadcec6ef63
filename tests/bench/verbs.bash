# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of run
# Section verbs: create, start, state, exec, kill, delete beside crun, runc and runsc on the same bundle, and whose
# the time of an exec is.

# One life of a container under another runtime, in a process of its own: figures are printed.
peer_life() { # NAME COMMAND...
    local name=$1 id=bench-$RANDOM
    shift
    for verb in create start state exec kill delete; do
        case $verb in
        create) args=(create --bundle "$BUNDLES/bench" "$id") ;;
        exec) args=(exec "$id" true) ;;
        kill) args=(kill "$id" KILL) ;;
        *) args=("$verb" "$id") ;;
        esac
        [ $verb != delete ] || for _ in {1..500}; do
            "$@" state $id 2>/dev/null | grep -q '"status": *"stopped"' && break
            sleep 0.02
        done
        from=${EPOCHREALTIME/./}
        "$@" "${args[@]}" </dev/null >"$WORK/peer.out" 2>&1 || {
            echo "failed $verb: $(tail -n 2 "$WORK/peer.out" | tr '\n' ' ')"
            "$@" delete --force $id >/dev/null 2>&1 || true
            exit
        }
        echo "$verb $(ms_since "$from")"
    done
}

peer_round() { # NAME COMMAND...
    local name=$1 verb ms
    command -v "$2" >/dev/null || return 0
    export -f peer_life ms_since
    export BUNDLES WORK
    while read -r verb ms; do
        if [ "$verb" = failed ]; then
            say "$name: $ms"
            return
        fi
        note "$name $verb" "$ms"
    done < <(hidden bash -c 'peer_life "$@"' bash "$@")
}

# The monitor tells at debug level what the guest says of an exec: when it was over, and how long crun took.
note_exec() { # ID
    local line guest crun over
    line=$(grep -h "exec in $1: guest" "$LOG/launcher" | tail -n 1)
    [[ $line =~ guest\ ([0-9.]+)\ ms,\ crun\ ([0-9.]+)\ ms ]] || return 0
    guest=${BASH_REMATCH[1]} crun=${BASH_REMATCH[2]}
    line=$(grep -h "exec in $1: over after" "$LOG/launcher" | tail -n 1)
    [[ $line =~ after\ ([0-9.]+)\ ms ]] || return 0
    over=${BASH_REMATCH[1]}
    note 'exec over' "$over"
    note 'exec crun' "$crun"
    note 'exec host' "$(calc "$MS - $over")"
    note 'exec agent' "$(calc "$guest - $crun")"
}

# A pod of one container: its create starts the machine.
own_round() {
    local id=v$RANDOM
    clock 'sandvirt create' rt create --bundle "$BUNDLES/bench" $id
    clock 'sandvirt start' rt start $id
    for _ in 1 2 3; do clock 'sandvirt state' rt state $id; done
    for _ in 1 2 3; do
        clock 'sandvirt exec' rt exec $id true
        note_exec $id
    done
    # A second container in the same machine.
    [ -d "$BUNDLES/second" ] || mkb "$BUNDLES/second" sleep 100000
    member "$BUNDLES/second" $id
    clock 'sandvirt create 2nd' rt create --bundle "$BUNDLES/second" m$id
    clock 'sandvirt start 2nd' rt start m$id
    clock 'sandvirt kill' rt kill m$id KILL
    wait_state m$id stopped
    clock 'sandvirt delete' rt delete m$id
    rt kill $id KILL
    wait_state $id stopped
    clock 'sandvirt delete last' rt delete $id
    wait_for 5 no_domains
}

part_verbs() {
    local round verb own peer
    bench_bundle
    for ((round = 1; round <= rounds; round++)); do
        say "verbs: round $round of $rounds"
        peer_round crun crun --root "$WORK/peers/crun"
        peer_round runc runc --root "$WORK/peers/runc"
        peer_round runsc runsc --root "$WORK/peers/runsc" --platform=ptrace --network=none --ignore-cgroups
        own_round
    done
    title "Verbs, milliseconds (medians of $rounds rounds)"
    table
    row verb sandvirt crun runc runsc sandvirt/crun
    for verb in create start state exec kill delete; do
        own=$(median "sandvirt $verb") peer=$(median "crun $verb")
        row "$verb" "$own" "$peer" "$(median "runc $verb")" "$(median "runsc $verb")" "$(ratio "$own" "$peer")"
    done
    row 'create, second container' "$(median 'sandvirt create 2nd')" '' '' '' ''
    row 'delete, the machine with it' "$(median 'sandvirt delete last')" '' '' '' ''
    title "Verbs: what is to be reached"
    table
    row what figure beside goal reached
    own=$(ratio "$(median 'sandvirt state')" "$(median 'crun state')")
    row 'state, beside that of crun' "$own" "$(median 'crun state') ms" '<= 2' "$(most "$own" 2)"
    own=$(median 'exec host')
    row "exec, the host's share, ms" "$own" "guest $(median 'exec over')" '<= 10' "$(most "$own" 10)"
    own=$(median 'exec agent')
    row "exec, the agent's share, ms" "$own" "crun $(median 'exec crun')" '<= 10' "$(most "$own" 10)"
}
