//! Files that failed tests leave: tests that fail on purpose, run by others in processes of their
//! own.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use thalweg_testkit::{
    Cmd, Lab, PacketLog, Privilege, Result, Running, keep_while_paused, lab_test, require_tools,
    tshark_fields,
};

const LIMIT: Duration = Duration::from_secs(60);

/// Set in the environment of a process whose test fails on purpose.
const FAIL: &str = "THALWEG_TESTKIT_FAIL";

fn on_purpose() -> bool {
    std::env::var_os(FAIL).is_some()
}

#[test]
fn inner_log() {
    let log = PacketLog::new();
    let (left, right) = (log.interface("left0"), log.interface("right0"));
    for n in 0..3u8 {
        left.received([&[n; 14][..], &[7; 50]]);
        right.sent([&[n; 60][..]]);
    }
    assert!(!on_purpose(), "on purpose");
}

lab_test! {
    fn inner_lab() {
        let lab = Lab::kernel_router()?;
        lab.ping_all()?;
        keep_while_paused("echo kept", ()).ok();
        assert!(!on_purpose(), "on purpose");
        Ok(())
    }
}

/// A process of its own that runs one test of this program, which fails.
fn failing(test: &str, dir: &Path) -> Cmd {
    Cmd::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FAIL, "1")
        .env("THALWEG_TEST_FAILURES", dir)
        .env_remove("THALWEG_TEST_CAPTURE")
        .env_remove("PAUSE")
        .deadline(LIMIT)
}

/// True if labs work here; tshark is needed, too.
fn labs_work() -> bool {
    if let Privilege::None(why) = Privilege::check() {
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("NOT RUN: {why}");
        return false;
    }
    true
}

/// The file that a failed test left, whose path it printed.
fn left(test: &str, dir: &Path, printed: &str) -> PathBuf {
    let path = dir.join(test).join("lab.pcapng");
    let line = format!("packets of the failed test: {}", path.display());
    assert!(printed.contains(&line), "{printed}");
    assert!(path.is_file());
    path
}

#[test]
fn a_lab_in_the_process_leaves_its_packets() {
    let dir = tempfile::tempdir().unwrap();
    let output = failing("inner_log", dir.path()).run().unwrap();
    assert!(!output.status.success());
    let path = left("inner_log", dir.path(), &output.stderr);
    assert!(output.stderr.contains("  left0: 3 received, 0 sent"), "{}", output.stderr);
    if require_tools(&["tshark"]).is_err() {
        return;
    }
    let fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.len"];
    let rows = tshark_fields(&path, &fields, "").unwrap();
    let rows: Vec<_> = rows.iter().map(|row| row.join(" ")).collect();
    let (one, two) = ("left0 0x00000001 64", "right0 0x00000002 60");
    assert_eq!(rows, [one, two, one, two, one, two]);
}

#[test]
fn a_lab_of_namespaces_leaves_both_hosts_packets() {
    if !labs_work() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let output = failing("inner_lab", dir.path()).run().unwrap();
    assert!(!output.status.success());
    let printed = output.stdout + &output.stderr;
    let path = left("inner_lab", dir.path(), &printed);
    if require_tools(&["tshark"]).is_err() {
        return;
    }
    let comment = Cmd::new("capinfos").arg("-k").arg(&path).output().unwrap();
    assert!(comment.contains("inner_lab; left eth0: "), "{comment}");
    let fields = ["frame.interface_name", "frame.packet_flags_direction", "ip.ttl"];
    let rows = tshark_fields(&path, &fields, "icmp.type == 8 && ip.src == 10.10.1.2").unwrap();
    let mut rows: Vec<_> = rows.iter().map(|row| row.join(" ")).collect();
    rows.sort();
    let (sent, received) = ("left eth0 0x00000002 64", "right eth0 0x00000001 63");
    assert_eq!(rows, [sent, sent, sent, received, received, received]);
}

#[test]
fn nothing_is_captured_where_it_is_switched_off() {
    if !labs_work() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let output = failing("inner_lab", dir.path()).env("THALWEG_TEST_CAPTURE", "0").run().unwrap();
    assert!(!output.status.success());
    assert!(!dir.path().join("inner_lab").exists());
}

/// Waits until the test is paused; gives what it printed.
fn paused(test: &mut Running) -> String {
    test.wait_for_output(LIMIT, "the pause", |out, err| {
        let at = err.find("To go on: ")?;
        err[at..].contains('\n').then(|| format!("{out}{err}"))
    })
    .unwrap()
}

#[test]
fn a_paused_test_keeps_its_namespaces() -> Result<()> {
    if !labs_work() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let start = || failing("inner_lab", dir.path()).env("PAUSE", "1").stdin_piped().spawn();
    let mut test = start()?;
    let printed = paused(&mut test);
    assert!(printed.contains("inner_lab failed: on purpose"), "{printed}");
    assert!(printed.contains("\n  echo kept\n"), "{printed}");
    left("inner_lab", dir.path(), &printed);
    for (label, links) in [("left", 2), ("router", 3), ("right", 2)] {
        let wanted = |line: &&str| line.contains("nsenter") && line.ends_with(label);
        let line = printed.lines().find(wanted).unwrap_or_else(|| panic!("{label}: {printed}"));
        let command = line.split_once('#').map_or(line, |(command, _)| command);
        let shown = Cmd::new("sh").args(["-c", &format!("{command} ip -o link")]).output()?;
        assert_eq!(shown.lines().count(), links, "{label}: {shown}");
    }
    test.write_stdin("\n")?;
    assert!(!test.wait(LIMIT)?.success());

    // The same without a terminal.
    let mut test = start()?;
    let printed = paused(&mut test);
    test.close_stdin();
    let (_, file) = printed.rsplit_once("or rm ").unwrap_or_else(|| panic!("{printed}"));
    std::fs::remove_file(file.lines().next().unwrap_or_default())?;
    assert!(!test.wait(LIMIT)?.success());
    Ok(())
}
