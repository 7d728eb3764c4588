//! Tests of the feature with a resolver from outside, for both families; ARP has its own.

use crate::testing::{Bench, ip4, ip6, mac, set_addresses, stub_reply};
use crate::{
    NEIGHBORS, NeighborChange, NeighborError, NeighborFlags, Neighbors, PER_WORKER, State, Version,
};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;
use thalweg_api::types::{AddressFamily, InterfaceIndex};
use thalweg_device::testing::Lab;
use thalweg_device::{SwIfIndex, interface};
use thalweg_fib::{Forwarding, LinkType};
use thalweg_wire::MacAddr;

#[test]
fn lists_are_current() {
    thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
}

const STATIC: NeighborFlags = NeighborFlags { is_static: true, no_fib_entry: false };
/// Makes a neighbour's address.
type Address = fn(u8) -> IpAddr;
/// Addresses, name and ethertype of each family.
const BOTH: [(Address, Version, u16); 2] = [(ip4, Version::V4, 0x0800), (ip6, Version::V6, 0x86dd)];

fn quick(b: &mut Bench, ms: u64) {
    for family in Version::ALL {
        b.configure(family, |c| c.retry = Duration::from_millis(ms));
    }
}

/// Waits until a neighbour has failed and `packets` packets for it have come back. Its silence is
/// long enough to look at where processors are busy with something else.
fn until_failed(b: &mut Bench, packets: u64) {
    let back = |lab: &Lab| lab.count("stub-error", "address unreachable");
    let before = back(&b.lab);
    quick(b, 10);
    b.turn();
    b.lab.until("two requests", |lab| lab.sent_frames() >= 2);
    quick(b, 500);
    b.lab.until("failure", |lab| back(lab) == before + packets);
}

fn watch(b: &mut Bench) -> Rc<RefCell<Vec<NeighborChange>>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = seen.clone();
    b.lab.c.subscribe(move |_, change| log.borrow_mut().push(*change));
    seen
}

#[test]
fn packets_wait_for_their_neighbour_and_are_released_in_order() {
    let mut b = Bench::new();
    for (ip, _, ethertype) in BOTH {
        let seen = watch(&mut b);
        (1..=3).for_each(|mark| b.packet(0, ip(7), mark));
        b.turn();
        assert_eq!(b.asked(), [(MacAddr::BROADCAST, ip(7))]);
        assert_eq!(b.find(ip(7)).map(|n| n.state), Some(State::Incomplete));
        b.reply(ip(7), mac(7));
        b.lab.until("the packets", |lab| lab.sent_frames() == 3);
        let want: Vec<_> = (1..=3).map(|mark| (mac(7), ethertype, mark)).collect();
        assert_eq!(b.released(), want);
        let change = seen.borrow()[0];
        assert_eq!((change.ip, change.mac, change.fib_entry), (ip(7), Some(mac(7)), true));
    }
    b.finish();
}

#[test]
fn the_addresses_of_both_families_do_not_meet() {
    // Their last 32 bits are the same.
    let mut b = Bench::new();
    b.packet(0, ip4(7), 4);
    b.packet(0, ip6(7), 6);
    b.turn();
    assert_eq!(b.asked().len(), 2);
    b.reply(ip6(7), mac(6));
    b.lab.until("one packet", |lab| lab.sent_frames() == 1);
    assert_eq!(b.released(), [(mac(6), 0x86dd, 6)]);
    assert_eq!((b.known(ip4(7)), b.known(ip6(7))), (None, Some(mac(6))));
    b.reply(ip4(7), mac(4));
    b.lab.until("the other", |lab| lab.sent_frames() == 1);
    assert_eq!(b.released(), [(mac(4), 0x0800, 4)]);
    // One is flushed, the other stays.
    assert_eq!(crate::flush(&mut b.lab.c, None, Some(Version::V4)), 1);
    assert_eq!((b.known(ip4(7)), b.known(ip6(7))), (None, Some(mac(6))));
    b.finish();
}

