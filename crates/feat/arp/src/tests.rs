//! Tests of the feature as a whole.

use crate::testing::{Bench, OUR_IP, ip, mac, reply};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use thalweg_device::interface;
use thalweg_feat_neighbor::{
    self as neighbor, NeighborChange, NeighborFlags, Neighbors, State, Version,
};
use thalweg_fib::{Forwarding, Kind, LinkType};
use thalweg_wire::MacAddr;
use thalweg_wire::arp::ArpRepr;

#[test]
fn lists_are_current() {
    thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
}

fn watch(b: &mut Bench) -> Rc<RefCell<Vec<NeighborChange>>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = seen.clone();
    b.lab.c.subscribe(move |_, change| log.borrow_mut().push(*change));
    seen
}

fn kind(b: &Bench, n: u8) -> Option<Kind> {
    let f = b.lab.c.state::<Forwarding>();
    let f = f.borrow();
    f.find(b.sw_if, LinkType::Ip4, IpAddr::V4(ip(n))).map(|a| f.table().get(a.dpo).state().kind)
}

#[test]
fn subscribers_hear_of_neighbours_with_their_adjacency_complete() {
    let mut b = Bench::new();
    let seen = watch(&mut b);
    let sw_if = b.sw_if;
    let want = |mac, fib_entry| NeighborChange {
        sw_if,
        ip: ip(7).into(),
        mac,
        is_static: false,
        fib_entry,
    };
    b.request_from(7);
    assert_eq!(seen.take(), [want(Some(mac(7)), true)]);
    assert_eq!(kind(&b, 7), Some(Kind::REWRITE));
    // The MAC address changes.
    b.arp(reply(mac(9), ip(7)));
    assert_eq!(seen.take(), [want(Some(mac(9)), true)]);
    neighbor::flush(&mut b.lab.c, Some(sw_if), None);
    assert_eq!(seen.take(), [want(None, false)]);
    assert_eq!(kind(&b, 7), None, "the adjacency is released");
    b.finish();
}

#[test]
fn static_neighbours_follow_the_subnets() {
    let mut b = Bench::new();
    let seen = watch(&mut b);
    let (sw_if, far) = (b.sw_if, IpAddr::from([172, 16, 0, 9]));
    let flags = NeighborFlags { is_static: true, no_fib_entry: false };
    neighbor::set(&mut b.lab.c, sw_if, far, mac(9), flags).unwrap();
    let quiet = NeighborFlags { no_fib_entry: true, ..flags };
    neighbor::set(&mut b.lab.c, sw_if, ip(8).into(), mac(8), quiet).unwrap();
    let fib: Vec<bool> = seen.take().iter().map(|c| c.fib_entry).collect();
    assert_eq!(fib, [false, false]);
    b.request_from(7);
    seen.take();
    // The subnet moves: the learned neighbour is deleted, the remote one becomes connected.
    crate::set_addresses(&mut b.lab.c, sw_if, &[([172, 16, 0, 1].into(), 24)]);
    let changes: Vec<_> = seen.take().iter().map(|c| (c.ip, c.mac, c.fib_entry)).collect();
    assert_eq!(changes, [(ip(7).into(), None, false), (far, Some(mac(9)), true)]);
    // No ARP packet moves a static neighbour.
    crate::set_addresses(&mut b.lab.c, sw_if, &[(OUR_IP, 24)]);
    b.arp(reply(mac(1 + 8), ip(8)));
    assert_eq!(b.known(8), Some(mac(8)));
    assert_eq!(b.lab.c.state::<Neighbors>().borrow().stats(Version::V4).contradicted, 1);
    b.finish();
}

#[test]
fn links_that_go_down_take_what_was_learned() {
    let mut b = Bench::new();
    let sw_if = b.sw_if;
    let flags = NeighborFlags { is_static: true, no_fib_entry: false };
    neighbor::set(&mut b.lab.c, sw_if, ip(8).into(), mac(8), flags).unwrap();
    b.request_from(7);
    interface::set_link(&mut b.lab.c, sw_if, false).unwrap();
    assert_eq!((b.known(7), b.known(8)), (None, Some(mac(8))));
    assert_eq!(kind(&b, 8), Some(Kind::DOWN));
    interface::set_link(&mut b.lab.c, sw_if, true).unwrap();
    assert_eq!(kind(&b, 8), Some(Kind::REWRITE));
    b.request_from(7);
    assert_eq!(b.known(7), Some(mac(7)), "reported again although just heard");
    // A new interface with the same index inherits nothing.
    interface::delete(&mut b.lab.c, sw_if).unwrap();
    assert!(b.lab.c.state::<Neighbors>().borrow().list().is_empty());
    let again = b.lab.interface(1);
    assert_eq!(again, sw_if);
    assert!(crate::addresses(&b.lab.c, sw_if).is_empty());
    b.finish();
}

#[test]
fn an_old_neighbour_is_probed_and_stays_if_it_answers() {
    let mut b = Bench::new();
    b.configure(|config| {
        (config.retry, config.age) = (Duration::from_millis(150), Duration::from_millis(500));
    });
    b.request_from(7);
    b.sent();
    b.until("probe", |b| b.lab.sent_frames() > 0);
    let (to, arp) = b.sent_arp()[0];
    assert_eq!((to, arp.target_ip), (mac(7), ip(7)), "probes go to the neighbour alone");
    b.reply_from(7);
    let find = |b: &Bench| b.lab.c.state::<Neighbors>().borrow().find(b.sw_if, ip(7).into());
    assert_eq!(find(&b).map(|n| n.state), Some(State::Reachable));
    b.sent();
    // The host stays silent: three probes, while its adjacency keeps working, then it is deleted.
    b.until("probing", |b| find(b).is_some_and(|n| n.state == State::Probe));
    assert_eq!(kind(&b, 7), Some(Kind::REWRITE));
    b.until("expiry", |b| find(b).is_none());
    assert_eq!(b.sent_arp().len(), 3);
    assert_eq!(b.lab.c.state::<Neighbors>().borrow().stats(Version::V4).expired, 1);
    b.finish();
}

