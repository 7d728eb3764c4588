#!/usr/bin/env bash
# Builds the client of tests/govpp below the build directory, unless it is there, and prints where.
# Prints nothing if there is no Go. go.sum says which modules it must be given.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v go >/dev/null 2>&1; then
    echo "govpp-client: no Go to build it with" >&2
    exit 0
fi
target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target/govpp"
target=$(cd "$target/govpp" && pwd)
sources=$(cat tests/govpp/go.mod tests/govpp/go.sum tests/govpp/*.go | sha256sum | cut -c 1-16)
client=$target/client-$sources
if [[ ! -e $client ]]; then
    rm -f "$target"/client-*
    if ! (cd tests/govpp && GOPATH=$target/path GOCACHE=$target/cache \
        GOFLAGS="-mod=readonly -modcacherw -buildvcs=false" go build -o "$client" .) >&2; then
        echo "govpp-client: cannot be built; it needs Go 1.24 and a proxy of Go's modules" >&2
        exit 1
    fi
    rm -rf "$target/path" "$target/cache"
fi
echo "$client"