#[test]
fn packets_of_a_deleted_interface_are_not_sent_later() {
    let mut b = Bench::of(2);
    let (here, other) = (b.sw_if, b.lab.sw_if(1));
    for worker in [0, 1] {
        b.packet(worker, ip4(7), 1);
        b.sw_if = other;
        // Received by the other one, to leave by the first.
        let dpo = {
            let forwarding = b.lab.c.state::<Forwarding>();
            forwarding.borrow_mut().glean(&b.lab.c, here, LinkType::Ip4).unwrap()
        };
        b.inject(worker, "stub4-glean", dpo, ip4(7), 2);
        b.sw_if = here;
    }
    b.turn();
    interface::delete(&mut b.lab.c, other).unwrap();
    b.turn();
    assert_eq!(b.count("stub4-glean", "unresolved neighbour"), 2);
    b.reply(ip4(7), mac(7));
    b.lab.until("the packets", |lab| lab.sent_frames() == 4);
    // Two requests, by either worker.
    assert_eq!(b.released(), [(mac(7), 0x0800, 1); 2]);
    b.finish();
}

#[test]
fn a_silent_neighbour_is_reported_to_the_network_by_the_protocols_own_error() {
    let mut b = Bench::new();
    for (ip, family, _) in BOTH {
        let glean = format!("stub{}-glean", if family == Version::V4 { 4 } else { 6 });
        quick(&mut b, 10);
        b.packet(0, ip(7), 1);
        b.packet(0, ip(7), 2);
        until_failed(&mut b, 2);
        assert_eq!(b.asked().len(), 3);
        assert_eq!(b.find(ip(7)).map(|n| n.state), Some(State::Failed));
        assert_eq!(b.lab.c.state::<Neighbors>().borrow().stats(family).failed, 1);
        assert_eq!(b.count(&glean, "packets held"), 2);
        // The neighbour comes back by itself: all nodes must know.
        b.hear(0, ip(7), mac(7), false);
        b.packet(0, ip(7), 3);
        b.turn();
        b.lab.until("the packet", |lab| lab.sent_frames() > 0);
        assert_eq!(b.released().len(), 1);
    }
    assert_eq!(b.count("stub-error", "wrong cause"), 0);
    b.finish();
}

#[test]
fn an_ipv4_packet_may_wait_for_an_ipv6_neighbour() {
    // RFC 8950: the node by the packet's link type, the neighbour by its own family.
    let mut b = Bench::new();
    let dpo = b.adjacency(LinkType::Ip4, ip6(7));
    b.inject(0, "stub4-incomplete", dpo, [192, 0, 2, 9].into(), 1);
    b.turn();
    assert_eq!(b.asked(), [(MacAddr::BROADCAST, ip6(7))]);
    b.reply(ip6(7), mac(7));
    b.lab.until("the packet", |lab| lab.sent_frames() == 1);
    assert_eq!(b.released(), [(mac(7), 0x0800, 1)]);
    // The neighbour fails, and comes back: that node's silence ends, too.
    crate::remove(&mut b.lab.c, b.sw_if, ip6(7)).unwrap();
    quick(&mut b, 10);
    b.inject(0, "stub4-incomplete", dpo, [192, 0, 2, 9].into(), 2);
    until_failed(&mut b, 1);
    b.asked();
    b.hear(0, ip6(7), mac(8), false);
    b.inject(0, "stub4-incomplete", dpo, [192, 0, 2, 9].into(), 3);
    b.turn();
    assert_eq!(b.released(), [(mac(8), 0x0800, 3)]);
    b.finish();
}

#[test]
fn old_neighbours_are_probed_by_their_familys_age() {
    let mut b = Bench::new();
    b.hear(0, ip4(7), mac(4), false);
    b.hear(0, ip6(7), mac(6), false);
    b.configure(Version::V6, |c| {
        (c.retry, c.age) = (Duration::from_millis(30), Duration::from_millis(60));
    });
    let gone = |b: &Bench| b.known(ip6(7)).is_none();
    let start = std::time::Instant::now();
    while !gone(&b) {
        assert!(start.elapsed() < Duration::from_secs(60));
        b.lab.c.run_once(Some(Duration::from_millis(2)));
    }
    assert_eq!(b.asked(), [(mac(6), ip6(7)); 3]);
    let state = b.lab.c.state::<Neighbors>();
    let stats = |family| state.borrow().stats(family).expired;
    assert_eq!((stats(Version::V4), stats(Version::V6)), (0, 1));
    assert_eq!(b.known(ip4(7)), Some(mac(4)));
    b.finish();
}