#[test]
fn a_million_senders_fill_the_table_and_no_more() {
    let mut b = Bench::new();
    let sw_if = b.sw_if;
    crate::set_addresses(&mut b.lab.c, sw_if, &[(OUR_IP, 8)]);
    b.configure(|config| config.limit = 300);
    let flood = b.lab.c.node("flood").unwrap();
    let (start, total) = (Instant::now(), 1_000_000u32);
    b.lab.c.message_all(flood, |_| Box::new((sw_if, total)));
    // A packet needs resolution meanwhile.
    b.packet("ip4-glean", b.glean, ip(7), 0);
    let mut most = Duration::ZERO;
    b.until("the flood's end", |b| {
        let turn = Instant::now();
        b.lab.c.run_once(Some(Duration::ZERO));
        most = most.max(turn.elapsed());
        b.sent();
        b.lab.c.worker_stats(0).totals.rx.get() == u64::from(total)
    });
    b.settle();
    let (len, stats) = {
        let state = b.lab.c.state::<Neighbors>();
        let s = state.borrow();
        (s.len(), s.stats(Version::V4))
    };
    assert!(len == 300 && stats.refused > 0, "{len} {stats:?}");
    let asked = b.count("arp-input", "REPLIES_SENT");
    let dropped = b.lab.c.worker_stats(0).totals.dropped.get();
    assert!(asked + dropped >= u64::from(total), "{asked} + {dropped}");
    let reported = stats.refused + 300;
    let bound = 512 + (start.elapsed().as_secs_f64() * 5000.0) as u64 + 1;
    assert!(reported <= bound, "{reported} reports in {:?}", start.elapsed());
    let lost = b.count("arp-input", "THROTTLED") + b.count("arp-input", "EVENTS_LOST");
    assert!(lost > 0 && most < Duration::from_secs(1), "main was busy for {most:?}");
    // With recycling, new neighbours are learned.
    b.configure(|config| config.recycle = true);
    b.request_from(7);
    b.until("newcomer", |b| {
        b.request_from(7);
        b.known(7).is_some()
    });
    assert_eq!(b.lab.c.state::<Neighbors>().borrow().len(), 300);
    b.finish();
}

#[test]
fn addresses_are_announced_only_when_asked() {
    let mut b = Bench::new();
    crate::set_addresses(&mut b.lab.c, b.sw_if, &[(OUR_IP, 24), ([172, 16, 0, 1].into(), 12)]);
    b.settle();
    assert!(b.sent().is_empty());
    assert_eq!(b.cli("set ip neighbor-advertise test0"), "");
    b.settle();
    let sent = b.sent_arp();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|(to, a)| *to == MacAddr::BROADCAST && a.sender_ip == a.target_ip));
    b.finish();
}

#[test]
fn addresses_of_no_host_cannot_be_configured() {
    let mut b = Bench::new();
    for (address, why) in [
        ("10.0.0.1", "the interface's own address"),
        ("224.0.0.1", "a multicast address"),
        ("127.0.0.1", "not a host address"),
        ("0.0.0.0", "not a host address"),
        ("255.255.255.255", "not a host address"),
    ] {
        let got = b.cli(&format!("set ip neighbor test0 {address} 02:00:00:00:00:02"));
        assert!(got.contains(why), "{address}: {got}");
    }
    let got = b.cli("set ip neighbor test0 fe80::1 02:00:00:00:00:02");
    assert!(got.contains("no resolver is registered for IPv6 neighbours"), "{got}");
    let text = b.cli("show ip neighbor-config");
    assert!(text.starts_with("ip4:\n") && !text.contains("ip6"), "{text}");
    b.finish();
}

#[test]
fn packets_are_counted_by_interface() {
    let mut b = Bench::new();
    let counts = |b: &Bench| {
        let counters = b.lab.c.shared::<crate::ArpCounters>();
        let mut sum = [0; 6];
        for thread in 0..2 {
            let all = counters.read(thread, b.sw_if);
            sum.iter_mut().zip(all).for_each(|(sum, n)| *sum += n);
        }
        sum
    };
    b.packet("ip4-glean", b.glean, ip(7), 0);
    b.settle();
    assert_eq!(counts(&b), [0, 0, 0, 1, 0, 0], "a request");
    b.reply_from(7);
    assert_eq!(counts(&b), [0, 1, 0, 1, 0, 0], "its answer");
    b.request_from(8);
    assert_eq!(counts(&b), [1, 1, 0, 1, 1, 0], "a request, and ours");
    b.arp(ArpRepr::request(mac(8), ip(8), ip(8)));
    assert_eq!(counts(&b), [1, 1, 1, 1, 1, 0], "an announcement");
    neighbor::announce(&mut b.lab.c, b.sw_if).unwrap();
    b.settle();
    assert_eq!(counts(&b), [1, 1, 1, 1, 1, 1], "ours");
    assert_eq!(crate::counters::NAMES[0], "rx/requests");
    b.finish();
}
