//! Fragments: rules see later fragments with the tracking state of the first.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::lab::{CLIENT_MAC, Lab, SERVER_MAC};
use crate::{CLIENT, SERVER, guarded, taken};
use thalweg_wire::build::Packet;
use thalweg_wire::checksum;

/// Cuts a frame into fragments with `each` bytes after the IPv4 header, with valid checksums.
pub fn cut(frame: &[u8], each: usize, id: u16) -> Vec<Vec<u8>> {
    let (head, payload) = frame.split_at(34);
    let count = payload.len().div_ceil(each);
    let part = |(n, data): (usize, &[u8])| {
        let mut part = [head, data].concat();
        let more = if n + 1 < count { 0x2000 } else { 0 };
        part[16..18].copy_from_slice(&(20 + data.len() as u16).to_be_bytes());
        part[18..20].copy_from_slice(&id.to_be_bytes());
        part[20..22].copy_from_slice(&(more | (n * each / 8) as u16).to_be_bytes());
        summed(part)
    };
    payload.chunks(each).enumerate().map(part).collect()
}

pub fn summed(mut frame: Vec<u8>) -> Vec<u8> {
    frame[24..26].fill(0);
    let header: [u8; 20] = frame[14..34].try_into().unwrap();
    let sum = checksum::ipv4_header(&header);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// A datagram to the server or, with `there` false, from it.
fn datagram(there: bool, bytes: usize) -> Vec<u8> {
    let packet = Packet::new();
    let packet = match there {
        true => packet.ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER).udp(5000, 53),
        false => packet.ether(SERVER_MAC, CLIENT_MAC).ipv4(SERVER, CLIENT).udp(53, 5000),
    };
    packet.payload_len(bytes).build()
}

pub fn dropped(lab: &mut Lab, reason: &str) -> u64 {
    let text = lab.cli("show errors");
    let lines = text.lines().filter(|line| line.contains(reason));
    lines.filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

/// Parts pass in any order of arrival, whichever worker owns the connection.
fn the_four_rules_let_parts_through(workers: usize) {
    let mut lab = guarded(workers);
    let [left, right] = lab.ports;
    let wrong = cut(&datagram(false, 3000), 1480, 1);
    assert!(lab.pass(1, &wrong).is_empty(), "opened from the wrong side");
    let orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]];
    for (n, order) in (10u16..).zip(orders) {
        for (there, port, out) in [(true, 0, right), (false, 1, left)] {
            let parts = cut(&datagram(there, 3000), 1480, n);
            let mixed: Vec<Vec<u8>> = order.iter().map(|at| parts[*at].clone()).collect();
            let mut seen = lab.pass(port, &mixed);
            seen.sort();
            let mut want: Vec<_> = parts.into_iter().map(|part| (out, part)).collect();
            want.sort();
            assert_eq!(seen.len(), 3, "{order:?} {there}");
            assert_eq!(seen, want);
        }
    }
    let shown = lab.cli("show conntrack -s");
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert!(shown.contains("packets=12/12"), "{shown}");
    assert_eq!(taken(&mut lab, "+trk+est"), 9 + 12);
    assert_eq!(taken(&mut lab, "-trk"), 3 + 24, "each is counted once");
    lab.close();
}

#[test]
fn parts_go_the_way_of_the_first() {
    the_four_rules_let_parts_through(1);
}

#[test]
fn parts_go_to_the_worker_of_the_first() {
    the_four_rules_let_parts_through(2);
}

/// A fragment must not overwrite ports or flags of the first.
#[test]
fn parts_that_overlap_are_invalid() {
    let mut lab = guarded(1);
    let parts = cut(&datagram(true, 3000), 1480, 7);
    let mut over = parts[1].clone();
    over[21] -= 1;
    let over = summed(over);
    assert_eq!(lab.pass(0, &[parts[0].clone(), over, parts[1].clone()]).len(), 2);
    assert_eq!(dropped(&mut lab, "dropped by a rule"), 1);
    lab.close();
}

/// No datagram has such a part: it is no fragment for rules, and invalid for the tracker.
#[test]
fn parts_behind_the_end_of_a_datagram_are_none() {
    for workers in [1, 2] {
        let mut lab = Lab::new(workers, 2048);
        lab.ok("flow add 1 priority=2,ip,nw_frag=later,actions=normal
             flow add 1 priority=2,ipv6,nw_frag=later,actions=normal
             flow add 1 priority=1,ip,ct_state=-trk,actions=ct(table=0)
             flow add 1 priority=1,ipv6,ct_state=-trk,actions=ct(table=0)
             flow add 1 priority=1,ct_state=+trk-inv,actions=normal
             flow add 1 priority=0,actions=drop
             set interface flow port0 1");
        let v4 = |offset: usize, bytes: usize| {
            let packet = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER);
            packet.fragment(offset, false).udp(1, 2).payload_len(bytes - 8).build()
        };
        let v6 = |offset: usize, bytes: usize| {
            let whole = crate::ipv6::there().ipv6(crate::ipv6::CLIENT, crate::ipv6::SERVER);
            let whole = whole.udp(1, 2).payload_len(bytes - 8).build();
            let word = (offset as u16).to_be_bytes();
            let header = [&[0, 0], &word[..], &[0, 0, 0, 7]].concat();
            crate::ipv6::extended(&whole, 44, &header)
        };
        // An IPv4 datagram's header counts, a payload's fragment header does not.
        for (frame, passes) in [
            (v4(64_984, 531), true),
            (v4(64_984, 532), false),
            (v4(65_528, 588), false),
            (v6(64_984, 551), true),
            (v6(64_984, 552), false),
            (v6(65_528, 588), false),
        ] {
            for n in [1, 40] {
                let frames = vec![frame.clone(); n];
                assert_eq!(lab.pass(0, &frames).len(), if passes { n } else { 0 });
            }
        }
        lab.close();
    }
}

