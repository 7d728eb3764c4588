//! Cases that the kernel brings about rarely.

#![allow(clippy::unwrap_used)]

use super::shadow::{Offer, Shadow};
use super::types::{Limits, Visited};
use super::{
    Backoff, Cause, LabelTtl, Room, RouteCounters, Routes, Shared, Worker, list_routes, wake,
};
use crate::Namespace;
use anyhow::ensure;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use thalweg_netlink::fib::{NextHopMessage, Placing, RouteMessage};
use thalweg_netlink::label::LabelMessage;
use thalweg_netlink::wire::payload as message;
use thalweg_netlink::{Port, Protocol};
use thalweg_netns::{LinkOptions, Netns, WAIT_LIMIT, veth, wait_until};
use thalweg_testkit::{lab_test, processor_time};

/// The payload of a message about a route to 192.0.2.`n`, by an object or a gateway.
fn route(n: u8, object: Option<u32>) -> Vec<u8> {
    message(&[2, 32, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0], |w| {
        w.bytes(1, &[192, 0, 2, n]);
        match object {
            Some(id) => w.u32(30, id),
            None => w.u32(4, 7).bytes(5, &[10, 0, 0, 1]),
        };
    })
}

fn object(id: u32) -> Vec<u8> {
    message(&[2, 0, 186, 0, 0, 0, 0, 0], |w| {
        w.u32(1, id).u32(5, 7).bytes(6, &[10, 0, 0, 1]);
    })
}

fn list(shadow: &mut Shadow, routes: impl Iterator<Item = u8>) {
    for n in routes {
        shadow.list(&RouteMessage::parse(&route(n, None)).unwrap());
    }
}

fn end(shadow: &mut Shadow) {
    shadow.end();
    let mut walk = shadow.walk();
    while shadow.sweep_some(&mut walk) {}
}

fn abandon(shadow: &mut Shadow) {
    shadow.abandon();
    let mut walk = shadow.walk();
    while shadow.mark_some(&mut walk) {}
}

fn offer(shadow: &mut Shadow, offer: &Offer) {
    let mut walk = shadow.walk();
    while shadow.offer_some(&mut walk, offer) {}
}

#[test]
fn a_list_that_ends_early_leaves_no_trace() {
    let mut shadow = Shadow::new(Limits::default());
    shadow.begin();
    list(&mut shadow, 0..10);
    end(&mut shadow);
    assert_eq!((shadow.len(), shadow.take(100).routes.len()), (10, 10));
    for listed in [0, 5] {
        shadow.begin();
        list(&mut shadow, 0..listed);
        abandon(&mut shadow);
        shadow.begin();
        list(&mut shadow, 0..10);
        end(&mut shadow);
        assert_eq!((shadow.len(), shadow.take(100).routes.len()), (10, 0));
    }
    shadow.begin();
    list(&mut shadow, 0..3);
    abandon(&mut shadow);
    shadow.begin();
    list(&mut shadow, 0..9);
    end(&mut shadow);
    let taken = shadow.take(100).routes;
    assert_eq!((shadow.len(), taken.len()), (9, 1));
    assert_eq!(taken[0].now, None);
    // All lists of hops but one are released.
    assert_eq!(shadow.lists.by_hops.len(), 1);
}

/// Its notice was lost: routes that were there before it are taken again.
#[test]
fn an_object_comes_after_its_routes() {
    let mut shadow = Shadow::new(Limits::default());
    let first = route(1, Some(5));
    shadow.add(Placing::Only, &RouteMessage::parse(&first).unwrap());
    assert_eq!(shadow.take(100).routes.len(), 1);
    shadow.set_object(&NextHopMessage::parse(&object(5)).unwrap());
    let early = shadow.take_early().unwrap();
    offer(&mut shadow, &early);
    let taken = shadow.take(100);
    assert_eq!((taken.objects.len(), taken.routes.len()), (1, 1));
    // Routes still name the object: it is not handed over as gone, and a list is due.
    shadow.delete_object(5);
    assert!(shadow.is_doubtful && shadow.take(100).gone.is_empty());
    shadow.begin();
    end(&mut shadow);
    let taken = shadow.take(100);
    assert_eq!((taken.routes.len(), taken.gone), (1, vec![5]));
    assert!(shadow.v4.is_empty() && shadow.lists.by_hops.is_empty());
}

