//! Which workers have sessions.

use crate::lab::ip;
use crate::nat::{FAR, Nat, SHARED, tcp, udp};
use std::collections::BTreeSet;

const MAPPING: &str = "nat44 add static mapping tcp local 10.0.0.9 8080 external 192.0.2.1 80";

/// The workers that sessions of many hosts are on; each host's answers come back, by whichever worker
/// the device gives them to.
fn converse(n: &mut Nat, workers: usize) -> BTreeSet<usize> {
    for host in 2..30 {
        let near = (ip(0, host), 5000);
        let out = n.one(0, 1, udp(near, (FAR, 53)));
        for worker in 0..workers {
            let back = udp((FAR, 53), (SHARED, out.ports().0)).build();
            let back = n.pass_on(worker, 1, vec![back]);
            assert_eq!((back.len(), back[0].dst()), (1, near.0));
        }
    }
    n.one(1, 0, tcp((FAR, 1234), (SHARED, 80), 2));
    n.one(0, 1, tcp((ip(0, 9), 8080), (FAR, 1234), 0x12));
    n.sessions().iter().map(|s| s.worker).collect()
}

fn gone(n: &mut Nat) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !n.sessions().is_empty() {
        assert!(std::time::Instant::now() < end);
        n.lab.c.run_once(Some(std::time::Duration::from_millis(5)));
    }
}

#[test]
fn only_those_that_are_named_have_sessions() {
    let mut n = Nat::of(3);
    n.know(3..30);
    n.lab.ok(MAPPING);
    assert_eq!(converse(&mut n, 3), BTreeSet::from([0, 1, 2]));
    n.lab.ok("set nat workers 0,2");
    gone(&mut n);
    assert_eq!(converse(&mut n, 3), BTreeSet::from([0, 2]));
    assert!(n.lab.cli("show nat workers").starts_with("2 workers\n"));
    // A file has its sessions come to the workers that have them now.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sessions").display().to_string();
    assert_eq!(n.lab.cli(&format!("nat44 save {file}")).trim(), "29 sessions saved");
    n.lab.ok("clear nat44 sessions");
    gone(&mut n);
    assert_eq!(n.lab.cli(&format!("nat44 restore {file}")).trim(), "29 sessions restored");
    assert_eq!(converse(&mut n, 3), BTreeSet::from([0, 2]));
    assert_eq!(n.sessions().len(), 29);
    n.lab.ok("set nat workers 1\nset nat44 session limit 5 per-host\nset nat44 session limit 29");
    gone(&mut n);
    assert_eq!(converse(&mut n, 3), BTreeSet::from([1]));
    // The table's limit is that worker's alone.
    assert!(n.pass(0, udp((ip(0, 2), 6000), (FAR, 53))).iter().all(|o| o.port == 0));
    n.lab.ok("set nat workers all\nset nat44 session limit 0");
    gone(&mut n);
    assert_eq!(converse(&mut n, 3), BTreeSet::from([0, 1, 2]));
    for (list, why) in
        [("3", "there is no worker 3: they are 0 to 2"), ("1-", "numbers of workers")]
    {
        let text = n.lab.cli(&format!("set nat workers {list}"));
        assert!(text.contains(why), "{text}");
    }
    n.close();
}
