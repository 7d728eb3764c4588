#!/usr/bin/env bash
# Sees to it that the programs which the scenarios and the demo call are there.
# As root it installs what is missing from Debian's archive; otherwise it prints
# the command to run, and fails only if a program without which nothing works
# (see `needed` below) is missing.
set -euo pipefail

# program:package
tools=(
    ip:iproute2
    iperf3:iperf3
    ping:iputils-ping
    traceroute:traceroute
    tcpdump:tcpdump
    tshark:tshark
    ethtool:ethtool
    sysctl:procps
    setpriv:util-linux
    cc:gcc
    c++:g++
)
needed=" ip ping setpriv cc "

# Debian keeps some of these out of an ordinary user's PATH.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

missing=()
vital=()
for entry in "${tools[@]}"; do
    program=${entry%%:*}
    package=${entry#*:}
    if ! command -v "$program" >/dev/null 2>&1; then
        missing+=("$package")
        [[ $needed == *" $program "* ]] && vital+=("$package")
    fi
done

if ((${#missing[@]} == 0)); then
    exit 0
fi

install=(apt-get install -y --no-install-recommends "${missing[@]}")

if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: please install by your system's means what Debian calls: ${missing[*]}" >&2
    ((${#vital[@]} == 0)) || exit 1
    exit 0
fi

if ((EUID != 0)); then
    echo "setup: some programs are missing; to install them run" >&2
    echo "    sudo ${install[*]}" >&2
    if ((${#vital[@]} > 0)); then
        echo "setup: cannot go on without: ${vital[*]}" >&2
        exit 1
    fi
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
# tshark's package asks whether ordinary users may capture; iperf3's, whether to
# run as a daemon. Neither is wanted here.
if command -v debconf-set-selections >/dev/null 2>&1; then
    debconf-set-selections <<'ANSWERS'
wireshark-common wireshark-common/install-setuid boolean false
iperf3 iperf3/start_daemon boolean false
ANSWERS
fi

echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "${install[@]}" >"$log" 2>&1; then
    # The lists of packages may be absent (container images) or out of date.
    if ! { apt-get update && "${install[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "setup: apt-get could not install ${missing[*]}" >&2
        exit 1
    fi
fi