/// One more object of many takes no longer than one of few, nor does a link that all are over.
#[test]
fn many_objects_are_set_offered_and_deleted() {
    let count = 40_000;
    let mut shadow = Shadow::new(Limits::default());
    let time = |shadow: &mut Shadow, ids: std::ops::Range<u32>| {
        let began = processor_time();
        for id in ids {
            shadow.set_object(&NextHopMessage::parse(&object(id)).unwrap());
        }
        processor_time() - began
    };
    let few = time(&mut shadow, 1..count / 20);
    time(&mut shadow, count / 20..count);
    let many = time(&mut shadow, count..count + count / 20);
    assert!(many < few * 10, "{many:?}, with few {few:?}");
    while shadow.take(1000).more {}
    let began = processor_time();
    let over = shadow.offer([Some(7)].into());
    assert_eq!(shadow.waiting(), shadow.objects());
    assert!(!over.is_empty());
    (1..count).for_each(|id| shadow.delete_object(id));
    let took = processor_time() - began;
    assert!(took < many * 200, "{took:?}, set {many:?}");
}

#[test]
fn what_is_gone_and_not_taken_is_in_a_walk() {
    let mut shadow = Shadow::new(Limits::default());
    let one = route(1, None);
    let one = RouteMessage::parse(&one).unwrap();
    shadow.add(Placing::Only, &one);
    assert_eq!(shadow.take(100).routes.len(), 1);
    shadow.delete(&one);
    let (mut walk, mut all) = (shadow.walk(), Visited::default());
    while shadow.some(&mut walk, &mut all) {}
    assert_eq!((all.routes.len(), &all.routes[0].now), (1, &None));
    assert_eq!((shadow.len(), shadow.take(100).routes.len()), (0, 1));
}

/// A namespace that is left loses labels meanwhile, ahead of the walk and behind.
#[test]
fn labels_that_go_during_a_walk_are_in_it() {
    let mut shadow = Shadow::new(Limits::default());
    let all = 16..3000;
    for n in all.clone() {
        set_label(&mut shadow, &label(n, None, 1));
    }
    assert_eq!(taken(&mut shadow).len(), all.len());
    let (mut walk, mut seen) = (shadow.walk(), Visited::default());
    assert!(shadow.some(&mut walk, &mut seen));
    assert!(seen.labels.len() < 1000, "{}", seen.labels.len());
    for n in (16..20).chain(1000..2999) {
        let payload = label(n, None, 1);
        shadow.delete_label(&LabelMessage::parse(&payload).unwrap());
    }
    while shadow.some(&mut walk, &mut seen) {}
    let gone = seen.labels.iter().filter(|change| change.now.is_none()).count();
    let mut labels: Vec<u32> = seen.labels.iter().map(|change| change.label).collect();
    labels.sort_unstable();
    assert_eq!((gone, labels), (1999, all.collect()));
}

#[test]
fn a_replacement_that_is_not_followed_is_doubtful() {
    let mut shadow = Shadow::new(Limits::default());
    let one = route(1, None);
    shadow.add(Placing::Only, &RouteMessage::parse(&one).unwrap());
    let mut throw = one.clone();
    throw[7] = 9;
    shadow.add(Placing::Replace, &RouteMessage::parse(&throw).unwrap());
    assert!(shadow.is_doubtful && shadow.left().unsupported == 1);
}

/// Routes that are left out count once, however often they are listed, and not once they are gone.
#[test]
fn what_is_left_out_is_counted_once() {
    let mut shadow = Shadow::new(Limits::default());
    let mut throw = route(1, None);
    throw[7] = 9;
    let (throw, mut odd) = (RouteMessage::parse(&throw).unwrap(), label(100, None, 1));
    odd[7] = 6;
    let odd = LabelMessage::parse(&odd).unwrap();
    for _ in 0..3 {
        shadow.begin();
        shadow.list(&throw);
        shadow.set_label(&odd);
        end(&mut shadow);
        assert_eq!(shadow.left().unsupported, 2);
    }
    // One that is being read says nothing yet, nor one that ends early.
    shadow.begin();
    assert_eq!(shadow.left().unsupported, 2);
    abandon(&mut shadow);
    assert_eq!(shadow.left().unsupported, 2);
    shadow.delete(&throw);
    shadow.delete_label(&odd);
    assert_eq!(shadow.left(), super::Left::default());
    shadow.delete(&throw);
    assert_eq!(shadow.left(), super::Left::default());
}

