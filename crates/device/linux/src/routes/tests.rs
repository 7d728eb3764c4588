//! Cases that the kernel brings about rarely.

#![allow(clippy::unwrap_used)]

use super::shadow::{Limits, Offer, Shadow};
use thalweg_netlink::fib::{NextHopMessage, Placing, RouteMessage};
use thalweg_netlink::wire::{Header, Writer};

fn message(head: &[u8], fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut message = Vec::new();
    let mut w = Writer::with_payload(&mut message, Header::default(), head);
    fill(&mut w);
    w.finish();
    message.split_off(16)
}

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

#[test]
fn what_is_gone_and_not_taken_is_in_a_walk() {
    let mut shadow = Shadow::new(Limits::default());
    let one = route(1, None);
    let one = RouteMessage::parse(&one).unwrap();
    shadow.add(Placing::Only, &one);
    assert_eq!(shadow.take(100).routes.len(), 1);
    shadow.delete(&one);
    let (mut walk, mut all) = (shadow.walk(), Vec::new());
    while shadow.some(&mut walk, &mut all) {}
    assert_eq!((all.len(), &all[0].now), (1, &None));
    assert_eq!((shadow.len(), shadow.take(100).routes.len()), (0, 1));
}

#[test]
fn a_replacement_that_is_not_followed_is_doubtful() {
    let mut shadow = Shadow::new(Limits::default());
    let one = route(1, None);
    shadow.add(Placing::Only, &RouteMessage::parse(&one).unwrap());
    let mut throw = one.clone();
    throw[7] = 9;
    shadow.add(Placing::Replace, &RouteMessage::parse(&throw).unwrap());
    assert!(shadow.is_doubtful && shadow.left.unsupported == 1);
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
    assert_eq!(shadow.left.beyond, 10);
}
