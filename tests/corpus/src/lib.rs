//! Replays seeds and past crashes of all fuzz targets, as ordinary tests: compiled without
//! libFuzzer and its coverage pass, each runs once with each input.

#![cfg(test)]
#![forbid(unsafe_code)]
// Targets are programs: `no_main` is theirs.
#![allow(unused_attributes)]

use std::path::{Path, PathBuf};

/// The function that libFuzzer would call.
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:expr) => {
        pub(crate) fn run($data: &[u8]) {
            $body;
        }
    };
}
pub(crate) use fuzz_target;
extern crate self as libfuzzer_sys;

/// Declares each target's file as a module, and a test that runs it.
macro_rules! targets {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[path = $path]
            mod $name;
        )*

        /// All that the tests below replay.
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];

        mod replays {
            $(
                #[test]
                fn $name() {
                    crate::replay(stringify!($name), crate::$name::run);
                }
            )*
        }
    };
}

targets! {
    api_message: "../../../fuzz/fuzz_targets/api_message.rs",
    api_request: "../../../fuzz/fuzz_targets/api_request.rs",
    api_trace: "../../../fuzz/fuzz_targets/api_trace.rs",
    cli_line: "../../../fuzz/fuzz_targets/cli_line.rs",
    conntrack: "../../../fuzz/fuzz_targets/conntrack.rs",
    document: "../../../fuzz/fuzz_targets/document.rs",
    flow_rule: "../../../fuzz/fuzz_targets/flow_rule.rs",
    fpm_frames: "../../../fuzz/fuzz_targets/fpm_frames.rs",
    hsflowd_conf: "../../../fuzz/fuzz_targets/hsflowd_conf.rs",
    http_request: "../../../fuzz/fuzz_targets/http_request.rs",
    load_frames: "../../../fuzz/fuzz_targets/load_frames.rs",
    load_profile: "../../../fuzz/fuzz_targets/load_profile.rs",
    mpls_packet: "../../../fuzz/fuzz_targets/mpls_packet.rs",
    nat44_saved: "../../../fuzz/fuzz_targets/nat44_saved.rs",
    nat44_sessions: "../../../fuzz/fuzz_targets/nat44_sessions.rs",
    netlink_notice: "../../../fuzz/fuzz_targets/netlink_notice.rs",
    packet_view: "../../../fuzz/fuzz_targets/packet_view.rs",
    sflow_capture: "../../../fuzz/fuzz_targets/sflow_capture.rs",
    sflow_decode: "../../../fuzz/fuzz_targets/sflow_decode.rs",
    sflow_netlink: "../../../fuzz/fuzz_targets/sflow_netlink.rs",
    startup_conf: "../../../fuzz/fuzz_targets/startup_conf.rs",
    stream_frames: "../../../fuzz/fuzz_targets/stream_frames.rs",
    tag_rewrite: "../../../fuzz/fuzz_targets/tag_rewrite.rs",
    vlan_subs: "../../../fuzz/fuzz_targets/vlan_subs.rs",
    wire_packet: "../../../fuzz/fuzz_targets/wire_packet.rs",
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn replay(target: &str, run: fn(&[u8])) {
    let mut inputs = 0;
    for folder in ["seeds", "corpus-crashes"] {
        let Ok(entries) = std::fs::read_dir(fuzz().join(folder).join(target)) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            // Printed if the test fails.
            println!("{}", path.display());
            run(&std::fs::read(path).unwrap());
            inputs += 1;
        }
    }
    assert!(inputs > 0, "{target} has no seeds");
}

#[test]
fn every_target_is_replayed() {
    let entries = std::fs::read_dir(fuzz().join("fuzz_targets")).unwrap();
    let mut targets: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().replace(".rs", ""))
        .collect();
    targets.sort_unstable();
    assert_eq!(targets, REPLAYED, "add it to `targets!`");
}
