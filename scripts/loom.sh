#!/usr/bin/env bash
# Explores the models of what threads share (`cfg(loom)`), in all orders that differ in up to three
# places. Everything is compiled otherwise for them, so they have a build directory of their own;
# not optimised, as models take longer to compile than to run. `--build` only builds.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom
export RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3
test=(cargo test -p thalweg-tables -p thalweg-graph --lib
    --config profile.dev.package.thalweg-graph.opt-level=0
    --config profile.dev.package.thalweg-tables.opt-level=0)
if [[ ${1:-} == --build ]]; then
    exec "${test[@]}" --no-run
fi
exec "${test[@]}" -- loom