#[test]
fn both_families_are_shown_and_dumped() {
    let mut b = Bench::new();
    assert_eq!(b.cli("set ip neighbor test0 2001:db8::a00:2 02:00:00:00:00:06 static"), "");
    assert_eq!(b.cli("set ip neighbor test0 10.0.0.2 02:00:00:00:00:04"), "");
    crate::set(&mut b.lab.c, SwIfIndex(b.sw_if.0 + 1), ip6(9), mac(9), STATIC).unwrap();
    let text = b.cli("show ip neighbors");
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert_eq!(rows[1][1..], ["10.0.0.2", "D", "02:00:00:00:00:04", "test0"]);
    assert_eq!(rows[2][1..], ["2001:db8::a00:2", "S", "02:00:00:00:00:06", "test0"]);
    assert_eq!(rows[3][1..], ["2001:db8::a00:9", "S", "02:00:00:00:00:09", "test1"]);
    let dump = |b: &Bench, only, family| {
        let mut walk = crate::walk::NeighborWalk::new(only, family);
        let all = b.lab.c.state::<Neighbors>();
        let mut found = Vec::new();
        loop {
            match walk.next(&all.borrow()) {
                std::task::Poll::Ready(Some(n)) => found.push((n.sw_if, n.ip)),
                std::task::Poll::Ready(None) => return found,
                std::task::Poll::Pending => {}
            }
        }
    };
    let (a, z) = (b.sw_if, SwIfIndex(b.sw_if.0 + 1));
    assert_eq!(dump(&b, None, Some(Version::V6)), [(a, ip6(2)), (z, ip6(9))]);
    assert_eq!(dump(&b, None, Some(Version::V4)), [(a, ip4(2))]);
    assert_eq!(dump(&b, Some(a), None), [(a, ip4(2)), (a, ip6(2))]);
    assert_eq!(dump(&b, Some(z), Some(Version::V6)), [(z, ip6(9))]);
    assert_eq!(dump(&b, Some(z), Some(Version::V4)), []);
    assert_eq!(crate::api_types::family(AddressFamily::IP6).ok(), Some(Version::V6));
    let n = b.find(ip6(2)).unwrap();
    let shown = crate::api_types::describe(&n).unwrap();
    assert_eq!(shown.ip_address.ip().unwrap(), ip6(2));
    assert_eq!(shown.sw_if_index, InterfaceIndex(a.get()));
    assert_eq!(b.cli("clear ip neighbors | json"), "{\"flushed\":1}\n");
    assert_eq!(b.cli("set ip neighbor del test0 2001:db8::a00:2"), "");
    assert_eq!(dump(&b, None, None), [(z, ip6(9))]);
    assert_eq!(b.cli("set ip neighbor-advertise test0 | json"), "{\"sent\":2}\n");
    b.finish();
}

#[test]
fn replacing_keeps_what_was_configured_or_heard_since() {
    let mut b = Bench::new();
    let set = |b: &mut Bench, ip| crate::set(&mut b.lab.c, b.sw_if, ip, mac(3), STATIC).unwrap();
    for (ip, ..) in BOTH {
        set(&mut b, ip(2));
        set(&mut b, ip(3));
        b.hear(0, ip(4), mac(4), false);
        b.hear(0, ip(5), mac(5), false);
    }
    // A first beginning without an end does not count.
    crate::begin_replacing(&mut b.lab.c);
    for (ip, ..) in BOTH {
        set(&mut b, ip(3));
    }
    crate::begin_replacing(&mut b.lab.c);
    for (ip, ..) in BOTH {
        set(&mut b, ip(2));
        set(&mut b, ip(6));
        crate::remove(&mut b.lab.c, b.sw_if, ip(6)).unwrap();
        b.reply(ip(5), mac(55));
    }
    assert_eq!(crate::finish_replacing(&mut b.lab.c), 4);
    for (ip, ..) in BOTH {
        let there = (2..=6).filter(|n| b.known(ip(*n)).is_some()).collect::<Vec<u8>>();
        assert_eq!(there, [2, 5]);
    }
    // An end without a beginning deletes nothing.
    assert_eq!(crate::finish_replacing(&mut b.lab.c), 0);
    b.finish();
}

