#!/usr/bin/env bash
# Makes sure that programs exist which the project calls: for the demo; with `demo-bgp`, `test`,
# `long`, `bench` or `profile` as argument, for `make demo-bgp`, `make test`, `make test-long`,
# `make bench` or `make profile`, too. Run by root, the script installs missing programs from
# Debian's archive; otherwise it prints the command to run, and fails only if a program without
# which nothing works (see `needed`) is missing.
#
# Some packages start services, and want to bring or upgrade two hundred others. The script unpacks
# these below the build directory, as the calling user, and `make clean` removes them:
#
#   demo-bgp  FRRouting and BIRD
#   test   Open vSwitch, radvd and rdisc6, BIRD, and keepalived
#   long   the same; sFlow collectors: pmacct's, and goflow2, if there is Go to build it with
#   bench  Open vSwitch, DPDK's testpmd, nft, and BIRD; what cannot be had is a row in a table then
set -euo pipefail
cd "$(dirname "$0")/.."

# program:package
tools=(
    ip:iproute2
    iperf3:iperf3
    ping:iputils-ping
    setpriv:util-linux
)
needed=" ip ping setpriv cc "
tests=(
    traceroute:traceroute
    tcpdump:tcpdump
    tshark:tshark
    ethtool:ethtool
    socat:socat
    nc:netcat-openbsd
    sysctl:procps
    # Its programs find their models and sockets only where its package has them.
    vtysh:frr
    gdb:gdb
    systemctl:systemd
    # Debian's python3 comes without what makes environments.
    python3-venv:python3-venv
)
list=${1:-demo}
case $list in
    demo | demo-bgp) ;;
    test | bench) tools+=("${tests[@]}") ;;
    long) tools+=("${tests[@]}" c++:g++ valgrind:valgrind qemu-system-x86_64:qemu-system-x86) ;;
    profile) tools+=(perf:linux-perf) ;;
    *) echo "setup: there is no list $list; there are demo-bgp, test, long, bench and profile" >&2 && exit 2 ;;
esac
# The compiler's linker.
tools+=(cc:gcc)

# Debian keeps some of these out of an ordinary user's PATH.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# is_there PROGRAM
is_there() {
    case $1 in
        python3-venv) python3 -c 'import ensurepip' >/dev/null 2>&1 ;;
        *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing=()
