//! Sessions are saved to a file and restored.

use crate::nat::{FAR, Nat, SHARED, echo, tcp, udp};
use thalweg_cli::counted;
use thalweg_device::testing::ip4::ip;

const SYN: u8 = 2;
const ACK: u8 = 16;

struct Saved {
    file: tempfile::TempDir,
    /// External ports of a connection, of datagrams and of a ping.
    ports: [u16; 3],
}

impl Saved {
    fn path(&self) -> String {
        self.file.path().join("sessions").display().to_string()
    }
}

const MAPPING: &str = "nat44 add static mapping tcp local 10.0.0.9 8080 external 192.0.2.1 80";

/// A NAT with sessions of all kinds, saved before it ends.
fn save(workers: usize) -> Saved {
    let mut n = Nat::of(workers);
    n.know(3..10);
    n.lab.ok(MAPPING);
    let (host, web) = ((ip(0, 2), 5000), (FAR, 443));
    let port = n.one(0, 1, tcp(host, web, SYN)).ports().0;
    n.one(1, 0, tcp(web, (SHARED, port), SYN | ACK));
    n.one(0, 1, tcp(host, web, ACK));
    let datagrams = n.one(0, 1, udp((ip(0, 3), 6000), (FAR, 53))).ports().0;
    let ping = n.one(0, 1, echo(ip(0, 4), FAR, 77)).ports().0;
    // A client of the mapping, and a host with many sessions.
    n.one(1, 0, tcp((FAR, 1234), (SHARED, 80), SYN));
    for p in 1..=200 {
        n.one(0, 1, udp((ip(0, 5), p), (FAR, 53)));
    }
    let saved = Saved { file: tempfile::tempdir().unwrap(), ports: [port, datagrams, ping] };
    let text = n.lab.cli(&format!("nat44 save {}", saved.path()));
    assert_eq!(text.trim(), "204 sessions saved");
    n.close();
    saved
}

#[test]
fn connections_go_on() {
    for workers in [1, 3] {
        let saved = save(workers);
        let mut n = Nat::of(workers);
        n.know(3..10);
        n.lab.ok(MAPPING);
        let text = n.lab.cli(&format!("nat44 restore {}", saved.path()));
        assert_eq!(text.trim(), "204 sessions restored", "{workers} workers");
        let (host, web) = ((ip(0, 2), 5000), (FAR, 443));
        let [port, datagrams, ping] = saved.ports;
        // Neither side has to reconnect.
        assert_eq!(n.one(1, 0, tcp(web, (SHARED, port), ACK)).dst(), host.0);
        assert_eq!(n.one(0, 1, tcp(host, web, ACK)).ports().0, port);
        assert_eq!(n.one(1, 0, udp((FAR, 53), (SHARED, datagrams))).dst(), ip(0, 3));
        assert_eq!(n.one(0, 1, echo(ip(0, 4), FAR, 77)).ports().0, ping);
        assert_eq!(n.one(0, 1, tcp((ip(0, 9), 8080), (FAR, 1234), SYN | ACK)).ports().0, 80);
        // Their ports are in use.
        let others: Vec<u16> =
            (1..100).map(|p| n.one(0, 1, udp((ip(0, 6), p), (FAR, 53))).ports().0).collect();
        // Ports of another protocol are others.
        let all = n.sessions();
        let all = all.iter().filter(|s| s.outside.protocol == 17);
        let outside: Vec<u16> = all.map(|s| s.mapped().1).collect();
        for p in others {
            assert_eq!(outside.iter().filter(|o| **o == p).count(), 1, "port {p}");
        }
        let s = n.sessions().into_iter().find(|s| s.inside.sport == 5000).unwrap();
        assert_eq!((s.packets, s.class), (5, thalweg_feat_nat44::session::Class::TcpEstablished));
        // A second restore finds them in place.
        let again = n.lab.cli(&format!("nat44 restore {}", saved.path()));
        let words = "0 sessions restored\n204 not restored: session exists already";
        assert_eq!(again.trim(), words);
        n.lab.ok("clear nat44 sessions");
        n.lab.c.sync();
        n.await_no_sessions();
        let busy = n.lab.cli("show nat44 addresses");
        assert!(
            !busy.lines().any(|l| l.contains(" busy ") && !l.trim().starts_with("0 ")),
            "{busy}"
        );
        n.close();
    }
}

