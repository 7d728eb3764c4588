//! Workers ask for no memory while packets flow: whatever a way of packets needs, it has from the
//! start, or has got by the time that it has run for a while.
//!
//! The allocator of this program counts who asks it, thread by thread, so that what the main thread
//! and the others do meanwhile does not matter.

#![allow(clippy::panic)]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::{self, Case, PORTS, flow_packet, packet, stream, stream_of};
use thalweg_graph::heap::Counting;
use thalweg_testkit::sized;

#[global_allocator]
static HEAP: Counting = Counting;

/// Turns with packets before it counts, and while it does: in the usual run and in a long one. All
/// flows of a stream pass within two dozen turns.
const WARM_UP: [u64; 2] = [150, 1500];
const TURNS: [u64; 2] = [100, 2500];
/// Time that a slow machine may take for them.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until every worker has had this number of further turns with packets.
fn turns(r: &mut Router, more: u64) {
    let busy = |r: &mut Router, w| r.control().worker_stats(w).totals.busy_loops.get();
    let workers = 0..r.control().workers();
    let goals: Vec<u64> = workers.clone().map(|w| busy(r, w) + more).collect();
    let end = Instant::now() + PATIENCE;
    while workers.clone().any(|w| busy(r, w) < goals[w]) {
        assert!(Instant::now() < end, "too few packets:\n{}", r.cli("show runtime\nshow errors"));
        r.wait(Duration::from_millis(2));
    }
}

/// Lets all streams run, and holds all workers to asking for no memory once they have for a while.
fn no_allocation(what: &str, mut r: Router) {
    r.cli("packet-generator enable-stream");
    turns(&mut r, sized(WARM_UP[0], WARM_UP[1]));
    let before = r.control().ask(|_| {
        Counting::watch();
        Counting::allocations()
    });
    turns(&mut r, sized(TURNS[0], TURNS[1]));
    let after = r.control().ask(|_| (Counting::allocations(), Counting::backtrace()));
    assert!(
        before.iter().all(|asked| asked.is_some_and(|n| n > 0)),
        "the allocator does not count"
    );
    for (worker, (before, after)) in before.into_iter().zip(after).enumerate() {
        let (Some(before), Some((after, seen))) = (before, after) else {
            panic!("{what}: worker {worker} does not answer");
        };
        let times = after - before;
        let first = seen.map(|at| at.to_string()).unwrap_or_default();
        assert_eq!(
            times, 0,
            "{what}: worker {worker} asked for memory, the first time at\n{first}"
        );
    }
    r.settle();
    r.control().shut_down();
}

fn router() -> Router {
    Router::start(&[None])
}

/// A router with addresses, neighbours behind `pg1`, and a route by them.
fn routed(workers: usize) -> Router {
    let mut r = Router::start(&vec![None; workers]);
    r.cli(PORTS);
    paths::address(&mut r);
    r.cli("ip route add 48.0.0.0/8 via 10.1.0.1 pg1");
    r
}

fn case(case: Case) -> Router {
    let mut r = router();
    case.set_up(&mut r);
    r
}

/// Hosts inside, of which each packet is another flow; `again` flows take turns.
fn flows(r: &mut Router, name: &str, worker: usize, again: u32) {
    let flow = |n: u32| {
        let from = (Ipv4Addr::from_bits(0x0a40_0000 + n / 64), 1024 + (n % 64) as u16);
        flow_packet(from, (Ipv4Addr::new(48, 0, 0, (n % 200) as u8), 443))
    };
    stream_of(r, name, worker, (0..again).map(flow));
}

/// Asks for memory once; how often the allocator has been asked.
///
/// A frame of its own in a backtrace: with line tables only, a function into which another was
/// inlined is printed by the last part of its name, which of a closure is `{closure#0}`.
#[inline(never)]
fn ask_for_memory() -> u64 {
    let before = Counting::allocations();
    drop(std::hint::black_box(vec![before]));
    Counting::allocations() - before
}

#[test]
fn an_allocation_is_seen() {
    let mut r = router();
    let asked = r.control().ask(|_| {
        Counting::watch();
        ask_for_memory()
    });
    assert_eq!(asked, [Some(1)]);
    let seen = r.control().ask(|_| Counting::backtrace()).remove(0).expect("an answer");
    let at = seen.expect("a backtrace").to_string();
    assert!(at.contains("ask_for_memory"), "{at}");
    r.stop();
}

#[test]
fn layer_2_and_routed_ways() {
    for way in [
        Case::L2,
        Case::Bridge,
        Case::Macs,
        Case::OneFlow,
        Case::NextHops,
        Case::VlanRandom,
        Case::RetagMacs,
    ] {
        no_allocation(way.name(), case(way));
    }
}

#[test]
fn frames_of_all_sizes_and_packets_that_come_alone() {
    let mut r = case(Case::OneFlow);
    for size in [1, 3, 64] {
        r.cli(&stream(&format!("f{size}"), "pg0", 0, "48.0.0.1"));
        r.cli(&format!("packet-generator configure f{size} maxframe {size}"));
    }
    no_allocation("frames of several sizes", r);

    // The worker sleeps in between.
    let mut r = case(Case::OneFlow);
    r.cli("packet-generator configure s0 maxframe 1 rate 20000");
    no_allocation("packets that come alone", r);
}

