#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the command line says and returns where no machine is needed: ids, options, damaged entries, checks of
# create. TAP. The program to test is the only argument.
set -u
SV=$1
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
ROOT=$W/root
n=0

if [ "$(id -u)" != 0 ]; then
    echo '1..0 # SKIP not root'
    exit 0
fi
cat >"$W/conf" <<END
[paths]
run_dir=$W/run
END

# run STATUS ARGUMENT...: output in $W/out and $W/err
rt() {
    "$SV" --config "$W/conf" --root "$ROOT" "$@" >"$W/out" 2>"$W/err" </dev/null
    status=$?
}
ok() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        sed 's/^/# /' "$W/out" "$W/err"
        echo "# status $status"
    fi
}
# expect NAME STATUS TEXT: status, TEXT in the one line of stderr ('' : none)
expect() {
    r=0
    [ "$status" = "$2" ] || r=1
    if [ -n "$3" ]; then
        grep -qF -- "$3" "$W/err" || r=1
        [ "$(wc -l <"$W/err")" = 1 ] || r=1
    else
        [ ! -s "$W/err" ] || r=1
    fi
    ok $r "$1"
}

# ---- unknown containers
for verb in state start kill delete pause resume ps update events stop; do
    rm -f "$W/log"
    rt --log "$W/log" --log-format json $verb nosuch
    expect "$verb of an unknown id" 1 'container does not exist: "nosuch"'
    [ ! -s "$W/out" ] && grep -q '"level":"error","msg":"container does not exist: \\"nosuch\\""' "$W/log"
    ok $? "$verb of an unknown id: the same in the log, nothing on stdout"
done
rt exec nosuch true
expect 'exec in an unknown id' 255 'container does not exist: "nosuch"'
rt delete --force nosuch
expect 'delete --force of an unknown id' 0 ''
[ ! -e "$ROOT" ]
ok $? 'questions do not make the root folder'

# ---- ids
nl='
'
for id in a/b .. .x '' 'a b' 'x%0ay' "a${nl}b" 'é' "$(printf '%0251d' 0)"; do
    for locale in C C.UTF-8; do
        LC_ALL=$locale
        export LC_ALL
        rt state "$id"
        expect "id refused ($locale)" 1 'container id'
        rt delete --force "$id"
        expect "id refused by delete --force ($locale)" 1 'container id'
    done
done
unset LC_ALL

# ---- options
for word in SIGSIGTERM 65 -1 FOO ''; do
    rt kill nosuch -- "$word"
    expect "kill with '$word'" 1 'signal'
done
rt bogus
expect 'no such verb' 1 'no such command: bogus'
rt state
expect 'too few arguments' 1 'state takes: CONTAINER'
rt state a b
expect 'too many arguments' 1 'state takes: CONTAINER'
rt state --nosuch a
expect 'unknown option' 1 'unknown option --nosuch'
rt --log-format yaml list
expect 'unknown log format' 1 'yaml'
rt list --format yaml
expect 'unknown format' 1 'yaml'
rt --systemd-cgroup --rootless=false --criu /x --cgroup-manager disabled list
expect 'globals that are taken' 0 ''
rt --rootless auto list
expect '--rootless with a value of its own' 0 ''
rt --config '' list
expect 'an empty name of a configuration' 1 '--config'
"$SV" --root="$W/none" list -q >"$W/out" 2>"$W/err"
status=$?
expect 'list without a root folder' 0 ''
env -i "$SV" --version >"$W/out" 2>"$W/err"
status=$?
grep -q '^sandvirt version ' "$W/out" && grep -q '^spec: ' "$W/out"
ok $? '--version with an empty environment'
"$SV" state nosuch >"$W/out" 2>"$W/err" <&- 2>&-
ok $((! $?)) 'closed streams'
"$SV" features | grep -q '"ociVersionMin"'
ok $? features
for verb in create start state kill delete run exec list ps pause resume stop update events spec features; do
    rt $verb --help
    grep -q "^sandvirt $verb" "$W/out"
    ok $? "$verb --help"
done