/// Tables beyond the limit are listed once others have gone, which they have when the end of their
/// last route is taken.
#[test]
fn tables_that_had_no_room_are_listed_when_there_is_some() {
    let mut shadow = Shadow::new(Limits { tables: 2, ..Limits::default() });
    let of = |table: u8, is_v4: bool| match is_v4 {
        true => message(&[2, 32, 0, 0, table, 186, 0, 1, 0, 0, 0, 0], |w| {
            w.bytes(1, &[192, 0, 2, 1]).u32(4, 7).bytes(5, &[10, 0, 0, 1]);
        }),
        false => message(&[10, 128, 0, 0, table, 186, 0, 1, 0, 0, 0, 0], |w| {
            w.bytes(1, &[9; 16]).u32(4, 7).bytes(5, &[8; 16]);
        }),
    };
    for is_v4 in [true, false] {
        let add = |shadow: &mut Shadow, table: u8| {
            shadow.add(Placing::Only, &RouteMessage::parse(&of(table, is_v4)).unwrap());
        };
        (1..4).for_each(|table| add(&mut shadow, table));
        assert_eq!((shadow.len(), shadow.left().beyond), (2, 1));
        let _ = shadow.take(100);
        shadow.delete(&RouteMessage::parse(&of(1, is_v4)).unwrap());
        assert!(!shadow.is_doubtful, "the table is there until its end is taken");
        let _ = shadow.take(100);
        assert!(std::mem::take(&mut shadow.is_doubtful));
        // The list names both that there are.
        shadow.begin();
        for table in [2, 3] {
            shadow.list(&RouteMessage::parse(&of(table, is_v4)).unwrap());
        }
        end(&mut shadow);
        let _ = shadow.take(100);
        assert_eq!((shadow.len(), shadow.is_doubtful), (2, false));
        for table in [2, 3] {
            shadow.delete(&RouteMessage::parse(&of(table, is_v4)).unwrap());
        }
        let _ = shadow.take(100);
        assert_eq!((shadow.len(), shadow.is_doubtful), (0, false));
    }
}

/// Routes and labels beyond the limits are taken once others have gone.
#[test]
fn what_had_no_room_is_listed_when_there_is_some() {
    let mut shadow = Shadow::new(Limits { routes: 5, labels: 2, ..Limits::default() });
    let fill = |shadow: &mut Shadow, first: u8| {
        shadow.begin();
        shadow.is_doubtful = false;
        list(shadow, first..6);
        (16 + u32::from(first)..19).for_each(|n| set_label(shadow, &label(n, None, 1)));
        end(shadow);
    };
    for _ in 0..2 {
        fill(&mut shadow, 0);
        assert_eq!((shadow.len(), shadow.labels(), shadow.left().beyond), (5, 2, 2));
        assert!(!shadow.is_doubtful, "there is no room");
    }
    shadow.delete(&RouteMessage::parse(&route(0, None)).unwrap());
    assert!(shadow.is_doubtful);
    shadow.is_doubtful = false;
    shadow.delete_label(&LabelMessage::parse(&label(16, None, 1)).unwrap());
    assert!(shadow.is_doubtful);
    fill(&mut shadow, 1);
    assert_eq!((shadow.len(), shadow.labels(), shadow.left()), (5, 2, super::Left::default()));
    // The list has more than there is room for until what it does not name is removed.
    shadow.begin();
    shadow.is_doubtful = false;
    list(&mut shadow, 100..105);
    end(&mut shadow);
    assert!(shadow.is_doubtful && shadow.len() < 5);
    shadow.begin();
    shadow.is_doubtful = false;
    list(&mut shadow, 100..105);
    end(&mut shadow);
    assert_eq!((shadow.len(), shadow.is_doubtful), (5, false));
}