#[test]
fn addresses_decide_who_stays() {
    let mut b = Bench::new();
    let seen = watch(&mut b);
    let far = IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db9 << 96 | 9));
    crate::set(&mut b.lab.c, b.sw_if, far, mac(9), STATIC).unwrap();
    b.hear(0, ip6(7), mac(6), false);
    b.hear(0, ip4(7), mac(4), false);
    b.reply(far, mac(8));
    let routes: Vec<_> = seen.take().iter().map(|c| (c.ip, c.fib_entry)).collect();
    assert_eq!(routes, [(far, false), (ip6(7), true), (ip4(7), true)]);
    let new = IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db9 << 96 | 1));
    set_addresses(&mut b.lab.c, b.sw_if, &[(ip4(1), 24), (new, 64)]);
    let routes: Vec<_> = seen.take().iter().map(|c| (c.ip, c.mac, c.fib_entry)).collect();
    assert_eq!(routes, [(ip6(7), None, false), (far, Some(mac(9)), true)]);
    assert_eq!(b.known(ip4(7)), Some(mac(4)));
    b.finish();
}

#[test]
fn replies_never_asked_for_are_not_learned() {
    let mut b = Bench::of(2);
    let stranger = IpAddr::V6(Ipv6Addr::from_bits(0xfe80 << 112 | 7));
    let list = |b: &Bench| b.lab.c.state::<Neighbors>().borrow().list();
    for (ip, ..) in BOTH {
        for worker in 0..2 {
            b.hear(worker, stranger, mac(9), true);
            b.hear(worker, ip(7), mac(7), true);
            // Its own address, from outside.
            b.hear(worker, ip(1), mac(9), true);
        }
        assert!(list(&b).is_empty());
        // Announcements change what is known; a request makes its sender known.
        b.hear(0, ip(7), mac(7), false);
        b.hear(1, ip(7), mac(8), true);
        assert_eq!(b.known(ip(7)), Some(mac(8)));
        // A static neighbour cannot be moved; a learned one becomes static.
        crate::set(&mut b.lab.c, b.sw_if, ip(7), mac(3), STATIC).unwrap();
        b.hear(1, ip(7), mac(9), true);
        assert_eq!(b.known(ip(7)), Some(mac(3)));
        crate::remove(&mut b.lab.c, b.sw_if, ip(7)).unwrap();
    }
    assert_eq!(b.lab.c.state::<Neighbors>().borrow().stats(Version::V6).contradicted, 1);
    assert_eq!(crate::flush(&mut b.lab.c, None, None), 0);
    b.finish();
}

#[test]
fn a_failed_neighbour_that_is_deleted_is_asked_for_again() {
    let mut b = Bench::of(2);
    for (ip, ..) in BOTH {
        for flush in [false, true] {
            // The node is silent for a second now.
            b.packet(0, ip(7), 1);
            until_failed(&mut b, 1);
            b.asked();
            match flush {
                true => assert_eq!(crate::flush(&mut b.lab.c, None, None), 1),
                false => crate::remove(&mut b.lab.c, b.sw_if, ip(7)).unwrap(),
            }
            b.packet(0, ip(7), 2);
            b.turn();
            assert_eq!(b.asked(), [(MacAddr::BROADCAST, ip(7))]);
            b.reply(ip(7), mac(7));
            assert_eq!(b.known(ip(7)), Some(mac(7)));
            crate::remove(&mut b.lab.c, b.sw_if, ip(7)).unwrap();
        }
    }
    b.lab.sent();
    b.finish();
}

#[test]
fn many_neighbours_are_flushed_in_slices() {
    const MANY: u32 = 20_000;
    let mut b = Bench::new();
    let at = |n: u32| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(n)));
    let plain = NeighborFlags::default();
    for n in 0..MANY {
        let flags = if n % 100 == 0 { STATIC } else { plain };
        crate::set(&mut b.lab.c, b.sw_if, at(0x1_0000 + n), mac(3), flags).unwrap();
    }
    let done = Rc::new(std::cell::Cell::new(0));
    let found = done.clone();
    let start = std::time::Instant::now();
    let first = crate::flush_then(&mut b.lab.c, None, None, move |n| found.set(n));
    // The main thread is free in between, and what is set meanwhile stays.
    assert!(first < MANY as usize / 2, "{first} at once in {:?}", start.elapsed());
    crate::set(&mut b.lab.c, b.sw_if, at(0x1_0000 + MANY - 1), mac(4), plain).unwrap();
    let all = (MANY - MANY / 100 - 1) as usize;
    b.lab.until("the end", |_| done.get() == all);
    let left = b.lab.c.state::<Neighbors>().borrow().len();
    assert_eq!(left, MANY as usize / 100 + 1);
    b.finish();
}

