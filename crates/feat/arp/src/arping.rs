//! `arping` by ARP.

use crate::testing::{Bench, OUR_IP, US, ip, mac};
use std::time::{Duration, Instant};
use thalweg_cli::{Output, Task, TaskPoll};
use thalweg_device::{InterfaceEvent, interface};
use thalweg_feat_neighbor::arping::{ArpingError, Request, is_running, start};
use thalweg_wire::MacAddr;
use thalweg_wire::arp::ArpRepr;

fn request(b: &Bench, n: u8, repeat: u32) -> Request {
    let interval = Duration::from_secs(1);
    Request { ip: ip(n).into(), sw_if: b.sw_if, gratuitous: false, repeat, interval }
}

#[test]
fn requests_are_sent_one_by_one_and_replies_counted() {
    let mut b = Bench::new();
    let r = request(&b, 7, 2);
    let mut session = start(&mut b.lab.c, r).unwrap();
    assert!(matches!(start(&mut b.lab.c, r), Err(ArpingError::Running(_))));
    let (now, mut out) = (Instant::now(), Output::new());
    assert!(matches!(session.poll(&mut b.lab.c, now, &mut out), TaskPoll::At(at) if at > now));
    b.settle();
    let asked = [(MacAddr::BROADCAST, ArpRepr::request(US, OUR_IP, ip(7)))];
    assert_eq!(b.sent_arp(), asked);
    // Each reply counts, also the same within a second; others and requests do not.
    b.reply_from(7);
    b.reply_from(7);
    b.reply_from(8);
    b.request_from(7);
    b.sent();
    let later = now + Duration::from_secs(1);
    assert!(matches!(session.poll(&mut b.lab.c, later, &mut out), TaskPoll::Done));
    b.settle();
    assert_eq!(b.sent_arp(), asked);
    assert_eq!(session.answers(), (2, mac(7)));
    // Nothing is waited for now.
    b.reply_from(7);
    assert_eq!(session.answers(), (2, mac(7)));
    assert!(!is_running(&b.lab.c, b.sw_if));
    assert_eq!(b.known(7), Some(mac(7)), "it is learned as ever");
    b.finish();
}

#[test]
fn silence_ends_a_second_after_the_last_request() {
    let mut b = Bench::new();
    let r = request(&b, 7, 1);
    let mut session = start(&mut b.lab.c, r).unwrap();
    let (now, mut out) = (Instant::now(), Output::new());
    assert!(matches!(session.poll(&mut b.lab.c, now, &mut out), TaskPoll::At(_)));
    let early = now + Duration::from_millis(999);
    assert!(matches!(session.poll(&mut b.lab.c, early, &mut out), TaskPoll::At(_)));
    assert!(matches!(
        session.poll(&mut b.lab.c, now + Duration::from_secs(1), &mut out),
        TaskPoll::Done
    ));
    assert_eq!(session.answers().0, 0);
    b.finish();
}

#[test]
fn any_number_is_sent_in_slices() {
    let mut b = Bench::new();
    let r = Request { interval: Duration::ZERO, ..request(&b, 7, u32::MAX) };
    let mut session = start(&mut b.lab.c, r).unwrap();
    let (now, mut out) = (Instant::now(), Output::new());
    assert!(matches!(session.poll(&mut b.lab.c, now, &mut out), TaskPoll::At(at) if at > now));
    b.settle();
    assert_eq!(b.sent_arp().len(), 64);
    session.cancel(&mut b.lab.c, &mut out);
    assert!(!is_running(&b.lab.c, b.sw_if));
    b.finish();
}

#[test]
fn announcements_need_no_address_and_wait_for_nothing() {
    let mut b = Bench::new();
    crate::set_addresses(&mut b.lab.c, b.sw_if, &[]);
    let r = Request { gratuitous: true, ..request(&b, 9, 1) };
    let mut session = start(&mut b.lab.c, r).unwrap();
    let (now, mut out) = (Instant::now(), Output::new());
    assert!(matches!(session.poll(&mut b.lab.c, now, &mut out), TaskPoll::Done));
    b.settle();
    assert_eq!(b.sent_arp(), [(MacAddr::BROADCAST, ArpRepr::request(US, ip(9), ip(9)))]);
    // One at a time, whatever it sends.
    let mut first = start(&mut b.lab.c, r).unwrap();
    assert!(matches!(start(&mut b.lab.c, r), Err(ArpingError::Running(_))));
    first.cancel(&mut b.lab.c, &mut out);
    assert!(!is_running(&b.lab.c, b.sw_if));
    let r = request(&b, 9, 1);
    assert!(matches!(start(&mut b.lab.c, r), Err(ArpingError::NoSource(..))));
    b.finish();
}

#[test]
fn a_session_leaves_that_of_the_next_interface_alone() {
    let mut b = Bench::new();
    let r = request(&b, 7, 2);
    let (now, mut out) = (Instant::now(), Output::new());
    let mut old = start(&mut b.lab.c, r).unwrap();
    b.lab.c.publish(InterfaceEvent::Deleted(r.sw_if));
    crate::set_addresses(&mut b.lab.c, r.sw_if, &[(OUR_IP, 24)]);
    let mut new = start(&mut b.lab.c, r).unwrap();
    assert!(matches!(old.poll(&mut b.lab.c, now, &mut out), TaskPoll::Failed(_)));
    old.cancel(&mut b.lab.c, &mut out);
    assert!(matches!(new.poll(&mut b.lab.c, now, &mut out), TaskPoll::At(_)));
    new.cancel(&mut b.lab.c, &mut out);
    assert!(!is_running(&b.lab.c, b.sw_if));
    b.finish();
}

#[test]
fn a_session_fails_with_its_interface() {
    let mut b = Bench::new();
    let r = request(&b, 7, 3);
    let mut session = start(&mut b.lab.c, r).unwrap();
    let (now, mut out) = (Instant::now(), Output::new());
    assert!(matches!(session.poll(&mut b.lab.c, now, &mut out), TaskPoll::At(_)));
    interface::set_admin(&mut b.lab.c, r.sw_if, false).unwrap();
    let next = session.poll(&mut b.lab.c, now + r.interval, &mut out);
    assert!(matches!(next, TaskPoll::Failed(_)));
    assert!(matches!(start(&mut b.lab.c, r), Err(ArpingError::Unusable(..))));
    assert!(!is_running(&b.lab.c, b.sw_if));
    for bad in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "127.0.0.1"] {
        interface::set_admin(&mut b.lab.c, r.sw_if, true).unwrap();
        let r = Request { ip: bad.parse().unwrap(), gratuitous: true, ..r };
        assert!(matches!(start(&mut b.lab.c, r), Err(ArpingError::NoHost(_))));
    }
    b.finish();
}
