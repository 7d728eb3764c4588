//! Runs the router with a kernel that has PSAMPLE, a drop monitor, 8021q, VRFs, bonds and MPLS:
//! Debian's, in a virtual machine that is emulated, since few kernels of build machines have them.
//!
//! The program is two: on the host it fetches the kernel, packs programs and itself into a file
//! system and boots it; there it is the first process, and tests. `make test ONLY=psample` runs it.

#![forbid(unsafe_code)]

mod archive;
mod guest;
mod host;
mod kept;
mod labels;
mod lsps;
mod twins;
mod vlans;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::process::id() == 1 {
        return guest::main();
    }
    match host::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("test-psample: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The machine's last line if all is well.
const PASSED: &str = "test-psample: passed";
/// Line of a failed test.
const FAILED: &str = "test-psample: failed";
/// Directory of modules in its file system.
const MODULES_DIR: &str = "/modules";
/// Modules, each after those that it needs.
const MODULES: [&str; 20] = [
    "psample",
    "act_sample",
    "cls_matchall",
    "sch_ingress",
    "drop_monitor",
    "veth",
    "llc",
    "stp",
    "garp",
    "mrp",
    "8021q",
    "tun",
    "vrf",
    "tls",
    "bonding",
    "macvlan",
    "bridge",
    "ip_tunnel",
    "mpls_router",
    "mpls_iptunnel",
];
