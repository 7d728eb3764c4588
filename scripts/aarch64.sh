#!/usr/bin/env bash
# Compiles the workspace's unit tests and the router for aarch64, and runs them by qemu-aarch64,
# which translates instructions and system calls for the kernel of this machine. README.md says
# (Requirements) what that proves. Run by root, the script installs missing packages from Debian's
# archive; otherwise it prints what to install.
#
# `aarch64.sh build` only compiles; `aarch64.sh tests` and `aarch64.sh router` do one half of it.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
# Debian's C library for aarch64, in which the emulator looks for libraries.
sysroot=/usr/aarch64-linux-gnu
# Seconds that the router may take from start to end. The usual time is three.
deadline=120

# Crates that pass packets, or share memory or structures with the kernel; and the router, without
# which cargo would choose other features of the libraries, and compile all of them twice.
packages=(
    thalweg-wire thalweg-buffer thalweg-tables thalweg-conntrack thalweg-graph thalweg-fib
    thalweg-engine thalweg-device thalweg-device-af-packet thalweg-device-pg
    thalweg-feat-ethernet thalweg-feat-l2 thalweg-feat-mss-clamp thalweg-feat-mpls
    thalweg-feat-arp thalweg-feat-nd thalweg-feat-neighbor thalweg-feat-ip thalweg-feat-ip4
    thalweg-feat-ip6 thalweg-feat-nat44 thalweg-feat-flow thalweg-feat-sflow
    thalweg-sflow thalweg-netlink thalweg-socket thalweg-stats
    thalweg-program-router thalweg
)
# Tests that cannot pass under an emulator, by parts of their names, with the reason.
skipped=(
    # Ask Open vSwitch, whose programs and libraries are those of this machine.
    rule::oracle::
    # The emulator writes /proc/self/stat by itself, with zeros for memory.
    metrics::process::tests::this_process
    # Lasts longer than it waits, and half as long as all others together.
    tests::a_million_senders_fill_the_table_and_no_more
    # These tests flush neighbours in one slice of a millisecond. Code that is translated for the
    # first time takes two, between which the lab does not turn the main loop.
    arp_input::tests::an_unchanged_sender_is_reported_once_a_second
    tests::links_that_go_down_take_what_was_learned
    clear_ip_neighbors::tests::static_neighbours_stay
    tests::both_families_are_shown_and_dumped
    # The emulator knows no generic netlink.
    service::netlink::tests::a_family_that_has_gone_is_noticed
    service::netlink::tests::drops_name_node_and_reason
    service::netlink::tests::losses_are_gaps_told_once_where_they_happened
    service::netlink::tests::what_is_not_wanted_is_not_sent
    family::tests::families_are_looked_up
    socket::tests::a_kernel_that_refuses_is_heard
    # Count page faults after MADV_POPULATE_WRITE, which the emulator takes and does not pass on.
    flow::tests::adding_flows_faults_no_memory_in
    flow::tests::no_flow_waits_for_side_memory_of_others
    paged::tests::entries_are_made_ready_before_they_are_written
    # Receives a descriptor without data, which the emulator does not ask the kernel for.
    tests::clients_get_the_segment_by_socket
    # Have limits refuse what comes in thousands; at this speed, fewer come than they allow.
    ip4_glean::tests::a_scan_is_bounded
    tests::a_flood_from_two_workers_is_bounded_and_all_of_it_ends
    tests::an_answer_gets_through_a_flood_of_others
    # Take ten to twenty seconds of processor time each.
    service::tests::many_samples_wake_the_service
    tests::many_neighbours_are_flushed_in_slices
)

