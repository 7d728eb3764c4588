//! Random packets in random order, from either side and on any worker, while the configuration
//! changes: nothing panics or leaks, and all counters agree.

use crate::nat::{FAR, Nat, SHARED, echo, tcp, udp};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use thalweg_device::testing::ip4::ip;
use thalweg_wire::icmpv4::{self, IcmpRepr};
use thalweg_wire::ipv4::Ipv4View;

/// A random step.
#[derive(Clone, Debug)]
enum Step {
    /// A packet is received: worker, side, kind, and numbers for the rest.
    Packet { worker: u8, side: u8, kind: u8, numbers: [u8; 4] },
    /// Bytes that are not a packet are received.
    Rubbish(u8, Vec<u8>),
    /// The last packet sent is returned with some bytes changed.
    Echo(u8, Vec<(u8, u8)>),
    /// A command is run.
    Command(u8),
}

const COMMANDS: [&str; 12] = [
    "nat44 add address 192.0.2.2",
    "nat44 add address 192.0.2.2 del",
    "nat44 add static mapping tcp local 10.0.0.3 80 external 192.0.2.1 80",
    "nat44 add static mapping tcp local 10.0.0.3 80 external 192.0.2.1 80 del",
    "nat44 add static mapping udp local 10.0.0.4 53 external 192.0.2.1 2002",
    "nat44 add static mapping udp local 10.0.0.4 53 external 192.0.2.1 2002 del",
    "set nat44 session limit 4 per-host",
    "set nat44 session limit 0 per-host",
    "set nat44 table-full refuse",
    "set nat44 table-full recycle",
    "nat addr-port-assignment-alg port-range 2000 - 2040",
    "clear nat44 sessions",
];

fn step() -> impl Strategy<Value = Step> {
    let packet = (0u8..3, 0u8..2, 0u8..9, any::<[u8; 4]>())
        .prop_map(|(worker, side, kind, numbers)| Step::Packet { worker, side, kind, numbers });
    prop_oneof![
        16 => packet,
        2 => (0u8..2, prop::collection::vec(any::<u8>(), 0..90)).prop_map(|(s, b)| Step::Rubbish(s, b)),
        4 => (0u8..2, prop::collection::vec((0u8..60, any::<u8>()), 0..3))
            .prop_map(|(s, b)| Step::Echo(s, b)),
        1 => (0..COMMANDS.len() as u8).prop_map(Step::Command),
    ]
}

fn packet(side: u8, kind: u8, [a, b, c, d]: [u8; 4]) -> Vec<u8> {
    let host = (ip(0, 2 + a % 4), 5000 + u16::from(b % 4));
    let far = (Ipv4Addr::new(198, 51, 100, 7 + c % 2), [80, 53][usize::from(c / 2 % 2)]);
    let name = (
        [SHARED, Ipv4Addr::new(192, 0, 2, 2)][usize::from(a % 2)],
        [80, 2002, 2000 + u16::from(b % 50), 1024 + 251 * u16::from(b)][usize::from(d % 4)],
    );
    let (from, to) = match (side, d % 8) {
        (0, 7) => (host, name),
        (0, _) => (host, far),
        _ => (far, name),
    };
    let flags = [2, 0x12, 0x10, 0x18, 0x11, 4, 0x14, 0][usize::from(d / 8 % 8)];
    let p = match kind {
        0..=2 => udp(from, to),
        3..=5 => tcp(from, to, flags),
        6 => echo(from.0, to.0, from.1),
        7 => udp(from, to).ttl(1 + d % 2),
        _ => {
            let quoted = udp(to, from).build();
            let mut error = vec![0; 600];
            let view = Ipv4View::parse(&quoted).expect("a sound header");
            let made = icmpv4::emit_error(IcmpRepr::unreachable(3), FAR, &view, &mut error);
            error.truncate(made.expect("an error"));
            return error;
        }
    };
    let mut p = p.build();
    if d == 255 {
        // A random fragment.
        p[6] = a & 0x3f;
        p[10..12].fill(0);
        let sum = thalweg_wire::checksum::checksum(&p[..20]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    p
}

fn run(workers: usize, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut n = Nat::with(workers, "nat44 plugin enable sessions 24");
    n.know(3..10);
    let mut last = Vec::new();
    for step in steps {
        let (worker, side, bytes) = match step {
            Step::Packet { worker, side, kind, numbers } => {
                (usize::from(*worker), *side, packet(*side, *kind, *numbers))
            }
            Step::Rubbish(side, bytes) => (0, *side, bytes.clone()),
            Step::Echo(side, changes) => {
                let mut bytes: Vec<u8> = last.clone();
                for (at, byte) in changes {
                    if let Some(b) = bytes.get_mut(usize::from(*at)) {
                        *b = *byte;
                    }
                }
                (0, *side, bytes)
            }
            Step::Command(i) => {
                // Commands on existing or missing objects may fail.
                n.lab.cli(COMMANDS[usize::from(*i)]);
                continue;
            }
        };
        if bytes.is_empty() {
            continue;
        }
        let out = n.pass_on(worker % workers, side, vec![bytes]);
        if let Some(out) = out.into_iter().next() {
            last = out.bytes[14..].to_vec();
        }
        let sessions = n.sessions().len();
        prop_assert!(sessions <= 24 * workers, "{} sessions", sessions);
    }
    // Ports reserved for mappings count as busy.
    COMMANDS.iter().filter(|c| c.starts_with("nat44 add static") && c.ends_with("del")).for_each(
        |c| {
            n.lab.cli(c);
        },
    );
    n.lab.ok("clear nat44 sessions");
    let end = Instant::now() + thalweg_testkit::WAIT_LIMIT;
    while !n.sessions().is_empty() {
        prop_assert!(Instant::now() < end, "sessions stay");
        n.lab.c.run_once(Some(Duration::from_millis(1)));
    }
    let text = n.lab.cli("show nat44 summary");
    let counted = |what: &str| -> u64 {
        let line = text.lines().find_map(|l| l.strip_prefix(what)?.strip_prefix(": "));
        line.and_then(|n| n.parse().ok()).unwrap_or(u64::MAX)
    };
    let ended = ["sessions expired", "sessions removed", "half open sessions recycled"];
    prop_assert_eq!(counted("sessions created"), ended.map(counted).iter().sum::<u64>());
    for kind in ["tcp", "udp", "icmp", "other"] {
        prop_assert_eq!(counted(&format!("total {kind} sessions")), 0);
    }
    let text = n.lab.cli("show nat44 addresses");
    let busy = text.lines().filter(|l| l.contains(" busy ") && !l.trim().starts_with("0 "));
    prop_assert_eq!(busy.count(), 0, "{}", text);
    // Checks that all buffers have been returned.
    n.close();
    Ok(())
}

#[test]
fn anything_may_happen() {
    for workers in [1, 3] {
        let config = Config { cases: 8, failure_persistence: None, ..Config::default() };
        let steps = prop::collection::vec(step(), 0..100);
        TestRunner::new(config).run(&steps, |steps| run(workers, &steps)).unwrap();
    }
}