#[test]
fn sessions_without_mapping_are_not_restored() {
    let saved = save(1);
    let mut n = Nat::new();
    // Neither the mapping nor the address exists.
    n.lab.ok("nat44 add address 192.0.2.1 del\nnat44 add address 192.0.2.2");
    let text = n.lab.cli(&format!("nat44 restore {}", saved.path()));
    let words = "0 sessions restored\n204 not restored: address, port or mapping is missing; they are \
                 placed when it comes";
    assert_eq!(text.trim(), words);
    // Room for fewer sessions than saved.
    let mut n2 = Nat::with(1, "nat44 plugin enable sessions 50");
    let text = n2.lab.cli(&format!("nat44 restore {}", saved.path()));
    assert!(text.starts_with("50 sessions restored\n"), "{text}");
    assert!(text.contains("session table full or limit reached"), "{text}");
    n2.close();
    // Ports belong to other workers if these are fewer.
    let mut n3 = Nat::of(2);
    n3.lab.ok(MAPPING);
    let text = n3.lab.cli(&format!("nat44 restore {}", saved.path()));
    let sessions = n3.sessions().len() as u64;
    assert!(text.starts_with(&format!("{} restored\n", counted(sessions, "session"))), "{text}");
    assert!((1..204).contains(&sessions), "{sessions}");
    n3.close();
    n.close();
}

/// The address of an interface may come after the start. A save meanwhile loses nothing.
#[test]
fn sessions_wait_for_their_address_and_mapping() {
    for workers in [1, 3] {
        let saved = save(workers);
        let mut n = Nat::of(workers);
        n.know(3..10);
        n.lab.ok("nat44 add address 192.0.2.1 del");
        let text = n.lab.cli(&format!("nat44 restore {}", saved.path()));
        assert!(text.contains("204 not restored"), "{text}");
        let text = n.lab.cli(&format!("nat44 save {}", saved.path()));
        assert_eq!(text.trim(), "204 sessions saved", "none is placed, and none is lost");
        n.lab.ok("nat44 add address 192.0.2.1");
        n.await_sessions(203);
        n.lab.ok(MAPPING);
        // Each is saved once, also while the last one gets its place.
        while n.sessions().len() < 204 {
            let text = n.lab.cli(&format!("nat44 save {}", saved.path()));
            assert_eq!(text.trim(), "204 sessions saved");
            n.lab.c.run_once(Some(std::time::Duration::from_millis(1)));
        }
        let [port, ..] = saved.ports;
        assert_eq!(n.one(1, 0, tcp((FAR, 443), (SHARED, port), ACK)).dst(), ip(0, 2));
        let text = n.lab.cli(&format!("nat44 save {}", saved.path()));
        assert_eq!(text.trim(), "204 sessions saved");
        n.close();
    }
}

/// A router that is configured like this one could open neither.
#[test]
fn sessions_and_their_log_are_in_two_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("one").display().to_string();
    let mut n = Nat::new();
    n.lab.ok(&format!("nat44 save {file} every 5"));
    let refused = n.lab.cli(&format!("nat44 log file {file}"));
    assert!(refused.contains("log to another file"), "{refused}");
    n.lab.ok(&format!("nat44 save never\nnat44 log file {file}"));
    let refused = n.lab.cli(&format!("nat44 save {file} every 5"));
    assert!(refused.contains("writes a log of nat44 there: name another file"), "{refused}");
    n.close();
}

/// The log's thread ends later than the command, as does one that writes a file of sessions.
#[test]
fn a_file_is_free_once_no_setting_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name).display().to_string());
    let mut n = Nat::new();
    n.one(0, 1, udp((ip(0, 3), 6000), (FAR, 53)));
    for _ in 0..20 {
        n.lab.ok(&format!("nat44 log file {a}\nnat44 log off\nnat44 save {b} every 1"));
        n.lab.ok(&format!("nat44 log file {a}\nnat44 save never\nnat44 log off"));
        n.lab.ok(&format!("nat44 save {a} every 1\nnat44 save never\nnat44 log file {a}"));
        n.lab.ok("nat44 log off");
    }
    n.close();
}