#[test]
fn a_full_table_keeps_what_it_has() {
    let mut shadow = Shadow::new(Limits { routes: 5, ..Limits::default() });
    for _ in 0..2 {
        shadow.begin();
        list(&mut shadow, 0..10);
        end(&mut shadow);
        assert_eq!(shadow.len(), 5);
    }
    assert_eq!(shadow.left().beyond, 5);
}

/// The payload of a message about a label's route, which is swapped, or popped (`None`), by as many
/// links.
fn label(label: u32, swap: Option<u32>, links: u32) -> Vec<u8> {
    message(&[28, 20, 0, 0, 254, 193, 0, 1, 0, 0, 0, 0], |w| {
        w.bytes(1, &(label << 12 | 1 << 8).to_be_bytes());
        let hops: Vec<u8> = (1..=links)
            .flat_map(|link| {
                let attributes = message(&[], |w| {
                    w.bytes(18, &[2, 0, 10, 0, link as u8, 1]);
                    swap.into_iter().for_each(|to| _ = w.bytes(19, &(to << 12).to_be_bytes()));
                });
                let length = (8 + attributes.len()) as u16;
                [&length.to_ne_bytes()[..], &[0, 0], &link.to_ne_bytes(), &attributes].concat()
            })
            .collect();
        w.bytes(9, &hops);
    })
}

fn set_label(shadow: &mut Shadow, payload: &[u8]) {
    shadow.set_label(&LabelMessage::parse(payload).unwrap());
}

/// Takes all labels, with the number of hops of each; 0 for one that is gone.
fn taken(shadow: &mut Shadow) -> Vec<(u32, usize)> {
    let taken = shadow.take(usize::MAX);
    assert!(!taken.more);
    let hops = |change: &super::LabelChange| change.now.as_ref().map_or(0, |now| now.hops.len());
    taken.labels.iter().map(|change| (change.label, hops(change))).collect()
}

#[test]
fn labels_are_taken_once_and_followed_by_lists() {
    let mut shadow = Shadow::new(Limits::default());
    for swap in [200, 201, 202] {
        set_label(&mut shadow, &label(100, Some(swap), 2));
    }
    set_label(&mut shadow, &label(101, None, 1));
    assert_eq!((shadow.labels(), shadow.waiting()), (2, 2));
    assert_eq!(taken(&mut shadow), [(100, 2), (101, 1)]);
    let found = shadow.find_label(100).unwrap();
    assert_eq!(found.hops[0].labels[..], (202_u32 << 12).to_be_bytes());
    // Rows of the list that are as before are not taken again; a label without one is gone.
    shadow.begin();
    set_label(&mut shadow, &label(100, Some(202), 2));
    set_label(&mut shadow, &label(102, None, 1));
    end(&mut shadow);
    assert_eq!(taken(&mut shadow), [(101, 0), (102, 1)]);
    // A list that ends early removes nothing.
    shadow.begin();
    abandon(&mut shadow);
    shadow.begin();
    set_label(&mut shadow, &label(100, Some(202), 2));
    set_label(&mut shadow, &label(102, None, 1));
    end(&mut shadow);
    assert_eq!((taken(&mut shadow), shadow.labels()), (vec![], 2));
    let payload = label(100, Some(202), 2);
    shadow.delete_label(&LabelMessage::parse(&payload).unwrap());
    assert!(!shadow.is_doubtful);
    shadow.delete_label(&LabelMessage::parse(&payload).unwrap());
    assert!(shadow.is_doubtful, "it was not known");
    let (mut walk, mut all) = (shadow.walk(), Visited::default());
    while shadow.some(&mut walk, &mut all) {}
    let known: Vec<_> = all.labels.iter().map(|c| (c.label, c.now.is_some())).collect();
    assert_eq!(known, [(100, false), (102, true)]);
    shadow.begin();
    end(&mut shadow);
    assert_eq!(taken(&mut shadow), [(100, 0), (102, 0)]);
    assert!(shadow.lists.by_hops.is_empty());
}

