//! Assignment of sessions to workers.

use crate::nat::{FAR, Nat, Out, SHARED, tcp, udp};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::ip;
use thalweg_feat_nat44::worker::owner;

const MAPPING: &str = "nat44 add static mapping tcp local 10.0.0.9 8080 external 192.0.2.1 80";

/// The workers that own the sessions of many hosts. Replies come back by any worker that the device
/// delivers them to.
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
    n.await_no_sessions();
}

#[test]
fn only_selected_workers_own_sessions() {
    let mut n = Nat::of(3);
    n.know(3..30);
    n.lab.ok(MAPPING);
    assert_eq!(converse(&mut n, 3), BTreeSet::from([0, 1, 2]));
    n.lab.ok("set nat workers 0,2");
    gone(&mut n);
    assert_eq!(converse(&mut n, 3), BTreeSet::from([0, 2]));
    assert!(n.lab.cli("show nat workers").starts_with("2 workers\n"));
    // Sessions from a file go to the workers that own them now.
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
    // The limit of the table applies to that worker alone.
    assert!(n.pass(0, udp((ip(0, 2), 6000), (FAR, 53))).iter().all(|o| o.port == 0));
    n.lab.ok("set nat workers all\nset nat44 session limit 0");
    gone(&mut n);
    assert_eq!(converse(&mut n, 3), BTreeSet::from([0, 1, 2]));
    for (list, why) in [("3", "there is no worker 3; there are 0 to 2"), ("1-", "worker numbers")] {
        let text = n.lab.cli(&format!("set nat workers {list}"));
        assert!(text.contains(why), "{text}");
    }
    n.close();
}

type End = (Ipv4Addr, u16);

const SYN: u8 = 2;
const ACK: u8 = 16;

/// Established connections, with the addresses each end uses for the other.
#[derive(Debug)]
struct Stands {
    near: End,
    far: End,
    name: End,
}

impl Stands {
    /// Returns whether packets pass in both directions, by any worker that the device delivers them
    /// to.
    fn lives(&self, n: &mut Nat, workers: usize) -> bool {
        (0..workers).all(|worker| {
            let out = n.pass_on(worker, 0, vec![tcp(self.near, self.far, ACK).build()]);
            let back = n.pass_on(worker, 1, vec![tcp(self.far, self.name, ACK).build()]);
            let named = |o: &Out| {
                (o.port, o.src(), o.ports()) == (1, self.name.0, (self.name.1, self.far.1))
            };
            let reached = |o: &Out| {
                (o.port, o.dst(), o.ports()) == (0, self.near.0, (self.far.1, self.near.1))
            };
            out.iter().map(named).eq([true]) && back.iter().map(reached).eq([true])
        })
    }
}

/// A connection opened by an inside host.
fn opened(n: &mut Nat, host: u8, port: u16, far: End) -> Stands {
    let near = (ip(0, host), port);
    let out = n.one(0, 1, tcp(near, far, SYN));
    let s = Stands { near, far, name: (out.src(), out.ports().0) };
    n.one(1, 0, tcp(far, s.name, SYN | ACK));
    n.one(0, 1, tcp(near, far, ACK));
    s
}

/// A connection opened by an external host, on a worker.
fn called(n: &mut Nat, worker: usize, far: End, name: End) -> Stands {
    let got = n.pass_on(worker, 1, vec![tcp(far, name, SYN).build()]);
    assert_eq!((got.len(), got[0].port), (1, 0), "{got:02x?}");
    let s = Stands { near: (got[0].dst(), got[0].ports().1), far, name };
    n.one(0, 1, tcp(s.near, far, SYN | ACK));
    n.one(1, 0, tcp(far, name, ACK));
    s
}

