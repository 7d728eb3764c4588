#!/usr/bin/env bash
# All the tests, in phases: unit tests, scenarios in network namespaces, a short fuzz run.
# Names of phases as arguments select some: scripts/test.sh unit smoke
set -euo pipefail
cd "$(dirname "$0")/.."

phases=("$@")
((${#phases[@]} > 0)) || phases=(unit smoke guard fuzz)

unit() {
    cargo test --workspace --exclude thalweg-smoke
}

# Scenarios share the machine's processors, and their benchmarks would disturb each other.
smoke() {
    cargo build --release -p thalweg --bins
    cargo test -p thalweg-smoke --release -- --test-threads=1
}

# Instructions per packet, beside those that were accepted last.
guard() {
    cargo bench -p thalweg-bench-pg --bench instructions
}

fuzz() {
    TIME=${FUZZ_TIME:-10} scripts/fuzz.sh
}

for phase in "${phases[@]}"; do
    case $phase in
    unit | smoke | guard | fuzz) ;;
    *)
        echo "test: there is no phase $phase; there are unit, smoke, guard, fuzz" >&2
        exit 2
        ;;
    esac
    echo "== $phase"
    start=$SECONDS
    # Not in a condition: there, set -e would not hold inside the function.
    "$phase"
    echo "== $phase passed in $((SECONDS - start)) s"
done