# ---- damaged entries
mkdir -p "$ROOT/empty" "$ROOT/zero" "$ROOT/noise" "$ROOT/half" "$ROOT/.sandbox"
echo x >"$ROOT/file"
: >"$ROOT/zero/state.json"
head -c 300 /dev/urandom >"$ROOT/noise/state.json"
printf '{"id":"half","state":"run' >"$ROOT/half/state.json"
for format in table json; do
    rt list -f $format
    [ "$status" = 0 ] && [ "$(wc -l <"$W/err")" = 5 ]
    ok $? "list -f $format warns of each"
done
for id in empty zero noise half file; do
    rt state $id
    expect "state of $id" 1 'damaged'
    rt delete $id
    expect "delete of $id" 1 'damaged'
    rt delete --force $id
    [ "$status" = 0 ] && [ ! -e "$ROOT/$id" ]
    ok $? "delete --force removes $id"
done
rt list -q
expect 'nothing is left' 0 ''

# ---- pids that are none never get a signal
for pid in 0 -1 1 4194305; do
    mkdir -p "$ROOT/p"
    printf '{"version":1,"id":"p","sandbox":"p","bundle":"/","rootfs":"/","state":"running","shimPid":%s,"shim_pid":%s,"pid":%s}' \
        $pid $pid $pid >"$ROOT/p/state.json"
    rt state p
    if [ "$status" = 0 ]; then
        grep -q '"status": *"stopped"' "$W/out"
        ok $? "pid $pid counts as stopped"
        rt kill p
        expect "kill of pid $pid" 1 'container not running'
    else
        grep -q damaged "$W/err"
        ok $? "pid $pid is a damaged entry"
    fi
    rm -rf "$ROOT/p"
done

# ---- what create checks before anything is made
B=$W/bundle
mkdir -p "$B/rootfs"
rt create -b "$W/nosuch" c
expect 'create: no bundle' 1 'No such file'
rt create -b "$B" c
expect 'create: no config.json' 1 'config.json'
rt spec -b "$B"
expect spec 0 ''
rt spec -b "$B"
expect 'spec does not overwrite' 1 'exists'
rt create -b "$B" c
expect 'create: a terminal without a console socket' 1 'console socket'
rt create -b "$B" --console-socket "$W/nosuch" c
expect 'create: no console socket there' 1 'console socket'
rt create -b "$B" --console-socket "$B/config.json" c
expect 'create: a console socket that is a file' 1 'console socket'
sed -i 's/"terminal": *true/"terminal": false/' "$B/config.json"
rt create -b "$B" --console-socket "$W/nosuch" c
expect 'create: a console socket without a terminal' 1 'console socket'
rt create -b "$B" --pid-file "$W/nosuch/pid" c
expect 'create: no folder for the pid file' 1 'pid file'
cp "$B/config.json" "$W/config.json"
sed -i 's,"mounts": *\[,&{"destination": "/x"\, "type": "bind"\, "source": "/no/such"}\,,' "$B/config.json"
rt create -b "$B" c
expect 'create: no source of a mount' 1 'mounts[0]: source "/no/such" of "/x": No such file'
cp "$W/config.json" "$B/config.json"
mkdir "$W/ro"
printf '[paths]\nrun_dir=%s\n' "$W/ro-run" >"$W/ro-conf"
unshare -m sh -c "mount -t tmpfs -o ro none '$W/ro' && exec '$SV' --config '$W/ro-conf' --root '$W/ro' create -b '$B' c" \
    >"$W/out" 2>"$W/err" </dev/null
status=$?
[ "$status" = 1 ] && grep -q 'Read-only file system' "$W/err"
ok $? 'create: a read-only root'
sed -i 's,"type": *"network",&\, "path": "/proc/self/status",' "$B/config.json"
rt create -b "$B" c
expect 'create: no network namespace' 1 'no network namespace'
rmdir "$B/rootfs"
rt create -b "$B" c
expect 'create: no rootfs' 1 'rootfs'
: >"$B/rootfs"
rt create -b "$B" c
expect 'create: a rootfs that is a file' 1 'rootfs'
mkdir -p "$ROOT/taken"
rt create -b "$B" taken
expect 'create: a taken id' 1 'already exists'
rt list -q
[ "$(ls -A "$W/run" 2>/dev/null)" = '' ]
ok $? 'nothing was made'

echo "1..$n"
