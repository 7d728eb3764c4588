//! Many sub-interfaces.

use super::*;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use thalweg_device::{DeviceError, InterfaceEvent, Interfaces, SwIfIndex};
use thalweg_testkit::{processor_time, sized};
use thalweg_wire::MacAddr;

fn up(lab: &Lab) -> usize {
    let all = lab.c.state::<Interfaces>();
    all.borrow().iter().filter(|v| v.parent.is_some() && v.is_up()).count()
}

#[test]
fn a_port_has_thousands_without_nodes_of_their_own() {
    let mut lab = lab(1);
    let (port, nodes) = (lab.sw_if(0), lab.c.nodes().len());
    let began = processor_time();
    for id in 1..=4094u16 {
        sub(&mut lab, 0, id.into(), one(id));
    }
    assert!(processor_time() - began < Duration::from_secs(5), "{:?}", processor_time() - began);
    assert_eq!((lab.c.nodes().len(), up(&lab)), (nodes, 4094));
    // All that a sub-interface says of itself follows its parent.
    let events = Rc::new(Cell::new(0));
    let seen = events.clone();
    lab.c.subscribe(move |_, e: &InterfaceEvent| match e {
        InterfaceEvent::State(sw_if) if *sw_if > SwIfIndex(3) => seen.set(seen.get() + 1),
        _ => {}
    });
    lab.up(0, false);
    lab.until("all down", |lab| up(lab) == 0);
    lab.up(0, true);
    lab.until("all up", |lab| up(lab) == 4094);
    assert_eq!(events.get(), 2 * 4094);
    interface::set_mac(&mut lab.c, port, MacAddr([2, 0, 0, 0, 0, 0x77])).expect("a MAC address");
    interface::set_link_mtu(&mut lab.c, port, 1400).expect("an MTU");
    let last = interface::find(&lab.c, "test0.4094").expect("the last");
    let like_parent = |lab: &Lab| {
        let view = interface::view(&lab.c, last).expect("a view");
        (view.mac.0[5], view.link_mtu, view.mtu.l3) == (0x77, 1400, 1400)
    };
    lab.until("the last to follow", |lab| like_parent(lab));
    // They go with their parent, which reports that meanwhile.
    interface::delete(&mut lab.c, port).expect("delete");
    if let Err(e) = interface::create_sub(&mut lab.c, port, 5000, TagMatch::Default) {
        let text = e.to_string();
        assert!(text.contains("is being deleted") || text.contains("unknown"), "{text}");
    }
    lab.until("all gone", |lab| interface::view(&lab.c, port).is_err());
    assert_eq!(lab.c.state::<Interfaces>().borrow().iter().count(), 3);
    lab.interface(0);
    sub(&mut lab, 0, 1, one(1));
    lab.close();
}

/// Three ports full of them, by ranges, and more with two tags: each has an address, and routes.
#[test]
fn there_may_be_16384_with_an_address_each() {
    // Ports and kinds of tags are as many, but each is smaller unless the run may take long.
    let all_there_are: u32 = sized(4096, 16_384);
    let by_range = all_there_are / 4 - 2;
    let mut lab = lab(1);
    let began = processor_time();
    for port in 0..3 {
        lab.cli(&format!("create sub-interfaces test{port} 1-{by_range}"));
    }
    for n in 0..all_there_are - 3 * by_range {
        let (outer, inner) = (VlanTag::dot1ad(5 + (n / 4000) as u16), dot1q(1 + (n % 4000) as u16));
        let (port, id) = (lab.sw_if((n % 3) as u8), 10_000 + n);
        interface::create_sub(&mut lab.c, port, id, two(outer, inner)).expect("one more");
    }
    let all: Vec<SwIfIndex> = {
        let all = lab.c.state::<Interfaces>();
        let all = all.borrow();
        all.iter().filter(|v| v.parent.is_some()).map(|v| v.sw_if).collect()
    };
    assert_eq!(all.len(), all_there_are as usize);
    let net = |n: usize| Ipv4Addr::from(0x0b00_0000 + 4 * n as u32);
    for (n, sub) in all.iter().enumerate() {
        interface::set_admin(&mut lab.c, *sub, true).expect("up");
        let address = Ipv4Addr::from(net(n).to_bits() + 1);
        let name = lab.c.interface_name(*sub);
        lab.ok(&format!("set interface ip address {name} {address}/30"));
        lab.c.run_once(Some(Duration::ZERO));
    }
    let took = processor_time() - began;
    // Builds for tests have more checks.
    let limit = if cfg!(debug_assertions) { 20 } else { 5 };
    assert!(took < Duration::from_secs(limit), "{took:?}");
    // Some move from one to another, the last of all too.
    for (from, to) in [(0, all.len() - 1), (all.len() - 1, all.len() / 3), (all.len() / 2, 1)] {
        let far = Ipv4Addr::from(net(to).to_bits() + 2);
        neighbor(&mut lab, all[to], far, host(9));
        let (port, tags) = {
            let view = interface::view(&lab.c, all[from]).expect("a view");
            (view.parent.expect("a port"), view.sub.expect("tags").1.known())
        };
        let n = (0..3).find(|n| lab.sw_if(*n) == port).expect("a test interface");
        let src = Ipv4Addr::from(net(from).to_bits() + 2);
        lab.receive(n, vec![ipv4(n, 1, &tags, &udp(src, far, 20))]);
        let (sw_if, frame) = sent_one(&mut lab);
        let wanted = interface::view(&lab.c, all[to]).expect("a view");
        assert_eq!(Some(sw_if), wanted.parent);
        assert_eq!(parts(&frame).2, wanted.sub.expect("tags").1.known());
    }
    // A port goes with its own, and what is left works.
    let gone = lab.sw_if(1);
    interface::delete(&mut lab.c, gone).expect("delete");
    lab.until("all gone", |lab| interface::view(&lab.c, gone).is_err());
    let there = |lab: &Lab| lab.c.state::<Interfaces>().borrow().iter().count();
    let some = by_range as usize..3 * by_range as usize;
    assert!(some.contains(&there(&lab)), "{}", there(&lab));
    lab.close();
}

