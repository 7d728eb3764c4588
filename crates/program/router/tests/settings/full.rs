//! A full disk: what was there stays, nothing half is left, and each failure is reported. One apply
//! is cancelled.

use crate::router::{ONE, Router, same};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use thalweg_cli::{Execution, Progress, Script};
use thalweg_feat_config::{manager, store::Store};
use thalweg_fib::TableId;

/// Set in a process with a small disk at this place.
const DISK: &str = "THALWEG_TEST_DISK";

/// Runs `body` as the test `name`, in a process of its own that has a disk of 64 KiB.
fn with_small_disk(name: &str, body: impl FnOnce(&Path)) {
    if let Some(disk) = std::env::var_os(DISK) {
        return body(Path::new(&disk));
    }
    let disk = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=64k,nr_inodes=200 disk \"$0\" && exec \"$@\"";
    let program = std::env::current_exe().unwrap();
    let run = |words: &[&str]| {
        let unshare = ["--user", "--map-root-user", "--mount", "sh", "-c", script];
        let mut command = Command::new("unshare");
        command.args(unshare).arg(disk.path()).args(words).env(DISK, disk.path());
        command.output()
    };
    if !run(&["true"]).is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "{name} needs user namespaces");
        eprintln!("{name} was not run: it needs user namespaces");
        return;
    }
    let words = [program.to_str().unwrap(), name, "--exact", "--nocapture"];
    let output = run(&words).unwrap();
    let text = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

/// Fills a disk; returns the file that does it.
fn fill(disk: &Path) -> PathBuf {
    let file = disk.join("ballast");
    // Write until the disk is full.
    let _ = fs::write(&file, vec![1; 1 << 20]);
    assert!(fs::write(disk.join("more"), [1; 4096]).is_err(), "not full");
    let _ = fs::remove_file(disk.join("more"));
    file
}

fn files(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push(path.display().to_string()),
        }
    }
    all.sort();
    all
}

#[test]
fn a_commit_on_a_full_disk_leaves_what_was_there() {
    with_small_disk("full::a_commit_on_a_full_disk_leaves_what_was_there", |disk| {
        let _one = ONE.lock();
        let mut router = Router::start();
        let file = disk.join("thalweg.yaml");
        manager::keep_in(&mut router.c, Store::new(&file));
        router.run("create loopback interface instance 1\nconfig commit");
        let (text, ballast) = (fs::read_to_string(&file).unwrap(), fill(disk));
        let before = files(disk);
        router.run("create loopback interface instance 2");
        let elsewhere = format!("config save {}/other.yaml", disk.display());
        for line in ["config commit", &elsewhere] {
            let said = router.attempt(line).unwrap_err().to_string();
            assert!(said.contains("No space left"), "{line}: {said}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert_eq!(files(disk), before, "{line}");
        }
        // A rollback does not return to settings that were not saved.
        fs::remove_file(ballast).unwrap();
        router.run("config rollback 0");
        assert!(!router.run("show configuration").contains("loop2"));
        router.run("create loopback interface instance 3\nconfig commit");
        assert!(fs::read_to_string(&file).unwrap().contains("loop3"));
        router.stop();
    });
}

#[test]
fn other_files_on_a_full_disk_say_so() {
    with_small_disk("full::other_files_on_a_full_disk_say_so", |disk| {
        let _one = ONE.lock();
        let mut router = Router::prepared();
        router.run("nat44 plugin enable sessions 1000");
        let sessions = disk.join("sessions").display().to_string();
        router.run(&format!("nat44 save {sessions}"));
        let old = fs::read(&sessions).unwrap();
        fill(disk);
        let before = files(disk);
        let fails = |router: &mut Router, line: &str| {
            let said = router.attempt(line).unwrap_err().to_string();
            assert!(said.contains("No space left"), "{line}: {said}");
            assert_eq!(files(disk), before, "{line}");
        };
        fails(&mut router, &format!("nat44 save {sessions}"));
        assert_eq!(fs::read(&sessions).unwrap(), old);
        fails(&mut router, &format!("config save {}/new.yaml", disk.display()));
        // Nothing of this has ended anything.
        router.settle();
        assert!(router.run("show nat44 summary").contains("sessions"));
        router.stop();
    });
}

/// Cancelled at any moment, all of it goes back.
#[test]
fn a_cancelled_apply_goes_back() {
    let _one = ONE.lock();
    let mut router = Router::start();
    router.run("create loopback interface instance 7");
    let before = router.dump();
    let file = router.dir.path().join("a.yaml");
    let routes: String =
        (0..3000).map(|n| format!("10.{}.{}.0/24: loop9, ", n >> 8, n & 255)).collect();
    let text = format!(
        "loopbacks: {{loop9: {{}}}}\nthalweg: {{ip-tables: {{0: {{routes: {{{routes}}}}}}}}}\n"
    );
    fs::write(&file, text).unwrap();
    let own = router.c.state::<thalweg_feat_ip::Ip4>().borrow().route_count(TableId(0));
    for routes in [None, Some(0), Some(1), Some(1000)] {
        let script = Script::typed(format!("config apply {}", file.display())).unwrap();
        let mut execution = Execution::new(script);
        let mut step = |router: &mut Router| {
            let (now, slice) = (Instant::now(), Duration::from_millis(1));
            let progress = execution.step(&router.tree, &mut router.c, now, slice);
            router.c.run_once(Some(Duration::from_millis(1)));
            assert!(matches!(progress, Progress::Running(_)), "not cancelled in between");
        };
        // Cancel it before it has done anything, and after it has added some routes.
        step(&mut router);
        if let Some(wanted) = routes {
            let has = |router: &Router| {
                let there = thalweg_device::interface::find(&router.c, "loop9").is_ok();
                let ip = router.c.state::<thalweg_feat_ip::Ip4>();
                let added = ip.borrow().route_count(TableId(0)) - own;
                there && added >= wanted
            };
            while !has(&router) {
                step(&mut router);
            }
        }
        execution.cancel(&mut router.c);
        let end = Instant::now() + thalweg_testkit::WAIT_LIMIT;
        let there = |router: &mut Router| router.run("show interface").contains("loop9");
        while there(&mut router) || !manager::is_idle(&router.c) {
            assert!(Instant::now() < end, "{}", router.run("show interface"));
            router.c.run_once(Some(Duration::from_millis(5)));
        }
        router.settle();
        same(&router.dump(), &before, "before and after");
    }
    router.stop();
}
