#!/bin/sh
# A lab of three network namespaces: lab-left and lab-right, and lab-router between them.
# Usage: lab.sh up | down
set -e
here=$(cd "$(dirname "$0")" && pwd)
run=${LAB_DIR:-/run/thalweg-lab}

up() {
    mkdir -p "$run"
    for name in left router right; do
        ip netns add "lab-$name"
        ip -n "lab-$name" link set lo up
    done
    subnet=1
    for side in left right; do
        ip link add eth0 netns "lab-$side" type veth peer name "$side" netns lab-router
        ip -n "lab-$side" address add "10.10.$subnet.2/24" dev eth0
        ip -n "lab-$side" link set eth0 up
        ip -n lab-router link set "$side" up
        ip -n "lab-$side" route add default via "10.10.$subnet.1"
        subnet=$((subnet + 1))
    done
    ip netns exec lab-router thalweg run --config "$here/thalweg.yaml" \
        unix "{ cli-listen $run/cli.sock runtime-dir $run }" >"$run/log" 2>&1 &
    echo $! >"$run/pid"
    for _ in $(seq 100); do
        thalctl -s "$run/cli.sock" show version >/dev/null 2>&1 && break
        sleep 0.1
    done
    thalctl -s "$run/cli.sock" show interface address
}

down() {
    if [ -f "$run/pid" ]; then
        kill "$(cat "$run/pid")" 2>/dev/null || true
        # Only what `up` has made.
        rm -rf "$run"
    fi
    for name in left router right; do
        ip netns delete "lab-$name" 2>/dev/null || true
    done
}

case $1 in
up) up ;;
down) down ;;
*)
    echo "usage: lab.sh up | down" >&2
    exit 2
    ;;
esac
