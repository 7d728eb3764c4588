#!/usr/bin/env bash
# All the tests, in phases: unit tests, models of what threads share, scenarios in network namespaces,
# those that forward on each level of frame kernels, VPP's Python client, a machine whose kernel has
# PSAMPLE, instructions per packet, a short fuzz run.
# Names of phases as arguments select some: scripts/test.sh unit smoke
set -euo pipefail
cd "$(dirname "$0")/.."

all=(unit loom smoke levels papi psample guard fuzz)
phases=("$@")
((${#phases[@]} > 0)) || phases=("${all[@]}")

# Without the scenarios, which are tests only for those who name them.
unit() {
    cargo test --workspace
}

# Models of what threads share, in all orders in which these may run that differ in so many places. Built
# apart, as everything is compiled otherwise for them.
loom() {
    RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom \
        cargo test -p thalweg-tables -p thalweg-graph --lib loom
}

# Scenarios; words select some. What drives them is built as the unit tests are, what is driven as users have
# it. They share the machine's processors, and those that measure would disturb each other.
scenarios() {
    cargo build --release -p thalweg --bins
    cargo test --workspace --test smoke -- --test-threads=1 "$@"
}

smoke() {
    scripts/setup.sh sflow
    scenarios
}

# What forwards, again with each level of frame kernels that this processor has: with one worker and
# two in turn, or as WORKERS says (WORKERS="1 2": each level with both).
levels() {
    local level workers turn=1
    for level in per-packet scalar avx2 avx512; do
        case $level in avx*) grep -q "$level" /proc/cpuinfo || continue ;; esac
        for workers in ${WORKERS:-$turn}; do
            echo "== levels: $level, workers: $workers"
            THALWEG_SIMD=$level THALWEG_TEST_WORKERS=$workers \
                scenarios bad_input:: cross_connect:: mtu:: routing:: wire::
        done
        turn=$((3 - turn))
    done
}

# Clients of VPP's against the binary API, in a network namespace and with a /run of their own: its Python
# client, vppcfg, and one made with govpp if there is Go to build it.
papi() {
    local venv govpp
    venv=$(scripts/papi-venv.sh)
    govpp=$(scripts/govpp-client.sh)
    cargo build --release -p thalweg --bins
    GOVPP=$govpp THALWEG=${CARGO_TARGET_DIR:-target}/release/thalweg \
        unshare --user --map-root-user --net --mount \
        sh -c 'mount -t tmpfs run /run && exec "$0" tests/papi' "$venv/bin/python"
}

# In an emulated machine with a kernel of Debian's, which the program fetches and keeps.
psample() {
    cargo build --release -p thalweg --bins
    cargo build --workspace --bin thalweg-psample-test
    "${CARGO_TARGET_DIR:-target}/debug/thalweg-psample-test"
}

# Instructions per packet, beside those that were accepted last.
guard() {
    cargo bench -p thalweg-bench-pg --bench instructions
}

fuzz() {
    TIME=${FUZZ_TIME:-10} scripts/fuzz.sh
}

for phase in "${phases[@]}"; do
    if [[ " ${all[*]} " != *" $phase "* ]]; then
        echo "test: there is no phase $phase; there are ${all[*]}" >&2
        exit 2
    fi
    echo "== $phase"
    start=$SECONDS
    # Not in a condition: there, set -e would not hold inside the function.
    "$phase"
    echo "== $phase passed in $((SECONDS - start)) s"
done