/// The main thread answers meanwhile: no slice is longer than 5 ms.
#[test]
fn a_large_family_goes_down_in_short_slices() {
    let each: u16 = sized(1500, 4000);
    let mut lab = lab(1);
    for outer in 1..=4u16 {
        for inner in 1..=each {
            let id = u32::from(outer) * 10_000 + u32::from(inner);
            sub(&mut lab, 0, id, two(VlanTag::dot1ad(outer), dot1q(inner)));
        }
    }
    let all = 4 * usize::from(each);
    assert_eq!(up(&lab), all);
    // The shortest of three, as processors are shared with others: their caches are, too.
    let round = |lab: &mut Lab| {
        let mut longest = Duration::ZERO;
        for (state, expected) in [(false, 0), (true, all)] {
            let mut began = processor_time();
            lab.up(0, state);
            longest = longest.max(processor_time() - began);
            while up(lab) != expected {
                began = processor_time();
                lab.c.run_once(Some(Duration::ZERO));
                longest = longest.max(processor_time() - began);
            }
        }
        longest
    };
    let longest = (0..3).map(|_| round(&mut lab)).min();
    // Builds for tests have more checks.
    let limit = if cfg!(debug_assertions) { 20 } else { 5 };
    assert!(longest < Some(Duration::from_millis(limit)), "{longest:?}");
    lab.close();
}

/// One more costs the same however many there are: medians, as other programs take time, too.
#[test]
fn one_costs_the_same_among_thousands() {
    let mut lab = lab(1);
    let (a, b) = (VlanTag::dot1ad(1), VlanTag::dot1ad(2));
    let median = |lab: &mut Lab| {
        let mut all: Vec<Duration> = (0..101u16)
            .map(|i| {
                let began = processor_time();
                let sw_if = sub(lab, 1, 1, two(a, dot1q(1 + i)));
                let name = lab.c.interface_name(sw_if);
                lab.ok(&format!("set interface l2 xconnect {name} test2\nset interface l3 {name}"));
                lab.ok(&format!("set interface l2 bridge {name} 77\nset interface l3 {name}"));
                interface::delete(&mut lab.c, sw_if).expect("delete");
                let took = processor_time() - began;
                lab.c.run_once(Some(Duration::ZERO));
                took
            })
            .collect();
        all.sort_unstable();
        all[50]
    };
    let few = median(&mut lab);
    for id in 1..=sized(2400, 8000u32) {
        let outer = if id <= 4000 { a } else { b };
        let sub = sub(&mut lab, 0, id, two(outer, dot1q(1 + (id % 4000) as u16)));
        match id % 2 {
            0 => thalweg_feat_l2::set_xconnect(&mut lab.c, sub, SwIfIndex(1))
                .expect("a cross connect"),
            _ => lab.ok(&format!("set interface l2 bridge test0.{id} 77")),
        }
        lab.c.run_once(Some(Duration::ZERO));
    }
    let many = median(&mut lab);
    assert!(many < few * 4, "{few:?}, among thousands {many:?}");
    lab.close();
}

#[test]
fn mistakes_change_nothing() {
    let mut lab = lab(1);
    let (port, sub) = (lab.sw_if(0), sub(&mut lab, 0, 5, one(5)));
    let nested = interface::create_sub(&mut lab.c, sub, 1, one(6)).expect_err("a sub of a sub");
    let text = "interface `test0.5` (sub-interface): a sub-interface is not supported";
    assert_eq!(nested.to_string(), text);
    let again = interface::create_sub(&mut lab.c, port, 5, one(6)).expect_err("the name");
    assert_eq!(again, DeviceError::Exists("test0.5".into()));
    // Exact or not, the tags are the same.
    let loose = TagMatch::Outer { tag: dot1q(5), exact: false };
    let tags = interface::create_sub(&mut lab.c, port, 6, loose).expect_err("the tags");
    assert_eq!(tags.to_string(), "`test0.5` receives the frames with tags dot1q 5 already");
    let id = interface::create_sub(&mut lab.c, port, 6, one(4095)).expect_err("the id");
    assert_eq!(id.to_string(), "VLAN id must be between 1 and 4094, not 4095");
    let local = interface::create_sub(&mut lab.c, SwIfIndex(0), 6, one(6)).expect_err("no device");
    assert!(matches!(local, DeviceError::Unsupported { .. }));
    let mac = interface::set_mac(&mut lab.c, sub, MacAddr([2; 6])).expect_err("its parent's");
    assert!(matches!(mac, DeviceError::Unsupported { .. }));
    assert_eq!(lab.c.state::<Interfaces>().borrow().subs_of(port).collect::<Vec<_>>(), [sub]);
    interface::delete(&mut lab.c, sub).expect("delete");
    interface::create_sub(&mut lab.c, port, 5, loose).expect("its tags are free");
    lab.close();
}
