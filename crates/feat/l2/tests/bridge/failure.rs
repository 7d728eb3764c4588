//! A lab that fails leaves its packets.

use super::{BROADCAST, frame, host_mac, lab, sent_to};
use std::path::Path;
use thalweg_testkit::{Cmd, require_tools, tshark_fields};

/// Set in the environment of a process whose test fails on purpose.
const FAIL: &str = "THALWEG_TESTKIT_FAIL";

#[test]
fn inner_lab() {
    let mut lab = lab(3);
    lab.receive(0, vec![frame(BROADCAST, host_mac(1), 50)]);
    assert_eq!(sent_to(&mut lab), [1, 2]);
    assert!(std::env::var_os(FAIL).is_none(), "on purpose");
    lab.close();
}

#[test]
fn a_failed_lab_leaves_its_packets() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("l2-failures");
    let program = std::env::current_exe().expect("this program");
    let test = Cmd::new(program).args(["--exact", "failure::inner_lab", "--nocapture"]);
    let test = test.env(FAIL, "1").env("THALWEG_TEST_FAILURES", &dir);
    let output = test.deadline(std::time::Duration::from_secs(60)).run().expect("an end");
    assert!(!output.status.success());
    let path = dir.join("failure.inner_lab/lab.pcapng");
    let printed = output.stderr;
    assert!(printed.contains(path.to_str().expect("UTF-8")), "{printed}");
    if require_tools(&["tshark"]).is_err() {
        return;
    }
    let fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.len"];
    let mut rows = tshark_fields(&path, &fields, "").expect("a capture file");
    rows[1..].sort();
    let rows: Vec<_> = rows.iter().map(|row| row.join(" ")).collect();
    assert_eq!(rows, ["test0 0x00000001 64", "test1 0x00000002 64", "test2 0x00000002 64"]);
}
