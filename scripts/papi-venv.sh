#!/usr/bin/env bash
# Makes a Python environment with VPP's client, vpp_papi, with vppcfg and with Prometheus' parser
# below the build directory, unless it is there, and prints where.
set -euo pipefail
cd "$(dirname "$0")/.."

papi=2.4.2
vppcfg=1.2.4
prometheus=0.23.1
venv=${CARGO_TARGET_DIR:-$PWD/target}/papi-$papi-$vppcfg-$prometheus
if [[ ! -e $venv/complete ]]; then
    rm -rf "$venv"
    python3 -m venv "$venv" >&2
    packages=("vpp_papi==$papi" "vppcfg==$vppcfg" "prometheus_client==$prometheus")
    if ! "$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}" >&2; then
        echo "papi-venv: ${packages[*]} cannot be had from PyPI" >&2
        exit 1
    fi
    touch "$venv/complete"
fi
echo "$venv"
