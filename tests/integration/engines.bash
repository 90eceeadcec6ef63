# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of and for the tests
# containerd and Docker from Debian's packages, without systemd, each with folders of its own below $WORK and a
# network namespace of its own for its bridges and ports. For test files that have loaded lib.

engines_begin() {
    suite_begin
    # --config is not a flag that engines give: as a script.
    printf '#!/bin/sh\nexec %s "$@"\n' "$SANDVIRT --config $CONF" >"$WORK/sandvirt"
    chmod 0755 "$WORK/sandvirt"
    ip netns add "$(engine_ns)"
    ip -n "$(engine_ns)" link set lo up
}

engines_end() {
    local name
    for name in docker containerd; do
        [ ! -e "$WORK/$name.pid" ] || engine_down "$name" TERM
    done
    # An engine's helpers of containers that a failed test has left.
    for name in $(pgrep -f "^[^ ]*containerd-shim-runc-v2 .*$WORK/"); do
        kill -KILL "$name" || true
    done
    ip netns del "$(engine_ns)"
    awk -v w="$WORK/" 'index($5, w) == 1 { print $5 }' /proc/self/mountinfo | grep -v /boot/ | sort -r | xargs -r umount -l
    suite_end
}

engine_ns() { echo "sve-${WORK##*.}"; }

have() {
    # shellcheck disable=SC2230
    which "$@" >/dev/null 2>&1 || skip "$* not installed"
}

image() { # FILE NAME ARG...: an image archive with the tests' root file system, as `docker save` writes it
    local file=$1 name=$2 dir=$WORK/image sum
    shift 2
    [ ! -e "$file" ] || return 0
    mkdir -p "$dir/l"
    [ -e "$dir/l/layer.tar" ] || tar -C "$BUNDLES/base" -cf "$dir/l/layer.tar" .
    sum=$(sha256sum "$dir/l/layer.tar" | cut -d' ' -f1)
    jq -n --arg s "sha256:$sum" '{architecture: "amd64", os: "linux", config: {Cmd: $ARGS.positional, Env: ["PATH=/bin:/usr/bin"]},
        rootfs: {type: "layers", diff_ids: [$s]}}' --args -- "$@" >"$dir/config.json"
    jq -n --arg n "localhost/$name:test" '[{Config: "config.json", RepoTags: [$n], Layers: ["l/layer.tar"]}]' >"$dir/manifest.json"
    tar -C "$dir" -cf "$file" manifest.json config.json l
}

# engine_up NAME COMMAND...: a daemon in the background, its pid in $WORK/NAME.pid.
engine_up() {
    local name=$1
    shift
    setsid nsenter "--net=/run/netns/$(engine_ns)" "$@" </dev/null >>"$LOG/$name" 2>&1 3>&- 4>&- &
    echo $! >"$WORK/$name.pid"
    disown $! # the shell need not tell that it was killed
}

engine_down() { # NAME SIGNAL: it is gone afterwards
    local pid
    pid=$(cat "$WORK/$1.pid")
    kill -s "$2" "$pid" 2>/dev/null || true
    wait_for 60 gone "$pid" || { kill -KILL "$pid" && fail "$1 does not end by $2"; }
    rm "$WORK/$1.pid"
    # dockerd's own containerd ends with it; a zombie would pass for one that runs.
    pid=$(cat "$WORK/dk/exec/containerd/containerd.pid" 2>/dev/null) && [ "$1" = docker ] || return 0
    wait_for 20 gone "$pid" && rm "$WORK/dk/exec/containerd/containerd.pid"
}

# ---------------------------------------------------------------- containerd