#[test]
fn a_flood_from_two_workers_is_bounded_and_all_of_it_ends() {
    let mut b = Bench::of(2);
    set_addresses(&mut b.lab.c, b.sw_if, &[([10, 0, 0, 1].into(), 8), (ip6(1), 64)]);
    quick(&mut b, 300);
    let each = NEIGHBORS as u32 + 200;
    for worker in 0..2 {
        for n in 2..each + 2 {
            b.packet(worker, (0x0a01_0000 + n).to_be_bytes().into(), 1);
            let low = u128::from(0x0a01_0000 + n);
            b.packet(worker, IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | low)), 1);
        }
        b.turn();
    }
    for glean in ["stub4-glean", "stub6-glean"] {
        assert_eq!(b.count(glean, "packets held"), 2 * PER_WORKER as u64);
        assert!(b.count(glean, "too many unresolved neighbours") >= 400);
    }
    let pending = b.lab.c.state::<Neighbors>().borrow().list();
    assert!(pending.len() <= 4 * NEIGHBORS, "{}", pending.len());
    b.lab.until("their end", |lab| lab.count("stub-error", "address unreachable") == 1024);
    let sum = |text: &str| b.count("stub4-glean", text) + b.count("stub6-glean", text);
    let dropped = sum("too many packets held")
        + sum("too many unresolved neighbours")
        + sum("main thread busy");
    assert_eq!(dropped + 1024, u64::from(4 * each));
    b.finish();
}

#[test]
fn what_ends_meanwhile_releases_its_packets() {
    let mut b = Bench::of(2);
    let drops = |b: &Bench| b.count("stub6-glean", "unresolved neighbour");
    // The pending neighbour is deleted.
    b.packet(0, ip6(7), 1);
    b.packet(1, ip6(7), 2);
    b.turn();
    crate::remove(&mut b.lab.c, b.sw_if, ip6(7)).unwrap();
    b.turn();
    assert_eq!(drops(&b), 2);
    // The interface goes down.
    b.packet(0, ip6(7), 3);
    b.turn();
    b.lab.up(0, false);
    b.turn();
    assert_eq!(drops(&b), 3);
    b.lab.up(0, true);
    // A reply that is under way when the interface is deleted is not learned.
    b.packet(0, ip6(7), 4);
    b.packet(1, ip4(7), 5);
    let dpo = b.adjacency(LinkType::Ip6, ip6(8));
    b.inject(1, "stub6-incomplete", dpo, ip6(8), 6);
    b.turn();
    let sw_if = b.sw_if;
    interface::delete(&mut b.lab.c, sw_if).unwrap();
    b.turn();
    assert_eq!(drops(&b) + b.count("stub4-glean", "unresolved neighbour"), 5);
    assert_eq!(b.count("stub6-incomplete", "unresolved neighbour"), 1);
    let state = b.lab.c.state::<Neighbors>();
    assert!(state.borrow().list().is_empty());
    let error = crate::set(&mut b.lab.c, sw_if, ip6(7), mac(7), STATIC);
    assert_eq!(error, Err(NeighborError::NoInterface(sw_if)));
    let forwarding = b.lab.c.state::<Forwarding>();
    forwarding.borrow_mut().release(&b.lab.c, dpo);
    b.finish();
}

#[test]
fn limits_name_what_is_full() {
    let mut b = Bench::new();
    b.configure(Version::V6, |c| (c.limit, c.interface_limit) = (2, 1));
    crate::set(&mut b.lab.c, b.sw_if, ip6(2), mac(2), STATIC).unwrap();
    let text = b.cli("set ip neighbor test0 2001:db8::a00:3 02:00:00:00:00:03");
    let want = "`test0` has 1 IPv6 neighbours, which is the limit; raise it by \
                `set ip neighbor-config ip6 interface-limit`";
    assert!(text.contains(want), "{text}");
    crate::set(&mut b.lab.c, SwIfIndex(b.sw_if.0 + 1), ip6(2), mac(2), STATIC).unwrap();
    b.configure(Version::V6, |c| c.interface_limit = 9);
    let text = b.cli("set ip neighbor test0 2001:db8::a00:3 02:00:00:00:00:03");
    let want = "the limit is 2 entries; raise it by `set ip neighbor-config ip6 limit`";
    assert!(text.contains(want), "{text}");
    crate::set(&mut b.lab.c, b.sw_if, ip4(3), mac(2), STATIC).unwrap();
    b.finish();
}

