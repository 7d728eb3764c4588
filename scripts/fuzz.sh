#!/usr/bin/env bash
# Runs the parser fuzz targets, each for TIME seconds (default 60), or only those named as
# arguments. Works with stable Rust: the compiler's own coverage pass feeds libFuzzer, which the
# crate libfuzzer-sys brings as C++ source. The build has no address sanitizer: the parsers have no
# unsafe code.
#
#   TIME=600 scripts/fuzz.sh startup_conf
#
# `--build` as the first argument only builds; `--run` only runs what that has built, 10 seconds
# each.
#
# An input that crashes is left in fuzz/artifacts/TARGET. Move it to fuzz/corpus-crashes/TARGET
# under a name that says what it is about: `cargo test -p thalweg-corpus` replays that folder.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${TIME:-60} only=
case ${1:-} in
    --build) only=$1 && shift ;;
    --run) only=$1 time=${TIME:-10} && shift ;;
esac
if (($# > 0)); then
    targets=("$@")
else
    mapfile -t targets < <(cd fuzz/fuzz_targets && for file in *.rs; do echo "${file%.rs}"; done)
fi

host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-fuzz/target}
# Naming the target, though it is the host, keeps the flags from build scripts.
flags=(
    --cfg fuzzing
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    -Ccodegen-units=4
)
if [[ $only != --run ]]; then
    RUSTFLAGS="${flags[*]}" cargo build --locked --quiet --release \
        --manifest-path fuzz/Cargo.toml --target "$host" "${targets[@]/#/--bin=}"
fi
[[ $only != --build ]] || exit 0

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# One target; says how it went when it is through.
fuzz() {
    local target=$1 log=$logs/$1
    local corpus=fuzz/corpus/$target artifacts=fuzz/artifacts/$target known=() dir
    mkdir -p "$corpus" "$artifacts"
    for dir in "fuzz/seeds/$target" "fuzz/corpus-crashes/$target"; do
        [[ -d $dir ]] && known+=("$dir")
    done
    if ! "$CARGO_TARGET_DIR/$host/release/$target" -max_total_time="$time" -timeout=10 \
        -rss_limit_mb=1024 -artifact_prefix="$artifacts/" "$corpus" "${known[@]}" >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        echo "fuzz: $target failed; its input is in $artifacts" >&2
        return 1
    fi
    # The last line of progress: inputs tried, and code reached.
    sed -n "s/^#\([0-9]*\)\tDONE *cov: \([0-9]*\).*/fuzz $target: \1 inputs, \2 places reached/p" "$log"
}
export -f fuzz
export host time logs

# Run as many at a time as there are processors.
echo "fuzz: ${#targets[@]} targets, $time s each"
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'fuzz "$1"' fuzz '{}'