vital=()
for entry in "${tools[@]}"; do
    program=${entry%%:*}
    package=${entry#*:}
    if ! is_there "$program"; then
        missing+=("$package")
        [[ $needed == *" $program "* ]] && vital+=("$package")
    fi
done

# unpack DIR PROGRAM PACKAGE…: unpacks packages, and the libraries that apt would
# newly install for them, unless PROGRAM is in the PATH or unpacked already.
unpack() {
    local dir=$1 program=$2
    shift 2
    if command -v "$program" >/dev/null 2>&1 || [[ -e $dir/complete ]]; then
        return 0
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "setup: no apt-get, so no $program to compare with" >&2
        return 0
    fi
    local log work packages
    log=$(mktemp)
    work=$(mktemp -d)
    # Expanded now, as the names are local.
    # shellcheck disable=SC2064
    trap "rm -rf '$log' '$work'" RETURN
    # "Inst NAME (VERSION …" is new; "Inst NAME [OLD] …" is an upgrade.
    mapfile -t packages < <(apt-get install -s --no-install-recommends "$@" 2>/dev/null |
        awk -v wanted=" $* " '/^Inst/ && $3 ~ /^\(/ &&
            (index(wanted, " " $2 " ") || $2 ~ /^lib/ && $2 !~ /-dev$|^librte-meta/) { print $2 }')
    echo "setup: unpacking $* (${#packages[@]} packages) to $dir" >&2
    # apt's own user cannot write to a directory of ours, which it mentions at length.
    if ((${#packages[@]} == 0)) ||
        ! (cd "$work" && apt-get download "${packages[@]}") >"$log" 2>&1; then
        tail -n 3 "$log" >&2
        echo "setup: cannot download $*; after apt-get update it may work" >&2
        return 0
    fi
    rm -rf "$dir"
    mkdir -p "$dir"
    local archive
    for archive in "$work"/*.deb; do
        dpkg-deb -x "$archive" "$dir"
    done
    touch "$dir/complete"
}

# build_goflow2 DIR: has Go fetch and build goflow2, at the version that results are known of.
build_goflow2() {
    local dir=$1 version=v2.2.6 log
    if command -v goflow2 >/dev/null 2>&1 || [[ -e $dir/usr/local/bin/goflow2 ]]; then
        return 0
    fi
    if ! command -v go >/dev/null 2>&1; then
        echo "setup: no Go to build goflow2 with" >&2
        return 0
    fi
    mkdir -p "$dir/usr/local/bin"
    dir=$(cd "$dir" && pwd)
    log=$(mktemp)
    # shellcheck disable=SC2064
    trap "rm -f '$log'" RETURN
    echo "setup: building goflow2 $version in $dir" >&2
    if ! GOBIN=$dir/usr/local/bin GOPATH=$dir/path GOCACHE=$dir/cache GOFLAGS=-modcacherw \
        go install "github.com/netsampler/goflow2/v2/cmd/goflow2@$version" >"$log" 2>&1; then
        tail -n 3 "$log" >&2
        echo "setup: cannot build goflow2" >&2
    fi
    rm -rf "$dir/path" "$dir/cache"
}

peers=${CARGO_TARGET_DIR:-target}/peers
unpack_peers() {
    case $list in
        test | long | bench)
            unpack "$peers/openvswitch" ovs-vswitchd openvswitch-switch openvswitch-common
            ;;
    esac
    case $list in
        demo-bgp)
            unpack "$peers/frr" vtysh frr
            unpack "$peers/bird" bird bird2
            ;;
        test | long)
            unpack "$peers/radvd" radvd radvd ndisc6
            unpack "$peers/bird" bird bird2
            unpack "$peers/keepalived" keepalived keepalived
            ;;
    esac
    case $list in
        long)
            unpack "$peers/pmacct" sfacctd pmacct
            build_goflow2 "$peers/goflow2"
            ;;
        bench)
            unpack "$peers/dpdk" dpdk-testpmd dpdk-dev ibverbs-providers
            unpack "$peers/nftables" nft nftables
            unpack "$peers/bird" bird bird2
            ;;
    esac
}

install_missing() {
    if ((${#missing[@]} == 0)); then
        return 0
    fi

    local install=(apt-get install -y --no-install-recommends "${missing[@]}")

    if ! command -v apt-get >/dev/null 2>&1; then
        echo "setup: please install by your system's means what Debian calls: ${missing[*]}" >&2
        ((${#vital[@]} == 0)) || exit 1
        return 0
    fi

    if ((EUID != 0)); then
        echo "setup: some programs are missing; to install them run" >&2
        echo "    sudo ${install[*]}" >&2
        if ((${#vital[@]} > 0)); then
            echo "setup: cannot go on without: ${vital[*]}" >&2
            exit 1
        fi
        return 0
    fi

    export DEBIAN_FRONTEND=noninteractive
    # tshark's package asks whether ordinary users may capture; iperf3's, whether to
    # run as a daemon. Tests want neither.
    if command -v debconf-set-selections >/dev/null 2>&1; then
        debconf-set-selections <<'ANSWERS'
wireshark-common wireshark-common/install-setuid boolean false
iperf3 iperf3/start_daemon boolean false
ANSWERS
    fi

    echo "setup: installing ${missing[*]}"
    local log
    log=$(mktemp)
    # shellcheck disable=SC2064
    trap "rm -f '$log'" EXIT
    if ! "${install[@]}" >"$log" 2>&1; then
        # The lists of packages may be absent (container images) or out of date.
        if ! { apt-get update && "${install[@]}"; } >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            echo "setup: apt-get could not install ${missing[*]}" >&2
            exit 1
        fi
    fi
}

install_missing
unpack_peers