containerd_up() { # with its CRI plug-in too
    [ ! -e "$WORK/containerd.pid" ] || return 0
    mkdir -p "$WORK/cni"
    cat >"$WORK/cni/10-test.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "test", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
  "ipam": {"type": "host-local", "dataDir": "$WORK/ipam", "ranges": [[{"subnet": "10.66.5.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
    cat >"$WORK/containerd.toml" <<TOML
version = 2
root = "$WORK/cd/root"
state = "$WORK/cd/state"
[grpc]
  address = "$WORK/cd.sock"
[ttrpc]
  address = "$WORK/cd.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:test"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$WORK/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "sandvirt"
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.sandvirt]
    runtime_type = "io.containerd.runc.v2"
    privileged_without_host_devices = true
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.sandvirt.options]
      BinaryName = "$WORK/sandvirt"
      Root = "$ROOT"
TOML
    engine_up containerd containerd --config "$WORK/containerd.toml"
    wait_for 20 eval 'ctr_ version >/dev/null 2>&1' || fail "$(tail "$LOG/containerd")"
    [ ! -e "$WORK/cd/images" ] || return 0
    image "$WORK/image.tar" busybox sh
    image "$WORK/pause.tar" pause sleep 1000000
    ctr_ images import --snapshotter native "$WORK/image.tar" >/dev/null
    local name
    for name in image pause; do
        ctr_ --namespace k8s.io images import --snapshotter native "$WORK/$name.tar" >/dev/null
    done
    : >"$WORK/cd/images"
}

ctr_() { ctr --address "$WORK/cd.sock" "$@"; }
ctr_run() { # the options of ctr run
    ctr_ run --snapshotter native --runc-binary "$WORK/sandvirt" --runc-root "$ROOT" "$@"
}

# task_is ID STATUS: as ctr lists it.
task_is() { [ "$(ctr_ task ls | awk -v id="$1" '$1 == id { print $3 }')" = "$2" ]; }

task_rm() { # ID [STATUS]: removes a task that has ended with STATUS, and its container
    local said
    said=$(ctr_ task rm "$1" 2>&1)
    [ "${2:-0}" = 0 ] || assert_has "$said" "non-zero exit code $2"
    ctr_ container rm "$1"
}

# containerd's namespace is a root of its own, which the last container leaves empty.
root_is_empty() { # NAMESPACE
    wait_for 10 no_domains
    wait_for 5 rmdir "$ROOT/$1/.sandbox" "$ROOT/$1" || fail "left: $(find "$ROOT/$1")"
}

# ---------------------------------------------------------------- Docker

docker_up() { # [OPTION...]
    [ ! -e "$WORK/docker.pid" ] || return 0
    engine_up docker dockerd --data-root "$WORK/dk/data" --exec-root "$WORK/dk/exec" --pidfile "$WORK/dk.pid" \
        --host "unix://$WORK/dk.sock" --bridge none --iptables=false --ip6tables=false --storage-driver vfs \
        --exec-opt native.cgroupdriver=cgroupfs --add-runtime "sandvirt=$WORK/sandvirt" "$@"
    wait_for 60 eval 'dk version >/dev/null 2>&1' || fail "$(tail "$LOG/docker")"
    [ ! -e "$WORK/dk/images" ] || return 0
    image "$WORK/image.tar" busybox sh
    dk load --input "$WORK/image.tar" >/dev/null
    : >"$WORK/dk/images"
}

# Debian's client; another one may come first in PATH.
dk() { /usr/bin/docker --host "unix://$WORK/dk.sock" "$@"; }
dk_run() { dk run --runtime sandvirt --network none "$@"; }
dk_state() { dk inspect --format '{{.State.Status}} {{.State.ExitCode}}' "$1"; }
dk_is() { [ "$(dk_state "$1")" = "$2" ]; }

# ---------------------------------------------------------------- CRI: containerd's plug-in, called as a kubelet does

cri_possible() {
    [ -x /usr/lib/cni/bridge ] || skip 'no plug-ins'
    /usr/bin/python3 -c 'import grpc' 2>/dev/null || skip 'no python3-grpcio'
}

cri() { "$SV_SOURCE/tests/integration/cri" "$WORK/cd.sock" "$@"; }

cri_ref() { # pod|container ID [SECONDS]: the request that names it
    case $1 in
    pod) jq -nc --arg id "$2" '{pod_sandbox_id: $id}' ;;
    container) jq -nc --arg id "$2" --argjson t "${3:-null}" '{container_id: $id} + if $t then {timeout: $t} else {} end' ;;
    esac
}

cri_pod() { # NAME: makes a pod, prints its id; its logs in $T/NAME
    mkdir -p "$T/$1"
    jq -nc --arg n "$1" --arg logs "$T/$1" --arg parent "/${WORK##*.}/$1" '{metadata: {name: $n, uid: ("uid-" + $n), namespace: "space"},
        hostname: $n, log_directory: $logs, linux: {cgroup_parent: $parent, security_context: {namespace_options: {pid: 1}}}}' >"$T/$1.json"
    cri RunPodSandbox "$(jq -c '{config: .}' "$T/$1.json")" | jq -r .pod_sandbox_id
}

# cri_create POD NAME-OF-POD NAME ARG...: a container, created; prints its id. $T/mounts.json: its mounts.
cri_create() {
    local pod=$1 config=$T/$2.json name=$3
    shift 3
    cri CreateContainer "$(jq -nc --arg pod "$pod" --arg n "$name" --argjson mounts "$(cat "$T/mounts.json" 2>/dev/null || echo '[]')" --slurpfile c "$config" '
        {pod_sandbox_id: $pod, sandbox_config: $c[0], config: {metadata: {name: $n}, image: {image: "localhost/busybox:test"},
        command: $ARGS.positional, log_path: ($n + ".log"), mounts: $mounts,
        linux: {resources: {memory_limit_in_bytes: 134217728, cpu_shares: 512}, security_context: {namespace_options: {pid: 1}}}}}' --args -- "$@")" |
        jq -r .container_id
}

cri_run() { # the same, started
    local id
    id=$(cri_create "$@")
    cri StartContainer "$(cri_ref container "$id")" >"$T/out"
    echo "$id"
}

cri_exec() { # ID ARG...: its output, and its status if that is not 0
    local id=$1
    shift
    cri ExecSync "$(jq -nc --arg id "$id" '{container_id: $id, cmd: $ARGS.positional, timeout: 60}' --args -- "$@")" |
        jq -r '(.stdout | @base64d) + if .exit_code != 0 then "status \(.exit_code)" else "" end'
}

cri_state() { # ID: state and exit status
    cri ContainerStatus "$(cri_ref container "$1")" |
        jq -r '.status | (["created", "running", "exited", "unknown"][.state]) + " " + (.exit_code | tostring)'
}
cri_is() { [ "$(cri_state "$1")" = "$2" ]; }

cri_remove() { # POD: stopped and removed, and the cgroups that a kubelet would remove
    cri StopPodSandbox "$(cri_ref pod "$1")" >"$T/out"
    cri RemovePodSandbox "$(cri_ref pod "$1")" >"$T/out"
    local dir
    for dir in /sys/fs/cgroup/{*/,}"${WORK##*.}"/*/; do
        [ ! -d "$dir" ] || rmdir "$dir" || fail "left: $(find "$dir" -type d)"
    done
    for dir in /sys/fs/cgroup/{*/,}"${WORK##*.}"; do
        [ ! -d "$dir" ] || rmdir "$dir"
    done
}
