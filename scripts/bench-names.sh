#!/usr/bin/env bash
# Checks that there are benchmarks of these names, or whose names contain these words, before
# anything is built. `--list` lists them.
#
# The same names as bench/report/src/collect.rs has from Cargo, which a unit test there holds true.
set -euo pipefail
cd "$(dirname "$0")/.."

# A manifest's benchmarks, with something before their names.
names() {
    awk -v before="$2" -F '"' \
        '/^\[/ { bench = $0 == "[[bench]]" } bench && /^name *=/ { print before $2 }' "$1"
}

all=$(
    {
        for manifest in bench/*/Cargo.toml; do names "$manifest" ""; done
        names crates/conntrack/Cargo.toml conntrack-
        names crates/feat/flow/Cargo.toml flow-
    } | sort
)
if [[ ${1:-} == --list ]]; then
    echo "$all"
    exit
fi
for word; do
    # Options are the program's to judge.
    if [[ $word != -* && $all != *"$word"* ]]; then
        echo "no benchmark's name contains \"$word\"; there are: ${all//$'\n'/ }" >&2
        exit 1
    fi
done