#[test]
fn reserved_labels_and_more_than_there_is_room_for_are_left_out() {
    let mut shadow = Shadow::new(Limits { labels: 3, hops: 4, ..Limits::default() });
    for n in [0, 3, 15] {
        set_label(&mut shadow, &label(n, None, 1));
    }
    assert_eq!((shadow.labels(), shadow.left().unsupported), (0, 3));
    for n in 16..1000 {
        set_label(&mut shadow, &label(n, None, 1));
    }
    assert_eq!((shadow.labels(), shadow.left().beyond), (3, 981));
    // Ten thousand hops; one that is known may change.
    set_label(&mut shadow, &label(16, Some(3000), 1500));
    assert_eq!(taken(&mut shadow)[0], (16, 4));
    assert_eq!((shadow.labels(), shadow.left().beyond), (3, 982));
    // One that the kernel does not use any more, as its hops are dead.
    let mut dead = label(16, None, 1);
    dead.truncate(12 + 8);
    set_label(&mut shadow, &dead);
    assert_eq!((taken(&mut shadow), shadow.labels()), (vec![(16, 0)], 2));
}

#[test]
fn labels_over_a_link_are_offered() {
    let mut shadow = Shadow::new(Limits::default());
    for n in 16..2000 {
        set_label(&mut shadow, &label(n, Some(n), 1 + n % 2));
    }
    assert_eq!(taken(&mut shadow).len(), 1984);
    let over = shadow.offer([Some(2)].into());
    offer(&mut shadow, &over);
    assert_eq!(taken(&mut shadow).len(), 992);
    let all = shadow.offer([None].into());
    offer(&mut shadow, &all);
    assert_eq!(shadow.take(100).labels.len(), 100);
    assert_eq!(shadow.waiting(), 1884);
}

/// Hops of IPv6 to one router may differ by their labels alone.
#[test]
fn a_hop_that_goes_is_the_one_with_its_labels() {
    let hop = |label: u32| {
        let attributes = message(&[], |w| {
            w.bytes(5, &[0x20; 16]).u16(21, 1).nest(22, |w| {
                w.bytes(1, &(label << 12).to_be_bytes());
            });
        });
        let length = (8 + attributes.len()) as u16;
        [&length.to_ne_bytes()[..], &[0, 0], &7_u32.to_ne_bytes(), &attributes].concat()
    };
    let route = |labels: &[u32]| {
        message(&[10, 64, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0], |w| {
            let hops: Vec<u8> = labels.iter().flat_map(|label| hop(*label)).collect();
            w.bytes(1, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).bytes(9, &hops);
        })
    };
    let mut shadow = Shadow::new(Limits::default());
    shadow.add(Placing::Only, &RouteMessage::parse(&route(&[100, 200])).unwrap());
    shadow.delete(&RouteMessage::parse(&route(&[200])).unwrap());
    let taken = shadow.take(10).routes;
    let Some(super::Used { hops: super::Hops::These(hops), .. }) = &taken[0].now else { panic!() };
    assert_eq!(hops.len(), 1);
    assert_eq!(hops[0].labels[..], (100_u32 << 12).to_be_bytes());
}

#[test]
fn a_destination_has_routes_in_one_table_or_in_several() {
    let route = |table: u8| {
        message(&[2, 32, 0, 0, table, 186, 0, 1, 0, 0, 0, 0], |w| {
            w.bytes(1, &[192, 0, 2, 1]).u32(4, 7);
        })
    };
    let mut shadow = Shadow::new(Limits::default());
    for table in [254, 7] {
        shadow.add(Placing::Only, &RouteMessage::parse(&route(table)).unwrap());
        let taken = shadow.take(10);
        assert_eq!((taken.routes.len(), taken.is_single), (1, true));
    }
    shadow.add(Placing::Only, &RouteMessage::parse(&route(255)).unwrap());
    assert!(!shadow.take(10).is_single);
    // Until its end is taken, too, as the route of the other table follows it.
    shadow.delete(&RouteMessage::parse(&route(255)).unwrap());
    let taken = shadow.take(10);
    assert_eq!((taken.routes.len(), taken.is_single), (1, false));
    assert!(shadow.take(10).is_single);
}