missing=()
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
[[ -e $sysroot/lib/libc.so.6 && -e $sysroot/include/stdio.h ]] || missing+=(libc6-dev-arm64-cross)
if ((${#missing[@]} > 0)); then
    install=(apt-get install -y --no-install-recommends "${missing[@]}")
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        echo "aarch64: cannot go on without what Debian calls ${missing[*]}; install it:" >&2
        echo "    sudo ${install[*]}" >&2
        exit 1
    fi
    echo "aarch64: installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    # The lists of packages may be absent (container images) or out of date.
    if ! "${install[@]}" >"$log" 2>&1 && ! { apt-get update && "${install[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "aarch64: apt-get could not install ${missing[*]}" >&2
        exit 1
    fi
    rm "$log"
fi
if [[ ! -d $(rustc --print target-libdir --target "$target") ]]; then
    if ! command -v rustup >/dev/null; then
        echo "aarch64: there is no standard library of Rust for $target" >&2
        exit 1
    fi
    rustup target add "$target"
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $sysroot"
# The variable replaces the flags of .cargo/config.toml, the first of which is repeated. Rust's own
# linker takes a tenth of the time of the C compiler's.
flags=-Cllvm-args=-align-all-functions=6
lld=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/gcc-ld
if [[ -x $lld/ld.lld ]]; then
    flags+=" -Clink-arg=-fuse-ld=lld -Clink-arg=-B$lld"
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=$flags
# Nobody debugs these programs, nor changes them piece by piece.
export CARGO_INCREMENTAL=0
build=(--target "$target" --config profile.dev.debug=false)
# Takes longer to optimise than to run.
for package in thalweg-config thalweg-fib serde-saphyr granit-parser; do
    build+=(--config "profile.dev.package.$package.opt-level=0")
done
build+=("${packages[@]/#/--package=}")
# Properties, of which 256 cases are tried on this machine's own processor.
export PROPTEST_CASES=${PROPTEST_CASES:-32}

compile() {
    cargo test "${build[@]}" --lib --bin thalweg --no-run
    # The example makes libraries have the features that tests ask for, and be those of the tests.
    cargo build "${build[@]}" --bin thalweg --example hand_off_bench
}

tests() {
    local skip=() entry
    for entry in "${skipped[@]}"; do
        skip+=(--skip "$entry")
    done
    cargo test "${build[@]}" --lib --bin thalweg --no-fail-fast -- "${skip[@]}"
}

router() {
    local directory=${CARGO_TARGET_DIR:-target}/$target/debug lab sent='tx packets +10000'
    local router=(timeout "$deadline" qemu-aarch64 -L "$sysroot" "$directory/thalweg")
    lab=$(mktemp -d)
    # Expanded now, as the name is local.
    # shellcheck disable=SC2064
    trap "rm -r '$lab'" EXIT
    "${router[@]}" --version
    "${router[@]}" api json --dir "$lab/api"
    # Ten thousand packets are routed from pg0 to pg1.
    cat >"$lab/setup" <<'END'
create packet-generator interface pg0
create packet-generator interface pg1
set interface mac address pg0 02:fe:00:00:00:00
set interface state pg0 up
set interface state pg1 up
enable ip4 interface pg0
set interface ip address pg1 48.0.0.254/24
set ip neighbor pg1 48.0.0.1 02:00:00:00:00:bb
packet-generator new { name s0 limit 10000 size 64-64 interface pg0 node ethernet-input
  data { IP4: 0200.0000.00aa -> 02fe.0000.0000 UDP: 10.0.0.1 - 10.0.0.99 -> 48.0.0.1
  UDP: 1234 -> 4321 incrementing 22 } }
packet-generator enable-stream
END
    # The router reads its command line from standard input, and ends with it: when all have been
    # sent.
    touch "$lab/out"
    {
        printf '%s\n' 'show version' 'show cpu'
        for ((second = 0; second < deadline; second++)); do
            echo 'show interface pg1'
            sleep 1
            ! grep -qE "$sent" "$lab/out" || break
        done
    } | "${router[@]}" run cpu "{" workers 2 "}" \
        unix "{" interactive runtime-dir "$lab" exec "$lab/setup" "}" \
        >"$lab/out" 2>"$lab/log" || { cat "$lab/log" "$lab/out" >&2; return 1; }
    head -n 4 "$lab/out"
    local line
    for line in 'for aarch64-linux' 'Frame kernels: +scalar' "$sent"; do
        if ! grep -qE "$line" "$lab/out"; then
            echo "aarch64: the router printed no '$line'" >&2
            cat "$lab/log" "$lab/out" >&2
            return 1
        fi
    done
    echo "aarch64: the router has passed 10000 packets"
}

case ${1:-all} in
    build) compile ;;
    tests) compile && tests ;;
    router) compile && router ;;
    all) compile && tests && router ;;
    *) echo "aarch64: there are build, tests and router, not $1" >&2; exit 2 ;;
esac