/// A pool address becomes the external address of a static mapping, too: existing sessions of other
/// hosts stay, and new ones work.
#[test]
fn a_pool_address_can_be_mapped_to_a_host() {
    for workers in [1, 2, 3] {
        let mut n = Nat::of(workers);
        n.know(3..30);
        let hosts = |n: &mut Nat, port: u16| -> Vec<Stands> {
            (2..20).map(|host| opened(n, host, port, (FAR, 80))).collect()
        };
        let mut all = hosts(&mut n, 5000);
        n.lab.ok("nat44 add static mapping local 10.0.0.4 external 192.0.2.1");
        let wrong =
            |n: &mut Nat, all: &[Stands]| all.iter().filter(|s| !s.lives(n, workers)).count();
        assert_eq!(wrong(&mut n, &all), 0, "{workers} workers: those that stood");
        all.extend(hosts(&mut n, 6000));
        for (i, port) in [22, 80, 1024, 20_000, 40_000, 65_535].into_iter().enumerate() {
            let far = (FAR, 7000 + i as u16);
            let s = called(&mut n, i % workers, far, (SHARED, port));
            assert_eq!(s.near, (ip(0, 4), port));
            all.push(s);
        }
        assert_eq!(wrong(&mut n, &all), 0, "{workers} workers: those and new ones");
        // Datagrams and segments that open no connection: searched for on two workers, and no
        // further.
        for worker in 0..workers {
            let far = (FAR, 9000 + worker as u16);
            let got = n.pass_on(worker, 1, vec![udp(far, (SHARED, 50_000)).build()]);
            assert_eq!(got.iter().map(|o| o.dst()).collect::<Vec<_>>(), [ip(0, 4)]);
            let lost = n.pass_on(worker, 1, vec![tcp(far, (SHARED, 50_000), ACK).build()]);
            assert!(lost.is_empty());
        }
        // Deleting the mapping ends its connections, and no others.
        let old = n.sessions().len();
        n.lab.ok("nat44 add static mapping local 10.0.0.4 external 192.0.2.1 del");
        let end = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
        while n.sessions().len() == old {
            assert!(std::time::Instant::now() < end);
        }
        let others = all.iter().filter(|s| s.near.0 != ip(0, 4)).collect::<Vec<_>>();
        let lost = others.iter().filter(|s| !s.lives(&mut n, workers)).count();
        assert_eq!(lost, 0, "{workers} workers: other hosts, afterwards");
        n.close();
    }
}

/// If another host has the external port that the mapped host would keep, that one gets another.
#[test]
fn a_mapped_host_gets_another_port_if_its_own_is_taken() {
    for workers in [1, 2] {
        let mut n = Nat::of(workers);
        n.know(3..30);
        n.lab.ok("nat44 add static mapping local 10.0.0.4 external 192.0.2.1");
        for host in 10..20 {
            let first = opened(&mut n, host, 5000, (FAR, 80));
            let second = opened(&mut n, 4, first.name.1, (FAR, 80));
            assert_eq!(second.name.0, SHARED);
            assert_ne!(second.name.1, first.name.1);
            assert!(first.lives(&mut n, workers) && second.lives(&mut n, workers));
            // The host keeps its own towards other hosts.
            let third = opened(&mut n, 4, first.name.1, (FAR, 81));
            assert_eq!(third.name, first.name);
            assert!(third.lives(&mut n, workers));
        }
        n.close();
    }
}

/// A packet to the load-balancing mapping reaches a back end, and the reply comes back, by any
/// worker; returns the back end.
fn answered(n: &mut Nat, workers: usize, far: End, flags: u8) -> Option<End> {
    let mut near = None;
    for worker in 0..workers {
        let got = n.pass_on(worker, 1, vec![tcp(far, (SHARED, 80), flags).build()]);
        let got = got.first()?;
        let (host, caller) = ((got.dst(), got.ports().1), (got.src(), got.ports().0));
        let back = n.pass_on(worker, 0, vec![tcp(host, caller, flags | ACK).build()]);
        let back = back.first()?;
        assert_eq!((back.src(), back.dst(), back.ports()), (SHARED, far.0, (80, far.1)));
        assert_eq!(*near.get_or_insert(host), host);
    }
    near
}