#[test]
fn a_save_that_runs_leaves_the_file_to_the_log_that_got_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("one");
    let mut n = Nat::new();
    for port in 1..=200 {
        n.one(0, 1, udp((ip(0, 5), port), (FAR, 53)));
    }
    n.lab.ok(&format!("nat44 save {} every 1", file.display()));
    // Until its thread has begun: then the file of its own is there.
    let end = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
    while std::fs::read_dir(dir.path()).unwrap().count() == 0 {
        assert!(std::time::Instant::now() < end);
        n.lab.c.run_once(Some(std::time::Duration::from_micros(100)));
    }
    n.lab.ok("nat44 save never");
    let _ = std::fs::remove_file(&file);
    n.lab.ok(&format!("nat44 log file {}", file.display()));
    n.one(0, 1, udp((ip(0, 6), 1), (FAR, 53)));
    let end = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
    while std::fs::read_dir(dir.path()).unwrap().count() > 1
        || !std::fs::read(&file).unwrap().starts_with(b"{")
    {
        assert!(std::time::Instant::now() < end, "{:?}", std::fs::read(&file));
        n.lab.c.run_once(Some(std::time::Duration::from_millis(1)));
    }
    n.close();
}

#[test]
fn a_log_is_not_appended_to_sessions() {
    let saved = save(1);
    let mut n = Nat::of(1);
    let refused = n.lab.cli(&format!("nat44 log file {}", saved.path()));
    assert!(refused.contains("is not a log of nat44: remove it first"), "{refused}");
    n.lab.ok(MAPPING);
    assert_eq!(
        n.lab.cli(&format!("nat44 restore {}", saved.path())).trim(),
        "204 sessions restored"
    );
    n.close();
}

#[test]
fn files_that_are_none_are_refused() {
    let mut n = Nat::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    let restore = format!("nat44 restore {}", file.display());
    assert!(n.lab.cli(&restore).contains("No such file"));
    assert!(
        n.lab.cli(&format!("{restore} if-present")).contains("no such file, no sessions restored")
    );
    std::fs::write(&file, b"hello").unwrap();
    assert!(n.lab.cli(&restore).contains("not a file of nat44 sessions"));
    let nowhere = n.lab.cli("nat44 save /nonexistent/x");
    assert!(nowhere.contains("/nonexistent: no such directory"), "{nowhere}");
    n.lab.ok("nat44 plugin disable");
    assert!(n.lab.cli(&restore).contains("nat44 is disabled"));
    n.close();
}

/// A router that starts with a configuration saves again only what it has restored.
#[test]
fn sessions_are_restored_before_they_are_saved_again() {
    let saved = save(1);
    let mut n = Nat::of(1);
    n.lab.ok(MAPPING);
    let every = format!("nat44 save {} every 1 restore", saved.path());
    assert_eq!(n.lab.cli(&every).trim(), "204 sessions restored");
    assert_eq!(n.sessions().len(), 204);
    // The router's own file has nothing that is missing.
    n.lab.ok("clear nat44 sessions");
    n.await_no_sessions();
    n.lab.ok(&every);
    assert_eq!(n.sessions().len(), 0);
    n.lab.ok("nat44 save never");
    // A file that cannot be read is not replaced.
    std::fs::write(saved.path(), b"hello").unwrap();
    assert!(n.lab.cli(&every).contains("not a file of nat44 sessions"));
    let end = std::time::Instant::now() + std::time::Duration::from_millis(1500);
    while std::time::Instant::now() < end {
        n.lab.c.run_once(Some(std::time::Duration::from_millis(50)));
    }
    assert_eq!(std::fs::read(saved.path()).unwrap(), b"hello");
    n.close();
}

#[test]
fn a_periodic_save_to_nowhere_is_refused_at_once() {
    let mut n = Nat::of(1);
    let nowhere = n.lab.cli("nat44 save /nonexistent/x every 10");
    assert!(nowhere.contains("/nonexistent: no such directory"), "{nowhere}");
    assert!(!n.lab.cli("nat44 save /tmp every 10").is_empty());
    n.close();
}

#[test]
fn sessions_are_saved_periodically() {
    let mut n = Nat::new();
    n.one(0, 1, udp((ip(0, 3), 6000), (FAR, 53)));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    n.lab.ok(&format!("nat44 save {} every 1", file.display()));
    let end = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
    while !file.exists() {
        assert!(std::time::Instant::now() < end);
        n.lab.c.run_once(Some(std::time::Duration::from_millis(5)));
    }
    n.lab.ok("nat44 save never\nclear nat44 sessions");
    n.await_no_sessions();
    let text = n.lab.cli(&format!("nat44 restore {}", file.display()));
    assert_eq!(text.trim(), "1 session restored");
    n.close();
}