/// A limited number of fragments waits, for a limited time.
#[test]
fn parts_without_a_first_end_with_a_reason() {
    let mut lab = guarded(1);
    let parts = |n: u16| cut(&datagram(true, 3000), 1480, n).split_off(1);
    let lonely: Vec<Vec<u8>> = (0..300).flat_map(parts).collect();
    let begun = std::time::Instant::now();
    for some in lonely.chunks(100) {
        // Waiting fragments have not been sent or dropped.
        lab.pass_until(0, some, 0);
    }
    while dropped(&mut lab, "timeout waiting for the first") < 256 {
        assert!(begun.elapsed() < thalweg_testkit::WAIT_LIMIT, "{}", lab.cli("show errors"));
        lab.c.run_once(Some(Duration::from_millis(50)));
    }
    assert!(begun.elapsed() > Duration::from_millis(1800));
    assert_eq!(dropped(&mut lab, "too many fragments waiting"), lonely.len() as u64 - 256);
    // No rule has matched them, and other packets pass.
    assert_eq!(taken(&mut lab, "-trk"), 0);
    assert_eq!(lab.pass(0, &cut(&datagram(true, 3000), 1480, 9)).len(), 3);
    lab.ok("flow add 1 priority=9,ip,nw_dst=48.0.0.9,actions=normal");
    let mut other = cut(&datagram(true, 3000), 1480, 5).remove(2);
    other[33] = 9;
    assert_eq!(lab.pass(0, &[summed(other)]).len(), 1, "no rule asks the tracker about it");
    // The buffer of a fragment that still waits is returned.
    lab.pass_until(0, &lonely[..1], 0);
    lab.close();
}

/// Parts without a first that come by one port leave places to wait at to those of another.
#[test]
fn a_flood_of_parts_leaves_places_to_other_ports() {
    let mut lab = guarded(1);
    let [left, _] = lab.ports;
    assert_eq!(lab.pass(0, &[datagram(true, 100)]).len(), 1);
    let parts = |n: u16| cut(&datagram(true, 3000), 1480, n).split_off(1);
    let lonely: Vec<Vec<u8>> = (10..310).flat_map(parts).collect();
    for some in lonely.chunks(100) {
        lab.pass_until(0, some, 0);
    }
    let mut late_first = cut(&datagram(false, 3000), 1480, 7);
    late_first.reverse();
    // Two of the flood give way.
    let seen = lab.pass_until(1, &late_first, 2 + 3);
    assert_eq!(seen.len(), 3, "{}", lab.cli("show errors"));
    assert!(seen.iter().all(|(port, _)| *port == left));
    assert_eq!(dropped(&mut lab, "too many fragments waiting"), lonely.len() as u64 - 256 + 2);
    lab.close();
}

/// The next interface may have its index before the first fragment comes.
#[test]
fn waiting_parts_end_with_their_interface() {
    for workers in [1, 2] {
        let mut lab = guarded(workers);
        let part = |there: bool, n: u16| cut(&datagram(there, 3000), 1480, n).remove(1);
        lab.pass_until(0, &[part(true, 1), part(true, 2)], 0);
        lab.pass_until(1, &[part(false, 3)], 0);
        let gone = lab.ports[0];
        thalweg_device::interface::delete(&mut lab.c, gone).expect("it exists");
        lab.c.sync();
        assert_eq!(dropped(&mut lab, "interface of a waiting fragment is deleted"), 2);
        lab.close();
    }
}

#[test]
fn parts_are_translated_as_the_first_is() {
    for workers in [1, 2] {
        let mut lab = Lab::new(workers, 2048);
        let [left, right] = lab.ports;
        let outside = Ipv4Addr::new(192, 0, 2, 1);
        lab.ok("flow add 7 table=0,ip,actions=ct(table=1,nat)
             flow add 7 table=1,ip,ct_state=+new,in_port=port0,actions=ct(commit,nat(src=192.0.2.1)),normal
             flow add 7 table=1,ip,ct_state=+est,actions=normal
             set interface flow port0 7
             set interface flow port1 7");
        let whole = datagram(true, 3000);
        let seen = lab.pass(0, &cut(&whole, 1480, 1));
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|(port, f)| *port == right && f[26..30] == outside.octets()));
        // Reassembled, they equal the datagram built with the translated address.
        let sport = u16::from_be_bytes([seen[0].1[34], seen[0].1[35]]);
        let want = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(outside, SERVER);
        let want = want.udp(sport, 53).payload_len(3000).build();
        assert_eq!(
            seen.iter().flat_map(|(_, f)| f[34..].to_vec()).collect::<Vec<u8>>(),
            want[34..]
        );
        assert!(seen.iter().all(|(_, f)| summed(f.clone()) == *f));
        let back = Packet::new().ether(SERVER_MAC, CLIENT_MAC).ipv4(SERVER, outside);
        let seen = lab.pass(1, &cut(&back.udp(53, sport).payload_len(3000).build(), 1480, 2));
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|(port, f)| *port == left && f[30..34] == CLIENT.octets()));
        let again = cut(&datagram(true, 2000), 1480, 3);
        let seen = lab.pass(0, &[again[1].clone(), again[0].clone()]);
        assert!(seen.len() == 2 && seen.iter().all(|(_, f)| f[26..30] == outside.octets()));
        lab.close();
    }
}