/// Back ends are added and deleted: only connections of deleted ones break.
#[test]
fn connections_outlive_changes_of_a_balance() {
    for (workers, options) in [(1, ""), (2, ""), (3, ""), (2, " affinity 60"), (2, " twice-nat")] {
        let mut n = Nat::of(workers);
        n.know(3..30);
        let what = format!("{workers} workers{options}");
        // The first two belong to different workers, if there are several.
        let of = |worker| (2..30).find(|h| owner(ip(0, *h), workers) == worker).expect("a host");
        let first = of(0);
        let second = if workers > 1 { of(workers - 1) } else { first + 1 };
        let third = (2..30).find(|h| *h != first && *h != second).expect("a host");
        n.lab.ok(&format!(
            "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:80 \
             local 10.0.0.{first}:8080 probability 50 local 10.0.0.{second}:8080 probability 50\
             {options}"
        ));
        if options.contains("twice") {
            n.lab.ok("nat44 add address 10.9.9.9 twice-nat\n\
                      ip route add 10.9.9.0/24 via 10.0.1.2 test1");
        }
        let far = |i: u16| (Ipv4Addr::from(FAR.to_bits() + u32::from(i % 5)), 4000 + i);
        let open = |n: &mut Nat, some: std::ops::Range<u16>| -> Vec<(End, End)> {
            let one = |i| (far(i), answered(n, workers, far(i), SYN).expect("an answer"));
            some.map(one).collect()
        };
        let alive = |n: &mut Nat, all: &[(End, End)]| {
            let alive = |(far, near): &&(End, End)| answered(n, workers, *far, ACK) == Some(*near);
            all.iter().filter(alive).count()
        };
        let mut all = open(&mut n, 0..24);
        assert_eq!(alive(&mut n, &all), 24, "{what}: at first");
        let back_end = "nat44 add load-balancing back-end protocol tcp external 192.0.2.1:80";
        n.lab.ok(&format!("{back_end} local 10.0.0.{third}:8080 probability 50"));
        assert_eq!(alive(&mut n, &all), 24, "{what}: one has come");
        all.extend(open(&mut n, 24..48));
        assert_eq!(alive(&mut n, &all), 48, "{what}: all");
        assert!(all.iter().any(|(_, near)| near.0 == ip(0, third)), "{all:?}");
        n.lab.ok(&format!("{back_end} local 10.0.0.{second}:8080 probability 50 del"));
        let is_gone = |(_, near): &(End, End)| near.0 == ip(0, second);
        let (gone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(is_gone);
        let end = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
        while n.sessions().len() > kept.len() {
            assert!(std::time::Instant::now() < end);
        }
        assert_eq!(alive(&mut n, &kept), kept.len(), "{what}: one has gone");
        assert_eq!(alive(&mut n, &gone), 0, "{what}: its connections");
        n.close();
    }
}

/// Sessions that the mapped host opened itself outlive an out2in-only mapping.
#[test]
fn sessions_opened_from_inside_outlive_the_mapping() {
    for workers in [1, 2, 3] {
        let mut n = Nat::of(workers);
        n.know(3..30);
        let name = "nat44 add static mapping local 10.0.0.4 external 192.0.2.1 out2in-only";
        n.lab.ok(name);
        // Ports of all workers.
        let begun: Vec<Stands> =
            (0..40).map(|i| opened(&mut n, 4, 1100 + 1600 * i, (FAR, 80))).collect();
        let met: Vec<Stands> = [22, 20_000, 40_000, 65_535]
            .into_iter()
            .enumerate()
            .map(|(i, port)| called(&mut n, i % workers, (FAR, 7000 + i as u16), (SHARED, port)))
            .collect();
        let alive =
            |n: &mut Nat, all: &[Stands]| all.iter().filter(|s| s.lives(n, workers)).count();
        assert_eq!((alive(&mut n, &begun), alive(&mut n, &met)), (40, 4), "{workers} workers");
        n.lab.ok(&format!("{name} del"));
        let end = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
        while n.sessions().len() > begun.len() {
            assert!(std::time::Instant::now() < end, "{workers} workers: {:?}", n.sessions());
        }
        assert_eq!(alive(&mut n, &begun), 40, "{workers} workers: after the mapping");
        assert_eq!(n.sessions().len(), 40, "{workers} workers: none was reopened");
        // New sessions belong to the host's own worker, as before the mapping.
        let new = opened(&mut n, 4, 6000, (FAR, 80));
        assert!(new.lives(&mut n, workers));
        n.close();
    }
}