#[test]
fn a_silence_does_not_pass_to_the_next_owner_of_an_index() {
    let mut b = Bench::new();
    quick(&mut b, 10);
    let dpo = b.adjacency(LinkType::Ip6, ip6(7));
    b.inject(0, "stub6-incomplete", dpo, ip6(7), 1);
    until_failed(&mut b, 1);
    b.asked();
    let forwarding = b.lab.c.state::<Forwarding>();
    forwarding.borrow_mut().release(&b.lab.c, dpo);
    let other = (8..=255).find_map(|n| {
        b.turn();
        (b.adjacency(LinkType::Ip6, ip6(n)) == dpo).then_some(ip6(n))
    });
    let other = other.expect("the index in use again");
    b.inject(0, "stub6-incomplete", dpo, other, 2);
    b.turn();
    assert_eq!(b.asked(), [(MacAddr::BROADCAST, other)]);
    b.reply(other, mac(8));
    b.lab.until("the packet", |lab| lab.sent_frames() == 1);
    assert_eq!(b.released(), [(mac(8), 0x86dd, 2)]);
    b.finish();
}

#[test]
fn a_subscriber_may_change_the_table() {
    let mut b = Bench::new();
    b.lab.c.subscribe(|c, change: &NeighborChange| {
        if change.mac == Some(mac(7)) {
            crate::remove(c, change.sw_if, change.ip).unwrap();
            crate::set(c, change.sw_if, ip4(8), mac(8), STATIC).unwrap();
            crate::flush(c, None, None);
        }
    });
    b.packet(0, ip6(7), 1);
    b.turn();
    b.reply(ip6(7), mac(7));
    b.lab.until("the drop", |lab| lab.count("stub6-glean", "unresolved neighbour") == 1);
    assert_eq!((b.known(ip6(7)), b.known(ip4(8))), (None, Some(mac(8))));
    b.finish();
}

/// The answer that is waited for is heard, whatever others make up.
#[test]
fn an_answer_gets_through_a_flood_of_others() {
    let mut b = Bench::new();
    for (ip, other) in [(ip4(7), ip4(8)), (ip6(7), ip6(8))] {
        b.packet(0, ip, 1);
        b.turn();
        for some in 0..20u16 {
            let one = |n: u16| {
                let [high, low] = (some * 100 + n).to_be_bytes();
                stub_reply(other, MacAddr([2, 1, 0, 0, high, low]))
            };
            let mut all: Vec<_> = (0..100).map(one).collect();
            if some == 19 {
                all.push(stub_reply(ip, mac(7)));
            }
            b.lab.deliver(0, all);
            b.lab.seen();
        }
        b.turn();
        assert_eq!(b.known(ip), Some(mac(7)), "{}", b.cli("show errors"));
    }
    assert!(b.count("stub-input", "stub senders lost") > 0);
    b.finish();
}

/// A scan of one link: the hosts of another one are resolved meanwhile, and their packets wait.
#[test]
fn a_scan_does_not_take_the_places_of_another_interface() {
    let mut b = Bench::new();
    let there = b.lab.sw_if(1);
    set_addresses(&mut b.lab.c, b.sw_if, &[([10, 0, 0, 1].into(), 8)]);
    set_addresses(&mut b.lab.c, there, &[([172, 16, 0, 1].into(), 24)]);
    for n in 0..3 * NEIGHBORS as u32 {
        b.packet(0, (0x0a01_0000 + n).to_be_bytes().into(), 1);
        if n % 256 == 255 {
            b.turn();
        }
    }
    b.lab.sent();
    b.sw_if = there;
    for host in 2..10 {
        b.packet(0, [172, 16, 0, host].into(), host);
    }
    b.turn();
    let asked: Vec<_> = b.asked().into_iter().map(|(_, ip)| ip).collect();
    for host in 2..10 {
        let ip = IpAddr::from([172, 16, 0, host]);
        assert!(asked.contains(&ip), "{ip}");
        let reply = stub_reply(ip, mac(host));
        b.lab.deliver(1, vec![[&thalweg_device::testing::our_mac(1).0[..], &reply[6..]].concat()]);
        b.lab.seen();
        b.turn();
        assert_eq!(b.released(), [(mac(host), 0x0800, host)], "{}", b.lab.cli("show errors"));
    }
    b.lab.ok("set interface state test0 down");
    b.finish();
}