/// A namespace that cannot be entered, as it is no network namespace: what is read then would be
/// the router's own.
#[test]
fn settings_are_read_in_their_namespace_or_not_at_all() {
    let ttl = LabelTtl { propagates: false, usual: 7 };
    let shared = Mutex::new(Shared { ttl, ..Shared::default() });
    let room = Arc::new(Room { shared, wake: wake().unwrap(), buffer: 0 });
    let worker = |inside: Option<&str>| Worker {
        room: room.clone(),
        name: "other".into(),
        inside: inside.map(|path| Namespace::open(path).unwrap()),
        buffer: 0,
        sockets: None,
        backoff: Backoff::default(),
        unread: Backoff::default(),
        up: BTreeMap::new(),
        due: None,
        last: None,
        retry: super::RETRY,
    };
    let port = thalweg_netlink::Port::open(thalweg_netlink::Protocol::Route).unwrap();
    let mut other = worker(Some("/proc/self/ns/uts"));
    for _ in 0..3 {
        let read = other.read_ttl();
        assert_eq!(read, None);
        assert!(other.unread.left().is_some() && other.inside.is_some());
        other.list_settings(&port, read).unwrap();
        assert_eq!(room.lock().ttl, ttl);
    }
    let mut own = worker(None);
    let read = own.read_ttl();
    assert!(read.is_some() && own.unread.left().is_none());
    own.list_settings(&port, read).unwrap();
    assert_eq!(Some(room.lock().ttl), read);
}

lab_test! {
    /// Routes forward before all have been listed.
    fn routes_are_taken_while_the_list_goes_on() {
        let (count, ns) = (2000, Netns::new("listed")?);
        let add = |n| format!("route add blackhole 20.{}.{}.0/24\n", n >> 8, n & 255);
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), (0..count).map(add).collect::<String>())?;
        ns.ip(&format!("-batch {}", file.path().display()))?;
        let port = ns.run(|| Port::open(Protocol::Route))??;
        let shared = Shared { shadow: Shadow::new(Limits::default()), ..Shared::default() };
        let room = Arc::new(Room { shared: Mutex::new(shared), wake: wake()?, buffer: 0 });
        let routes = Routes(room.clone());
        room.lock().shadow.begin();
        let early = Cell::new(0);
        let take = || {
            early.set(early.get() + routes.take(usize::MAX).routes.len());
            true
        };
        list_routes(&port, &room, &take)?;
        room.lock().shadow.end();
        ensure!(early.get() > count / 2 && early.get() < count, "{early:?}");
        ensure!(early.get() + routes.take(usize::MAX).routes.len() == count);
        ensure!(room.lock().changes() == count);
        Ok(())
    }

    /// Routes that change while the kernel is not heard are there once it is heard again.
    fn sockets_that_fail_are_opened_again() {
        let (ns, other) = (Netns::new("routes")?, Netns::new("other")?);
        veth((&ns, "twin", &LinkOptions::default()), (&other, "peer", &LinkOptions::default()))?;
        ns.ip("address add 10.0.0.1/24 dev twin")?;
        ns.ip("route add 192.0.2.1 via 10.0.0.2")?;
        let place = Namespace::open(&ns.path().display().to_string())?;
        let routes = Routes::start(Some(&place), Limits::default(), 1 << 20, || true)?;
        let until = |what: &str, is: &dyn Fn() -> bool| {
            wait_until(WAIT_LIMIT, what, || is().then_some(()))
        };
        let has = |n: u8| routes.find(&[254], ([192, 0, 2, n].into(), 32)).is_some();
        until("the first list", &|| routes.state().complete && has(1))?;
        routes.0.lock().faults = 3;
        ns.ip("route add 192.0.2.2 via 10.0.0.2")?;
        ns.ip("route del 192.0.2.1 via 10.0.0.2")?;
        let is_again = |c: &RouteCounters| c.last.is_some_and(|l| l.cause == Cause::Failure);
        until("a list", &|| is_again(&routes.state().counters))?;
        ensure!(has(2) && !has(1));
        // Each fault has one attempt to go on.
        assert_eq!((routes.state().counters.restarts, routes.0.lock().faults), (3, 0));
        ns.ip("route add 192.0.2.3 via 10.0.0.2")?;
        until("a notice", &|| has(3))?;
        Ok(())
    }
}