#[test]
fn learned_macs_and_floods() {
    let mut r = router();
    r.cli(PORTS);
    for port in 2..5 {
        r.cli(&format!(
            "create packet-generator interface pg{port}\nset interface state pg{port} up"
        ));
    }
    (0..5).for_each(|port| drop(r.cli(&format!("set interface l2 bridge pg{port} 1"))));
    let packets = (0..5000u32).map(|n| {
        let mut p = packet(48 << 24);
        // Frames go to unknown MAC addresses, multicast too, from ever others.
        p[..6].copy_from_slice(match n % 3 {
            0 => &[0xff; 6],
            1 => &[1, 0, 0x5e, 0, 0, 7],
            _ => &[2, 0xee, 0, 0, 0, 1],
        });
        p[8..12].copy_from_slice(&n.to_be_bytes());
        p
    });
    stream_of(&mut r, "s0", 0, packets);
    no_allocation("floods", r);
}

#[test]
fn translation_with_sessions_that_begin_and_end() {
    let mut r = routed(1);
    // More flows than there may be sessions: some begin, some are refused.
    r.cli(
        "nat44 plugin enable sessions 4096
         nat44 add address 203.0.113.0 - 203.0.113.3
         set interface nat44 in pg0 out pg1",
    );
    flows(&mut r, "s0", 0, 6000);
    let back = |n: u32| {
        let to = (Ipv4Addr::new(203, 0, 113, (n % 4) as u8), 1024 + (n / 4) as u16);
        flow_packet((Ipv4Addr::new(48, 0, 0, (n % 200) as u8), 443), to)
    };
    stream_of(&mut r, "back", 0, (0..6000).map(back));
    no_allocation("translation", r);

    let mut r = routed(2);
    r.cli(
        "nat44 plugin enable sessions 4096
         nat44 add address 203.0.113.0 - 203.0.113.3
         set interface nat44 in pg0 out pg1",
    );
    (0..2).for_each(|w| flows(&mut r, &format!("s{w}"), w, 3000));
    no_allocation("translation by two workers", r);
}

#[test]
fn flow_rules_and_their_connections() {
    for (what, commit) in [("ct", "ct(commit)"), ("ct(nat)", "ct(commit,nat(src=203.0.113.5))")] {
        let mut r = router();
        r.cli(PORTS);
        r.cli("set interface l2 bridge pg0 10\nset interface l2 bridge pg1 10");
        r.cli(&format!(
            "flow add 10 'priority=1,ip,ct_state=-trk,actions=ct(table=0,nat)'
             flow add 10 'priority=2,udp,ct_state=+trk+new,tp_dst=442,actions=drop'
             flow add 10 'priority=1,ip,ct_state=+trk+new,in_port=pg0,actions={commit},normal'
             flow add 10 'priority=1,ip,ct_state=+trk+est,actions=normal'
             flow add 10 'priority=0,actions=drop'
             set conntrack limit 4096
             set conntrack when-full recycle"
        ));
        // Ever new connections: more of them than may be remembered.
        flows(&mut r, "s0", 0, 6000);
        r.cli(
            "packet-generator new { name back limit -1 size 64-64 interface pg1 data { \
             IP4: 02fe.0000.0001 -> 0200.0000.00aa UDP: 48.0.0.0 -> 10.64.0.0 \
             UDP: 443 -> 1024 incrementing 22 } }",
        );
        no_allocation(what, r);
    }
}

#[test]
fn samples_at_all_rates() {
    for rate in [1, 10, 1000] {
        for way in [Case::L2, Case::OneFlow] {
            let mut r = case(way);
            let _collector = r.collect();
            r.cli(&format!(
                "sflow sampling-rate {rate}
                 sflow enable-disable pg0
                 sflow enable-disable pg1"
            ));
            no_allocation(&format!("samples, 1 in {rate}"), r);
        }
    }
}

#[test]
fn packets_that_are_refused_or_answered() {
    let mut r = routed(1);
    r.cli("ip route add 10.9.0.0/16 via 10.1.0.99 pg1\nset interface mtu packet 1400 pg1");
    let packets = (0..4096u32).map(|n| {
        let mut p = packet((48 << 24) + n);
        let source = Ipv4Addr::from_bits(0x0a00_0001 + n % 200);
        match n % 8 {
            // Packets for another host; of an unknown protocol.
            0 => p[5] = 9,
            1 => p[12..14].copy_from_slice(&[0x99, 0x99]),
            // A bad header; a destination without a route; one whose neighbour does not answer.
            2 => p[14] = 0x55,
            3 => p = flow_packet((source, 7), (Ipv4Addr::new(77, 0, 0, 1), 7)),
            4 => p = flow_packet((source, 7), (Ipv4Addr::new(10, 9, 0, (n % 50) as u8), 7)),
            // Packets to ourselves, where nobody listens; out of time.
            5 => p = flow_packet((source, 7), (Ipv4Addr::new(10, 0, 0, 254), 7)),
            6 => {
                // The checksum follows the time to live.
                p = flow_packet((source, 7), (Ipv4Addr::new(48, 0, 0, 1), 7));
                let check = u16::from_be_bytes([p[24], p[25]]);
                p[22] = 1;
                p[24..26].copy_from_slice(&(check.wrapping_add(63 << 8)).to_be_bytes());
            }
            _ => {}
        }
        p
    });
    stream_of(&mut r, "s0", 0, packets);
    no_allocation("packets that are refused", r);
}

#[test]
fn fragments() {
    let mut r = routed(1);
    r.cli(
        "set interface mtu packet 300 pg1
         packet-generator new { name big limit -1 size 1200-1200 interface pg0 \
         data { IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 -> 48.0.0.1 \
         UDP: 1234 -> 4321 incrementing 1158 } }",
    );
    no_allocation("fragments", r);

    // The pieces are too many to be kept ready, and the packet is longer than a buffer.
    let mut r = case(Case::L2);
    r.cli(
        "packet-generator new { name big limit -1 size 3000-9000 interface pg0 \
         data { IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 - 10.0.255.255 -> 48.0.0.1 \
         UDP: 1234 -> 4321 incrementing 2958 } }",
    );
    no_allocation("packets in several buffers", r);
}
